"""dp-accounting side of the accountants' benchmark.

Reads one command per line on standard input and answers one JSON line on standard output, so that
`cargo xtask bench-peers --accounting` can take turns between dp-accounting and our accountants:

    about                       version
    pld Q Z T DELTA INTERVAL    epsilon by privacy loss distributions, and the seconds it took
    rdp Q Z T DELTA INTERVAL    the same by Rényi divergences at the orders 2 to 64 (no interval)
    quit

Q is the Poisson sampling rate, Z the noise multiplier, T the number of releases; neighbors differ
by one record more or less.
"""

import importlib.metadata
import time

import dp_accounting
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from worker import serve


def pld(rate, noise_multiplier, count, delta, interval):
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise_multiplier))
    accountant = PLDAccountant(value_discretization_interval=interval)
    accountant.compose(event, int(count))
    return accountant.get_epsilon(delta)


def rdp(rate, noise_multiplier, count, delta, _):
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise_multiplier))
    accountant = RdpAccountant(orders=range(2, 65))
    accountant.compose(event, int(count))
    return accountant.get_epsilon(delta)


def timed(function, arguments):
    start = time.perf_counter()
    epsilon = function(*arguments)
    return {"seconds": time.perf_counter() - start, "epsilon": epsilon}


def answer(command, arguments):
    if command == "about":
        return {"dp_accounting": importlib.metadata.version("dp-accounting")}
    if command in ("pld", "rdp"):
        function = pld if command == "pld" else rdp
        return timed(function, [float(argument) for argument in arguments])
    return {"error": f"unknown command {command}"}


if __name__ == "__main__":
    serve(answer)
