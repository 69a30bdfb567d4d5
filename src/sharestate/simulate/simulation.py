"""A simulation: a load comes to share partitions and members, in discrete events, until nothing is left of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final

from sharestate.broker.groups import SubscribedMember, assign
from sharestate.simulate.agenda import Agenda
from sharestate.simulate.broker import TOPIC_ID, Broker
from sharestate.simulate.distributions import RecordedArrival
from sharestate.simulate.load import Load
from sharestate.simulate.member import Member
from sharestate.simulate.result import SimulationCounts, SimulationResult
from sharestate.values.checks import MAX_INT64, expect, integer

LONGEST_SIMULATED_MS: Final = 30 * 24 * 3_600_000
"""The longest simulated time: thirty days. [ms]"""

_STEPS_OF_RECORD: Final = 40
_SOME_STEPS: Final = 5_000_000
_WATCHED_AFTER: Final = 10_000
"""After how many events progress is shown again."""

_US: Final = 1000


def simulate(load: Load, seed: int = 0, *, watch: Callable[[int], object] | None = None) -> SimulationResult:
    """
    Return what comes of a load.

    Equal arguments give equal results. Loads that differ in settings have the same arrivals, and each delivery of each
    record takes as long and comes to the same, so that what differs in the results is due to the settings.

    Args:
        load: The load.
        seed: The seed of all that is drawn.
        watch: Takes how many records are behind the SPSO, from time to time; to show progress.

    Raises:
        MalformedInputError: An argument is of the wrong type.

    Complexity:
        Linear in the deliveries; 20 to 60 µs for each where members acknowledge record by record, a tenth of that
        where they acknowledge what they have fetched in one request.

    >>> from sharestate.simulate import Load, simulate
    >>> load = Load(records=100, producer_batch=100, poison_rate=1, delivery_count_limit=3)
    >>> result = simulate(load)
    >>> result.fetches, result.deliveries, result.archived_at_limit
    (102, 300, 100)
    """
    expect(load, Load, "load")
    return Simulation(load, integer(seed, "seed")).run(watch)


class Simulation:
    """
    A load on its way.

    Attributes:
        agenda: What is still to happen.
        broker: The share partitions.
        counts: What has happened.
    """

    def __init__(self, load: Load, seed: int = 0) -> None:
        """Prepare everything; nothing has happened yet."""
        self._load, self._seed = load, integer(seed, "seed", -MAX_INT64)
        self.agenda, self.counts = Agenda(), SimulationCounts()
        self.broker: Final = Broker(load, self.agenda, self.counts, str(seed))
        self._records = 0
        self._arrivals = self._batches()
        self._arrive()
        for member in self._members():
            self.agenda.at(0, member.start)

    def run(self, watch: Callable[[int], object] | None = None) -> SimulationResult:
        """Let everything happen, and return what comes of it."""
        load, agenda, broker = self._load, self.agenda, self.broker
        most_steps = _SOME_STEPS + _STEPS_OF_RECORD * load.records * load.delivery_count_limit
        ended = ""
        while not ended and agenda.step():
            ended = broker.ended
            if agenda.now_us > LONGEST_SIMULATED_MS * _US:
                ended = "time limit"
            elif agenda.steps > most_steps:
                ended = "work limit"
            elif watch is not None and agenda.steps % _WATCHED_AFTER == 0:
                watch(sum(partition.share.start_offset for partition in broker.partitions))
        return SimulationResult.of(
            self.counts,
            seed=self._seed,
            ended=ended or "stalled",
            duration_us=agenda.now_us,
            records=self._records,
            members=load.members,
        )

    def _members(self) -> Iterator[Member]:
        load = self._load
        names = [f"m-{number:04}" for number in range(load.members)]
        target = assign(
            [SubscribedMember(member_id=name, topic_ids=(TOPIC_ID,)) for name in names], {TOPIC_ID: load.partitions}
        )
        for number, name in enumerate(names):
            assigned = [self.broker.partitions[each] for each in target.members[name].get(TOPIC_ID, ())]
            yield Member(number, load, self.broker, assigned)

    def _batches(self) -> Iterator[tuple[int, int, int]]:
        """Yield when each batch arrives [µs], in which partition, and how many records it has."""
        load = self._load
        if isinstance(load.arrival, RecordedArrival):
            yield from load.arrival.batches
            return
        random = Random(f"{self._seed} arrivals")  # noqa: S311 - it has to be repeatable
        at_us, left, number = 0, load.records, 0
        for gap_us in load.arrival.gaps_us(random, load.producer_batch):
            at_us += gap_us
            size = min(load.producer_batch, left)
            yield at_us, number % load.partitions, size
            left, number = left - size, number + 1
            if not left:
                return

    def _arrive(self) -> None:
        """Append all that arrives now, and plan the next one."""
        for at_us, partition, size in self._arrivals:
            if at_us > self.agenda.now_us:
                self.agenda.at(at_us, self._append, partition, size)
                return
            self._append_now(partition, size)
        self.broker.all_appended()

    def _append(self, partition: int, size: int) -> None:
        self._append_now(partition, size)
        self._arrive()

    def _append_now(self, partition: int, size: int) -> None:
        self._records += size
        self.broker.partitions[partition].append(size)
