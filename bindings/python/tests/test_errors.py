"""Errors are Python's exceptions with the texts of the program."""

import numpy
import pytest

import lapa


def raises(kind, text, call, *arguments, **keywords):
    with pytest.raises(kind) as caught:
        call(*arguments, **keywords)
    assert text in str(caught.value), str(caught.value)


def test_configurations(small, tmp_path):
    raises(lapa.ConfigError, "config:2:1", lapa.run, "\nrum.rounds = 3")
    raises(lapa.ConfigError, "rounds", lapa.run, {"run": {"rounds": 0}})
    raises(lapa.ConfigError, "changes", lapa.run, small, changes=["run.rounds"])
    raises(lapa.ConfigError, "cannot read nowhere.toml", lapa.run, "nowhere.toml")
    raises(TypeError, "config must be a path", lapa.run, 3)
    raises(ValueError, "is not a valid value", lapa.run, {"run": {"rounds": float("nan")}})
    raises(lapa.ConfigError, "partition", lapa.run, small, changes=["partition.mix.iid_samples=50000"])
    raises(lapa.DataError, "idx", lapa.run, small, changes=[f"data.name=idx:{tmp_path}"])
    raises(ValueError, "resume cannot be combined", lapa.run, small, resume=tmp_path)
    raises(lapa.LapaError, "is not the folder of a run", lapa.run, resume=tmp_path)
    raises(lapa.LedgerError, "need a ledger", lapa.run, small, changes=["run.entropy=os"])


def test_the_texts_are_those_of_the_program(small, tmp_path, binary):
    file = tmp_path / "bad.toml"
    file.write_text(small + "\n[learn2]\n")
    with pytest.raises(lapa.ConfigError) as caught:
        lapa.run(file)
    said = binary("config", "check", file, cwd=tmp_path).stderr
    first = str(caught.value).splitlines()[0]
    words = first.split(": ", 1)[1].split()
    assert all(word in said for word in words), (first, said)


def test_accounting():
    raises(TypeError, "sigma or events", lapa.account, delta=1e-5)
    raises(ValueError, "adjacency = ", lapa.account, 1.0, delta=1e-5, adjacency="near")
    raises(lapa.LapaError, "delta", lapa.account, 1.0, delta=2.0)
    raises(ValueError, "expected one of", lapa.calibrate, 8, 1e-5, 10, accountant="best")
    raises(lapa.LapaError, "epsilon", lapa.calibrate, -1, 1e-5, 10)
    raises(lapa.LapaError, "order", lapa.Filter, 8, 1e-5, order=0.5)
    raises(lapa.Refused, "expected a number from 0", lapa.Filter(8, 1e-5).charge, 1e9)


def test_noise():
    call = lapa.clip_and_noise
    raises(ValueError, "need a denominator", call, numpy.zeros((2, 3)), clip_norm=1, sigma=1)
    raises(ValueError, "3 dimensions", call, numpy.zeros((2, 3, 1)), clip_norm=1, sigma=1)
    raises(lapa.LapaError, "clip_norm = 0", call, numpy.zeros(3), clip_norm=0, sigma=1)
    raises(lapa.LapaError, "sigma", call, numpy.zeros(3), clip_norm=1, sigma=float("nan"))


def test_allocators():
    raises(ValueError, 'allocator = "best"', lapa.Allocator, "best", rounds=3, devices=2)
    raises(ValueError, "epsilon is required", lapa.Allocator, "optimal-split", rounds=3, devices=2)
    raises(lapa.LapaError, "rounds", lapa.Allocator, rounds=0, devices=2)
    allocator = lapa.Allocator("uniform", rounds=3, devices=2)
    raises(KeyError, "weights has no device 1", allocator.allocate, 1, {1: 1.0}, weights={0: 1.0})
    raises(ValueError, "not finite", allocator.observe, 1, {0: [float("inf")]}, weights={0: 1.0})
    raises(ValueError, "state", allocator.restore, "{}")


def test_ledgers(tmp_path):
    raises(lapa.LedgerError, "", lapa.Ledger, tmp_path / "none.db", read_only=True)
    (tmp_path / "text.db").write_text("not a ledger" * 100)
    raises(lapa.LedgerError, "", lapa.Ledger, tmp_path / "text.db")
    ledger = lapa.Ledger(tmp_path / "ledger.db")
    raises(lapa.LedgerError, "call begin", ledger.charge, "run", 1, 0, sigma=1.0)


def test_devices_and_base_stations(small, tmp_path):
    config = small.replace('"ideal"', '"analog"')
    raises(lapa.ConfigError, '"ideal"', lapa.Device, config, 0, ledger=tmp_path / "a.db", seeded=True)
    raises(TypeError, "images and labels", lapa.Device, small, 0, ledger=tmp_path / "a.db", samples=3)
    images = numpy.zeros((3, 28, 28), numpy.uint8)
    labels = numpy.array([0, 1, 11], numpy.uint8)
    own = {"ledger": tmp_path / "a.db", "images": images, "labels": labels}
    raises(lapa.DataError, "a label is 11", lapa.Device, small, 0, **own)
    raises(lapa.ConfigError, "no devices", lapa.BaseStation, small, [], folder=tmp_path / "s")
    raises(TypeError, "is missing", lapa.BaseStation, small, [{"device": 0}], folder=tmp_path / "s")
