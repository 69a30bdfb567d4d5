"""What is known of a share partition while its steps are taken, to come back to."""

from __future__ import annotations

from functools import cached_property
from operator import attrgetter
from typing import Final, NamedTuple

from attrs import Factory, define, fields, frozen

from sharestate.history.replay_state import Settings
from sharestate.log_check.former_leader import FormerLeader
from sharestate.log_check.observed_writes import Issued
from sharestate.log_check.schedule import Step
from sharestate.partition.share_partition import SharePartition
from sharestate.values.dead_letters import DeadLetterRequest

SNAPSHOT: Final = 3
"""What a snapshot costs for each that a copy does: of 24 batches 95 and 38 µs, of 4,000 6.1 and 2.2 ms. [work]"""


@define
class Counts:
    """What was checked so far."""

    fetches_with_records: int = 0
    """Fetches whose acquired ranges were computed."""

    empty_fetches: int = 0
    """Fetches without records that were computed."""

    undecided_fetches: int = 0
    """Fetches without records that cannot be decided."""

    codes: int = 0
    """Answers to acknowledgements."""

    writes: int = 0
    """Writes of state."""

    expiries: int = 0
    """Acquisition locks that have expired."""

    releases: int = 0
    """Members whose connections were lost, and their records released."""

    dead_letters: int = 0
    """Answers of the dead-letter queue."""

    former_writes: int = 0
    """Writes of a leader that was gone when they arrived; they are not among the writes."""

    unlogged: int = 0
    """Acknowledgements that were under way when the broker has stopped, or the log ends."""


class Defect(NamedTuple):
    """
    A defect of Kafka that has shown.

    Attributes:
        name: Its name in docs/kafka-bugs.md.
        offset: The SPSO, or the offset of the fetch.
        step: The step that it has shown in.
    """

    name: str
    offset: int
    step: Step


class Delay(NamedTuple):
    """
    How late a lock has expired.

    Attributes:
        us: How long after its deadline, at the most. [µs]
        before: The delay of the lock before it.
    """

    us: int
    before: Delay | None

    def all_us(self) -> tuple[int, ...]:
        """Return all delays, from the first one on. [µs]"""
        found, delay = [self.us], self.before
        while delay is not None:
            found.append(delay.us)
            delay = delay.before
        return tuple(reversed(found))


class Recent(NamedTuple):
    """
    Where the next fetch was before one of the last steps.

    Attributes:
        at_us: The time of the step. [µs since 1970]
        offset: The next fetch offset.
    """

    at_us: int
    offset: int


@define
class Progress:
    """What is known beside the share partition itself."""

    settings: Settings
    """The settings; a change makes others."""

    visible: int = 0
    """How many batches of the log are visible."""

    log_start: int = 0
    """The log start offset."""

    numbers: dict[int, int] = Factory(dict)
    """The numbers of those that are pending."""

    expected: dict[int, str | None] = Factory(dict)
    """The answers to acknowledgements by the number of their writes."""

    late_heads: frozenset[int] = frozenset()
    """The observed writes whose start offset and complete count were read later than their changes."""

    letters: dict[int, DeadLetterRequest] = Factory(dict)
    """What the dead-letter queue was given and has not answered."""

    delay: Delay | None = None
    """The delay of the last lock that has expired."""

    counts: Counts = Factory(Counts)
    """What was checked."""

    recent: tuple[Recent, ...] = ()
    """The last steps."""

    nothing_us: int = 0
    """When there was nothing to acquire, the last time. [µs since 1970]"""

    defects: tuple[Defect, ...] = ()
    """The defects of Kafka that have shown."""

    known_before: int = 0
    """How many of them had shown when the state was read."""

    is_absent: bool = False
    """Whether the state is known not to be read: the broker does not have the share partition, or cannot read it."""

    former: FormerLeader | None = None
    """The leader before this one, until the broker stops."""

    was_initialized: bool = False
    """Whether the state was ever read."""

    last_ms: int = 0
    """The time of the last command. [ms]"""

    def copy(self) -> Progress:
        """
        Return what does not follow later changes; all fields whose values change are named here.

        Every step makes one or two, so fields are taken over by position: ``evolve`` took seven times as long.
        """
        copied = Progress(*_VALUES(self))
        copied.numbers = self.numbers.copy()
        copied.expected = self.expected.copy()
        copied.letters = self.letters.copy()
        copied.counts = Counts(*_COUNTS(self.counts))
        return copied


_VALUES: Final = attrgetter(*(each.name for each in fields(Progress)))
_COUNTS: Final = attrgetter(*(each.name for each in fields(Counts)))


@frozen(eq=False)
class Saved:
    """All that taking a step changes, to come back to; by what two are the same is the ``key``."""

    partition: SharePartition | None
    """The share partition, which nothing is done to any more; None before its state was read."""

    progress: Progress
    """What is known beside it."""

    issued: Issued
    """Which of the observed writes were issued."""

    taken: int
    """How many events were noted."""

    size: int
    """What a copy of it costs, which is also how much memory it takes. [work]"""

    @cached_property
    def next_fetch(self) -> tuple[int, bool]:
        """The offset of the next fetch, and whether it could acquire something: many steps are tried from here."""
        assert self.partition is not None  # noqa: S101 - nobody asks before its state was read
        return self.partition.next_fetch_offset(), self.partition.can_acquire()

    @cached_property
    def key(self) -> int:
        """
        The hash of that by which two are the same: what comes after them is, too.

        Complexity:
            Linear in the records in flight; see SNAPSHOT.
        """
        progress = self.progress
        state = (
            None if self.partition is None else self.partition.snapshot(),
            progress.visible,
            progress.log_start,
            self.issued,
            tuple(progress.numbers.items()),
            tuple(progress.expected.items()),
        )
        return hash(state)
