"""Which fetches were answered with a lock duration that was never set: no order of steps shows that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from sharestate.log_check.partition_events import Located

_FIELD: Final = "record_lock_duration_ms"


class WrongDuration(NamedTuple):
    """
    A fetch that was answered with another lock duration.

    Attributes:
        located: The fetch, with its line.
        observed_ms: What its answer says. [ms]
        in_force_ms: What those before and after it say. [ms]
    """

    located: Located
    observed_ms: int
    in_force_ms: int


def wrong_durations(events: Iterable[Located]) -> Iterator[WrongDuration]:
    """
    Yield the fetches of a share partition whose answers alone have a lock duration that nothing has set.

    If those that follow have it too, it was set, and the log does not show it.

    Args:
        events: Its events in order of arrival, each with its line.
    """
    known: set[int] = set()
    last: list[tuple[Located, int]] = []  # the two fetches before, with the durations in their answers
    for located in events:
        event = located[1]
        if event.kind == "config" and _FIELD in (event.request or {}):
            known.add((event.request or {})[_FIELD])
        answered_ms = (event.response or {}).get("lock_ms") if event.kind == "fetch" else None
        if not answered_ms:  # an answer with an error has none
            continue
        if len(last) > 1:
            (_, before_ms), (fetch, its_ms) = last
            if before_ms == answered_ms != its_ms and its_ms not in known:
                yield WrongDuration(fetch, its_ms, answered_ms)
        last = [*last[-1:], (located, answered_ms)]
