"""One contender's process: `worker.py CONTENDER` answers requests until its input ends, one JSON object a line.

A request is {"measure": name}; the answer is {"value": number, "check": number} or {"error": text}. The first
request for a measure also prepares it (warm-up and compilation are not part of a sample).
"""

import json
import os
import sys
from collections.abc import Callable


def start(contender: str) -> str:
    """Imports torch as the contender needs it and returns the name of its device."""
    if contender == "google":
        import peer  # noqa: F401
    import torch

    device = "cpu" if contender == "cpu" else "tpu"
    (torch.ones(2, device=device) + 1).cpu()
    return device


def main(contender: str) -> None:
    """Serves requests from the standard input until it ends."""
    # Libraries print to the standard output, so answers go to a private copy of it.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    prepared: dict[str, tuple[Callable[[], float], float]] = {}
    device = None
    for line in sys.stdin:
        name = json.loads(line)["measure"]
        answer: dict[str, float | str]
        try:
            if device is None:
                device = start(contender)
            from measures import MEASURES

            if name not in prepared:
                prepared[name] = MEASURES[name](device)
            sample, check = prepared[name]
            answer = {"value": sample(), "check": check}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
