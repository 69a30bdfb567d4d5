"""Steps of scripts for brokers: what members and administrators do."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from attrs import frozen

Step: TypeAlias = dict[str, Any]

HERE: Final = None
"""Stands before the first step of a script that shows its rules."""

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

COMMITTED: Final = {"share.isolation.level": "read_committed"}
LIMIT_2: Final = {"share.delivery.count.limit": "2"}
LOCKS_100: Final = {"share.partition.max.record.locks": "100"}
LONG_LOCKS: Final = {"share.record.lock.duration.ms": "60000"}
QUEUE: Final = {"errors.deadletterqueue.topic.name": "<letters>"}


@frozen
class Script:
    """
    A script.

    Attributes:
        name: Its name, which is a part of a topic's name.
        rules: The numbers of the rules that it shows.
        steps: Its steps.
        shows: The index of the first step that shows the rules; those before it prepare.
        since: The first release that can be asked this.
    """

    name: str
    rules: tuple[str, ...]
    steps: tuple[Step, ...]
    shows: int
    since: str


def script(name: str, rules: str, *steps: Step | list[Step] | None, since: str = "4.2.1") -> Script:
    """Return a script, whose steps may come in lists; HERE stands before the first one that shows the rules."""
    flat = [each for step in steps for each in (step if isinstance(step, list) else [step])]
    shows = flat.index(HERE)
    return Script(name, tuple(rules.split()), tuple(step for step in flat if step is not HERE), shows, since)


def scene(
    *batches: int, members: tuple[str, ...] = ("m1",), settings: dict[str, str] | None = None, waits: bool = False
) -> list[Step]:
    """Return steps that make a topic and a group, have members join, and write batches of so many records."""
    begin: Step = {"op": "begin", **({"settings": settings} if settings else {}), **({"waits": True} if waits else {})}
    return [begin, join(members[0]), *([produce(*batches)] if batches else []), *map(join, members[1:])]


def held(*batches: int, **named: Any) -> list[Step]:  # noqa: ANN401 - what a scene has
    """Return the steps of a scene in which the first member gets all records at once."""
    return [*scene(*batches, **named), fetch()]


def produce(*batches: int, transaction: str | None = None) -> Step:
    """Return a step that writes batches of so many records, in a transaction if one is named."""
    return {"op": "produce", "batches": [*batches], **({"transaction": transaction} if transaction else {})}


def end(transaction: str, *, commits: bool) -> Step:
    """Return a step that ends a transaction."""
    return {"op": "end", "transaction": transaction, "commits": commits}


def join(member: str) -> Step:
    """Return a step in which a member joins, and opens a share session."""
    return {"op": "join", "member": member}


def fetch(member: str = "m1", **named: Any) -> Step:  # noqa: ANN401 - the fields of a step
    """Return a step in which a member fetches."""
    return {"op": "fetch", "member": member, **named}


def nothing(member: str = "m1", wait_ms: int = 250) -> Step:
    """Return a step in which a member fetches what is to bring nothing, so that it does not wait long."""
    return fetch(member, wait_ms=wait_ms)


def acknowledge(*batches: tuple[Any, ...], member: str = "m1", renews: bool = False) -> Step:
    """Return a step in which a member acknowledges ranges: first and last offset, and types."""
    given = [[first, last, [*types]] for first, last, *types in batches]
    return {"op": "acknowledge", "member": member, "batches": given, **({"renews": True} if renews else {})}


def accept(first: int, last: int, member: str = "m1") -> Step:
    """Return a step in which a member accepts a range."""
    return acknowledge((first, last, ACCEPT), member=member)


def release(first: int, last: int) -> Step:
    """Return a step in which the first member releases a range."""
    return acknowledge((first, last, RELEASE))


def close(*batches: tuple[Any, ...], member: str = "m1") -> Step:
    """Return a step in which a member closes its share session, with last acknowledgements."""
    given = [[first, last, [*types]] for first, last, *types in batches]
    return {"op": "close", "member": member, **({"batches": given} if given else {})}


def delete_records(before: int) -> Step:
    """Return a step that moves the log start."""
    return {"op": "delete_records", "before": before}


def configure(**settings: str) -> Step:
    """Return a step that sets the group, with underscores for points; locks may be the shortest that may be set."""
    return {"op": "set", "settings": {key.replace("_", "."): value for key, value in settings.items()}}


def letters(count: int) -> Step:
    """Return a step that waits for so many dead letters."""
    return {"op": "letters", "count": count}


def again(times: int, first: int, last: int) -> list[Step]:
    """Return steps in which records are taken and released so many times."""
    return [step for _ in range(times) for step in (fetch(), release(first, last))]


START: Final[Step] = {"op": "start_offset"}
LAG: Final[Step] = {"op": "lag"}
WAIT: Final[Step] = {"op": "wait"}
WAIT_PART: Final[Step] = {"op": "wait_part", "percent": 60}
BOTH: Final = ("m1", "m2")
