"""The members and producers of a machine of a node: what they know of their connections, and what they may not get."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from attrs import define, field

from sharestate import AcknowledgeType, ErrorCode
from sharestate.broker.node import ShareFetchPartition


class WrongAnswerError(AssertionError):
    """
    An answer that a member may not get, or one that it does not get.

    Attributes:
        guarantee: What it breaks, in a few words.
    """

    def __init__(self, guarantee: str, what: str) -> None:
        """Say that *what* breaks *guarantee*."""
        super().__init__(f"{guarantee}: {what}")
        self.guarantee = guarantee


@define
class Waiting:
    """
    A fetch that waits.

    Attributes:
        number: Its number.
        deadline_ms: When it has to be answered. [ms]
        max_records: How many records it asks for.
        may_lack_a_leader: Whether it may wait for a leader that is none any more, or that could not begin.
    """

    number: int
    deadline_ms: int
    max_records: int
    may_lack_a_leader: bool = False


@define
class Producer:
    """A transactional producer: its id and epoch, and the next sequence number of each partition."""

    producer_id: int
    epoch: int
    sequences: dict[int, int] = field(factory=dict)


@define
class Consumer:
    """
    A member, and what it knows of its connection and its session.

    Attributes:
        name: The member id.
        connection: The number of its connections so far.
        epoch: The epoch of its next request.
        joined: The partitions of its session.
        left: The partitions of the session that it had before: what it holds of others goes on being locked.
        due: Those of which a response may say that there is nothing: they are new to the session, or have failed.
        has_had_session: Whether a session was opened on its connection.
        waiting: Its fetch that waits.
    """

    name: str
    connection: int = 0
    epoch: int = 0
    joined: set[int] = field(factory=set)
    left: set[int] = field(factory=set)
    due: set[int] = field(factory=set)
    has_had_session: bool = False
    waiting: Waiting | None = None

    @property
    def connection_id(self) -> str:
        """The connection on which it sends its requests."""
        return f"{self.name}-{self.connection}"

    def forget_session(self) -> None:
        """Know of no session any more."""
        self.epoch = 0
        self.left = self.joined
        self.joined = set()
        self.due.clear()
        self.waiting = None

    def reconnect(self) -> str:
        """Take another connection, and return the one before."""
        before = self.connection_id
        self.connection += 1
        self.has_had_session = False
        return before


def wrong(guarantee: str, what: str) -> NoReturn:
    """Say what is wrong with an answer."""
    raise WrongAnswerError(guarantee, what)


def code_of(code: ErrorCode) -> ErrorCode:
    """Return the code of an acknowledgement; who acknowledges what is not led yet has acquired nothing of it."""
    return ErrorCode.INVALID_RECORD_STATE if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else code


def types_of(names: Iterable[str]) -> tuple[AcknowledgeType, ...]:
    """Return the acknowledge types with these names."""
    return tuple(AcknowledgeType[name] for name in names)


def expect_records(partition: ShareFetchPartition) -> None:
    """Judge that a response brings the batches in which the acquired records are, and none without them."""
    acquired, batches = partition.acquired_records, partition.records
    if bool(acquired) != bool(batches):
        wrong("records with locks", f"{len(acquired)} ranges are acquired, and {len(batches)} batches come")
    if acquired and not (
        batches[0].batch.first_offset <= acquired[0].first_offset
        and acquired[-1].last_offset <= batches[-1].batch.last_offset
    ):
        wrong("records with locks", f"{acquired} are acquired, and the batches are {[each.batch for each in batches]}")
