"""Devices and a base station: equal to the simulator, refusing by themselves, going on after a restart."""

import sys

import numpy
import pytest

import lapa

ALL = [0, 1, 2, 3]


class Federation:
    """Four devices and a base station in a folder."""

    def __init__(self, config, folder, **keywords):
        self.config, self.folder, self.keywords = config, folder, keywords
        self.restart()

    def restart(self):
        """Everything as new processes would find it."""
        self.station = None
        self.devices = [
            lapa.Device(self.config, k, ledger=self.folder / f"{k}.db", **self.keywords) for k in ALL
        ]
        facts = [device.describe() for device in self.devices]
        self.station = lapa.BaseStation(self.config, facts, folder=self.folder / "station")

    def answers(self, questions):
        station = self.station
        return {
            question["device"]: self.devices[question["device"]].train(
                station.run, question["round"], station.parameters, question["cost"]
            )
            for question in reversed(questions)
        }

    def round(self):
        return self.station.step(self.answers(self.station.ask(ALL)))


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["privacy.allocator=lapa"],
        ["privacy.allocator=lapa", "learn.sampling=fixed", "aggregate.rule=fedadp"],
    ],
)
def test_seeded_devices_are_the_simulator_bit_by_bit(small, tmp_path, changes):
    result = lapa.run(small, changes=changes)
    devices = [
        lapa.Device(small, k, ledger=tmp_path / f"{k}.db", seeded=True, changes=changes) for k in ALL
    ]
    facts = [device.describe() for device in devices]
    station = lapa.BaseStation(small, facts, folder=tmp_path / "run", changes=changes)
    for number in range(1, 5):
        answers = {}
        for question in reversed(station.ask(ALL)):
            device = question["device"]
            answers[device] = devices[device].train(
                station.run, question["round"], station.parameters, question["cost"]
            )
        record = station.step(answers)
        assert (record["round"], record["dropped"], record["missing"]) == (number, [], [])
    flat = numpy.concatenate([result.model[name].ravel() for name in result.model])
    assert numpy.array_equal(station.evaluated, flat)
    assert station.evaluate()[0] == result.summary["accuracy"]
    ours = station.summary()
    for key in ("accuracy", "loss", "epsilon_provable", "epsilon_spent", "epsilon_claimed_total"):
        assert ours[key] == result.summary[key]
    # A base station has its devices' word for it.
    assert result.summary["privacy"].startswith("Guarantee: proven")
    assert ours["privacy"].startswith("Guarantee: declared by the devices")


def test_label_histograms_come_first(small, tmp_path):
    config = small + '\naggregate = { rule = "wasserstein", wasserstein.histograms = "noisy" }\n'
    federation = Federation(config, tmp_path, seeded=True)
    with pytest.raises(lapa.LapaError, match="histograms come before"):
        federation.station.ask(ALL)
    counts = {
        question["device"]: federation.devices[question["device"]].histogram(
            federation.station.run, question["cost"]
        )
        for question in federation.station.ask_histograms()
    }
    assert {len(count) for count in counts.values()} == {10}
    counts[3] = counts[3][:9]
    dropped = federation.station.learn_histograms(counts)
    assert [item["device"] for item in dropped] == [3]
    assert federation.station.ask_histograms() == []
    federation.round()


def test_a_restart_in_the_middle_of_a_round_spends_nothing_twice(small, tmp_path):
    federation = Federation(small, tmp_path)
    federation.round()
    questions = federation.station.ask(ALL)
    first = federation.answers(questions)
    spent = [device.spent() for device in federation.devices]
    name = federation.station.run
    federation.restart()
    assert (federation.station.run, federation.station.round) == (name, 1)
    assert federation.station.ask(ALL) == questions
    again = federation.answers(questions)
    for device in ALL:
        assert numpy.array_equal(first[device], again[device])
    assert [device.spent() for device in federation.devices] == spent
    assert federation.station.step(again)["round"] == 2


def test_a_device_refuses_by_itself(small, tmp_path):
    device = lapa.Device(small, 0, ledger=tmp_path / "0.db")
    parameters = numpy.zeros(device.describe()["parameters"], numpy.float32)
    for cost in (2.0, 1e9, float("nan"), float("inf"), 0.0, -1.0):
        with pytest.raises(lapa.Refused, match="device 0 refuses"):
            device.train("run", 1, parameters, cost)
    for number in (0, 5):
        with pytest.raises(lapa.Refused, match="allowed is 1 to 4"):
            device.train("run", number, parameters, 1.0)
    with pytest.raises(lapa.Refused, match="its model has"):
        device.train("run", 1, parameters[1:], 1.0)
    with pytest.raises(lapa.Refused, match="parameter 0 is"):
        device.train("run", 1, numpy.full_like(parameters, numpy.nan), 1.0)
    assert device.spent()["releases"] == 0
    for number in range(1, 5):
        device.train("run", number, parameters, 1.0)
    # The budget is spent: no other run gets anything, nor a new process.
    again = lapa.Device(small, 0, ledger=tmp_path / "0.db")
    for asked in (device, again):
        with pytest.raises(lapa.Refused, match="0 is left"):
            asked.train("another run", 1, parameters, 1.0)
        assert asked.spent()["epsilon"] <= 8.0 == asked.spent()["declared"]


def test_strange_answers_are_dropped_and_named(small, tmp_path):
    federation = Federation(small, tmp_path, seeded=True)
    answers = federation.answers(federation.station.ask(ALL))
    answers[0] = numpy.full_like(answers[0], numpy.nan)
    answers[1] = numpy.append(answers[1], 0)
    answers[2] = answers[2] * 1e6
    answers[9] = numpy.zeros(3)
    del answers[3]
    record = federation.station.step(answers)
    reasons = {item["device"]: item["reason"] for item in record["dropped"]}
    assert set(reasons) == {0, 1, 2, 9} and record["missing"] == [3]
    assert "not finite" in reasons[0] and "values for a model" in reasons[1]
    assert "its norm is" in reasons[2] and "not asked" in reasons[9]
    assert numpy.isfinite(federation.station.parameters).all()


def test_records_of_one_s_own(small, tmp_path):
    draw = numpy.random.default_rng(1)
    images = draw.integers(0, 256, (50, 28, 28), dtype=numpy.uint8)
    labels = draw.integers(0, 10, 50, dtype=numpy.uint8)
    device = lapa.Device(small, 0, ledger=tmp_path / "0.db", images=images, labels=labels)
    facts = device.describe()
    assert (facts["samples"], facts["classes"], facts["seeded"]) == (50, 10, 0)
    update = device.train("run", 1, numpy.zeros(facts["parameters"]), 1.0)
    assert update.dtype == numpy.float32 and numpy.isfinite(update).all()
    # Not contiguous, as slices are.
    every = lapa.Device(small, 1, ledger=tmp_path / "1.db", images=images[::2], labels=labels[::2])
    assert every.describe()["samples"] == 25


def test_training_is_charged_first_and_what_it_raises_counts_as_zero(small, tmp_path, monkeypatch):
    config = {"run": {"rounds": 10}, "privacy": {"epsilon": 1e6}, "transmit": {"uplink": "ideal"}}
    device = lapa.Device(config, 0, ledger=tmp_path / "0.db", samples=50, parameters=3)
    cost, called, reported = device.describe()["left"] / 10, [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: reported.append(error.exc_type.__name__))

    def train(result=None):
        called.append(lapa.Ledger(tmp_path / "0.db", read_only=True).releases()[-1]["round"])
        if isinstance(result, BaseException):
            raise result
        return numpy.full(3, 0.2) if result is None else result

    with pytest.raises(lapa.Refused):
        device.privatize("run", 1, train, 11 * cost)
    assert called == []
    noisy = device.privatize("run", 1, train, cost)
    assert called == [1] and numpy.abs(noisy - 0.2).max() < 0.1
    assert numpy.array_equal(device.privatize("run", 1, train, cost), noisy) and called == [1]
    strange = [ValueError("secret"), SystemExit(2), KeyboardInterrupt(), numpy.zeros(4), "text", numpy.full(3, numpy.nan)]
    for number, result in enumerate(strange, start=2):
        noisy = device.privatize("run", number, lambda result=result: train(result), cost)
        assert 0 < numpy.abs(noisy).max() < 0.1 and device.spent()["releases"] == number
    # It cannot wait for itself.
    device.privatize("run", 8, lambda: numpy.full(3, device.spent()["left"]), cost)
    assert reported == ["ValueError", "SystemExit", "KeyboardInterrupt", "ValueError", "LapaError"]


def test_another_number_and_a_lost_ledger_are_no_new_budget(small, tmp_path):
    config = {"run": {"rounds": 10}, "privacy": {"epsilon": 8}, "transmit": {"uplink": "ideal"}}

    def device(number):
        return lapa.Device(config, number, ledger=tmp_path / "own.db", samples=50, parameters=3)

    device(0).privatize("run", 1, numpy.zeros(3), device(0).describe()["left"])
    facts = device(4).describe()
    assert (facts["device"], facts["epsilon_ever"]) == (4, 8.0) and facts["left"] < 1e-6
    (tmp_path / "own.db").unlink()
    with pytest.raises(lapa.LedgerError, match="own.db-answers has this device's answers"):
        device(0)


def test_a_model_trained_elsewhere(small, tmp_path):
    """A line is fitted by devices that lapa never shows a record."""
    config = small.replace("rounds = 4", "rounds = 40")
    changes = ["learn.clip_norm=1", "privacy.epsilon=100", "learn.learning_rate=0.3"]
    truth = numpy.array([2.0, -1.0, 0.5], numpy.float32)
    draw = numpy.random.default_rng(5)
    inputs = [draw.normal(size=(200, 3)) for _ in range(2)]
    devices = [
        lapa.Device(config, k, ledger=tmp_path / f"{k}.db", samples=200, parameters=3, seeded=True, changes=changes)
        for k in range(2)
    ]
    facts = [device.describe() for device in devices]
    station = lapa.BaseStation(
        config, facts, folder=tmp_path / "run", initial=numpy.zeros(3), changes=changes
    )
    for _ in range(station.rounds):
        answers = {}
        for question in station.ask([0, 1]):
            x = inputs[question["device"]]
            error = x @ (station.parameters - truth)
            answers[question["device"]] = devices[question["device"]].privatize(
                station.run, question["round"], x.T @ error / len(x), question["cost"]
            )
        station.step(answers)
    assert numpy.abs(station.parameters - truth).max() < 1.0
    assert all(device.spent()["epsilon"] <= 100 for device in devices)
    with pytest.raises(lapa.LapaError, match="evaluated there"):
        station.evaluate()
