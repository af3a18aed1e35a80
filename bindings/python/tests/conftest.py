"""What several tests share. Every test has a time limit: none may hang."""

import faulthandler
import os
import subprocess

import pytest

#: Seconds after which a single test ends the whole run, with a trace of all threads.
LIMIT = 300

SMALL = """
data.name = "synthetic"
model.name = "logistic"
transmit.uplink = "ideal"
run = { rounds = 4, seed = 3, evaluate_every = 2 }
learn = { batch_fraction = 0.25, momentum = 0.5 }
partition.mix = { iid = 2, non_iid = 2, iid_samples = [60, 120], non_iid_samples = [60, 120] }
privacy.epsilon = 8
"""


@pytest.fixture(autouse=True)
def time_limit():
    """A test that hangs ends the process instead."""
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def small():
    """A small experiment."""
    return SMALL


@pytest.fixture(scope="session")
def binary():
    """The `lapa` program; cargo xtask says where it is."""
    program = os.environ.get("LAPA_BINARY")
    if not program:
        pytest.skip("LAPA_BINARY does not say where the program is; cargo xtask test does")

    def call(*arguments, cwd):
        return subprocess.run(
            [program, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=240
        )

    return call
