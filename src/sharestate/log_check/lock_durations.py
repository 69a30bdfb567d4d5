"""Which fetches were answered with a lock duration that was never set: no order of steps shows that."""

from __future__ import annotations

from collections import Counter
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

    Nothing is known while the setting is assumed. A duration that several answers have was set, though the log does
    not show it: where it is altered, the answers to requests that overlap have the one and the other by turns.

    Args:
        events: Its events in order of arrival, each with its line.
    """
    known: set[int] = set()
    fetches: list[tuple[Located, int]] = []
    for located in events:
        event = located[1]
        request = event.request or {}
        if event.kind == "config" and _FIELD in request:
            if _FIELD in request.get("assumed", ()):
                return
            known.add(request[_FIELD])
        answered_ms = (event.response or {}).get("lock_ms") if event.kind == "fetch" else None
        if answered_ms:  # an answer with an error has none
            fetches.append((located, answered_ms))
    often = Counter(answered_ms for _, answered_ms in fetches)
    for (_, before_ms), (fetch, its_ms), (_, after_ms) in zip(fetches, fetches[1:], fetches[2:], strict=False):
        if before_ms == after_ms != its_ms and often[its_ms] == 1 and its_ms not in known:
            yield WrongDuration(fetch, its_ms, after_ms)
