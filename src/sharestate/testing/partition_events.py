"""What may happen to a share partition next: commands of members, and what an adversary has in its hands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from attrs import Factory, define

from sharestate.testing.record_model import NUMBERS, RecordModel

T = TypeVar("T")

Pick: TypeAlias = Callable[[Sequence[Any]], Any]
"""A function that picks one of some options, the first of which is the plainest."""

Event: TypeAlias = tuple[Any, ...]
"""The name of a method of the machine, and its arguments."""

KINDS: Final = ("ACCEPT", "RELEASE", "REJECT", "GAP", "RENEW")
"""The acknowledgement types, the plainest first."""

ANSWERS: Final = ("succeeds", "fails", "is lost")
"""What becomes of a write; one that is lost was stored, and is reported as failed all the same."""

CHOICES: Final = (
    *("acquire",) * 4,
    *("answer",) * 3,
    "acknowledge_all",
    "acknowledge",
    *("time",) * 2,
    "release",
    "late",
    "answer_again",
    "log_start",
    "fail_over",
)
"""What may happen next, as often as it does: always in the same order, so that a program still means the same if a step
of it is left out."""

# An event takes few picks: Hypothesis leaves out a step of a program only if it takes no more than four.

FETCHES: Final = tuple(product((0, 0, 0, 1, -1), (1, 2, 3, 5), (500, 1, 2)))
"""Of a fetch: how far beyond the next fetch offset it begins, how many records it finds, and how many are wanted."""

KINDS_OF_THREE: Final = tuple(product(KINDS, repeat=3))
"""The types of three records."""

LATE: Final = tuple(product((0, 1), KINDS, (1, 2)))
"""Of an acknowledgement by anybody: the member, the type, and of how many records."""

AGES_MS: Final = 10**12
"""A jump of the clock. [ms]"""


class PartitionSettings(NamedTuple):
    """
    The settings of a group, as far as a share partition knows them.

    Attributes:
        delivery_count_limit: How often a record may be delivered. [deliveries]
        lock_duration_ms: How long a member has what it has acquired. [ms]
        max_record_locks: How many records may be in flight. [records]
    """

    delivery_count_limit: int = 5
    lock_duration_ms: int = 1_000
    max_record_locks: int = 200


SMALL: Final = {"delivery_count_limit": (2, 3, 5), "lock_duration_ms": (1_000,), "max_record_locks": (200, 2, 5)}
"""The settings that are drawn: small enough to be reached."""


class StoredState(NamedTuple):
    """
    What a share coordinator has stored.

    Attributes:
        start_offset: The SPSO.
        batches: First offset, last offset, number of the state (0, 2 or 4), and delivery count; one record each.
    """

    start_offset: int = 0
    batches: tuple[tuple[int, int, int, int], ...] = ()


@define
class Coordinator:
    """The share coordinator's side: what has been stored."""

    start_offset: int = 0
    records: dict[int, tuple[int, int]] = Factory(dict)
    """Delivery count and number of the state of each offset."""

    def store(self, start_offset: int, written: dict[int, tuple[int, int]]) -> None:
        """Store a write: the higher delivery count wins, and of equal ones the higher state."""
        self.start_offset = max(self.start_offset, start_offset)
        for offset, (state, count) in written.items():
            self.records[offset] = max((count, state), self.records.get(offset, (0, 0)))
        self.records = {offset: stored for offset, stored in self.records.items() if offset >= self.start_offset}

    def state(self) -> StoredState:
        """Return what the next leader reads."""
        batches = tuple((offset, offset, state, count) for offset, (count, state) in sorted(self.records.items()))
        return StoredState(self.start_offset, batches)


@define
class PartitionEvents:
    """Picks what happens next, given what is in flight."""

    model: RecordModel
    members: Sequence[str]
    has: frozenset[str]
    """The optional methods that there are."""

    answered: list[int] = Factory(list)
    """The writes that have been answered."""

    def next(self, pick: Pick) -> Event:
        """Pick the next event; what is not possible now becomes an acquisition."""
        method = pick(CHOICES)
        possible = {
            **dict.fromkeys(("acknowledge_all", "acknowledge", "time", "release", "late"), bool(self._held())),
            "answer": bool(self.model.held),
            "answer_again": bool(self.answered),
            "log_start": "move_log_start" in self.has,
        }
        event: Event = getattr(self, f"_{method if possible.get(method, True) else 'acquire'}")(pick)
        return event

    def held_by(self, member: str) -> list[int]:
        """Return what *member* has acquired."""
        return sorted(offset for offset, record in self._held().items() if record == member)

    def _held(self) -> dict[int, str]:
        return {o: record.member for o, record in self.model.records.items() if record.state == "ACQUIRED"}

    def _owner(self, pick: Pick) -> str:
        return str(pick([member for member in self.members if self.held_by(member)]))

    def _acquire(self, pick: Pick) -> Event:
        next_offset = self.model.run({"op": "next_fetch_offset"})
        further, count, max_records = pick(FETCHES)
        return "member_acquires", pick(self.members), max(self.model.start, next_offset + further), count, max_records

    def _acknowledge_all(self, pick: Pick) -> Event:
        return "member_acknowledges_all", self._owner(pick), pick(KINDS)

    def _acknowledge(self, pick: Pick) -> Event:
        member = self._owner(pick)
        held = self.held_by(member)
        parts = [held[begin : begin + size] for size in (1, 2, 3) for begin in range(max(1, len(held) - size + 1))]
        return "member_acknowledges", member, list(zip(pick(parts), pick(KINDS_OF_THREE), strict=False))

    def _late(self, pick: Pick) -> Event:
        """Acknowledge whatever is in flight, be it one's own or not."""
        first = pick(sorted(self.model.records))
        member, kind, size = pick(LATE)
        entries = [(first, kind), (first + 1, "ACCEPT")][:size]
        return "member_acknowledges", self.members[member % len(self.members)], entries

    def _release(self, pick: Pick) -> Event:
        return "member_leaves", self._owner(pick)

    def _time(self, pick: Pick) -> Event:
        deadlines = sorted({record.deadline_ms for record in self.model.records.values() if record.deadline_ms})
        next_ms = max(0, next((ms for ms in deadlines if ms >= self.model.now_ms), 0) - self.model.now_ms)
        return "time_passes", pick((next_ms + 1, next_ms, max(1, next_ms // 2), AGES_MS))

    def _answer(self, pick: Pick) -> Event:
        return "write_is_answered", pick(sorted(self.model.held)), pick(ANSWERS)

    def _answer_again(self, pick: Pick) -> Event:
        return "write_is_answered_again", pick(self.answered[-3:]), pick(("succeeds", "fails"))

    def _log_start(self, pick: Pick) -> Event:
        in_flight = sorted(offset for offset in self.model.records if offset >= self.model.start)
        return "log_start_moves", pick([offset + 1 for offset in in_flight] or [self.model.start + 1])

    def _fail_over(self, pick: Pick) -> Event:
        held = sorted(self.model.held)
        return "leader_fails_over", pick([[], held, held[::2], held[1:]])


def in_words(record: Any) -> tuple[str, int, str]:  # noqa: ANN401 - a record of the model
    """Return state, delivery count and member of a record of the model."""
    return record.state, record.count, record.member


def number_of(state: Any) -> int:  # noqa: ANN401 - a number, an enumeration's member or a name
    """Return the number of a record state, given that or its name."""
    return NUMBERS[state.upper()] if isinstance(state, str) else int(state)
