"""
Hypothesis strategies over the random generator (extra ``testing``).

What they draw shrinks: to few, short and plain batches, to small numbers and to short histories.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

try:
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    message = "sharestate.testing.protocol.strategies needs the extra 'testing': pip install 'sharestate[testing]'"
    raise ModuleNotFoundError(message, name=error.name) from error

from sharestate.testing.generator import dead_letters as queue
from sharestate.testing.generator import ordinary
from sharestate.testing.generator.mix import ORDINARY, Mix, mix_for
from sharestate.testing.generator.operations import operations
from sharestate.testing.generator.randomness import Choices, DrawnNumbers
from sharestate.testing.generator.surroundings import MOST_BATCHES, Log, Surroundings
from sharestate.testing.protocol.exchange import Exchange, exchanges
from sharestate.testing.protocol.in_process import InProcessServer
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.checks import expect, integer, refuse, rows
from sharestate.values.config import ShareConfig
from sharestate.values.fetched_records import FetchedRecords, IsolationLevel
from sharestate.values.profiles import Profile
from sharestate.values.requests import PersistedState, StateBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random
    from typing import TypeVar

    from hypothesis.strategies import DrawFn, SearchStrategy

    from sharestate.testing.generator.surroundings import Steps
    from sharestate.values.records import RecordBatch

    T = TypeVar("T")


_STEP: Final = st.binary(min_size=24, max_size=24)
"""What decides a step of a sequence; most take less. [bytes]"""


def sequences(*, mix: Mix = ORDINARY) -> SearchStrategy[Steps[None]]:
    """
    Return a strategy for random sequences of requests, which shrink to few and plain requests.

    A sequence is drawn while it runs, because each request depends on the responses before; see
    `sharestate.testing.converse`.
    """
    return _numbers().map(lambda numbers: operations(numbers, mix))


def histories(profile: Profile, *, mix: Mix | None = None) -> SearchStrategy[list[Exchange]]:
    """
    Return a strategy for whole histories: the requests of a sequence, with the library's responses under *profile*.

    Args:
        profile: The library's rules.
        mix: What the sequences are made of; by default ordinary requests, with a dead-letter queue if there may be one.

    Raises:
        MalformedInputError: *mix* has dead-letter queues and *profile* has none, or leaves the states out.
    """
    expect(profile, Profile, "profile")
    chosen = mix_for(profile) if mix is None else expect(mix, Mix, "mix")
    if chosen.dead_letters and not profile.has_dead_letter_queue:
        refuse(f"{profile.name} has no dead-letter queue", "mix")
    if chosen.quiet:
        refuse("exchanges() needs states: give it a mix with quiet=False", "mix")
    return _numbers().map(lambda numbers: list(exchanges(operations(numbers, chosen), InProcessServer(profile))))


def logs(
    *, most_batches: int = 10, longest_batch: int = 20, compaction: bool = False
) -> SearchStrategy[tuple[RecordBatch, ...]]:
    """
    Return a strategy for logs: ascending batches from offset 0 on, some of them of transactions, with their markers.

    Args:
        most_batches: The most batches; at least one is drawn, unless compaction removes it. [batches]
        longest_batch: The most records of a batch. [records]
        compaction: Whether some logs have holes, where batches were compacted away.

    Raises:
        MalformedInputError: A number is out of range.
    """
    integer(most_batches, "most_batches", 1, MOST_BATCHES)
    integer(longest_batch, "longest_batch", 1)
    expect(compaction, bool, "compaction")
    return _drawn(lambda random: tuple(_log(Choices(random), most_batches, longest_batch, compaction).batches))


def fetches(
    *,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    most_batches: int = 10,
    longest_batch: int = 20,
    compaction: bool = False,
) -> SearchStrategy[FetchedRecords]:
    """
    Return a strategy for what a fetch finds in a log of `logs`, from any offset of it on; it may find nothing.

    Raises:
        MalformedInputError: A number is out of range.
    """
    expect(isolation, IsolationLevel, "isolation")
    integer(most_batches, "most_batches", 1, MOST_BATCHES)
    integer(longest_batch, "longest_batch", 1)
    expect(compaction, bool, "compaction")

    def draw(random: Random) -> FetchedRecords:
        choices = Choices(random)
        log = _log(choices, most_batches, longest_batch, compaction)
        return FetchedRecords.from_log(
            log.batches,
            log.transactions,
            fetch_offset=choices.between(log.start, log.end),
            max_batches=choices.between(1, 5),
            isolation=isolation,
        )

    return _drawn(draw)


def acknowledgements(
    *, held: Iterable[tuple[int, int]], types: Iterable[AcknowledgeType] = tuple(AcknowledgeType)
) -> SearchStrategy[tuple[AcknowledgementBatch, ...]]:
    """
    Return a strategy for acknowledgements of one request: some of the ranges that are *held*, or parts of them.

    Args:
        held: First and last offset of each range, in ascending order.
        types: The types that are drawn, the plainest first.

    Raises:
        MalformedInputError: Nothing is held, a range is reversed, two overlap, or there is no type.
    """
    ranges = [(integer(first, "held", 0), integer(last, "held", first)) for first, last in held]
    if not ranges:
        refuse("nothing is held, so nothing can be acknowledged", "held")
    if any(after[0] <= before[1] for before, after in pairwise(ranges)):
        refuse("the ranges overlap, or do not ascend", "held")
    kinds = rows(types, AcknowledgeType, "types")
    if not kinds:
        refuse("no acknowledgement type to draw", "types")

    def draw(random: Random) -> tuple[AcknowledgementBatch, ...]:
        choices = Choices(random)
        begin = choices.between(0, len(ranges) - 1)
        chosen = ranges[begin : begin + choices.between(1, len(ranges))]
        parts = [choices.part_of(*each) if choices.chance(35) else each for each in chosen]
        return tuple(AcknowledgementBatch(*part, _types(choices, kinds, part[1] - part[0] + 1)) for part in parts)

    return _drawn(draw)


def persisted_states(
    *, start_offset: int = 0, end_offset: int = 40, delivery_count_limit: int = 5, dead_letters: bool = False
) -> SearchStrategy[PersistedState]:
    """
    Return a strategy for states as a share coordinator stores them: ascending and disjoint batches, some with gaps.

    Args:
        start_offset: The least SPSO.
        end_offset: The offset before which all batches end.
        delivery_count_limit: The highest delivery count. [deliveries]
        dead_letters: Whether records may be ARCHIVING.

    Raises:
        MalformedInputError: A number is out of range, or the end lies before the start.
    """
    integer(start_offset, "start_offset", 0)
    integer(end_offset, "end_offset", start_offset)
    integer(delivery_count_limit, "delivery_count_limit", 1)
    expect(dead_letters, bool, "dead_letters")

    def draw(random: Random) -> PersistedState:
        choices = Choices(random)
        opened_with = {"delivery_count_limit": delivery_count_limit}
        surroundings = Surroundings(
            choices, ORDINARY, Log(choices), ("m1",), has_queue=dead_letters, opened_with=opened_with
        )
        start = choices.between(start_offset, end_offset)
        batches = ordinary.state_batches(surroundings, start, end_offset - 1)
        return PersistedState(
            start_offset=start,
            state_epoch=choices.between(0, 3),
            state_batches=[StateBatch(*batch) for batch in batches],
        )

    return _drawn(draw)


def configurations(*, dead_letters: bool = False) -> SearchStrategy[ShareConfig]:
    """
    Return a strategy for the settings of a group: small ones, which a test reaches.

    Args:
        dead_letters: Whether some groups have a dead-letter queue, which not every profile allows.

    Raises:
        MalformedInputError: *dead_letters* is neither True nor False.
    """
    expect(dead_letters, bool, "dead_letters")
    limits = queue.DELIVERY_LIMITS if dead_letters else ordinary.DELIVERY_LIMITS

    def draw(random: Random) -> ShareConfig:
        choices = Choices(random)
        return ShareConfig(
            max_record_locks=choices.one_of(ordinary.RECORD_LOCKS),
            delivery_count_limit=choices.one_of(limits),
            record_lock_duration_ms=choices.one_of(ordinary.LOCK_DURATIONS_MS),
            renew_acknowledge_enable=not choices.chance(40),
            dead_letter_queue=dead_letters and choices.chance(50),
        )

    return _drawn(draw)


@st.composite
def _numbers(draw: DrawFn) -> DrawnNumbers:
    return DrawnNumbers(partial(draw, _STEP))


def _drawn(draw: Callable[[Random], T]) -> SearchStrategy[T]:
    return st.randoms(use_true_random=False).map(draw)


def _log(choices: Choices, most_batches: int, longest_batch: int, compaction: bool) -> Log:  # noqa: FBT001 - passed on
    log = Log(choices, longest_batch)
    for _ in range(choices.between(1, most_batches)):
        log.append()
    if compaction and choices.chance(50):
        log.compact()
    return log


def _types(choices: Choices, kinds: tuple[AcknowledgeType, ...], size: int) -> tuple[AcknowledgeType, ...]:
    return tuple(choices.one_of(kinds) for _ in range(size if choices.chance(30) else 1))
