"""Processes by group, mark and parent. As a script: a watch over another process, which ends what that leaves behind.

It needs nothing but the standard library, so that the watch starts at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

MARK = "LAPA_FEDERATION"
MARKS_CAN_BE_READ = Path("/proc/self/environ").exists()


def start_watch(mark: str) -> subprocess.Popen:
    """Starts a watch over this process, which tells it of process groups, a line each, on its standard input. That ends
    with this process, however it ends, and then the watch ends all that has the mark (elsewhere than on Linux: the
    groups). It is to be killed when there is nothing left to end."""
    return subprocess.Popen(
        [sys.executable, "-I", __file__, mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )


def watch(mark: str, patience: float = 10.0) -> None:
    """Waits for the end of the standard input; then ends what was told, politely first."""
    groups = [int(line) for line in sys.stdin]
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline, sent = time.monotonic() + patience, set()
        if not MARKS_CAN_BE_READ:
            for group in groups:
                signal_group(group, number)
            time.sleep(patience)
        while (left := set(marked(mark))) and time.monotonic() < deadline:
            for pid in left - sent:
                signal_one(pid, number)
            sent |= left
            time.sleep(0.1)


def signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def signal_one(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def marked(mark: str) -> list[int]:
    """The processes with this mark in their environment (Linux; elsewhere none)."""
    variable, found = f"{MARK}={mark}".encode(), []
    if not MARKS_CAN_BE_READ:
        return found
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if variable in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def descendants(pid: int) -> list[int]:
    """The children of a process, and theirs (Linux; elsewhere Flower's own watch of its parent has to do)."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, waiting = [], [pid]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


if __name__ == "__main__":
    watch(sys.argv[1])
