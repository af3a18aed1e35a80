"""A Flower federation on this machine's loopback, for trying out and for tests.

Every program is started in a process group of its own, with a mark in its environment by which whatever it
starts can be found, and all of them are ended when the federation is closed, or when its process is killed.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from . import keys
from .processes import MARK, MARKS_CAN_BE_READ, descendants, marked, signal_group, signal_one, start_watch

LOOPBACK = "127.0.0.1"
CONNECTION = "loopback"

# Below the ports that systems hand out for outgoing connections.
PORTS = range(20000, 32000)


class Federation:
    """A SuperLink and its SuperNodes. ``folder`` takes their logs, keys, databases and ledgers."""

    def __init__(self, folder: str | Path, *, secure: bool = False):
        if os.name != "posix":
            raise OSError("a federation on loopback needs process groups (Linux, macOS or another Unix)")
        self.folder = Path(folder).resolve()
        self.secure = secure
        self._ports: set[int] = set()
        self.port = self._free_port()
        self._mark = secrets.token_hex(16)
        self._processes: list[subprocess.Popen] = []
        self._superlink: subprocess.Popen | None = None
        self._watch: subprocess.Popen | None = None
        self.folder.mkdir(parents=True, exist_ok=True)
        if secure:
            keys.certificates(self.folder / "tls", LOOPBACK)
        self._write_connection()

    def __enter__(self) -> Federation:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def start_superlink(self, patience: float = 120.0) -> None:
        """Starts the SuperLink, again if it was stopped, and waits until it listens."""
        command = ["flower-superlink", "--host", LOOPBACK, "--port", str(self.port)]
        command += ["--database", str(self.folder / "superlink.db"), "--disable-runtime-dependency-installation"]
        if self.secure:
            tls = self.folder / "tls"
            command += ["--ssl-ca-certfile", tls / "ca.crt", "--ssl-certfile", tls / "server.pem"]
            command += ["--ssl-keyfile", tls / "server.key", "--enable-supernode-auth"]
        else:
            command += ["--insecure"]
        self._superlink = self._start(command, "superlink")
        deadline = time.monotonic() + patience
        while not listens(self.port):
            if self._superlink.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the SuperLink does not listen:\n{self.tail('superlink')}")
            time.sleep(0.2)

    def stop_superlink(self) -> None:
        """Kills the SuperLink and the ServerApp it runs, as a loss of power would."""
        self.kill(self._superlink)

    def start_node(
        self, device: int, *, key: str | Path | None = None, plaintext: bool = False, **config
    ) -> subprocess.Popen:
        """Starts the SuperNode of a device. Its ledger and Flower's files lie in ``device-N`` of the folder."""
        home = self.folder / f"device-{device}"
        home.mkdir(exist_ok=True)
        settings = {"partition-id": device, "lapa-ledger": str(home / "ledger.db"), **config}
        command = ["flower-supernode", "--superlink", f"{LOOPBACK}:{self.port}"]
        command += ["--host", LOOPBACK, "--port", str(self._free_port())]
        command += ["--node-config", " ".join(f"{name}={toml(value)}" for name, value in settings.items())]
        if self.secure and not plaintext:
            command += ["--root-certificates", self.folder / "tls" / "ca.crt"]
            if key is not None:
                command += ["--auth-supernode-private-key", key]
        else:
            command += ["--insecure"]
        return self._start(command, f"device-{device}", FLWR_HOME=str(home / "flwr"))

    def register(self, name: str) -> Path:
        """Makes a key pair, registers its public half with the SuperLink, and returns the private half's file."""
        key = keys.key_pair(self.folder / "keys", name)
        self.flwr("supernode", "register", key.with_suffix(".pub"), CONNECTION)
        return key

    def submit(self, app: str | Path, **run_config) -> str:
        """Hands an app to the SuperLink and returns the number of its run."""
        arguments = ["run", app, CONNECTION, "--format", "json"]
        if run_config:
            pairs = (f"{name.replace('_', '-')}={toml(value)}" for name, value in run_config.items())
            arguments += ["--run-config", " ".join(pairs)]
        answer = json.loads(self.flwr(*arguments))
        if not answer.get("success"):
            raise RuntimeError(f"flwr run: {answer}")
        return str(answer["run-id"])

    def status(self, run: str) -> str:
        """A run's status, as `finished:completed`."""
        answer = json.loads(self.flwr("list", CONNECTION, "--run-id", run, "--format", "json"))
        return answer["runs"][0]["status"]

    def follow(self, run: str, patience: float | None, show: Callable[[str], None] = lambda line: None) -> str:
        """Shows what a run's ServerApp logs, line by line, until it has ended; returns its status."""
        deadline = time.monotonic() + (threading.TIMEOUT_MAX / 2 if patience is None else patience)
        while True:
            # One process that streams, since each of Flower's programs takes seconds to start.
            stream = self._start(["flwr", "log", run, CONNECTION, "--stream"], None, stdout=subprocess.PIPE)
            threading.Thread(target=self._stop_in_time, args=(stream, deadline), daemon=True).start()
            with stream.stdout as lines:
                for line in lines:
                    show(line.decode(errors="replace"))
            stream.wait()
            self._expect_superlink()
            if (status := self.status(run)).startswith("finished"):
                return status
            if time.monotonic() > deadline:
                raise TimeoutError(f"run {run} is {status} after {patience:g} s:\n{self.tail('superlink')}")

    def _stop_in_time(self, stream: subprocess.Popen, deadline: float) -> None:
        """Kills a program at the deadline, or when there is no SuperLink any more to which it could talk."""
        while stream.poll() is None:
            if time.monotonic() > deadline or self._superlink.poll() is not None:
                signal_group(stream.pid, signal.SIGKILL)
                return
            time.sleep(0.5)

    def _expect_superlink(self) -> None:
        if self._superlink.poll() is not None:
            raise RuntimeError(f"the SuperLink has ended:\n{self.tail('superlink')}")

    def flwr(self, *arguments, patience: float = 120.0) -> str:
        """Runs Flower's command line against this SuperLink and returns what it prints."""
        command = [program("flwr"), *map(str, arguments)]
        try:
            done = subprocess.run(
                command,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=patience,
                cwd=self.folder,
            )
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"flwr {arguments[0]} did not finish within {patience:g} s") from error
        if done.returncode != 0:
            raise RuntimeError(f"flwr {arguments[0]} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of Flower's programs: no telemetry, no proxy, none of the caller's Flower settings."""
        dropped = ("FLWR_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "PYTHONDONTWRITEBYTECODE")
        kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(dropped)}
        # SuperLink and SuperNodes look for `flower-superexec` on the search path.
        path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)])
        return kept | {
            "PATH": path,
            "NO_PROXY": "*",
            "PYTHONUNBUFFERED": "1",
            "FLWR_HOME": str(self.folder / "flwr"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.5",
            MARK: self._mark,
            **more,
        }

    def tail(self, name: str, lines: int = 30) -> str:
        """The end of a program's log."""
        file = self.folder / f"{name}.log"
        return "\n".join(file.read_text(errors="replace").splitlines()[-lines:]) if file.exists() else ""

    def kill(self, process: subprocess.Popen) -> None:
        """Kills a program at once, with its process group and what it started outside of it."""
        children = descendants(process.pid)
        signal_group(process.pid, signal.SIGKILL)
        process.wait()
        for child in children:
            signal_one(child, signal.SIGKILL)

    def processes(self) -> list[int]:
        """What still runs of all that was ever started here (Linux: found by its mark; else the groups)."""
        if MARKS_CAN_BE_READ:
            return marked(self._mark)
        return [process.pid for process in self._processes if process.poll() is None]

    def close(self, patience: float = 10.0) -> None:
        """Ends every process: politely first, then not."""
        self._signal_groups(signal.SIGTERM)
        deadline = time.monotonic() + patience
        while self._running() and time.monotonic() < deadline:
            time.sleep(0.1)
        self._signal_groups(signal.SIGKILL)
        # What Flower starts in sessions of its own is not in the groups; and it may start more meanwhile.
        while (left := self.processes()) and time.monotonic() < deadline + patience:
            for pid in left:
                signal_one(pid, signal.SIGKILL)
            self._running()
            time.sleep(0.1)
        self._running()
        if self._watch is not None:
            self._watch.kill()
            self._watch.communicate()
            self._watch = None

    def _signal_groups(self, number: int) -> None:
        for process in self._processes:
            # The number of one that has ended, and was waited for, may be another's by now.
            if process.poll() is None:
                signal_group(process.pid, number)

    def _running(self) -> bool:
        # Polling also reaps what has ended.
        return any([process.poll() is None for process in self._processes]) or bool(self.processes())

    def _start(self, command: list, name: str | None, stdout: int | None = None, **more: str) -> subprocess.Popen:
        """Starts a program that writes to a log of this name, or to a pipe."""
        if self._watch is None:
            self._watch = start_watch(self._mark)
        with open(self.folder / f"{name}.log" if name else os.devnull, "ab") as log:
            process = subprocess.Popen(
                [program(command[0]), *map(str, command[1:])],
                env=self.environment(**more),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=stdout or log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes.append(process)
        print(process.pid, file=self._watch.stdin, flush=True)
        return process

    def _free_port(self) -> int:
        """A port that no other program of this federation was given: it may not listen yet."""
        while (port := free_port()) in self._ports:
            pass
        self._ports.add(port)
        return port

    def _write_connection(self) -> None:
        lines = ["[superlink]", f'default = "{CONNECTION}"', "", f"[superlink.{CONNECTION}]"]
        lines.append(f'address = "{LOOPBACK}:{self.port}"')
        if self.secure:
            lines.append(f"root-certificates = {toml(str(self.folder / 'tls' / 'ca.crt'))}")
        else:
            lines.append("insecure = true")
        home = self.folder / "flwr"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text("\n".join(lines) + "\n")


def toml(value) -> str:
    """A value as TOML writes it."""
    return json.dumps(str(value) if isinstance(value, Path) else value)


def program(name: str) -> str:
    """One of Flower's programs, from the environment of this Python first."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"`{name}` is not installed: pip install 'flwr>=1.41,<1.43'")
    return found


def free_port() -> int:
    """A port on which nobody listens."""
    for port in random.SystemRandom().sample(PORTS, 200):
        with socket.socket() as attempt:
            try:
                attempt.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port from {PORTS.start} to {PORTS.stop - 1}")


def listens(port: int) -> bool:
    """Whether somebody listens on a port."""
    with socket.socket() as attempt:
        attempt.settimeout(1.0)
        return attempt.connect_ex((LOOPBACK, port)) == 0
