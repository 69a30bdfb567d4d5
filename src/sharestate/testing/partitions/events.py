"""What may happen to a share partition next: commands of members, and what an adversary has in its hands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, product
from typing import Any, Final, NamedTuple, Self, TypeAlias, TypeVar

from attrs import Factory, define

from sharestate.testing.partitions.log import VIEWS, PartitionLog, seen
from sharestate.testing.record_model.model import NUMBERS, STATES, RecordModel

T = TypeVar("T")

Pick: TypeAlias = Callable[[Sequence[Any]], Any]
"""A function that picks one of some options, the first of which is the plainest."""

Event: TypeAlias = tuple[Any, ...]
"""The name of a method of the machine, and its arguments."""

NAMES: Final = {**STATES, 1: "ACQUIRED"}
"""The names of the record states, by number."""

KINDS: Final = ("ACCEPT", "RELEASE", "REJECT", "GAP", "RENEW")
"""The acknowledgement types, the plainest first."""

ANSWERS: Final = ("succeeds", "fails", "is lost")
"""What becomes of a write; one that is lost was stored, and is reported as failed all the same."""

LETTER_ANSWERS: Final = ("taken", "fails")
"""What the dead-letter queue answers."""

CHOICES: Final = (
    *("acquire",) * 4,
    *("answer",) * 4,
    *("dead_letter",) * 3,
    "acknowledge_all",
    "acknowledge",
    *("time",) * 2,
    "release",
    "late",
    "answer_again",
    "log_start",
    "fail_over",
    "compact",
    "configure",
    "fail_a_part",
)
"""What may happen next, as often as it does: always in the same order, so that a program still means the same if a step
of it is left out."""

# An event takes few picks: Hypothesis leaves out a step of a program only if it takes no more than four.

FETCHES: Final = tuple(product((*VIEWS[:1] * 2, *VIEWS[1:]), (0, 0, 0, 0, 1, -1, -3), (1, 2, 3, 5), (500, 1, 2)))
"""Of a fetch: how it finds the log, how far beyond the next fetch offset it begins (a fetch that was sent before others
were answered begins below it, or below the SPSO), how many batches it finds, and how many records are wanted."""

TYPES: Final = (*((kind,) for kind in KINDS), *((a, b) for a, b in product(KINDS, repeat=2) if a != b))
"""The acknowledgement type of a range, or of its records in turn."""

LATE: Final = tuple(product((0, 1), KINDS, (1, 2, 3, 5)))
"""Of an acknowledgement by anybody: the member, the type, and of how many records."""

ALWAYS: Final = frozenset({"acquire", "answer", "acknowledge"})
"""What a run is nothing without."""


def kinds_of_a_run(pick: Pick) -> tuple[str, ...]:
    """Pick what may happen in a run: all, or without about half of the rest, so that what is rare comes together."""
    if pick((True, False)):
        return CHOICES
    kept = {kind for kind in dict.fromkeys(CHOICES) if kind in ALWAYS or pick((True, False))}
    return tuple(kind for kind in CHOICES if kind in kept)


AGES_MS: Final = 10**12
"""A jump of the clock. [ms]"""


class PartitionSettings(NamedTuple):
    """
    The settings of a group and of its members, as far as a share partition knows them.

    Attributes:
        delivery_count_limit: How often a record may be delivered. [deliveries]
        lock_duration_ms: How long a member has what it has acquired. [ms]
        max_record_locks: How many records may be in flight. [records]
        batch_size: New batches are cut at batches of the log as soon as they have as many records. [records]
        acquire_mode: batch_optimized, or record_limit to acquire no more than is wanted.
        isolation_level: read_uncommitted, or read_committed to acquire nothing of aborted transactions.
        has_dead_letter_queue: Whether the group has a dead-letter queue.
    """

    delivery_count_limit: int = 5
    lock_duration_ms: int = 1_000
    max_record_locks: int = 200
    batch_size: int = 500
    acquire_mode: str = "batch_optimized"
    isolation_level: str = "read_uncommitted"
    has_dead_letter_queue: bool = False

    def config(self) -> dict[str, Any]:
        """Return the group's settings as the line protocol has them."""
        return {
            "delivery_count_limit": self.delivery_count_limit,
            "record_lock_duration_ms": self.lock_duration_ms,
            "max_record_locks": self.max_record_locks,
            "dlq_topic": "dead letters" if self.has_dead_letter_queue else None,
        }


SMALL: Final[dict[str, tuple[Any, ...]]] = {
    "delivery_count_limit": (2, 2, 3, 5, 6),
    "lock_duration_ms": (1_000,),
    "max_record_locks": (200, 2, 5),
    "batch_size": (500, 1, 3),
    "acquire_mode": ("batch_optimized", "batch_optimized", "record_limit"),
    "isolation_level": ("read_uncommitted", "read_committed", "read_committed"),
    "has_dead_letter_queue": (False, True, True),
}
"""The settings that are drawn: small enough to be reached; Kafka's default delivery limit is 5, which is odd."""


CONFIGURED: Final[dict[str, tuple[Any, ...]]] = {
    "delivery_count_limit": (2, 3, 5, 6),
    "lock_duration_ms": (500, 1_000),
    "max_record_locks": (200, 2, 5),
    "isolation_level": ("read_uncommitted", "read_committed"),
    "has_dead_letter_queue": (False, True),
}
"""What the settings of a group may become while a share partition is in use."""


class ReadState(NamedTuple):
    """
    What a share coordinator has stored.

    Attributes:
        start_offset: The SPSO.
        batches: First offset, last offset, number of the state (0, 2, 3 or 4), and delivery count.
    """

    start_offset: int = 0
    batches: tuple[tuple[int, int, int, int], ...] = ()


_PIECES: Final = ((4, 0), (1, 2), (2, None), (1, 4))
"""Parts of a state: how many offsets, and the number of their state; None where nothing is stored."""

_SHAPES: Final = tuple(product(_PIECES, repeat=4))

STORED: Final = (((), 1),) * 2 * len(_SHAPES) + tuple(product(_SHAPES, (1, 2, 3, 4, 5)))
"""What the first leader may find: the parts of the state, and how often they were delivered."""


def stored_state(pick: Pick) -> ReadState:
    """Pick what the first leader finds: most is to be delivered again, or was never stored; now and then nothing."""
    shape, count = pick(STORED)
    offset, batches = 0, []
    for size, state in shape:
        if state is not None:
            batches.append((offset, offset + size - 1, state, count))
        offset += size
    return ReadState(0, tuple(batches))


@define
class Coordinator:
    """The share coordinator's side: what has been stored."""

    start_offset: int = 0
    records: dict[int, tuple[int, int]] = Factory(dict)
    """Delivery count and number of the state of each offset."""

    @classmethod
    def of(cls, state: ReadState) -> Self:
        """Return a share coordinator that has stored *state*."""
        records = {o: (count, number) for first, last, number, count in state.batches for o in range(first, last + 1)}
        return cls(state.start_offset, records)

    def store(self, start_offset: int, written: dict[int, tuple[int, int]]) -> None:
        """Store a write: the higher delivery count wins, and of equal ones the higher state."""
        self.start_offset = max(self.start_offset, start_offset)
        for offset, (state, count) in written.items():
            self.records[offset] = max((count, state), self.records.get(offset, (0, 0)))
        self.records = {offset: stored for offset, stored in self.records.items() if offset >= self.start_offset}

    def state(self) -> ReadState:
        """Return what the next leader reads: equal neighbors are one batch."""
        batches: list[tuple[int, int, int, int]] = []
        for offset, (count, state) in sorted(self.records.items()):
            if batches and batches[-1][1:] == (offset - 1, state, count):
                batches[-1] = (batches[-1][0], offset, state, count)
            else:
                batches.append((offset, offset, state, count))
        return ReadState(self.start_offset, tuple(batches))


@define
class EventPicker:
    """Picks what happens next, given what is in flight."""

    model: RecordModel
    log: PartitionLog
    settings: PartitionSettings
    members: Sequence[str]
    has: frozenset[str]
    """The optional methods that there are."""

    changeable: frozenset[str] = frozenset()
    """The settings that may change."""

    choices: Sequence[str] = CHOICES
    """What may happen in this run."""

    answered: list[tuple[str, int]] = Factory(list)
    """The writes and the dead letters that have been answered."""

    following: list[Callable[[], Event | None]] = Factory(list)
    """What happens next, one after the other, as far as it is possible then."""

    def next(self, pick: Pick) -> Event:
        """Pick the next event; what is not possible now becomes another one that is."""
        while self.following:
            following = self.following.pop(0)()
            if following is not None:
                return following
        method = pick(self.choices)
        possible = {
            **dict.fromkeys(("acknowledge_all", "acknowledge", "time", "release", "late"), bool(self.held())),
            "fail_a_part": bool(self.held()) and self.log.has_batches,
            "answer": bool(self.model.held),
            "dead_letter": bool(self.model.held_letters),
            "answer_again": bool(self.answered),
            "log_start": "move_log_start" in self.has,
            "compact": self.log.name != "single records",
            "configure": "configure" in self.has,
        }
        if not possible.get(method, True):
            is_full = not self.model.run({"op": "can_acquire"})  # nothing is acquired before something else happens
            others = ("acknowledge_all", "dead_letter", "answer") if is_full else ()
            method = next((other for other in others if possible[other]), "acquire")
        event: Event = getattr(self, f"_{method}")(pick)
        return event

    def is_possible(self, event: Event) -> bool:
        """Return whether what *event* answers is there to be answered."""
        match event:
            case ("write_is_answered", number, _):
                return number in self.model.held
            case ("dead_letter_is_answered", number, _):
                return number in self.model.held_letters
            case ("write_is_answered_again", number, _):
                return ("write", number) in self.answered
            case ("dead_letter_is_answered_again", number, _):
                return ("dead letter", number) in self.answered
            case ("leader_fails_over", arriving):
                return set(arriving) <= self.model.held.keys()
            case _:
                return True

    def held(self) -> dict[int, str]:
        """Return who has acquired what."""
        return {o: record.member for o, record in self.model.records.items() if record.state == "ACQUIRED"}

    def held_by(self, member: str) -> list[tuple[int, int]]:
        """Return what *member* has acquired: the first and the last offset of each range."""
        held = sorted(offset for offset, owner in self.held().items() if owner == member)
        ranges = [list(run) for _, run in groupby(held, key=lambda offset: offset - held.index(offset))]
        return [(run[0], run[-1]) for run in ranges]

    def _owner(self, pick: Pick) -> str:
        return str(pick([member for member in self.members if self.held_by(member)]))

    def _acquire(self, pick: Pick) -> Event:
        next_offset = self.model.run({"op": "next_fetch_offset"})
        view, further, count, max_records = pick(FETCHES)
        offset = max(0, next_offset + further)
        batches = seen(self.log.batches(offset, count), view if self.log.has_batches else VIEWS[0])
        if view == "record by record":
            batches = [batch for batch in batches if batch[1] >= offset]
        is_committed = self.settings.isolation_level == "read_committed"
        aborted = self.log.aborted(batches[0][0], batches[-1][1]) if is_committed else []
        return "member_acquires", pick(self.members), offset, batches, aborted, max_records

    def _acknowledge_all(self, pick: Pick) -> Event:
        return "member_acknowledges_all", self._owner(pick), pick(KINDS)

    def _acknowledge(self, pick: Pick) -> Event:
        member = self._owner(pick)
        held = self.held_by(member)
        parts = [[each] for run in held for each in _parts(*run)] + [held[:2], held[:1] * 2]
        ranges, types = pick(parts), pick(TYPES)
        return "member_acknowledges", member, [(first, last, _in_turn(types, first, last)) for first, last in ranges]

    def _fail_a_part(self, pick: Pick) -> Event:
        """Release one record of several, and let it fail once more than the others: it is released again."""
        member, other = self._owner(pick), pick(self.members)
        offset = pick([offset for offset, owner in self.held().items() if owner == member])
        fetched = [(offset, offset, *self.log.batches(offset, 1)[0][2:])]
        self.following = [
            self._success,
            lambda: ("member_acquires", other, offset, fetched, [], 1),
            lambda: self._release_one(other, offset),
            self._success,
            lambda: ("member_acknowledges_all", member, "RELEASE") if self.held_by(member) else None,
            self._success,
        ]
        return "member_acknowledges", member, [(offset, offset, ["RELEASE"])]

    def _success(self) -> Event | None:
        return ("write_is_answered", max(self.model.held), "succeeds") if self.model.held else None

    def _release_one(self, member: str, offset: int) -> Event | None:
        is_held = self.held().get(offset) == member
        return ("member_acknowledges", member, [(offset, offset, ["RELEASE"])]) if is_held else None

    def _late(self, pick: Pick) -> Event:
        """Acknowledge whatever is in flight, be it one's own or not, or what begins below that."""
        first = pick([*sorted(self.model.records), max(0, self.model.start - 1)])
        member, kind, size = pick(LATE)
        return "member_acknowledges", self.members[member % len(self.members)], [(first, first + size - 1, [kind])]

    def _release(self, pick: Pick) -> Event:
        return "member_leaves", self._owner(pick)

    def _time(self, pick: Pick) -> Event:
        deadlines = sorted({record.deadline_ms for record in self.model.records.values() if record.deadline_ms})
        next_ms = max(0, next((ms for ms in deadlines if ms >= self.model.now_ms), 0) - self.model.now_ms)
        return "time_passes", pick((next_ms + 1, next_ms, max(1, next_ms // 2), 1, AGES_MS))

    def _answer(self, pick: Pick) -> Event:
        return "write_is_answered", pick(sorted(self.model.held)), pick(ANSWERS)

    def _dead_letter(self, pick: Pick) -> Event:
        return "dead_letter_is_answered", pick(sorted(self.model.held_letters)), pick(LETTER_ANSWERS)

    def _answer_again(self, pick: Pick) -> Event:
        what, number = pick(self.answered[-3:])
        if what == "dead letter":
            return "dead_letter_is_answered_again", number, pick(LETTER_ANSWERS)
        return "write_is_answered_again", number, pick(("succeeds", "fails"))

    def _log_start(self, pick: Pick) -> Event:
        in_flight = [offset for offset in sorted(self.model.records) if offset >= self.model.start]
        pending = [offset for offset in in_flight if self.model.records[offset].write is not None]
        back_and_beyond = (max(0, self.model.start - 1), self.model.end + 3)
        return "log_start_moves", pick([offset + 1 for offset in (*pending, *in_flight)] + [*back_and_beyond])

    def _fail_over(self, pick: Pick) -> Event:
        held = sorted(self.model.held)
        return "leader_fails_over", pick([[], held, held[::2], held[1:]])

    def _compact(self, pick: Pick) -> Event:
        """Let the log lose a batch of data: one of which something is in flight, or the next one to be fetched."""
        next_offset = self.model.run({"op": "next_fetch_offset"})
        found = {self.log.batches(offset, 1)[0] for offset in (*self.model.records, self.model.start, next_offset)}
        first = [batch[0] for batch in sorted(found) if len(batch) <= 3]  # noqa: PLR2004 - no marker
        return ("log_is_compacted", pick(first)) if first else self._acquire(pick)

    def _configure(self, pick: Pick) -> Event:
        names = [name for name in CONFIGURED if name in self.changeable]
        name = pick(names)
        return "group_is_configured", name, pick(CONFIGURED[name])


def _parts(first: int, last: int) -> Iterable[tuple[int, int]]:
    """Return a range, and what may be acknowledged of it alone."""
    parts = [(first, last), (first, first), (last, last), (first + 1, last), (first, last - 1), (first + 1, last - 1)]
    return dict.fromkeys((begin, end) for begin, end in parts if begin <= end)


def _in_turn(types: Sequence[str], first: int, last: int) -> list[str]:
    """Return one type for all, or one for each offset."""
    return [types[0]] if len(types) == 1 else [types[index % 2] for index in range(last - first + 1)]


def in_words(record: Any) -> tuple[str, int, str]:  # noqa: ANN401 - a record of the model
    """Return state, delivery count and member of a record of the model."""
    return record.state, record.count, record.member


def name_of(state: Any) -> str:  # noqa: ANN401 - a number, an enumeration's member or a name
    """Return the name of a record state, given that or its number."""
    if isinstance(state, int):
        return NAMES.get(int(state), str(int(state)))
    return str(getattr(state, "name", state))


def number_of(state: Any) -> int:  # noqa: ANN401 - a number, an enumeration's member or a name
    """Return the number of a record state, given that or its name."""
    return NUMBERS[state.upper()] if isinstance(state, str) else int(state)


def by_record(batches: Iterable[Sequence[Any]]) -> object:
    """Return state and delivery count of each offset; the batches as they are if they name an offset twice."""
    named = [tuple(batch) for batch in batches]
    numbers = {
        offset: (number_of(state), count) for first, last, state, count in named for offset in range(first, last + 1)
    }
    return numbers if len(numbers) == sum(last - first + 1 for first, last, *_ in named) else named
