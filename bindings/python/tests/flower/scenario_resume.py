"""Five nodes; the SuperLink is killed in mid-run and started again. Prints what came of it as JSON."""

import json
import sys
import time
from pathlib import Path

import loopback
from memory import CONFIG, DEVICES, ledger_of

import lapa
from lapa.flower import app
from lapa.flower.federation import Federation

# A busy machine may be many times slower than an idle one.
PATIENCE = 240.0


def sent(federation: Federation, device: int) -> int:
    """How many updates a node has sent."""
    log = federation.folder / f"device-{device}.log"
    return log.read_text(errors="replace").count("Sending: train")


def wait_until(condition, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not after {PATIENCE:g} s")
        time.sleep(0.1)


def main(folder: Path) -> None:
    bundle = app.write(folder / "app", CONFIG)
    settings = {"folder": str(folder / "run"), "nodes": DEVICES, "timeout": PATIENCE}
    with Federation(folder) as federation:
        federation.start_superlink(PATIENCE)
        for device in range(DEVICES):
            federation.start_node(device, **{"lapa-seeded": True})
        federation.submit(bundle, **settings)
        wait_until(lambda: any(sent(federation, device) >= 2 for device in range(DEVICES)), "round 2")
        federation.stop_superlink()
        federation.start_superlink(PATIENCE)
        status = federation.follow(federation.submit(bundle, **settings), PATIENCE, sys.stderr.write)
    devices = [lapa.Device(CONFIG, k, ledger=ledger_of(folder, k), seeded=True) for k in range(DEVICES)]
    station = lapa.BaseStation(CONFIG, [device.describe() for device in devices], folder=folder / "run")
    outcome = {
        "interfaces": loopback.interfaces(),
        "status": status,
        "round": station.round,
        "model": station.parameters.tobytes().hex(),
        "releases": [device.spent()["releases"] for device in devices],
        "left behind": federation.processes(),
    }
    print(json.dumps(outcome))


if __name__ == "__main__":
    main(loopback.begin())
