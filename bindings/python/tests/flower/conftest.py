"""Real federations may take longer than other tests: a busy machine is many times slower."""

import faulthandler

import pytest

LIMIT = 900


@pytest.fixture(autouse=True)
def time_limit():
    """A test that hangs ends the process instead."""
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
