"""
The scripts for brokers, without their answers: what members and administrators do, and which rules that shows.

What is expected is recorded at brokers of Kafka (recording.py), so nothing of it stands here.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from attrs import frozen

Step: TypeAlias = dict[str, Any]

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)

COMMITTED: Final = {"share.isolation.level": "read_committed"}
LIMIT_2: Final = {"share.delivery.count.limit": "2"}
LOCKS_100: Final = {"share.partition.max.record.locks": "100"}
QUEUE: Final = {"errors.deadletterqueue.topic.name": "<letters>"}


@frozen
class Script:
    """
    A script.

    Attributes:
        name: Its name, which is a part of a topic's name.
        rules: The numbers of the rules that it shows.
        steps: Its steps.
        since: The first release that can be asked this.
    """

    name: str
    rules: tuple[str, ...]
    steps: tuple[Step, ...]
    since: str = "4.2.1"


def script(name: str, rules: str, *steps: Step | list[Step], since: str = "4.2.1") -> Script:
    """Return a script, whose steps may come in lists."""
    flat = [each for step in steps for each in (step if isinstance(step, list) else [step])]
    return Script(name, tuple(rules.split()), tuple(flat), since)


def scene(
    *batches: int, members: tuple[str, ...] = ("m1",), settings: dict[str, str] | None = None, waits: bool = False
) -> list[Step]:
    """Return steps that make a topic and a group, have members join, and write batches of so many records."""
    begin: Step = {"op": "begin", **({"settings": settings} if settings else {}), **({"waits": True} if waits else {})}
    return [begin, join(members[0]), *([produce(*batches)] if batches else []), *map(join, members[1:])]


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


def close(*batches: tuple[Any, ...], member: str = "m1") -> Step:
    """Return a step in which a member closes its share session, with last acknowledgements."""
    given = [[first, last, [*types]] for first, last, *types in batches]
    return {"op": "close", "member": member, **({"batches": given} if given else {})}


def delete_records(before: int) -> Step:
    """Return a step that moves the log start."""
    return {"op": "delete_records", "before": before}


def configure(**settings: str) -> Step:
    """Return a step that sets the group, with underscores for points."""
    return {"op": "set", "settings": {key.replace("_", "."): value for key, value in settings.items()}}


def letters(count: int) -> Step:
    """Return a step that waits for so many dead letters."""
    return {"op": "letters", "count": count}


def again(times: int, first: int, last: int) -> list[Step]:
    """Return steps in which records are taken and released so many times."""
    return [step for _ in range(times) for step in (fetch(), acknowledge((first, last, RELEASE)))]


OFFSETS: Final[Step] = {"op": "offsets"}
WAIT: Final[Step] = {"op": "wait"}
WAIT_PART: Final[Step] = {"op": "wait_part", "percent": 60}
BOTH: Final = ("m1", "m2")

SCRIPTS: Final = (
    # ---- records, locks, the delivery count
    script(
        "setting-changes",
        "1",
        scene(3),
        fetch(),
        acknowledge((0, 2, RELEASE)),
        fetch(),
        configure(share_delivery_count_limit="2"),
        acknowledge((0, 2, RELEASE)),
        nothing(),
        since="4.3.1",
    ),
    script(
        "terminal-states",
        "1.1 8",
        scene(4),
        fetch(),
        acknowledge((0, 3, ACCEPT, GAP, REJECT, RELEASE)),
        fetch(),
        acknowledge((3, 3, ACCEPT)),
        nothing(),
    ),
    script("default-limit", "1.2", scene(1), again(5, 0, 0), nothing()),
    script("limit-of-2", "1.2 8.3", scene(5, settings=LIMIT_2), again(2, 0, 4), nothing(), OFFSETS, since="4.3.1"),
    script(
        "lock-expires",
        "1.6 10",
        scene(3, members=BOTH, waits=True),
        fetch(),
        WAIT_PART,
        nothing("m2"),
        WAIT,
        fetch("m2"),
        acknowledge((0, 2, ACCEPT)),
        acknowledge((0, 2, ACCEPT), member="m2"),
    ),
    script(
        "split-locks-expire", "1.7 10 18", scene(5, waits=True), fetch(), acknowledge((1, 2, ACCEPT)), WAIT, fetch()
    ),
    script(
        "lock-expires-at-the-limit",
        "1.2 10",
        scene(2, settings=LIMIT_2, waits=True),
        fetch(),
        WAIT,
        fetch(),
        WAIT,
        nothing(),
        since="4.3.1",
    ),
    # ---- where a group begins
    script(
        "begins-latest",
        "4.2",
        [{"op": "begin", "settings": {"share.auto.offset.reset": "latest"}}, produce(5), join("m1")],
        nothing(wait_ms=1000),
        produce(3),
        fetch(),
    ),
    script("begins-earliest", "4.2 7.4", scene(5, 5), delete_records(3), fetch()),
    script("begins-by-duration", "4.2", scene(5, settings={"share.auto.offset.reset": "by_duration:PT1H"}), fetch()),
    # ---- what is fetched next, and room
    script(
        "released-comes-first",
        "5 7.6",
        scene(5, 5),
        fetch(),
        acknowledge((3, 4, RELEASE)),
        fetch(),
        acknowledge((1, 1, RELEASE), (7, 8, RELEASE)),
        fetch(),
    ),
    script(
        "room-of-100",
        "6 7.2",
        scene(100, 50, settings=LOCKS_100),
        fetch(),
        nothing(),
        acknowledge((0, 49, ACCEPT)),
        fetch(),
        since="4.3.1",
    ),
    script(
        "room-by-default",
        "6 7.2",
        scene(1000, 1000, 10),
        fetch(max_records=3000),
        nothing(),
        acknowledge((0, 999, ACCEPT)),
        fetch(),
    ),
    script(
        "room-after-advance",
        "6 12",
        scene(1000, 1000, 10),
        fetch(max_records=3000),
        acknowledge((1000, 1999, ACCEPT)),
        nothing(),
        acknowledge((0, 999, ACCEPT)),
        fetch(),
    ),
    script(
        "room-is-soft",
        "7.2 7.8",
        scene(50, 100, 10, settings=LOCKS_100),
        fetch(max_records=50),
        fetch(),
        nothing(),
        since="4.3.1",
    ),
    script(
        "redelivery-without-room",
        "7.2 7.11",
        scene(1000, 1000, 10),
        fetch(max_records=3000),
        acknowledge((20, 20, RELEASE)),
        fetch(max_records=3000),
    ),
    # ---- acquisition
    script("no-records-asked", "7.1", scene(5), fetch(max_records=0, wait_ms=250)),
    script("inside-a-batch", "7.4 7.6", scene(5, 5), fetch(), acknowledge((5, 9, RELEASE)), fetch()),
    script("new-records", "7 7.5", scene(5), fetch(), produce(5), fetch(), nothing()),
    script(
        "others-have-them",
        "7 7.6",
        scene(5, members=BOTH),
        fetch(),
        nothing("m2"),
        acknowledge((0, 4, RELEASE)),
        fetch("m2"),
        nothing(),
    ),
    script(
        "released-and-new",
        "7.6 7.7",
        scene(5, 5, 5),
        fetch(max_records=10, batch_size=1),
        acknowledge((0, 4, RELEASE)),
        fetch(batch_size=1),
    ),
    script("limit-rounds-up", "7.8", scene(10), fetch(max_records=3)),
    script("limit-ends-with-a-batch", "7.8 7.11", scene(5, 5, 5), fetch(max_records=3), fetch(max_records=6)),
    script("cut-by-5", "7.9", scene(3, 3, 3, 12), fetch(batch_size=5)),
    script("cut-by-1", "7.9", scene(3, 3, 3, 12), fetch(batch_size=1)),
    script("cut-by-4-of-7", "7.9", scene(3, 3, 3, 12), fetch(batch_size=4, max_records=7)),
    script(
        "aborted",
        "7.10",
        scene(settings=COMMITTED),
        produce(5, transaction="two"),
        produce(5, transaction="one"),
        end("one", commits=False),
        produce(1, transaction="two"),
        end("two", commits=True),
        fetch(),
        acknowledge((0, 4, ACCEPT), (10, 12, ACCEPT)),
        nothing(),
        acknowledge((5, 5, ACCEPT)),
        since="4.3.1",
    ),
    script(
        "aborted-uncommitted",
        "7.10",
        scene(),
        produce(5, transaction="one"),
        end("one", commits=False),
        produce(2),
        fetch(),
    ),
    # ---- acknowledgements
    script(
        "type-for-each",
        "8 8.3",
        scene(5),
        fetch(),
        acknowledge((0, 4, ACCEPT, GAP, ACCEPT, REJECT, RELEASE)),
        fetch(),
        OFFSETS,
    ),
    script(
        "with-a-fetch",
        "8",
        scene(5, 5),
        fetch(max_records=5),
        fetch(acknowledge=[[0, 7, [ACCEPT]]]),
        fetch(acknowledge=[[0, 9, [ACCEPT]]], wait_ms=250),
        OFFSETS,
    ),
    script(
        "not-the-owner",
        "8.1",
        scene(5, members=BOTH),
        fetch(),
        nothing("m2"),
        acknowledge((0, 4, ACCEPT), member="m2"),
        acknowledge((0, 4, ACCEPT)),
    ),
    script("accepted-twice", "8.1", scene(5), fetch(), acknowledge((1, 1, ACCEPT)), acknowledge((1, 1, ACCEPT))),
    script(
        "below-the-start",
        "8.1",
        scene(5, 5),
        fetch(max_records=5),
        acknowledge((0, 4, ACCEPT)),
        acknowledge((0, 4, ACCEPT)),
        fetch(),
    ),
    script("past-acquired", "8.1", scene(5, 5), fetch(max_records=5), acknowledge((5, 9, ACCEPT))),
    script(
        "refused-whole",
        "8.1 11 24.3",
        scene(5, 5, 5),
        fetch(max_records=10, batch_size=1),
        acknowledge((0, 4, ACCEPT), (5, 12, ACCEPT)),
        fetch(max_records=5),
        acknowledge((0, 9, ACCEPT)),
        nothing(),
    ),
    script(
        "refused-twice-in-one",
        "8.1 8.3 11",
        scene(5),
        fetch(),
        acknowledge((0, 4, ACCEPT), (4, 4, ACCEPT)),
        acknowledge((0, 4, ACCEPT)),
    ),
    script("unknown-type", "8.2", scene(5), fetch(), acknowledge((0, 4, 7)), acknowledge((0, 4, ACCEPT))),
    script("reversed-range", "8.2", scene(5), fetch(), acknowledge((4, 0, ACCEPT)), acknowledge((0, 4, ACCEPT))),
    script("no-type", "8.2", scene(5), fetch(), acknowledge((0, 4)), acknowledge((0, 4, ACCEPT))),
    script(
        "too-few-types", "8.2 24.3", scene(5), fetch(), acknowledge((0, 4, ACCEPT, ACCEPT)), acknowledge((0, 4, ACCEPT))
    ),
    script(
        "overlapping-ranges",
        "8.2",
        scene(5),
        fetch(),
        acknowledge((0, 3, ACCEPT), (2, 4, ACCEPT)),
        acknowledge((0, 4, ACCEPT)),
    ),
    # ---- sessions that end
    script(
        "session-closed", "9 1.2", scene(5, members=BOTH), fetch(), acknowledge((1, 1, ACCEPT)), close(), fetch("m2")
    ),
    script(
        "session-closed-with-others",
        "9",
        scene(5, 5, members=BOTH),
        fetch(max_records=5),
        fetch("m2"),
        close(),
        fetch("m2"),
        acknowledge((0, 9, ACCEPT), member="m2"),
    ),
    script("session-closed-with-accepted", "9", scene(5, members=BOTH), fetch(), close((0, 1, ACCEPT)), fetch("m2")),
    script(
        "session-closed-at-the-limit",
        "9",
        scene(5, members=BOTH, settings=LIMIT_2),
        fetch(),
        acknowledge((0, 4, RELEASE)),
        fetch(),
        close(),
        nothing("m2"),
        since="4.3.1",
    ),
    # ---- the log start, what is stored
    script(
        "log-start-in-a-batch",
        "1.4 13 14",
        scene(5, 5, 5),
        fetch(batch_size=1),
        acknowledge((0, 9, RELEASE)),
        delete_records(7),
        nothing(),
        fetch(),
    ),
    script(
        "log-start-with-nothing",
        "7.8 13",
        scene(5, 5),
        fetch(max_records=5),
        acknowledge((0, 4, ACCEPT)),
        delete_records(8),
        nothing(),
        fetch(),
    ),
    script(
        "log-start-under-acquired",
        "8.1 13",
        scene(10),
        fetch(),
        acknowledge((0, 1, RELEASE)),
        delete_records(4),
        nothing(),
        acknowledge((2, 9, ACCEPT)),
        nothing(),
        OFFSETS,
    ),
    script(
        "stored-offset-lags",
        "15 20.4",
        scene(5, 2),
        fetch(max_records=5),
        acknowledge((0, 4, ACCEPT)),
        OFFSETS,
        fetch(),
        acknowledge((5, 5, ACCEPT)),
        OFFSETS,
    ),
    script("lag-counts-gaps", "20.4", scene(5), fetch(), acknowledge((1, 1, ACCEPT), (3, 3, REJECT)), OFFSETS),
    script("not-there", "16", scene(5), fetch(max_records=0, wait_ms=0), acknowledge((0, 4, ACCEPT))),
    # ---- boundaries
    script("not-merged", "18", scene(5, 5), fetch(batch_size=1), acknowledge((0, 9, RELEASE)), fetch()),
    script(
        "merged-within", "18", scene(5), fetch(), acknowledge((0, 2, RELEASE)), acknowledge((3, 4, RELEASE)), fetch()
    ),
    script("limit-between-batches", "7.6 18", scene(10), fetch(), acknowledge((0, 9, RELEASE)), fetch(max_records=3)),
    # ---- later additions
    script(
        "record-limit",
        "20.1",
        scene(5, 5),
        fetch(max_records=3, mode="record_limit"),
        fetch(max_records=3, mode="record_limit"),
        fetch(mode="record_limit"),
    ),
    script(
        "record-limit-again",
        "20.1",
        scene(10, 10),
        fetch(max_records=10),
        acknowledge((0, 9, RELEASE)),
        fetch(max_records=4, mode="record_limit"),
        fetch(max_records=4, mode="record_limit"),
        fetch(max_records=4, mode="record_limit"),
    ),
    script(
        "renewed",
        "20.2",
        scene(5, members=BOTH, waits=True),
        fetch(),
        WAIT_PART,
        acknowledge((0, 4, RENEW), renews=True),
        WAIT_PART,
        nothing("m2"),
        acknowledge((0, 4, ACCEPT)),
    ),
    script(
        "renewed-in-part",
        "20.2",
        scene(5, members=BOTH, waits=True),
        fetch(),
        WAIT_PART,
        acknowledge((0, 1, RENEW), renews=True),
        WAIT_PART,
        fetch("m2"),
        acknowledge((0, 1, ACCEPT)),
    ),
    script(
        "renewed-by-a-fetch",
        "20.2",
        scene(5, 5),
        fetch(max_records=5),
        fetch(acknowledge=[[0, 4, [RENEW, RENEW, ACCEPT, RELEASE, RENEW]]], renews=True),
        fetch(),
    ),
    script("renewal-not-said", "20.2", scene(5), fetch(), acknowledge((0, 4, RENEW))),
    script(
        "renewal-off",
        "20.2",
        scene(5, settings={"share.renew.acknowledge.enable": "false"}),
        fetch(),
        acknowledge((0, 4, RENEW), renews=True),
        since="4.3.1",
    ),
    script("throttled", "20.3", scene(10), again(3, 0, 9), produce(5), fetch(), fetch()),
    script(
        "last-delivery-alone",
        "20.3",
        scene(10),
        again(3, 0, 9),
        fetch(),
        acknowledge((0, 4, RELEASE)),
        fetch(),
        acknowledge((0, 0, RELEASE)),
        fetch(),
        acknowledge((1, 1, ACCEPT)),
        fetch(),
    ),
    script("limit-of-2-is-not-throttled", "20.3", scene(4, settings=LIMIT_2), again(1, 0, 3), fetch(), since="4.3.1"),
    # ---- dead letters
    script(
        "rejected-letters",
        "21 21.1 21.2 21.3 21.6",
        scene(4, settings=QUEUE),
        fetch(),
        acknowledge((0, 3, REJECT, ACCEPT, GAP, REJECT)),
        letters(2),
        nothing(),
        since="4.4.0",
    ),
    script(
        "letters-at-the-limit",
        "21.1 21.6",
        scene(2, settings=QUEUE | LIMIT_2),
        again(2, 0, 1),
        letters(2),
        nothing(),
        since="4.4.0",
    ),
    script(
        "letters-topic-is-internal",
        "21.5",
        scene(1, settings=QUEUE),
        configure(errors_deadletterqueue_topic_name="__letters"),
        since="4.4.0",
    ),
)

_NO_FAILED_WRITE: Final = "needs a write of the state that fails, or is not answered"
_NO_NEW_LEADER: Final = "needs a leader that begins anew between two requests"

UNASKED: Final = {
    "1.3": _NO_FAILED_WRITE,
    "1.5": _NO_FAILED_WRITE,
    "2": "says which rules belong to which command",
    "3": "needs a leader that is fenced, or cannot load",
    "4": _NO_NEW_LEADER,
    "4.1": "needs answers of the share coordinator that are wrong",
    "4.3": _NO_NEW_LEADER,
    "4.4": _NO_NEW_LEADER,
    "7.3": "needs records that the log cleaner has removed",
    "20": "its parts are asked each for itself",
    "21.4": _NO_NEW_LEADER,
    "24": "says how bugs of Kafka are dealt with",
    "24.1": "the bugs need failed writes, natural gaps or leaders that begin anew",
    "24.2": "nobody has to crash as Kafka does",
    "24.4": "is about this library",
    "24.5": "needs the time at which a lock expires to the millisecond",
}
"""Why a rule has no script."""
