"""The console script `lapa`: the same program as the binary."""

import signal
import sys

from ._lapa import main as run


def main() -> int:
    """Runs the command line with the arguments of the process."""
    if sys.argv[1:2] == ["flower"]:
        from .flower.__main__ import main as flower

        return flower(sys.argv[2:])
    # Python would only take note of Ctrl-C, and act after the program has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run(["lapa", *sys.argv[1:]])
