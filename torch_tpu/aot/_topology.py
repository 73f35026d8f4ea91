"""Names of topologies, as libtpu takes them."""

from __future__ import annotations

import re

# Generation -> one topology of it, for messages.
GENERATIONS = {
    "v2": "v2:2x2",
    "v3": "v3:2x2",
    "v4": "v4:2x2x1",
    "v5e": "v5e:2x2",
    "v5p": "v5p:2x2x1",
    "v6e": "v6e:2x2",
    "tpu7x": "tpu7x:2x2x1",
}
_NAME = re.compile(r"(\w+):[1-9]\d*(x[1-9]\d*){1,2}")


def check_topology(name: str) -> None:
    """ValueError for a name that is no generation with the chips along each axis, such as "v6e:2x2".

    Whether a generation comes in such a slice is known to libtpu alone.
    """
    match = _NAME.fullmatch(name)
    if not match or match[1] not in GENERATIONS:
        raise unknown_topology(name)


def unknown_topology(name: str, why: str = "") -> ValueError:
    """The error for a name that `check_topology`, or libtpu (`why`), does not take."""
    return ValueError(
        f"unknown topology {name!r}{f' ({why})' if why else ''}: give a generation and its chips along each axis, "
        f"such as {', '.join(GENERATIONS.values())}"
    )
