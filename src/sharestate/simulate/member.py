"""The members of a simulation: each fetches, processes one record after the other, acknowledges, and fetches again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from sharestate.simulate.broker import Broker, FetchedPart, MemberFetch, SimulatedPartition, half_us
from sharestate.simulate.load import Acknowledging, Load
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType

_US: Final = 1000


Resume: TypeAlias = Callable[..., object]
Waits: TypeAlias = "Generator[int | Callable[[Resume], object], Any, Any]"
"""What a member does, until it waits: for so many microseconds, or for what it asks for with how to go on."""

_RENEWED: Final = (AcknowledgeType.RENEW,)
_SINGLE: Final = {kind: (kind,) for kind in AcknowledgeType}
_ACCEPTED: Final = _SINGLE[AcknowledgeType.ACCEPT]


class _Processed(NamedTuple):
    """What a member acknowledges of one partition, and how long it has processed that."""

    partition: SimulatedPartition
    batches: Sequence[AcknowledgementBatch]
    records: int
    took_us: int


class Member:
    """A member of the group, which has some of the partitions, and starts again under another id after a crash."""

    def __init__(self, number: int, load: Load, broker: Broker, assigned: Sequence[SimulatedPartition]) -> None:
        """Be ready to start."""
        self._number, self._load, self._broker, self._assigned = number, load, broker, list(assigned)
        self._agenda, self._counts = broker.agenda, broker.counts
        self._half_us = half_us(load)
        self._fetches = 0
        self._lives = 0
        self._member_id = f"m-{number}"
        self._held: list[list[Any]] = []
        """Partition, first and last offset of what it holds and has not acknowledged."""
        self._polls = 0

    def start(self) -> None:
        """Begin to fetch."""
        if self._assigned:
            self._go_on(self._life(), None)

    def _go_on(self, life: Waits, answer: object) -> None:
        wait = life.send(answer)
        if isinstance(wait, int):
            self._agenda.after(wait, self._go_on, life, None)
        else:
            wait(lambda got=None: self._go_on(life, got))

    def _life(self) -> Waits:
        processes = self._processes_each if self._load.acknowledging is Acknowledging.EACH_RECORD else self._processes
        while True:
            found: list[FetchedPart] = yield self._fetch
            if not found:
                continue
            self._broker.busy += 1
            self._hold(found)
            has_crashed = yield from processes(found)
            self._held.clear()
            if has_crashed:
                yield from self._restarts()
            self._broker.busy -= 1

    def _fetch(self, resume: Resume) -> None:
        turn = self._fetches % len(self._assigned)  # PartitionRotateStrategy: another one is the first each time
        self._fetches += 1
        fetch = MemberFetch(self._member_id, self._assigned[turn:] + self._assigned[:turn], resume)
        self._agenda.after(self._half_us, self._broker.fetch, fetch)

    def _hold(self, found: Sequence[FetchedPart]) -> None:
        self._polls += 1
        self._held = [[partition, first, last] for partition, acquired in found for first, last, _ in acquired]
        if self._load.renew_interval_ms:
            self._agenda.after(self._load.renew_interval_ms * _US, self._renew, self._polls)

    # ---- processing

    def _processes(self, found: Sequence[FetchedPart]) -> Waits:
        """Process all records of a fetch, and acknowledge them in one request; return whether it has crashed."""
        done: list[_Processed] = []
        waits = 0
        for partition, acquired in found:
            batches, records, all_us = [], 0, 0
            for first, last, delivery_count in acquired:
                accepted_us = partition.attempts.all_accepted_us(first, last, delivery_count)
                kinds = []
                for offset in range(first, last + 1) if accepted_us is None else ():
                    took_us, kind = partition.attempts.of(offset, delivery_count)
                    all_us += took_us
                    if kind is None:
                        yield from self._crashes(all_us + sum(each.took_us for each in done), waits)
                        return True
                    if kind is AcknowledgeType.RELEASE:
                        waits += self._load.retry_backoff_ms
                    kinds.append(kind)
                all_us += accepted_us or 0
                records += last - first + 1
                batches.append(AcknowledgementBatch(first, last, _shortened(kinds) if kinds else _ACCEPTED))
            done.append(_Processed(partition, batches, records, all_us))
        took = sum(each.took_us for each in done)
        self._counts.processing_us += took
        yield took + waits * _US
        self._held.clear()
        yield partial(self._acknowledge, done)
        return False

    def _processes_each(self, found: Sequence[FetchedPart]) -> Waits:
        """Process each record of a fetch, and acknowledge it by itself; return whether it has crashed."""
        for partition, acquired in found:
            for first, last, delivery_count in acquired:
                for offset in range(first, last + 1):
                    took_us, kind = partition.attempts.of(offset, delivery_count)
                    if kind is None:
                        yield from self._crashes(took_us, 0)
                        return True
                    self._counts.processing_us += took_us
                    yield took_us + (self._load.retry_backoff_ms * _US if kind is AcknowledgeType.RELEASE else 0)
                    self._drop_first()
                    batches = (AcknowledgementBatch(offset, offset, _SINGLE[kind]),)
                    yield partial(self._acknowledge, (_Processed(partition, batches, 1, took_us),))
        return False

    def _drop_first(self) -> None:
        self._held[0][1] += 1
        if self._held[0][1] > self._held[0][2]:
            del self._held[0]

    def _crashes(self, took_us: int, waits_ms: int) -> Waits:
        """Lose the connection, and all that was processed since the last acknowledgement."""
        yield took_us + waits_ms * _US
        counts = self._counts
        counts.processing_us += took_us
        counts.wasted_us += took_us
        counts.crashes += 1
        for partition in self._assigned:
            partition.release(self._member_id)

    def _restarts(self) -> Waits:
        self._lives += 1
        self._member_id = f"m-{self._number}-{self._lives}"
        yield self._load.restart_ms * _US

    # ---- requests

    def _acknowledge(self, done: Sequence[_Processed], resume: Resume) -> None:
        self._agenda.after(self._half_us, self._acknowledged, done, resume)

    def _acknowledged(self, done: Sequence[_Processed], resume: Resume) -> None:
        """Acknowledge at the broker, which answers when all of it is written or refused."""
        self._counts.acknowledgements += 1
        left = len(done)

        def answered() -> None:
            nonlocal left
            left -= 1
            if not left:
                self._agenda.after(self._half_us, resume)

        for each in done:

            def written(accepted: list[tuple[int, int]], partition: SimulatedPartition = each.partition) -> None:
                self._count_accepted(partition, accepted)
                answered()

            changed = each.partition.acknowledge(self._member_id, each.batches, written)
            lost = each.records - changed
            if lost:
                self._counts.refused += lost
                self._counts.wasted_us += each.took_us * lost // each.records
            if not changed:
                answered()

    def _count_accepted(self, partition: SimulatedPartition, accepted: list[tuple[int, int]]) -> None:
        now_us, latencies = self._agenda.now_us, self._counts.latencies_us
        for first, last in accepted:
            for at_us, records in partition.appended_us(first, last):
                latencies.extend([now_us - at_us] * records)

    def _renew(self, poll: int) -> None:
        if poll != self._polls or not self._held:
            return
        by_partition: dict[SimulatedPartition, list[AcknowledgementBatch]] = {}
        for partition, first, last in self._held:
            by_partition.setdefault(partition, []).append(AcknowledgementBatch(first, last, _RENEWED))
        self._counts.renewals += 1
        self._agenda.after(self._half_us, self._renewed, by_partition)
        self._agenda.after(self._load.renew_interval_ms * _US, self._renew, poll)

    def _renewed(self, by_partition: dict[SimulatedPartition, list[AcknowledgementBatch]]) -> None:
        for partition, batches in by_partition.items():
            partition.acknowledge(self._member_id, batches, _nothing)


def _nothing(_accepted: object) -> None:
    """Do nothing: nobody waits for what renews locks."""


def _shortened(kinds: Sequence[AcknowledgeType]) -> tuple[AcknowledgeType, ...]:
    return _SINGLE[kinds[0]] if kinds.count(kinds[0]) == len(kinds) else tuple(kinds)
