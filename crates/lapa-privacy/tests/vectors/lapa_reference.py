"""Writes lapa.json: LAPA by its formulas, plainly, to test our own against.

    python -m venv venv && venv/bin/pip install numpy==2.4.6
    venv/bin/python crates/lapa-privacy/tests/vectors/lapa_reference.py

Every gradient is an exact 32-bit float; everything else is computed from them in 64-bit
arithmetic. Each round says who took part, what the base station received, which of the m global
gradients before it was left out of the sample (null while there are fewer), and what follows: the
decision of the round (made before its gradients are seen), and afterwards the error e, the smoothed
angles and f of all devices.
"""

import json
import pathlib

import numpy as np

K, DIM, ROUNDS = 4, 6, 12


def norm(x):
    return float(np.sqrt(np.sum(x * x)))


def feedback(kind, g, s2, h, r2):
    """Eq. (10) between two global gradients g and h with noise variances s2 and r2."""
    if kind == "raw":
        return norm(g - h)
    if kind == "relative":
        return norm(g - h) / (norm(g) + norm(h)) if norm(g) + norm(h) > 0 else 0.0
    top = np.sqrt(max(0.0, norm(g - h) ** 2 - DIM * (s2 + r2)))
    bottom = np.sqrt(max(0.0, norm(g) ** 2 - DIM * s2)) + np.sqrt(max(0.0, norm(h) ** 2 - DIM * r2))
    return float(min(1.0, top / bottom)) if bottom > 0 else 0.0


def pid(settings, past, left_out):
    """Eq. (11) over all global gradients so far."""
    m = settings["window"]
    sample = past[-(m + 1):]
    if len(sample) == m + 1:
        sample = [x for i, x in enumerate(sample) if i != left_out]
    if len(sample) < 2:
        return None
    errors = [
        feedback(settings["error"], *sample[s], *sample[s - 1]) for s in range(1, len(sample))
    ]
    return settings["proportional"] * errors[-1] + settings["integral"] * sum(errors) / len(sample)


def angle_paper(g, device):
    """Eq. (13)."""
    local = device["g"]
    if norm(g) == 0 or norm(local) == 0:
        return None
    return float(np.arccos(np.clip(np.dot(g, local) / (norm(g) * norm(local)), -1, 1)))


def angle_certified(g, device, devices):
    """Against the sum of the others, without the noise's part."""
    local, weight = device["g"], device["weight"]
    others = g - weight * local
    noise = sum((d["weight"] * d["sigma"]) ** 2 for d in devices if d is not device)
    a = norm(others) ** 2 - DIM * noise
    b = norm(local) ** 2 - DIM * device["sigma"] ** 2
    if len(devices) == 1 or a <= 0 or b <= 0:
        return None
    return float(np.arccos(np.clip(np.dot(others, local) / np.sqrt(a * b), -1, 1)))


def f(angle, case):
    """Eq. (15), of the supplement of the angle by the text."""
    beta, angle = case["decay"], np.pi - angle if case["split"] == "text" else angle
    return float(beta * (1 - np.exp(-np.exp(-beta * (angle - 1)))))


def part(case, error, n):
    """What a round takes of what is left, with n rounds to go."""
    damping = 1.0 if error is None else float(np.exp(-error))
    if case["schedule"] == "formula":
        return damping / n
    # This round weighs 1, each of the others exp(-e).
    weights = [1.0] + [damping] * (n - 1)
    return weights[0] / sum(weights)


def with_mean(values):
    """f of all, where those without an angle count as the mean of the others; all 1 without any."""
    known = [v for v in values if v is not None]
    mean = sum(known) / len(known) if known else 1.0
    return [mean if v is None else v for v in values]


def grid(x):
    """Short numbers that 32-bit floats hold exactly."""
    return np.round(np.asarray(x) * 1024) / 1024


def received(rng, t, case, present):
    """A shrinking common direction, an own one per device, and noise."""
    common = np.array([1.0, -0.5, 0.25, 0.75, 0.0, 0.5]) * 4 * 0.9**t
    devices = []
    weights = rng.integers(1, 9, size=len(present))
    for k, w in zip(present, weights / weights.sum()):
        own = np.array([np.cos(k * 1.7 + i) for i in range(DIM)]) * 0.6 * k
        sigma = float(grid(case["sigma"] * rng.uniform(0.5, 1.5)))
        g = grid(common + own + sigma * rng.normal(size=DIM))
        if (t, int(k)) in case["silent"]:
            g = g * 0
        devices.append({"device": int(k), "weight": float(w), "sigma": sigma, "g": g})
    total = sum(d["weight"] * d["g"] for d in devices).astype(np.float32)
    return devices, total.astype(np.float64)


def play(case):
    rng = np.random.default_rng(case["seed"])
    paper = case["basis"] == "paper"
    smoothed, seen = [None] * K, [0] * K
    past, error, consumed = [], None, 0.0
    left = [float(case["capacity"] * (1 + k / 4)) for k in range(K)]
    rounds = []
    for t in range(1, ROUNDS + 1):
        present = [k for k in range(K) if rng.uniform() < case["participation"]] or [t % K]
        fs = [None if a is None else f(a, case) for a in smoothed]
        decision = {"present": present, "left": [left[k] for k in present], "pid_error": error}
        decision["angles"] = [smoothed[k] for k in present]
        if paper:
            total = case["total"]
            if t == 1:
                budget = total / ROUNDS
                shares = [total / (ROUNDS * K) for _ in present]
            else:
                # Eq. (12) with t - 1 for t, and eq. (16). The text's schedule shares out what the
                # first round left over the rounds that are really to come.
                if case["schedule"] == "formula":
                    budget = part(case, error, ROUNDS - (t - 1) + 1) * (total - consumed)
                else:
                    rest = total - total / ROUNDS - consumed
                    budget = part(case, error, ROUNDS - t + 1) * rest
                consumed += budget
                everyone = with_mean(fs)
                shares = [everyone[k] / sum(everyone) * budget for k in present]
            decision["round_budget"] = budget
        elif t == ROUNDS:
            shares = [left[k] for k in present]
            decision |= {"pid_error": None, "angles": [None for _ in present], "round_budget": None}
        else:
            here = with_mean([fs[k] for k in present])
            mean = sum(here) / len(here)
            shares = [
                min(left[k], part(case, error, ROUNDS - t + 1) * x / mean * left[k])
                for k, x in zip(present, here)
            ]
            decision["round_budget"] = None
        for k, share in zip(present, shares):
            left[k] -= share
        decision["shares"] = shares

        devices, g = received(rng, t, case, present)
        past.append((g, sum((d["weight"] * d["sigma"]) ** 2 for d in devices)))
        m = case["window"]
        left_out = int(rng.integers(0, m)) if len(past) >= m + 1 else None
        error = pid(case, past, left_out)
        for d in devices:
            k = d["device"]
            angle = angle_paper(g, d) if paper else angle_certified(g, d, devices)
            if angle is None:
                continue
            # Eq. (14), over the rounds in which the device had an angle.
            n = seen[k] = seen[k] + 1
            smoothed[k] = angle if n == 1 else (n - 1) / n * smoothed[k] + angle / n
        rounds.append({
            "decision": decision,
            "received": [
                {**{x: d[x] for x in ("device", "weight", "sigma")}, "gradient": d["g"].tolist()}
                for d in devices
            ],
            "global": g.tolist(),
            "left_out": left_out,
            "after": {
                "pid_error": error,
                "angles": list(smoothed),
                "f": [None if a is None else f(a, case) for a in smoothed],
            },
        })
    settings = {x: v for x, v in case.items() if x not in ("silent", "participation", "sigma")}
    return {**settings, "devices": K, "rounds": rounds}


def main():
    base = {
        "total": 8.0, "capacity": 2.0, "decay": 5.0, "proportional": 0.5, "integral": 0.5,
        "window": 5, "participation": 1.0, "sigma": 0.25, "silent": [],
        "schedule": "formula", "split": "formula",
    }
    cases = [
        {"basis": "paper", "error": "relative"},
        {"basis": "paper", "error": "relative", "participation": 0.6, "window": 3},
        {"basis": "paper", "error": "raw", "proportional": 0.1, "integral": 0.05, "window": 2},
        {"basis": "paper", "error": "debiased", "sigma": 2.0, "decay": 2.0, "total": 0.5},
        {"basis": "paper", "error": "relative", "silent": [(2, k) for k in range(K)] + [(5, 1)]},
        {"basis": "certified", "error": "debiased"},
        {"basis": "certified", "error": "debiased", "participation": 0.6, "window": 3},
        {"basis": "certified", "error": "debiased", "sigma": 2.0, "decay": 2.0, "window": 2},
        {"basis": "certified", "error": "relative", "participation": 0.3, "sigma": 1.0},
        {"basis": "certified", "error": "raw", "integral": 1.5, "decay": 8.0, "participation": 0.8},
        {"basis": "paper", "error": "relative", "schedule": "text", "participation": 0.8},
        {"basis": "paper", "error": "relative", "split": "text", "window": 3},
        {"basis": "certified", "error": "debiased", "schedule": "text", "split": "text"},
    ]
    played = [play({**base, **case, "seed": 100 + i}) for i, case in enumerate(cases)]
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in played)
    path = pathlib.Path(__file__).parent / "lapa.json"
    path.write_text("[\n" + lines + "\n]\n")


if __name__ == "__main__":
    main()
