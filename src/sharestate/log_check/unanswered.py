"""Fetches that have acquired what no answer says."""

from __future__ import annotations

from typing import Final

from sharestate.history import Event
from sharestate.log_check.partition_events import Located

THROWN: Final = "unknown_server_error"
"""The error of a fetch whose acquire has thrown."""


def may_have_thrown_elsewhere(fetch: Event) -> bool:
    """
    Return whether a fetch may have failed because acquire has thrown for another of its partitions (B8).

    A broker answers all of them with the error then. Those that were acquired before it stay locked, and nobody knows
    which these are: it goes through them in the order of a hash map.

    Source:
        DelayedShareFetch.completeLocalLogShareFetchRequest and handleFetchException (Kafka 4.4).
    """
    return (fetch.response or {}).get("error") == THROWN and (fetch.request or {}).get("partitions", 1) > 1


def unanswered_fetch(events: list[Located], stop: Event) -> str | None:
    """
    Return why it is not known what may have been acquired where nothing fits; None if it is known.

    A broker that throws in a fetch, as when one of its topics was deleted meanwhile, answers the whole request with an
    error. What it has acquired before of other partitions stays locked, and no answer has it (a run of 4.3.1).

    Args:
        events: The events of a share partition, in order of arrival.
        stop: The event that does not fit.
    """
    fetch: Event | None = None
    for _, event in events:
        if event.seq >= stop.seq:
            break
        if event.kind == "fetch" and (event.response is None or may_have_thrown_elsewhere(event)):
            fetch = event
        elif event.kind == "initialize" and "error" not in (event.response or {}):
            fetch = None  # all locks are gone
    if fetch is None:
        return None
    return f"the fetch in {fetch.source} was answered with an error, so it is not known what it has acquired"
