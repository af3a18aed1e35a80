"""TLS and registered keys: who gets in; and a node that is killed in mid-round. Prints what came of it as JSON."""

import json
import sys
import time
from pathlib import Path

import loopback
from memory import CONFIG, ledger_of
from scenario_resume import PATIENCE, sent, wait_until

import lapa
from lapa.flower import app, keys
from lapa.flower.federation import Federation

# Two devices, two rounds. A lost device costs its round this long.
SMALL = CONFIG.replace("iid = 3", "iid = 2").replace("non_iid = 2", "non_iid = 0").replace("rounds = 3", "rounds = 2")
ROUND_SECONDS = 40.0


def text(federation: Federation, device: int) -> str:
    return (federation.folder / f"device-{device}.log").read_text(errors="replace")


def main(folder: Path) -> None:
    bundle = app.write(folder / "app", SMALL)
    with Federation(folder, secure=True) as federation:
        federation.start_superlink(PATIENCE)
        registered = [federation.register(f"device-{device}") for device in range(2)]
        nodes = [federation.start_node(k, key=registered[k], **{"lapa-seeded": True}) for k in range(2)]
        stranger = federation.start_node(2, key=keys.key_pair(folder / "keys", "stranger"))
        plain = federation.start_node(3, plaintext=True)
        run = federation.submit(bundle, folder=str(folder / "run"), nodes=2, timeout=ROUND_SECONDS)
        wait_until(lambda: sent(federation, 1) >= 1 and "ROUND 2" in text(federation, 1), "round 2")
        federation.kill(nodes[1])
        start = time.monotonic()
        status = federation.follow(run, PATIENCE, sys.stderr.write)
        took = time.monotonic() - start
        outcome = {
            "interfaces": loopback.interfaces(),
            "status": status,
            "seconds after the kill": took,
            "stranger": [stranger.poll(), text(federation, 2)[:2000]],
            "plaintext": [plain.poll(), text(federation, 3)[:2000]],
        }
    devices = [lapa.Device(SMALL, k, ledger=ledger_of(folder, k), seeded=True) for k in range(2)]
    station = lapa.BaseStation(SMALL, [device.describe() for device in devices], folder=folder / "run")
    outcome["round"] = station.round
    outcome["releases"] = [device.spent()["releases"] for device in devices]
    outcome["left behind"] = federation.processes()
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(loopback.begin())
