"""`python -m lapa.flower up`: a federation on this machine's loopback, for trying out."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import tempfile
import tomllib
from pathlib import Path

from . import app
from .federation import CONNECTION, LOOPBACK, Federation

# What is trained without a file: digits drawn by code, so that it needs no download.
QUICKSTART = {
    "run": {"rounds": 5, "evaluate_every": 1},
    "data": {"name": "synthetic"},
    "model": {"name": "logistic"},
    "partition": {"scheme": "dirichlet", "dirichlet": {"concentration": 0.5}},
    "privacy": {"epsilon": 8.0},
    "transmit": {"uplink": "ideal"},
}


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="lapa flower", description="LAPA on Flower.")
    commands = parser.add_subparsers(dest="command", required=True)
    about = "Start a SuperLink and SuperNodes on loopback, run an app, show its log, and stop all processes."
    up = commands.add_parser("up", help=about, description=about)
    up.add_argument("config", nargs="?", type=Path, help="lapa configuration (TOML); default: a small quickstart")
    up.add_argument("-c", dest="changes", action="append", default=[], metavar="KEY=VALUE", help="set a key; repeatable")
    up.add_argument("--nodes", type=_positive, default=5, metavar="N", help="number of SuperNodes, one per device (default: 5)")
    up.add_argument("--rounds", type=_positive, metavar="N", help="same as -c run.rounds=N")
    up.add_argument("--secure", action="store_true", help="TLS, and only nodes with a registered key")
    up.add_argument("--seeded", action="store_true", help="noise from run.seed: repeatable, but no privacy")
    up.add_argument("--app", type=Path, metavar="DIR", help="run this Flower app instead of the built-in one")
    up.add_argument("--folder", type=Path, metavar="DIR", help="folder of logs, ledgers and the run; an existing run resumes")
    up.add_argument("--timeout", type=float, default=600.0, metavar="S", help="most seconds per round (default: 600)")
    options = parser.parse_args(arguments)
    # The default actions would leave the processes behind, which have groups of their own.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        return _up(options)
    except KeyboardInterrupt:
        return 130
    except (OSError, RuntimeError, ValueError) as error:
        print(f"lapa flower: {error}", file=sys.stderr)
        return 1


def _up(options: argparse.Namespace) -> int:
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lapa-flower-")))
        bundle = options.app or app.write(folder / "app", _configuration(options))
        federation = stack.enter_context(Federation(folder, secure=options.secure))
        stack.callback(_quiet_signals)
        federation.start_superlink()
        tls = "TLS, registered keys" if options.secure else "plaintext"
        print(f"SuperLink on {LOOPBACK}:{federation.port} ({tls}); logs in {federation.folder}", flush=True)
        for device in range(options.nodes):
            key = federation.register(f"device-{device}") if options.secure else None
            federation.start_node(device, key=key, **({"lapa-seeded": True} if options.seeded else {}))
        print(f"{options.nodes} SuperNodes, each with a ledger in device-N; Ctrl-C stops everything", flush=True)
        settings = {} if options.app else {"folder": str(federation.folder / "run"), "nodes": options.nodes}
        run = federation.submit(bundle, **settings, **({} if options.app else {"timeout": options.timeout}))
        status = federation.follow(run, None, lambda line: print(line, end="", flush=True))
        print(f"run {run} of `{CONNECTION}`: {status}")
        if status == "finished:completed":
            return 0
        print(f"end of the log of device 0:\n{federation.tail('device-0')}", file=sys.stderr)
        return 1


def _configuration(options: argparse.Namespace) -> str:
    """The configuration with all changes, as TOML."""
    if options.config is None:
        sections = {name: dict(keys) for name, keys in QUICKSTART.items()}
        sections["partition"]["dirichlet"]["devices"] = options.nodes
    else:
        sections = tomllib.loads(options.config.read_text())
    changes = options.changes + ([f"run.rounds={options.rounds}"] if options.rounds else [])
    for change in changes:
        key, equals, text = change.partition("=")
        section, dot, name = key.strip().partition(".")
        if not (equals and dot):
            raise ValueError(f"-c {change}: expected section.key=value")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        sections.setdefault(section, {})[name] = value
    lines = [f"{name} = {json.dumps(value)}" for name, value in sections.items() if not isinstance(value, dict)]
    for section, keys in sections.items():
        if isinstance(keys, dict):
            lines += [f"[{section}]", *(f"{name} = {json.dumps(value)}" for name, value in keys.items())]
    return "\n".join(lines) + "\n"


def _quiet_signals() -> None:
    """While processes are being ended, another Ctrl-C must not stop that."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("expected 1 or more")
    return value


if __name__ == "__main__":
    sys.exit(main())
