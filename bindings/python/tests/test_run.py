"""lapa.run: what it returns, what it leaves, how it stops."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib

import numpy
import pytest

import lapa

COLUMNS = {"round", "accuracy", "loss", "seconds", "uplink_bytes"}


def test_columns_summary_and_model(small):
    result = lapa.run(small)
    assert result.history["round"] == [1, 2, 3, 4]
    assert COLUMNS <= set(result.history)
    assert {len(column) for column in result.history.values()} == {4}
    assert [accuracy is None for accuracy in result.history["accuracy"]] == [True, False, True, False]
    assert len(result.devices["device"]) == 16 and result.devices["device"][:4] == [0, 1, 2, 3]
    assert result.summary["accuracy"] == result.history["accuracy"][-1]
    assert result.summary["epsilon_provable"] == 8.0 and result.folder is None
    matrix = numpy.array(result.summary["confusion"])
    assert matrix.shape == (10, 10) and matrix.trace() / matrix.sum() == result.summary["accuracy"]
    worst = result.summary["device_accuracy"]["devices"][0]
    assert worst["accuracy"] == result.summary["device_accuracy"]["min"] and len(worst) == 3
    weight = result.model["0.linear.weight"]
    assert weight.dtype == numpy.float32 and weight.shape == (10, 784)
    assert "4 rounds" in repr(result)


def test_paths_text_and_dicts_are_the_same(small, tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(small)
    results = [lapa.run(config) for config in (small, file, str(file), tomllib.loads(small))]
    changed = lapa.run(small, changes=["run.seed=4"])
    first = results[0].model["0.linear.weight"]
    for other in results[1:]:
        assert numpy.array_equal(first, other.model["0.linear.weight"])
    assert not numpy.array_equal(first, changed.model["0.linear.weight"])


def test_a_run_is_the_program_s_run(small, tmp_path, binary):
    """Bit by bit, and in a folder file by file."""
    file = tmp_path / "small.toml"
    file.write_text(small)
    done = binary("run", file, "--out", tmp_path / "theirs", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    in_memory = lapa.run(file)
    in_folder = lapa.run(file, out=tmp_path / "ours")
    ours = (tmp_path / "ours" / "model.safetensors").read_bytes()
    assert ours == (tmp_path / "theirs" / "model.safetensors").read_bytes()
    for name, array in in_memory.model.items():
        assert numpy.array_equal(array, in_folder.model[name])
    assert array.tobytes() in ours
    names = {path.name for path in (tmp_path / "theirs").iterdir()}
    assert {path.name for path in in_folder.folder.iterdir()} == names
    theirs = json.loads((tmp_path / "theirs" / "summary.json").read_text())
    for key in ("accuracy", "loss", "epsilon_claimed_total", "epsilon_provable", "privacy"):
        assert in_folder.summary[key] == in_memory.summary[key] == theirs[key]


def test_on_round_hears_every_round_and_may_stop(small, tmp_path):
    heard = []
    result = lapa.run(small, on_round=lambda record: heard.append(record["round"]))
    assert heard == [1, 2, 3, 4] and result.summary is not None
    stopped = lapa.run(small, on_round=lambda record: record["round"] < 2)
    assert stopped.history["round"] == [1, 2] and stopped.summary is None
    assert stopped.model["0.linear.weight"].shape == (10, 784) and "stopped after 2" in repr(stopped)
    folder = tmp_path / "run"
    stopped = lapa.run(small, out=folder, on_round=lambda record: record["round"] < 2)
    assert stopped.model is None and stopped.history["round"] == [1, 2]
    resumed = lapa.run(resume=folder)
    assert numpy.array_equal(resumed.model["0.linear.weight"], result.model["0.linear.weight"])


def test_an_exception_in_on_round_comes_out(small):
    def fail(record):
        raise RuntimeError(f"round {record['round']}")

    with pytest.raises(RuntimeError, match="round 1"):
        lapa.run(small, on_round=fail)


def test_warnings_are_python_s(small):
    with pytest.warns(UserWarning, match="privacy.delta"):
        lapa.run(small.replace("[60, 120]", "[100, 120]"), changes=["privacy.delta=0.01"])


def test_the_interpreter_is_free_while_rounds_run(small):
    """Another thread makes progress between the beginning and the end of one call."""
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    other = threading.Thread(target=tick)
    other.start()
    try:
        begin = time.monotonic()
        lapa.run(small, changes=["run.rounds=40"])
        end = time.monotonic()
    finally:
        done.set()
        other.join(10)
    assert sum(begin < moment < end for moment in ticks) >= 3


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("where", ["memory", "folder"])
def test_ctrl_c_raises_keyboard_interrupt(small, tmp_path, where):
    """The process says when its first round is over, is interrupted, and must end within a minute."""
    out = f", out={str(tmp_path / 'run')!r}" if where == "folder" else ""
    script = f"""
import signal
import lapa
# Whoever runs the tests in the background has them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
def on_round(record):
    if record["round"] == 1:
        print("running", flush=True)
try:
    lapa.run({small!r}, changes=["run.rounds=1000000", "run.evaluate_every=1000000"], on_round=on_round{out})
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(60, process.kill)
    watchdog.start()
    try:
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
    finally:
        watchdog.cancel()
        process.kill()
        process.wait(10)
    assert rest == "interrupted\n" and process.returncode == 0


def test_the_console_script_is_the_program(tmp_path, binary):
    def script(*arguments):
        code = "import sys; from lapa._cli import main; sys.exit(main())"
        return subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )

    for arguments in (["--version"], ["config", "check", "nowhere.toml"], ["account", "--sigma", "1"]):
        ours, theirs = script(*arguments), binary(*arguments, cwd=tmp_path)
        assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)
    assert script("--version").stdout.split() == ["lapa", lapa.__version__]
