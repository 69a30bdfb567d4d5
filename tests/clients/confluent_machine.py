"""
The test broker as a machine of the kit, `ShareGroupMachine`, through confluent-kafka's clients.

librdkafka's share consumer polls again only when it has acknowledged all that the last poll has brought, and leaves a
fetch at the broker when a poll comes back empty. So a member of the machine has several consumers, and what one of them
gets by a fetch that has waited is judged after the event by which it came.
"""

# ruff: noqa: D102 - what a machine implements has its docstring there

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from attrs import define, field
from confluent_kafka import (
    AcknowledgeType,
    IllegalStateException,
    KafkaError,
    Message,
    Producer,
    ShareConsumer,
)

from sharestate import ErrorCode, Profile, RecordState
from sharestate.broker import StandingClock, TestBroker
from sharestate.broker.node import DeletedRecords, DeleteRecordsRequest, ShareBroker
from sharestate.broker.server.insight import HeldShare, held_shares
from sharestate.testing.groups import AcknowledgementBatch, Delivery, GroupSettings
from sharestate.testing.groups.events import EVERYTHING, Range
from sharestate.testing.groups.known_records import Content
from tests.clients.scenes import close
from tests.clients.wire_machine import BROKER_SETTINGS, PATIENCE, BrokerMachine

PATIENCE_S: Final = 10
"""How long a client may take, on a machine that has much else to do. [s]"""

IN_VAIN_S: Final = 5
"""How long fetches, one after the other, may bring nothing although there is something. [s]"""

GLANCE_S: Final = 0.002
"""How long to look for records at a time: a client takes about as long for a request. [s]"""

SETTLED_S: Final = 0.02
"""How long fetches may take that are on their way to the broker, when nobody waits for them. [s]"""

MAX_WAIT_MS: Final = 300_000
"""How long a fetch waits at the broker, by its clock: as long as librdkafka lets it. [ms]"""


@define(eq=False)
class Seat:
    """
    One of a member's consumers.

    Attributes:
        consumer: The consumer.
        held: What it has got and not acknowledged: offsets, each with the delivery count.
        waits: Whether its last poll has come back empty, so that its fetch waits at the broker, or will.
    """

    consumer: ShareConsumer
    held: dict[int, int] = field(factory=dict)
    waits: bool = False


class Office:
    """
    A broker, and the clients that stay from run to run: a transactional producer takes a while to begin.

    Attributes:
        profile: Whose rules the broker follows.
        server: The broker.
        settings: What each client is told of it.
    """

    def __init__(self, profile: Profile) -> None:
        """Have a broker whose clock stands."""
        self.profile = profile
        self.server = TestBroker(profile=profile, config=BROKER_SETTINGS, clock=StandingClock())
        self._producers: dict[str | None, Producer] = {}

    def __enter__(self) -> Self:
        """Open."""
        self.server.__enter__()
        self.settings: dict[str, Any] = {"bootstrap.servers": self.server.bootstrap_servers, "log_level": 0}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.server.__exit__(kind, error, trace)

    def producer(self, name: str | None) -> Producer:
        """Return a producer, of transactions if it has a name."""
        if name not in self._producers:
            longest_ms = PATIENCE // timedelta(milliseconds=1)
            transactions = {"transactional.id": name, "transaction.timeout.ms": longest_ms} if name else {}
            self._producers[name] = Producer({**self.settings, "linger.ms": 100, **transactions})
            if name:
                self._producers[name].init_transactions(PATIENCE_S)
        return self._producers[name]


class ConfluentMachine(BrokerMachine):
    """A test broker, and confluent-kafka's share consumers and producers."""

    lock_duration_ms = 10_000
    """Longer than any run, should a client look at the computer's clock."""

    office: ClassVar[Office]
    """The broker of all runs, and who asks it in all of them."""

    number: ClassVar[int]
    """The number of the run, by which its topic and its group are called."""

    def start(self, settings: GroupSettings) -> None:
        self.server = self.office.server
        self.topic = self.group = f"run-{self.number}"
        self.begin(settings)
        self.patience_s: float = IN_VAIN_S
        self.got: set[tuple[int, int]] = set()
        self.unjudged: deque[tuple[str, list[Delivery]]] = deque()
        self.seats: dict[str, list[Seat]] = {name: [] for name in self.members}
        for name in self.members:
            self.sit(name)

    def stop(self) -> None:
        with self.server.auto_advance(quiet_s=GLANCE_S):  # a fetch that waits keeps back what is asked behind it
            for seats in self.seats.values():
                for seat in seats:
                    close(seat.consumer)

    # ---- producers

    def produce(self, count: int, producer: str | None) -> list[int]:
        client = self.office.producer(producer)
        offsets: list[int] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            offsets.append(message.offset() or 0)

        for _ in range(count):
            client.produce(self.topic, value=b"v", partition=0, on_delivery=delivered)
        assert client.flush(PATIENCE_S) == 0
        return offsets

    def begin_transaction(self, producer: str) -> None:
        self.office.producer(producer).begin_transaction()

    def commit_transaction(self, producer: str) -> None:
        self.office.producer(producer).commit_transaction(PATIENCE_S)

    def abort_transaction(self, producer: str) -> None:
        self.office.producer(producer).abort_transaction(PATIENCE_S)

    def delete_records(self, before_offset: int) -> set[tuple[int, int]]:
        """Return what was acquired before; of a client's request nobody could say."""
        asked = DeleteRecordsRequest(partitions=[DeletedRecords(self.topic, 0, before_offset)])

        def delete(node: ShareBroker) -> set[tuple[int, int]]:
            acquired = self.acquired(held_shares(node, self.group))
            node.call(asked, now_ms=node.now_ms)
            return acquired

        return self.server.run(delete)

    # ---- members

    def fetch(self, member: str, _max_records: int) -> list[Delivery]:
        free = [seat for seat in self.seats[member] if not seat.held]
        if self.profile.quirks and self._model.waiting():
            free = [seat for seat in free if not seat.waits]  # nobody wakes some fetches (N1)
        seat = free[0] if free else self.sit(member)
        while not (got := self.glance(seat)) and self.is_any_expected() and self.patience_s > 0:
            self.glance_at_others(seat)
            self.patience_s -= GLANCE_S
        if got:
            self.patience_s = IN_VAIN_S
        return got

    def sit(self, member: str) -> Seat:
        """Give a member one more consumer."""
        consumer = ShareConsumer(
            {
                **self.office.settings,
                "group.id": self.group,
                "share.acknowledgement.mode": "explicit",
                "fetch.wait.max.ms": MAX_WAIT_MS,
                "socket.timeout.ms": MAX_WAIT_MS,
                "max.poll.records": 2,
            }
        )
        consumer.subscribe([self.topic])
        self.seats[member].append(seat := Seat(consumer))
        return seat

    def leave(self, member: str, seat: Seat) -> None:
        """Close a consumer of a member."""
        self.seats[member].remove(seat)
        close(seat.consumer)

    def glance(self, seat: Seat) -> list[Delivery]:
        """Return what a consumer has got that holds nothing."""
        messages = list(seat.consumer.poll(GLANCE_S))
        assert [message.error() for message in messages] == [None] * len(messages)
        seat.held.update({message.offset() or 0: message.delivery_count() or 0 for message in messages})
        seat.waits = not messages
        self.got |= seat.held.items()
        return [Delivery(offset, offset, count) for offset, count in seat.held.items()]

    def glance_at_others(self, one: Seat | None = None) -> None:
        """Take what those consumers have got that do not wait for it."""
        for member, seats in self.seats.items():
            for seat in seats:
                if seat is not one and seat.waits and (got := self.glance(seat)):
                    self.unjudged.append((member, got))

    def is_any_expected(self) -> bool:
        """Return whether there are records that somebody who fetches has to get."""
        records = self._model.records
        taken = {offset for offset, count in self.got if count > records[offset].least}  # which is not judged yet
        return not taken.issuperset(self._model.waiting())

    def is_any_on_its_way(self) -> bool:
        """Return whether records are acquired that their consumer has not got yet."""
        self.server.advance()  # what follows from what was asked
        return not self.acquired(self.server.share_partitions(self.group)) <= self.got

    def acquired(self, shares: Iterable[HeldShare]) -> set[tuple[int, int]]:
        """Return the records that are acquired, each with its delivery count."""
        return {
            (offset, run.delivery_count)
            for share in shares
            for run in share.in_flight
            if run.state is RecordState.ACQUIRED
            for offset in range(run.first_offset, run.last_offset + 1)
            if self._model.records[offset].content is Content.RECORD
        }

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        types = {first: AcknowledgeType(int(types[0])) for first, _, types in batches}
        (seat,) = {id(seat): seat for seat in (self.seat_of(member, offset) for offset in types)}.values()
        try:
            for offset in sorted(types, key=seat.held.__contains__):  # what the client refuses comes first
                seat.consumer.acknowledge_offset(self.topic, 0, offset, types[offset])
        except IllegalStateException:
            return ErrorCode.INVALID_RECORD_STATE
        for offset in types:
            seat.held.pop(offset)
        (error,) = seat.consumer.commit_sync(PATIENCE_S).values()
        return 0 if error is None else int(error.args[0].code())

    def seat_of(self, member: str, offset: int) -> Seat:
        """Return the consumer of a member that has got a record last, or any."""
        seats = [seat for seat in self.seats[member] if offset in seat.held] or self.seats[member] or [self.sit(member)]
        return max(seats, key=lambda seat: seat.held.get(offset, 0))

    def close_session(self, member: str) -> None:
        holding = [seat for seat in self.seats[member] if seat.held]  # whose fetch waits cannot say that it leaves
        for seat in holding:
            self.leave(member, seat)

    # ---- events

    def member_acknowledges(self, member: str, ranges: Iterable[Range]) -> None:
        """Acknowledge ranges, those of each consumer by themselves."""
        parts: dict[int, list[Range]] = {}
        for first, last, names in ranges:
            for index, offset in enumerate(range(first, last + 1)):
                name = names[0 if len(names) == 1 else index]
                if name != "GAP":  # which clients say themselves, and not to applications
                    parts.setdefault(id(self.seat_of(member, offset)), []).append((offset, offset, [name]))
        for part in parts.values():
            super().member_acknowledges(member, part)

    def time_passes(self, ms: int) -> None:
        """Let time pass from one deadline of the node to the next: what happens then is judged as of then."""
        self._settle()
        until_ms = self.server.now_ms + ms
        while (due_ms := self.broker.next_deadline_ms()) is not None and self.server.now_ms < due_ms < until_ms:
            super().time_passes(due_ms - self.server.now_ms)
        super().time_passes(until_ms - self.server.now_ms)

    def records_are_deleted(self, before_offset: int) -> None:
        """Move the log start offset; what members get of what was acquired before is judged as of before."""
        self._settle()
        acquired = self._call(self.delete_records, before_offset)
        self._glance_until(lambda: acquired <= self.got)
        unjudged, self.unjudged = self.unjudged, deque()
        for member, got in unjudged:
            if {(offset, count) for offset, _, count in got} <= acquired:
                super()._judge(self._model.delivered, member, got, EVERYTHING)
            else:
                self.unjudged.append((member, got))
        self._judge(self._model.deleted, before_offset)

    def _settle(self) -> None:
        """Judge what members get without another event."""
        give_up_s = time.monotonic() + SETTLED_S
        while self.is_any_expected() and time.monotonic() < give_up_s:
            self._call(self.glance_at_others)
        self._judge(self.is_any_expected)

    def _glance_until(self, is_all_there: Callable[[], bool]) -> None:
        """Take what consumers have got, until they have got all."""
        give_up_s = time.monotonic() + PATIENCE_S
        while not self._call(is_all_there):
            assert time.monotonic() < give_up_s
            self._call(self.glance_at_others)

    def _fetch_and_accept(self, member: str, max_records: int) -> list[int]:
        offsets = super()._fetch_and_accept(member, max_records)
        for name in self.members:
            if self._model.owned(name):  # by a fetch that has waited
                self.member_acknowledges_all(name, "ACCEPT")
        return offsets

    def _judge(self, method: Callable[..., Any], *args: Any, **named: Any) -> Any:  # noqa: ANN401 - those of *method*
        """Judge an event, and what members have got by it."""
        result = super()._judge(method, *args, **named)
        self._glance_until(lambda: not self.is_any_on_its_way())
        while self.unjudged:
            member, got = self.unjudged.popleft()
            super()._judge(self._model.delivered, member, got, EVERYTHING)
        return result
