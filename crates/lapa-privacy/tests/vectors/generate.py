"""Writes dp_accounting.json, the values that tests/golden.rs compares with.

Needs: pip install dp-accounting==0.6.0 mpmath==1.4.1
Run:   python generate.py   (a quarter of an hour on one core)

Events are [q, z, count]: `count` Gaussian releases with noise multiplier z on Poisson samples of
rate q; q = 1 is the plain Gaussian, whose z is that of the pair it is used on, whatever the
adjacency.

At fractional orders dp-accounting 0.6.0 adds the absolute values of an alternating series (its
_log_comb takes the logarithm of |C(alpha, i)|), so its divergences there are up to some percent
too large, and some sums do not converge and count as infinite. They are kept as upper bounds;
true values come from mpmath, and epsilons are stored over its default orders and over the
integers among them.
"""

import functools
import json
import math
import pathlib

import dp_accounting as dpa
import mpmath
from dp_accounting.pld import privacy_loss_distribution as pld_lib
from dp_accounting.rdp import rdp_privacy_accountant as rdp_lib

NEIGHBORS = {
    "add-remove": dpa.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "zero-out": dpa.NeighboringRelation.REPLACE_SPECIAL,
    "replace-one": dpa.NeighboringRelation.REPLACE_ONE,
}
INTERVAL = 1e-4
DELTAS = [1e-3, 1e-5, 1e-7, 1e-9]
RATES = [1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5]
NOISES = [0.4, 0.7, 1.0, 2.0, 5.0, 20.0]
COUNTS = [1, 10, 100, 1_000, 10_000, 100_000]
DEFAULT_ORDERS = list(rdp_lib.DEFAULT_RDP_ORDERS)
INTEGER_ORDERS = [order for order in DEFAULT_ORDERS if float(order).is_integer()]
ORDERS = [1.05, 1.5, 2, 2.75, 3, 4.5, 8, 10.1, 16, 33.3, 64, 256]
# Grids of privacy losses grow with epsilon; beyond this they are not worth their time.
LARGEST_EPSILON = 40

mpmath.mp.dps = 40


def number(x):
    """12 digits; infinity as a string, which JSON has no number for."""
    return "inf" if math.isinf(x) else float(f"{x:.12g}")


def event(rate, noise):
    gaussian = dpa.GaussianDpEvent(noise)
    return gaussian if rate == 1 else dpa.PoissonSampledDpEvent(rate, gaussian)


def rdp_accountant(events, orders=None):
    accountant = rdp_lib.RdpAccountant(orders)
    for rate, noise, count in events:
        accountant.compose(event(rate, noise), count)
    return accountant


def pld_accountant(events, adjacency, interval=INTERVAL):
    accountant = dpa.pld.PLDAccountant(NEIGHBORS[adjacency], interval)
    for rate, noise, count in events:
        # Under REPLACE_ONE it takes the sensitivity of a plain Gaussian to be 2.
        doubled = rate == 1 and adjacency == "replace-one"
        accountant.compose(event(rate, 2 * noise if doubled else noise), count)
    return accountant


def exact_delta(mu, epsilon):
    """Balle & Wang 2018, Theorem 8."""
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
        -mu / 2 - epsilon / mu
    )


def exact_epsilon(mu, delta):
    """The root of exact_delta by bisection; delta falls with epsilon."""
    if exact_delta(mu, 0) <= delta:
        return 0.0
    low, high = mpmath.mpf(0), mpmath.mpf(1)
    while exact_delta(mu, high) > delta:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if exact_delta(mu, middle) > delta else (low, middle)
    return float(high)


@functools.cache
def exact_divergence(rate, noise, order):
    """ln E[(1 + u)^order]/(order - 1), u = q(w - 1), by the trapezoid rule.

    1 + order*u, whose mean is 1, is subtracted under the integral to keep the digits of tiny
    divergences. The rule's error is about exp(-2 pi^2 z/step).
    """
    q, z, order = mpmath.mpf(rate), mpmath.mpf(noise), mpmath.mpf(order)
    if rate == 1:
        return order / (2 * z * z)
    step = min(z, 1) / 4
    low, high = mpmath.mpf(-14), order / z + 14
    total = mpmath.mpf(0)
    for i in range(int((high - low) / step) + 1):
        t = low + i * step
        u = q * (mpmath.exp((2 * z * t - 1) / (2 * z * z)) - 1)
        total += ((1 + u) ** order - 1 - order * u) * mpmath.exp(-t * t / 2)
    return mpmath.log1p(total * step / mpmath.sqrt(2 * mpmath.pi)) / (order - 1)


def exact_divergences(events, orders):
    """Of all events together, at each order."""
    return [sum(count * exact_divergence(q, z, order) for q, z, count in events) for order in orders]


def composed_mu(events):
    """mu of plain Gaussians together, or None."""
    if any(rate != 1 for rate, _, _ in events):
        return None
    return mpmath.sqrt(sum(mpmath.mpf(count) / mpmath.mpf(noise) ** 2 for _, noise, count in events))


def lower_epsilons(events, adjacency):
    """Optimistic estimates: at most the true epsilon."""
    total = None
    for rate, noise, count in events:
        if rate == 1:
            noise, count = noise / math.sqrt(count), 1
            if adjacency == "replace-one":
                noise *= 2
        one = pld_lib.from_gaussian_mechanism(
            noise,
            pessimistic_estimate=False,
            value_discretization_interval=INTERVAL,
            sampling_prob=rate,
            use_connect_dots=False,
            neighboring_relation=NEIGHBORS[adjacency],
        ).self_compose(count)
        total = one if total is None else total.compose(one)
    return [number(total.get_epsilon_for_delta(delta)) for delta in DELTAS]


def rdp_vector(events):
    at_orders = rdp_accountant(events, ORDERS)._rdp
    default = rdp_accountant(events)
    integers = rdp_accountant(events, INTEGER_ORDERS)
    return {
        "events": events,
        "rdp": [number(r) for r in at_orders],
        "exact": [number(float(r)) for r in exact_divergences(events, ORDERS)],
        "epsilons": [number(default.get_epsilon(delta)) for delta in DELTAS],
        "integer_epsilons": [number(integers.get_epsilon(delta)) for delta in DELTAS],
    }


def fine_interval(events):
    """An eighth of the privacy loss's standard deviation on samples, or None if INTERVAL is less.

    On a coarser grid its bound is more than 0.2 % too large, and up to several times.
    """
    deviations = [q * math.sqrt(math.expm1(z**-2)) for q, z, _ in events if q < 1]
    interval = float(f"{min(deviations, default=1) / 8:.1g}")
    return interval if interval < INTERVAL else None


def pld_vector(events, adjacency):
    accountant = pld_accountant(events, adjacency)
    vector = {
        "events": events,
        "adjacency": adjacency,
        "epsilons": [number(accountant.get_epsilon(delta)) for delta in DELTAS],
    }
    interval = fine_interval(events)
    if interval is not None:
        fine = pld_accountant(events, adjacency, interval)
        vector["fine"] = [number(fine.get_epsilon(delta)) for delta in DELTAS]
    mu = composed_mu(events)
    if mu is not None:
        vector["exact"] = [number(exact_epsilon(mu, delta)) for delta in DELTAS]
    elif sum(count for _, _, count in events) <= 100:
        # Rounding down costs up to INTERVAL per release: of no use for more.
        vector["lower"] = lower_epsilons(events, adjacency)
    return vector


def feasible(events):
    epsilon = rdp_accountant(events).get_epsilon(DELTAS[-1])
    return epsilon <= LARGEST_EPSILON


MIXED = [
    [[0.01, 1.0, 100], [0.1, 2.0, 10]],
    [[0.1, 1.0, 5], [0.1, 3.0, 50]],
    [[0.01, 0.8, 200], [1, 10.0, 5]],
    [[0.5, 5.0, 20], [1, 5.0, 3]],
    [[0.001, 0.6, 1000], [0.01, 2.0, 1000]],
    [[0.3, 2.0, 4], [0.03, 0.9, 30], [1, 7.0, 1]],
    [[0.05, 1.5, 300], [0.2, 4.0, 100], [1, 20.0, 10]],
    [[0.02, 0.7, 20], [0.02, 0.9, 20], [0.02, 1.1, 20]],
    [[1, 2.0, 1], [1, 3.0, 2]],
    [[1, 8.0, 10], [1, 12.0, 40], [1, 30.0, 100]],
]
PUBLISHED = [[[0.1, 1.0, 100]], [[0.01, 1.0, 1000]], [[1, 5.0, 100]]]


def write(content):
    """One vector per line."""
    parts = []
    for key, value in content.items():
        if isinstance(value, list) and isinstance(value[0], dict):
            lines = ",\n".join(json.dumps(v, separators=(",", ":")) for v in value)
            parts.append(f'"{key}":[\n{lines}\n]')
        else:
            parts.append(f'"{key}":{json.dumps(value, separators=(",", ":"))}')
    path = pathlib.Path(__file__).with_name("dp_accounting.json")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def main():
    grid = [[[q, z, t]] for q in RATES for z in NOISES for t in COUNTS]
    plain = [[[1, z, t]] for z in [0.4, 1.0, 5.0, 20.0, 100.0] for t in [1, 100, 10_000]]

    rdp = [rdp_vector(events) for events in PUBLISHED + MIXED + plain]
    rdp += [rdp_vector(events) for events in grid if events[0][2] in (1, 100, 10_000, 100_000)]

    # What it would print if its fractional orders were right.
    published = []
    for events in PUBLISHED:
        true = [float(r) for r in exact_divergences(events, DEFAULT_ORDERS)]
        epsilons = [rdp_lib.compute_epsilon(DEFAULT_ORDERS, true, delta)[0] for delta in DELTAS]
        published.append({"events": events, "epsilons": [number(e) for e in epsilons]})

    pld = []
    for events in PUBLISHED + MIXED + [e for e in plain if feasible(e)]:
        pld.append(pld_vector(events, "add-remove"))
        if events[0][0] != 1 or len(events) > 1:
            pld.append(pld_vector(events, "replace-one"))
    for index, events in enumerate(e for e in grid if feasible(e)):
        print(index, events, flush=True)
        pld.append(pld_vector(events, "add-remove"))
        # Every other one, for their time.
        if index % 2 == 0:
            pld.append(pld_vector(events, "replace-one"))
        if index % 20 == 0:
            pld.append(pld_vector(events, "zero-out"))

    gaussian = []
    for sigma in [0.05, 0.4, 1.0, 3.73, 30.0, 1000.0]:
        for epsilon in [0.0, 0.01, 0.5, 1.0, 8.0, 100.0]:
            delta = exact_delta(1 / mpmath.mpf(sigma), epsilon)
            if delta > mpmath.mpf(10) ** -30:
                gaussian.append({"z": sigma, "epsilon": epsilon, "delta": float(delta)})
    for epsilon in [0.001, 0.01, 0.1, 1.0, 3.0, 8.0, 50.0, 1000.0]:
        for delta in DELTAS:
            sigma = dpa.get_sigma_gaussian(epsilon, delta)
            gaussian.append({"calibrated": number(sigma), "epsilon": epsilon, "delta": delta})

    calibrated = []
    for rate, count in [(0.01, 1000), (0.1, 100), (0.5, 30), (0.001, 10_000)]:
        for epsilon in [0.5, 1.0, 2.0, 8.0]:
            for delta in [1e-5, 1e-7]:
                noise = dpa.calibrate_dp_mechanism(
                    lambda: rdp_lib.RdpAccountant(INTEGER_ORDERS),
                    lambda z, q=rate, t=count: dpa.SelfComposedDpEvent(event(q, z), t),
                    epsilon,
                    delta,
                    dpa.LowerEndpointAndGuess(0.01, 1.0),
                    tol=1e-7,
                )
                calibrated.append(
                    {"rate": rate, "count": count, "epsilon": epsilon, "delta": delta, "z": number(noise)}
                )

    edges = []
    for what, events in [
        ("no noise", [[1, 0.0, 1]]),
        ("no noise on a sample", [[0.1, 0.0, 1]]),
        ("no sample", [[0.0, 1.0, 10]]),
    ]:
        edges.append(
            {
                "what": what,
                "events": events,
                "rdp": number(rdp_accountant(events).get_epsilon(1e-5)),
                "pld": number(pld_accountant(events, "add-remove").get_epsilon(1e-5)),
            }
        )
    refused = rdp_lib.RdpAccountant(neighboring_relation=NEIGHBORS["replace-one"])
    edges.append(
        {
            "what": "poisson samples under replace-one",
            "events": [[0.1, 1.0, 1]],
            "rdp": "supported" if refused.supports(event(0.1, 1.0)) else "unsupported",
            "pld": number(pld_accountant([[0.1, 1.0, 1]], "replace-one").get_epsilon(1e-5)),
        }
    )

    content = {
        "source": "dp-accounting 0.6.0; exact values: mpmath 1.4.1",
        "deltas": DELTAS,
        "orders": ORDERS,
        "default_orders": DEFAULT_ORDERS,
        "rdp": rdp,
        "published": published,
        "pld": pld,
        "gaussian": gaussian,
        "calibrated": calibrated,
        "edges": edges,
    }
    write(content)


if __name__ == "__main__":
    main()
