"""Writes wasserstein.json and fedadp.json: aggregation weights by their formulas, plainly.

    python -m venv venv && venv/bin/pip install numpy==2.4.6 scipy==1.17.1
    venv/bin/python crates/lapa/tests/vectors/aggregate_reference.py

README.md describes the files. Random numbers have fixed seeds: two runs of the same versions write
the same bytes.
"""

import decimal
import fractions
import json
import pathlib

import numpy as np
import scipy
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

HERE = pathlib.Path(__file__).parent


def write(name, content, versions):
    """One case to a line, so that a change shows up as a few lines."""
    parts = [f'"versions": {json.dumps(versions)}']
    for key, cases in content.items():
        lines = ",\n".join(json.dumps(case) for case in cases)
        parts.append(f'"{key}": [\n{lines}\n]')
    (HERE / name).write_text("{" + ",\n".join(parts) + "}\n")


# Distances


def transport(a, b, cost):
    """The least cost of moving the distribution a to b, both given as whole counts: a linear
    program, with a proof of its optimum in whole numbers.

    Scaled by both sums, supplies and demands are whole, and so are the flow of an optimal basis
    and its prices. Rounded to whole numbers, they are checked exactly: the flow moves a to b, no
    price exceeds a cost, and both sides cost the same, which only optima do."""
    n, scale = len(a), sum(a) * sum(b)
    supply = [x * sum(b) for x in a]
    demand = [x * sum(a) for x in b]
    rows = np.zeros((2 * n, n * n))
    for i in range(n):
        rows[i, i * n : (i + 1) * n] = 1
        rows[n + i, i::n] = 1
    costs = [cost(i, j) for i in range(n) for j in range(n)]
    found = linprog(costs, A_eq=rows, b_eq=supply + demand)
    assert found.success, found.message
    flow = [[round(x) for x in found.x[i * n : (i + 1) * n]] for i in range(n)]
    assert all(x >= 0 for row in flow for x in row)
    assert [sum(row) for row in flow] == supply
    assert [sum(column) for column in zip(*flow)] == demand
    prices = [round(x) for x in found.eqlin.marginals]
    assert all(prices[i] + prices[n + j] <= cost(i, j) for i in range(n) for j in range(n))
    total = sum(flow[i][j] * cost(i, j) for i in range(n) for j in range(n))
    assert total == sum(p * x for p, x in zip(prices, supply + demand))
    return float(fractions.Fraction(total, scale))


def histograms(rng, kind, n):
    def some():
        counts = rng.integers(0, 300, size=n) * (rng.uniform(size=n) < 0.8)
        counts[rng.integers(n)] += 1
        return counts

    def one():
        counts = np.zeros(n, dtype=int)
        counts[rng.integers(n)] = rng.integers(1, 600)
        return counts

    a = one() if kind.startswith("one") else some()
    if kind == "equal":
        b = a * rng.integers(1, 5)
    elif kind == "near":
        b = a * 20 + rng.integers(0, 2, size=n)
    else:
        b = one() if kind == "one-one" else some()
    return [int(x) for x in a], [int(x) for x in b]


def distances():
    rng = np.random.default_rng(1)
    cases = []
    kinds = {"some": 120, "one-some": 60, "one-one": 30, "equal": 30, "near": 30}
    for kind, count in kinds.items():
        for i in range(count):
            n = 10 if i % 3 else int(rng.integers(1, 14))
            a, b = histograms(rng, kind, n)
            label = transport(a, b, lambda i, j: abs(i - j))
            by_scipy = float(wasserstein_distance(range(n), range(n), a, b))
            assert abs(label - by_scipy) < 1e-12
            cases.append({
                "kind": kind, "p": a, "g": b,
                "total_variation": transport(a, b, lambda i, j: int(i != j)),
                "label_distance": label,
                "scipy": by_scipy,
            })
    return cases


# Weights by distances


def weights():
    """Eq. (21) with a floor, in 60 digits and with exponents that no float has."""
    decimal.getcontext().prec = 60
    rng = np.random.default_rng(2)
    cases = []
    for floor in [1e-6, 1e-4, 0.01, 0.2, 0.5]:
        for kind in ["below", "just above", "share", "labels"]:
            samples = [int(x) for x in rng.integers(1, 60_000, size=8)]
            u = rng.uniform(size=6)
            w = {
                "below": floor * u,
                # So little above that 1/W is up to 3 less.
                "just above": 1 / (1 / floor - 3 * u * min(1, 0.1 / floor)),
                "share": u,
                "labels": 9 * u,
            }[kind]
            # One is 0, one is the floor.
            w = [0.0, floor] + [float(x) for x in w]
            terms = [
                n * (1 / max(decimal.Decimal(x), decimal.Decimal(floor))).exp()
                for n, x in zip(samples, w)
            ]
            cases.append({
                "floor": floor, "samples": samples, "distances": w,
                "weights": [float(x / sum(terms)) for x in terms],
            })
    return cases


# FedAdp


def angle(x, y):
    a, b = np.sqrt(np.sum(x * x)), np.sqrt(np.sum(y * y))
    if a == 0 or b == 0:
        return np.pi / 2
    return np.arccos(np.clip(np.sum(x * y) / (a * b), -1, 1))


def f(theta, alpha=5.0):
    return alpha * (1 - np.exp(-np.exp(-alpha * (theta - 1))))


def play(seed, devices, dim, participation, own, noise, silent=(), opposite=()):
    """Rounds of FedAdp: a common direction, an own one per device, and noise. At least two devices
    take part: the angle of one to itself is 0, but its rounded arccos is anything below 1e-7."""
    rng = np.random.default_rng(seed)
    samples = rng.integers(100, 5000, size=devices)
    common, extra = rng.normal(size=dim), rng.normal(size=(devices, dim))
    seen = [[] for _ in range(devices)]
    rounds = []
    for t in range(12):
        here = [k for k in range(devices) if rng.uniform() < participation]
        if len(here) < 2 or t in opposite:
            here = [0, devices - 1]
        n = samples[here].copy()
        # Exact 32-bit numbers that are short to write.
        g = common + own * extra[here] + noise * rng.normal(size=(len(here), dim))
        g = np.round(g * 1024) / 1024
        for row, k in enumerate(here):
            if (t, k) in silent:
                g[row] = 0
        if t in opposite:
            n[1], g[1] = n[0], -g[0]
        mean = np.sum(n[:, None] * g, axis=0) / n.sum()
        for k, x in zip(here, g):
            seen[k].append(angle(mean, x))
        terms = n * np.exp([f(np.mean(seen[k])) for k in here])
        rounds.append({
            "devices": here, "samples": n.tolist(), "gradients": g.tolist(),
            "weights": (terms / terms.sum()).tolist(),
            "angles": [float(np.mean(x)) if x else 0.0 for x in seen],
        })
    return {"devices": devices, "rounds": rounds}


def fedadp():
    return [
        play(1, 5, 6, 1.0, 0.7, 0.3),
        play(2, 6, 9, 0.6, 1.0, 0.5),
        play(3, 6, 17, 0.4, 0.3, 2.0),
        play(4, 4, 8, 0.7, 0.5, 0.1, silent=[(0, 0), (3, 1), (3, 2), (7, 3)]),
        play(5, 4, 5, 0.8, 1.5, 0.2, opposite=[0, 5]),
        play(6, 3, 1, 0.9, 1.5, 1.0),
    ]


if __name__ == "__main__":
    versions = {"numpy": np.__version__}
    write("wasserstein.json", {"distances": distances(), "weights": weights()},
          versions | {"scipy": scipy.__version__})
    write("fedadp.json", {"cases": fedadp()}, versions)
