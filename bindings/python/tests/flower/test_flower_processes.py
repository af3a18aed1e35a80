"""What a federation on loopback leaves behind, whatever happens: nothing. Without Flower's programs."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lapa.flower import federation as module
from lapa.flower.federation import Federation

KILLED = """
import sys, time
from lapa.flower.federation import Federation

federation = Federation(sys.argv[1])
sleeper = federation._start(["sleep", "600"], "sleeper")
# One that hears no polite word, and one in a session of its own.
deaf = federation._start(["sh", "-c", "trap '' TERM; setsid sleep 600 & wait; while true; do sleep 1; done"], "deaf")
print(sleeper.pid, deaf.pid, federation._mark, federation._watch.pid, flush=True)
time.sleep(600)
"""


def runs(pid: int) -> bool:
    """Whether a process is there, and no mere entry that nobody has waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not module.MARKS_CAN_BE_READ, reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_a_federation_whose_process_is_killed(tmp_path, number):
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        sleeper, deaf, mark, watch = process.stdout.readline().split()
        deadline = time.monotonic() + 60.0
        # The shell takes a moment to start the third.
        while len(module.marked(mark)) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert runs(int(sleeper)) and runs(int(deaf)) and len(module.marked(mark)) >= 3
        process.send_signal(number)
        process.wait()
        deadline = time.monotonic() + 60.0
        while (module.marked(mark) or runs(int(watch))) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert module.marked(mark) == [] and not any(runs(int(pid)) for pid in (sleeper, deaf, watch))
    finally:
        process.kill()
        process.communicate()


def test_a_closed_federation_leaves_neither_processes_nor_its_watch(tmp_path):
    with Federation(tmp_path) as federation:
        sleeper = federation._start(["sleep", "600"], "sleeper")
        watch = federation._watch
    assert federation.processes() == [] and sleeper.returncode is not None and watch.returncode is not None


def test_a_run_is_not_waited_for_when_the_superlink_has_ended(tmp_path, monkeypatch):
    endless = tmp_path / "flwr"
    endless.write_text("#!/bin/sh\nexec sleep 600\n")
    endless.chmod(0o755)
    monkeypatch.setattr(module, "program", lambda name: str(endless) if name == "flwr" else shutil.which(name))
    with Federation(tmp_path / "federation") as federation:
        federation._superlink = federation._start(["sh", "-c", "echo out of memory; sleep 2"], "superlink")
        with pytest.raises(RuntimeError, match="the SuperLink has ended:\nout of memory"):
            federation.follow("1", None)
        with pytest.raises(TimeoutError, match="flwr list did not finish within 0.5 s"):
            federation.flwr("list", patience=0.5)
    assert federation.processes() == []


def test_no_two_programs_are_given_one_port(tmp_path, monkeypatch):
    ports = iter([20001, 20001, 20002, 20001, 20002, 20003])
    monkeypatch.setattr(module, "free_port", lambda: next(ports))
    federation = Federation(tmp_path)
    assert [federation.port, federation._free_port(), federation._free_port()] == [20001, 20002, 20003]


def test_the_watch_needs_nothing_but_the_standard_library():
    script = Path(module.__file__).with_name("processes.py")
    outcome = subprocess.run([sys.executable, "-I", str(script), os.urandom(8).hex()], input="", timeout=60)
    assert outcome.returncode == 0
