"""The drawing of a share session's life, from the table of its requests."""

from collections import defaultdict
from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from generate.drawing import Point, StateDiagram
from sharestate.broker.sessions import REQUESTS, Change, Check, ContextKind, Rpc

NONE: Final = "no session"
OPEN: Final = "session"

PLACES: Final = {NONE: Point(140, 110), OPEN: Point(640, 110)}

EPOCHS: Final = MappingProxyType(
    {ContextKind.INITIAL: "epoch 0", ContextKind.SUBSEQUENT: "expected epoch", ContextKind.FINAL: "epoch -1"}
)
"""How each kind of epoch is written."""

NAMES: Final = MappingProxyType({Rpc.SHARE_FETCH: "ShareFetch", Rpc.SHARE_ACKNOWLEDGE: "ShareAcknowledge"})

OTHERWISE: Final = ("the connection ends", "share groups are switched off")
"""What closes a session besides requests."""


def drawing() -> str:
    """Return the drawing."""
    grouped = defaultdict(list)
    for arrow, label in _arrows():
        grouped[arrow].append(label)
    return StateDiagram(Point(780, 190), PLACES, grouped).svg()


def _arrows() -> Iterator[tuple[tuple[str, str], str]]:
    for (rpc, kind), row in REQUESTS.items():
        if Check.NOT_OPENING in row.checks:  # it is never taken
            continue
        here = (OPEN,) if Check.EXISTS in row.checks else PLACES
        there = NONE if row.change is Change.NOTHING else OPEN
        yield from (((state, there), f"{NAMES[rpc]}, {EPOCHS[kind]}") for state in here)
    yield from (((OPEN, NONE), label) for label in OTHERWISE)
