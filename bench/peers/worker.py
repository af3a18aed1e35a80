"""A peer that answers commands: a line in, a line of JSON out."""

import json
import sys


def serve(answer):
    """Answers `command argument…` with answer(command, arguments) until `quit`."""
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "quit":
            return
        try:
            result = answer(command, arguments)
        except Exception as error:  # the caller shows it
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)
