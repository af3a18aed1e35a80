"""Accountants against the golden vectors that the Rust tests read: dp-accounting 0.6.0 and exact values."""

import json
import math
from pathlib import Path

import lapa

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "crates" / "lapa-privacy" / "tests" / "vectors" / "dp_accounting.json"
VECTORS = json.loads(FILE.read_text(encoding="utf-8"))


def number(value):
    return math.inf if value == "inf" else value


def events(vector):
    """A rate of 1 is no sampling."""
    return [(None if q == 1.0 else q, z, count) for q, z, count in vector["events"]]


def account(vector, delta, adjacency="add-remove"):
    return lapa.account(events=events(vector), delta=delta, adjacency=adjacency)


def test_pld_is_near_another_library_and_never_below_the_truth():
    compared = 0
    for vector in VECTORS["pld"][::7]:
        # A full batch has no sampling here, so that all adjacencies are one.
        theirs = vector.get("fine") or vector["epsilons"]
        floors = vector.get("exact") or vector.get("lower")
        for place, delta in enumerate(VECTORS["deltas"][::2]):
            ours = account(vector, delta, vector["adjacency"])["pld"]
            expected = number(theirs[2 * place])
            assert abs(ours - expected) <= 5e-3 * expected + 1e-4, (vector["events"], delta)
            if floors:
                assert ours >= number(floors[2 * place]) * (1 - 1e-11), (vector["events"], delta)
            compared += 1
    assert compared > 50


def test_gdp_is_exact_for_gaussians():
    compared = 0
    for vector in VECTORS["gaussian"]:
        sigma = vector.get("z", vector.get("calibrated"))
        if vector["delta"] > 0.5 or vector["epsilon"] < 0.05:
            continue
        epsilon = lapa.account(sigma=sigma, rounds=1, delta=vector["delta"])["gdp"]
        assert math.isclose(epsilon, vector["epsilon"], rel_tol=1e-6), vector
        compared += 1
    assert compared > 10


def test_published_rdp_is_met_or_bettered():
    for vector in VECTORS["published"]:
        for delta, theirs in zip(VECTORS["deltas"], vector["epsilons"]):
            # Our orders are finer than theirs.
            ours = account(vector, delta)["rdp"]
            assert ours <= number(theirs) * (1 + 1e-9), (vector["events"], delta)


def test_calibration_needs_no_more_noise_than_another_library():
    for vector in VECTORS["calibrated"][::4]:
        sampling = {"sampling_rate": None if vector["rate"] == 1.0 else vector["rate"]}
        target = vector["epsilon"], vector["delta"], vector["count"]
        ours = lapa.calibrate(*target, accountant="rdp", **sampling)
        assert ours <= vector["z"] * (1 + 1e-6), vector
        tight = lapa.calibrate(*target, **sampling)
        assert tight <= ours * (1 + 1e-6)
        reached = lapa.account(tight, vector["count"], delta=vector["delta"], **sampling)
        assert reached["pld"] <= vector["epsilon"]
