"""Real federations: SuperLink, SuperNodes and a process per message, in a network with nothing but loopback.

Two in all, side by side, since most of their time is spent waiting. Each is a script, whose process group is killed
whatever happens.
"""

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import loopback
import numpy as np
import pytest
from memory import CONFIG, DEVICES

import lapa

LIMIT_SECONDS = 540.0


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What the scripts print, by name."""
    prefix = loopback.isolation()
    if not prefix:
        warnings.warn("no network namespaces here: these federations run on the loopback of this machine", stacklevel=1)
    running = {}
    try:
        for name in ("resume", "secure"):
            folder = tmp_path_factory.mktemp(name)
            running[name] = (start(prefix, name, folder), folder)
        yield {name: finish(process, folder) for name, (process, folder) in running.items()}
    finally:
        for process, _ in running.values():
            # SIGTERM lets a script end its federation; the rest is for one that cannot.
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, number)
                    process.wait(timeout=60)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue


def start(prefix: list[str], name: str, folder: Path) -> subprocess.Popen:
    script = Path(__file__).with_name(f"scenario_{name}.py")
    command = [*prefix, sys.executable, str(script), str(folder), "isolated" if prefix else "shared"]
    with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)


def finish(process: subprocess.Popen, folder: Path) -> dict:
    try:
        code = process.wait(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        code = f"still running after {LIMIT_SECONDS:g} s"
    out, err = ((folder / name).read_text(errors="replace") for name in ("out", "err"))
    assert code == 0, f"{code}\n{err[-4000:]}\n{logs(folder)}"
    return json.loads(out.splitlines()[-1])


def logs(folder: Path) -> str:
    files = sorted(folder.glob("*.log"))
    return "\n".join(f"== {file.name}\n{file.read_text(errors='replace')[-1500:]}" for file in files)


def test_a_restarted_superlink_goes_on_to_the_simulators_model_and_nothing_is_spent_twice(outcomes):
    outcome = outcomes["resume"]
    model = lapa.run(CONFIG).model
    expected = np.concatenate([np.asarray(array, dtype=np.float32).ravel() for array in model.values()])
    assert outcome["status"] == "finished:completed" and outcome["round"] == 3
    assert outcome["model"] == expected.tobytes().hex()
    assert outcome["releases"] == [3] * DEVICES
    assert outcome["left behind"] == []


def test_a_node_killed_in_mid_round_costs_its_round_a_timeout_and_no_more(outcomes):
    outcome = outcomes["secure"]
    assert outcome["status"] == "finished:completed"
    # The rest of the round, evaluation and the end of the processes, on a busy machine.
    assert outcome["seconds after the kill"] < 40.0 + 120.0
    ours, killed = outcome["releases"]
    # Round 2 counts if the other device was in time; what it released, it has on record either way.
    assert outcome["round"] in (1, 2) and outcome["round"] <= ours <= 2
    assert 1 <= killed <= 2
    assert outcome["left behind"] == []


def test_only_registered_keys_get_in(outcomes):
    outcome = outcomes["secure"]
    assert outcome["round"] >= 1
    # One is told so and ends; the other goes on trying.
    code, log = outcome["stranger"]
    assert code not in (None, 0) and "Failed to activate SuperNode" in log, (code, log)
    code, log = outcome["plaintext"]
    assert code != 0 and "Connection attempt failed" in log and "SuperNode ID" not in log, (code, log)


def test_the_federations_see_nothing_but_loopback(outcomes):
    if not loopback.isolation():
        pytest.skip("no network namespaces here")
    assert [outcome["interfaces"] for outcome in outcomes.values()] == [["lo"], ["lo"]]
