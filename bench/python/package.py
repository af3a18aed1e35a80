"""The Python package beside the program: `lapa.run` and `lapa run` in turns, import time, size of the wheel.

    python bench/python/package.py [--pairs 7] [--rounds 60] [--format json]

LAPA_BINARY is the program, LAPA_WHEEL the wheel; `cargo xtask bench-python` sets both. The same experiment is run by
each side in a process and a folder of its own, one after the other; a ratio is taken within a pair.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CONFIG = """
data.name = "synthetic"
run = {{ rounds = {rounds}, seed = 1, evaluate_every = 10 }}
partition = {{ iid = 5, non_iid = 10, iid_samples = 400, non_iid_samples = 400 }}
transmit.uplink = "ideal"
privacy.epsilon = 8
"""

SCRIPT = """
import sys, time
import lapa
wall, processor = time.perf_counter(), time.process_time()
lapa.run(sys.argv[1], out=sys.argv[2])
print(time.perf_counter() - wall, time.process_time() - processor)
"""

LIMITS = {"run": 1.03, "import": 0.3}


def children() -> float:
    """Processor seconds of all processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def program(config: Path, out: Path) -> tuple[float, float]:
    """Wall and processor seconds of the program."""
    before, start = children(), time.perf_counter()
    command = [os.environ["LAPA_BINARY"], "run", config, "--out", out, "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start, children() - before


def package(config: Path, out: Path) -> tuple[float, float]:
    """Wall and processor seconds of the call, without the start of Python."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, config, out], check=True, stdout=subprocess.PIPE, text=True
    )
    wall, processor = map(float, done.stdout.split())
    return wall, processor


def import_seconds() -> float:
    """Seconds of `import lapa` in a new process, numpy included."""
    script = "import time; start = time.perf_counter(); import lapa; print(time.perf_counter() - start)"
    done = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout)


def spread(values: list[float]) -> dict[str, float]:
    """Median, least and most."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--format", choices=["text", "json"], default="text")
    options = parser.parse_args()
    ours, theirs = [], []
    with tempfile.TemporaryDirectory(prefix="lapa-bench-") as name:
        folder = Path(name)
        config = folder / "bench.toml"
        config.write_text(CONFIG.format(rounds=options.rounds), encoding="utf-8")
        for pair in range(options.pairs):
            # Who is first changes, so that what warms up favors neither.
            for side in ("program", "package") if pair % 2 else ("package", "program"):
                out = folder / f"{side}-{pair}"
                (theirs if side == "program" else ours).append(globals()[side](config, out))
        models = {(folder / f"{side}-0" / "model.safetensors").read_bytes() for side in ("program", "package")}
        if len(models) != 1:
            raise RuntimeError("the two sides have trained different models")
    result = {
        "pairs": options.pairs,
        "rounds": options.rounds,
        "load": os.getloadavg()[0],
        "package_seconds": spread([wall for wall, _ in ours]),
        "program_seconds": spread([wall for wall, _ in theirs]),
        "wall_ratio": spread([a[0] / b[0] for a, b in zip(ours, theirs, strict=True)]),
        "processor_ratio": spread([a[1] / b[1] for a, b in zip(ours, theirs, strict=True)]),
        "import_seconds": spread([import_seconds() for _ in range(9)][2:]),
        "wheel_bytes": Path(os.environ["LAPA_WHEEL"]).stat().st_size,
    }
    if options.format == "json":
        print(json.dumps(result, indent=2))
        return
    print(f"{options.pairs} pairs of {options.rounds} rounds, load {result['load']:.1f}")
    for key, limit in (("wall_ratio", LIMITS["run"]), ("processor_ratio", LIMITS["run"]), ("import_seconds", LIMITS["import"])):
        value = result[key]
        print(f"{key:16} {value['median']:8.3f}   {value['least']:.3f}–{value['most']:.3f}   limit {limit}")
    print(f"{'wheel':16} {result['wheel_bytes'] / 1e6:8.2f} MB")


if __name__ == "__main__":
    main()
