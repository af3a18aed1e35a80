"""Overhead per round of the Flower path against the simulator: same configuration, seeds and devices.

    python bench/python/flower_overhead.py [--nodes 5] [--rounds 4] [--format json]

The simulator runs in this process; the federation is a SuperLink and SuperNodes on loopback. Where the time of a
Flower round goes is estimated from parts that are measured alone: starting a process per message, and polling.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import lapa
from lapa.flower import app
from lapa.flower.federation import Federation, program

CONFIG = """
[run]
rounds = {rounds}
seed = 1
evaluate_every = {rounds}
[data]
name = "synthetic"
[partition.mix]
iid = {nodes}
non_iid = 0
iid_samples = [60, 60]
[privacy]
epsilon = 8.0
[transmit]
uplink = "ideal"
"""

# Of flwr 1.41 and 1.42: how often a SuperNode asks for work, and a ServerApp for replies.
NODE_POLL_SECONDS, SERVER_POLL_SECONDS = 3.0, 3.0
SUPEREXEC_POLL_SECONDS = 0.5


def simulator(config: str) -> float:
    """Seconds per round in the simulator, without its first."""
    ends = []
    lapa.run(config, on_round=lambda record: ends.append(time.perf_counter()))
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def federation(config: str, nodes: int, folder: Path) -> tuple[float, float]:
    """Seconds per round over Flower, and until its first."""
    bundle = app.write(folder / "app", config)
    start, rounds = time.perf_counter(), []

    def note(line: str) -> None:
        print(line, end="", file=sys.stderr)
        if "devices answered" in line:
            rounds.append(time.perf_counter())

    with Federation(folder) as flower:
        flower.start_superlink()
        for device in range(nodes):
            flower.start_node(device, **{"lapa-seeded": True})
        run = flower.submit(bundle, folder=str(folder / "run"), nodes=nodes)
        status = flower.follow(run, 1800.0, note)
    if status != "finished:completed":
        raise RuntimeError(f"the run ended as {status}:\n{flower.tail('device-0')}")
    return recorded(folder / "run") or (rounds[-1] - rounds[0]) / (len(rounds) - 1), rounds[0] - start


def recorded(run: Path) -> float | None:
    """Seconds per round as the base station's files were written, which no log stream delays."""
    seconds = [json.loads(line).get("seconds") for line in (run / "metrics.jsonl").read_text().splitlines()]
    seconds = [value for value in seconds[1:] if value is not None]
    return sum(seconds) / len(seconds) if seconds else None


def process_start() -> tuple[float, float]:
    """Wall and processor seconds to start Flower's client process, which every message needs."""
    before, start = os.times(), time.perf_counter()
    subprocess.run([program("flwr-clientapp"), "--help"], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - start, used


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--format", choices=["text", "json"], default="text")
    options = parser.parse_args()
    config = CONFIG.format(rounds=options.rounds, nodes=options.nodes)
    simulated = simulator(config)
    starts = [process_start() for _ in range(3)][1:]
    wall, processor = (sum(values) / len(values) for values in zip(*starts, strict=True))
    with tempfile.TemporaryDirectory(prefix="lapa-flower-") as folder:
        flower, first = federation(config, options.nodes, Path(folder))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    result = {
        "nodes": options.nodes,
        "rounds": options.rounds,
        "cores": cores,
        "load": os.getloadavg()[0],
        "simulator_seconds_per_round": simulated,
        "flower_seconds_per_round": flower,
        "flower_seconds_to_first_round": first,
        "process_start_seconds": wall,
        "process_start_processor_seconds": processor,
        "process_starts_per_round_seconds": options.nodes * processor / min(cores, options.nodes),
        "polling_seconds_per_round_mean": (NODE_POLL_SECONDS + SERVER_POLL_SECONDS + SUPEREXEC_POLL_SECONDS) / 2,
    }
    if options.format == "json":
        print(json.dumps(result, indent=2))
        return
    print(f"{options.nodes} devices, {options.rounds} rounds, {cores} cores, load {result['load']:.1f}")
    print(f"simulator                     {simulated:10.4f} s per round")
    print(f"Flower on loopback            {flower:10.4f} s per round, first after {first:.1f} s")
    print(f"  of it process starts, about {result['process_starts_per_round_seconds']:10.4f} s per round")
    print(f"  of it polling, on average   {result['polling_seconds_per_round_mean']:10.4f} s per round")


if __name__ == "__main__":
    main()
