"""
Loads of the simulator, carried out on a broker by members that do what simulated ones do, and counted.

``python -m tests.broker.measured_loads`` starts a broker and prints what is simulated beside what is measured.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, quantiles
from tempfile import TemporaryDirectory
from typing import Final

import attrs
from attrs import define, field, frozen
from confluent_kafka import Producer

from sharestate import AcquireMode
from sharestate.simulate import (
    Acknowledging,
    Backlog,
    Constant,
    Exponential,
    Load,
    LogNormal,
    Poisson,
    RecordedArrival,
    SimulationResult,
    simulate,
)
from sharestate.simulate.attempts import Attempts
from sharestate.testing.servers import ACCEPT, BATCH_OPTIMIZED, RECORD_LIMIT, REJECT, FetchLimits, Partition, RawMember
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import configure

SEED: Final = 1
"""The seed of the loads and of their simulations: so both have the same luck."""

PATIENCE_S: Final = 120
"""When a load is given up. [s]"""

SMALL: Final = Load(
    records=300, members=3, poll_records=20, producer_batch=20, processing=Constant(50), max_wait_ms=100
)

LOADS: Final[Mapping[str, Load]] = {
    "failures": attrs.evolve(SMALL, failure_rate=0.2, processing=Exponential(30), arrival=Poisson(28)),
    "short lock": attrs.evolve(
        SMALL,
        members=5,
        poll_records=10,
        producer_batch=10,
        processing=LogNormal(90, 0.7),
        lock_duration_ms=1_000,
    ),
    "crashes": attrs.evolve(
        SMALL, records=400, members=6, crash_rate=0.03, restart_ms=300, poll_records=10, producer_batch=10
    ),
    "poison": attrs.evolve(SMALL, members=2, poison_rate=0.05, processing=Constant(25), delivery_count_limit=3),
    "record by record": attrs.evolve(
        SMALL,
        members=5,
        processing=LogNormal(70, 0.3),
        lock_duration_ms=1_000,
        acknowledging=Acknowledging.EACH_RECORD,
        acquire_mode=AcquireMode.RECORD_LIMIT,
    ),
}
"""Five loads, each with trouble of another kind."""


@frozen
class Measured:
    """What was measured of a load."""

    records: int
    accepted: int
    deliveries: int
    duplicates: int
    expired: int
    """Deliveries that were neither acknowledged nor lost to a crash. [records]"""
    duration_s: float
    request_ms: float
    """How long a fetch took that found something, one in four: others have waited for records. [ms]"""
    acknowledge_ms: float
    """How long it took from the end of the processing to the answer, on average. [ms]"""

    @property
    def throughput(self) -> float:
        """Accepted records in a second."""
        return self.accepted / self.duration_s


@define
class _Group:
    """A load on its way."""

    broker: KafkaBroker
    load: Load
    name: str
    seed: int
    attempts: Attempts
    begin_s: float = 0.0
    last_s: float = 0.0
    lock: threading.Lock = field(factory=threading.Lock)
    counts: dict[int, int] = field(factory=dict)
    """How often each record was delivered."""
    settled: set[int] = field(factory=set)
    """Records that were accepted, rejected, or delivered as often as may be and given back."""
    accepted: set[int] = field(factory=set)
    deliveries: int = 0
    explained: int = 0
    """Deliveries that were acknowledged, or lost to a crash. [records]"""
    last_chance_s: dict[int, float] = field(factory=dict)
    """When the lock of records expires that are delivered for the last time."""
    fetched_ms: list[float] = field(factory=list)
    acknowledged_ms: list[float] = field(factory=list)
    failures: list[BaseException] = field(factory=list)

    @property
    def goes_on(self) -> bool:
        """Whether records are left."""
        now_s = time.monotonic()
        if self.failures or now_s > self.begin_s + PATIENCE_S:
            return False
        with self.lock:
            lost = [offset for offset, at_s in self.last_chance_s.items() if at_s < now_s]
            self.settled.update(lost)
            for offset in lost:
                del self.last_chance_s[offset]
            return len(self.settled) < self.load.records

    def delivered(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        """Count what a member has acquired."""
        until_s = time.monotonic() + self.load.lock_duration_ms / 1000
        with self.lock:
            for first, last, count in ranges:
                self.deliveries += last - first + 1
                for offset in range(first, last + 1):
                    self.counts[offset] = count
                    if count == self.load.delivery_count_limit:
                        self.last_chance_s[offset] = until_s

    def ended(self, delivered: Mapping[int, int], kinds: Mapping[int, int | None]) -> None:
        """
        Note what became of records: what was acknowledged, or None if a crash has released them.

        Brokers say nothing against the acceptance of what the SPSO has passed: others have got it since it was
        *delivered*, and its lock had expired before.
        """
        with self.lock:
            for offset, kind in kinds.items():
                if kind == ACCEPT and self.counts[offset] != delivered[offset]:
                    continue
                self.explained += 1
                is_last = self.last_chance_s.pop(offset, None) is not None
                if kind in {ACCEPT, REJECT} or is_last:
                    self.settled.add(offset)
                    self.last_s = time.monotonic()
                if kind == ACCEPT:
                    self.accepted.add(offset)


def measure(broker: KafkaBroker, load: Load, name: str, seed: int = 1) -> Measured:
    """Carry out a load of one partition on a broker, in a group and a topic called *name*."""
    broker.create_topic(name, 1)
    configure(
        broker,
        name,
        {
            "share.record.lock.duration.ms": str(load.lock_duration_ms),
            "share.delivery.count.limit": str(load.delivery_count_limit),
        },
    )
    group = _Group(broker, load, name, seed, Attempts(load, f"{seed} 0"))
    members = [RawMember(broker.address, name, [name]) for _ in range(load.members)]
    for member in members:
        member.join()
    if isinstance(load.arrival, Backlog):
        _produce(group)
    group.begin_s = time.monotonic()
    threads = [threading.Thread(target=_guarded, args=(group, each)) for each in members]
    for thread in threads:
        thread.start()
    if not isinstance(load.arrival, Backlog):
        _produce(group)
    for thread in threads:
        thread.join()
    if group.failures:
        raise group.failures[0]
    return Measured(
        records=load.records,
        accepted=len(group.accepted),
        deliveries=group.deliveries,
        duplicates=group.deliveries - len(group.counts),
        expired=group.deliveries - group.explained,
        duration_s=group.last_s - group.begin_s,
        request_ms=quantiles(group.fetched_ms)[0],
        acknowledge_ms=fmean(group.acknowledged_ms),
    )


def _produce(group: _Group) -> None:
    """Append the batches of the load at their times."""
    load = group.load
    assert not isinstance(load.arrival, RecordedArrival)
    producer = Producer(
        {"bootstrap.servers": group.broker.address, "linger.ms": 10_000, "batch.num.messages": load.producer_batch}
    )
    gaps = load.arrival.gaps_us(random.Random(f"{group.seed} arrivals"), load.producer_batch)  # noqa: S311 - as there
    begin_s = time.monotonic()
    at_s, left = 0.0, load.records
    while left:
        at_s += next(gaps) / 1_000_000
        time.sleep(max(0.0, begin_s + at_s - time.monotonic()))
        for _ in range(min(load.producer_batch, left)):
            producer.produce(group.name, value=b"v", partition=0)
        assert producer.flush(60) == 0
        left -= min(load.producer_batch, left)


def _guarded(group: _Group, member: RawMember) -> None:
    try:
        _live(group, member)
        member.leave()
    except BaseException as error:  # noqa: BLE001 - the thread that joins it raises it
        group.failures.append(error)


def _live(group: _Group, member: RawMember) -> None:
    """Fetch, process and acknowledge until nothing is left."""
    load = group.load
    mode = RECORD_LIMIT if load.acquire_mode is AcquireMode.RECORD_LIMIT else BATCH_OPTIMIZED
    limits = FetchLimits(
        max_records=load.poll_records, batch_size=load.poll_records, max_wait_ms=load.max_wait_ms, acquire_mode=mode
    )
    while group.goes_on:
        sent_s = time.monotonic()
        fetched = member.fetch(limits=limits)
        assert fetched.error == "none", fetched
        for partition, ranges in fetched.acquired.items():
            if ranges:
                group.fetched_ms.append((time.monotonic() - sent_s) * 1000)
                group.delivered(ranges)
                _process(group, member, partition, ranges)


def _process(group: _Group, member: RawMember, partition: Partition, ranges: Sequence[tuple[int, int, int]]) -> None:
    """Process records that were acquired, and acknowledge them all at last, or each at once."""
    done: dict[int, int] = {}
    left = {offset: count for first, last, count in ranges for offset in range(first, last + 1)}
    begin_s = time.monotonic()
    took_s = 0.0
    for offset, count in list(left.items()):
        took_us, kind = group.attempts.of(offset, count)
        took_s += took_us / 1_000_000
        if kind is None:
            time.sleep(max(0.0, begin_s + took_s - time.monotonic()))
            member.reconnect()
            group.ended(left, dict.fromkeys(left))
            time.sleep(group.load.restart_ms / 1000)
            return
        done[offset] = kind
        if group.load.acknowledging is Acknowledging.EACH_RECORD:
            _acknowledge(group, member, partition, left, done, begin_s + took_s)
            done, begin_s, took_s = {}, time.monotonic(), 0.0
            del left[offset]
    if done:
        _acknowledge(group, member, partition, left, done, begin_s + took_s)


def _acknowledge(  # noqa: PLR0913 - what an acknowledgement is made of
    group: _Group,
    member: RawMember,
    partition: Partition,
    delivered: Mapping[int, int],
    done: Mapping[int, int],
    due_s: float,
) -> None:
    """Acknowledge what has been processed at *due_s*; all of it is refused if one lock has expired."""
    time.sleep(max(0.0, due_s - time.monotonic()))
    answer = member.acknowledge({partition: [(offset, offset, (kind,)) for offset, kind in done.items()]})
    group.acknowledged_ms.append((time.monotonic() - due_s) * 1000)
    if answer[partition] == "none":
        group.ended(delivered, done)
    else:
        assert answer[partition] == "invalid_record_state", answer


# ---- beside the simulation


@frozen
class Compared:
    """A load as it was measured, and as it was simulated with the times that requests took."""

    name: str
    measured: Measured
    simulated: SimulationResult

    def values(self, measure: str) -> tuple[float, float]:
        """Return what was measured and what was simulated."""
        return getattr(self.measured, measure), getattr(self.simulated, measure)

    def error(self, measure: str) -> float:
        """Return by which part what was simulated is more than what was measured."""
        measured, simulated = self.values(measure)
        return simulated / max(1, measured) - 1


def compare(broker: KafkaBroker, loads: Mapping[str, Load], *, at_once: bool, name: str = "load") -> list[Compared]:
    """Carry out loads, *at_once* or one after the other, with topics called *name*, and simulate them."""
    found: dict[str, Measured] = {}

    def carry_out(number: int, of: str, load: Load) -> None:
        found[of] = measure(broker, load, f"{name}-{number}", SEED)

    threads = [threading.Thread(target=carry_out, args=(number, *each)) for number, each in enumerate(loads.items())]
    for thread in threads:
        thread.start()
        if not at_once:
            thread.join()
    for thread in threads:
        thread.join()
    return [Compared(of, found[of], simulate(_timed(load, found[of]), SEED)) for of, load in loads.items()]


def _timed(load: Load, measured: Measured) -> Load:
    """Return the load with the times that requests took."""
    request_ms = min(measured.request_ms, measured.acknowledge_ms)
    return attrs.evolve(load, request_ms=request_ms, state_write_ms=measured.acknowledge_ms - request_ms)


def table(rows: Sequence[Compared]) -> Iterator[str]:
    """Yield the lines of a table of Markdown."""
    yield "| load | duplicates | simulated | expired | simulated | accepted/s | simulated |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        cells = [f"{value:.4g}" for name in ("duplicates", "expired", "throughput") for value in row.values(name)]
        yield f"| {row.name} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table of loads, and keep what the broker leaves behind if a directory is named."""
    parser = argparse.ArgumentParser(description="What is simulated of loads beside what is measured.")
    parser.add_argument("--kafka", default="4.4.0", help="the release")
    parser.add_argument("--keep", type=Path, help="where the broker leaves its request log and its segments")
    parser.add_argument("loads", nargs="*", metavar="LOAD", help=f"some of {', '.join(LOADS)}; all without")
    arguments = parser.parse_args()
    loads = {name: LOADS[name] for name in arguments.loads or LOADS}
    with TemporaryDirectory() as home:
        place = arguments.keep or Path(home)
        place.mkdir(exist_ok=True)
        broker = KafkaBroker(arguments.kafka, place, request_level="debug" if arguments.keep else "warn")
        try:
            broker.start()
            rows = compare(broker, loads, at_once=False)
        finally:
            broker.stop()
    sys.stdout.writelines(f"{line}\n" for line in table(rows))
    sys.stdout.writelines(
        f"{row.name}: {row.measured.duration_s:.1f} s, fetches {row.measured.request_ms:.1f} ms, "
        f"acknowledgements {row.measured.acknowledge_ms:.1f} ms\n"
        for row in rows
    )


if __name__ == "__main__":
    main()
