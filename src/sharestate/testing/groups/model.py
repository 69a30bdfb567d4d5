"""
What happens to a share group as its clients see it, and how it is judged.

No code of the library is used here either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, NoReturn, Self

from sharestate.audit.guarantees import Guarantee, GuaranteeBrokenError
from sharestate.error_codes import ErrorCode
from sharestate.testing.groups.knowledge import ClientKnowledge
from sharestate.testing.groups.known_records import (
    ACQUIRED,
    AVAILABLE,
    RECORD,
    TERMINAL,
    Content,
    GroupHappening,
    KnownRecord,
)

MOST_OTHERS: Final = 8
"""How much is shown of what happened last to other records. [events]"""


class Delivery(NamedTuple):
    """
    A range of a response to a fetch; an AcquiredRecords serves as well.

    Attributes:
        first_offset: Its first offset.
        last_offset: Its last offset, included.
        delivery_count: The delivery count of its records, this delivery included; None if members do not get it.
    """

    first_offset: int
    last_offset: int
    delivery_count: int | None = None


class ClientModel(ClientKnowledge):
    """
    What clients know, how it changes, and what they may expect: see ``ClientKnowledge`` for the arguments.

    It takes what was sent to an implementation and what came back, and raises GuaranteeBrokenError if that cannot be.
    """

    # ---- the log

    def produced(self, offsets: Iterable[int], producer: str = "") -> None:
        """Note a batch of records; with a producer it is part of its transaction."""
        offsets = list(offsets)
        if not offsets or offsets != sorted(set(offsets)) or offsets[0] < self.log_end:
            message = f"produce() returned {offsets}: expected ascending offsets from {self.log_end} on"
            raise ValueError(message)
        batch = offsets[0], offsets[-1]
        self._happens(f"{batch[0]}-{batch[1]} are produced")
        where = f"produced in the batch {batch[0]}-{batch[1]}" + (
            f", in a transaction of {producer}" if producer else ""
        )
        for offset in offsets:
            self._add(KnownRecord(offset, RECORD, batch, producer), where)
        self.largest_batch = max(self.largest_batch, batch[1] - batch[0] + 1)

    def transaction_ended(self, producer: str, marker: int | None, *, is_committed: bool) -> None:
        """Note that a transaction was committed or aborted; its marker is the next offset unless it is given."""
        how = "committed" if is_committed else "aborted"
        self._happens(f"the transaction of {producer} is {how}")
        for offset, known in self.records.items():
            if known.producer == producer and not known.is_aborted:
                record = self._changing(offset)
                record.producer = "" if is_committed else producer
                record.is_aborted = not is_committed
                self._note(record, f"the transaction was {how}")
        offset = self.log_end if marker is None else marker
        self._add(KnownRecord(offset, Content.CONTROL, (offset, offset)), f"a marker: the transaction was {how}")

    def deleted(self, log_start: int) -> None:
        """Note that the log start offset has moved."""
        self._happens(f"records are deleted: the log starts at {log_start}")
        for offset in self.records:
            if self.log_start <= offset < log_start:
                self._note(self._changing(offset), f"deleted: the log starts at {log_start}")
        self.log_start = log_start

    # ---- members

    def delivered(self, member: str, deliveries: Iterable[Delivery], max_records: int) -> list[int]:
        """
        Judge a response to a fetch, and note it.

        Returns:
            The offsets, in the order of the response.

        Raises:
            GuaranteeBrokenError: It is not what *member* may get.
        """
        offsets: list[int] = []
        deliveries = list(deliveries)
        self._happens(f"{member} fetches, and gets {_ranges(deliveries)}")
        acquired = [record for record in self.records.values() if record.state is ACQUIRED]
        locks = sum(map(self._takes_a_lock, acquired))
        for first, last, count in deliveries:
            for offset in range(first, last + 1):
                if offset in offsets:
                    self._broken(Guarantee.NO_REPEATS, offset, f"{member} gets offset {offset} twice in one response")
                record = self._existing(member, offset)
                self._expect_room(member, record, locks)
                self._deliver(member, record, count)
                locks += self._takes_a_lock(record)
                offsets.append(offset)
        if self.is_record_limit and len(offsets) > max_records:
            what = f"{member} asks for {max_records} records and gets {len(offsets)}"
            self._break(Guarantee.RECORD_LIMIT, what)
        most = self.settings.max_record_locks + self.largest_batch - 1
        if locks > most:
            what = (
                f"after a fetch of {max_records} {locks} records are acquired; max_record_locks is "
                f"{self.settings.max_record_locks}, and the largest batch has {self.largest_batch}"
            )
            self._break(Guarantee.RECORD_LOCKS, what)
        return offsets

    def acknowledged(self, member: str, types: Mapping[int, str], code: int) -> None:
        """
        Judge the answer to an acknowledgement, and note it.

        Args:
            member: The member that has sent it.
            types: The name of the acknowledge type of each offset.
            code: The error code of the answer; 0 for none.

        Raises:
            GuaranteeBrokenError: It should have been refused, or should not, or with another code.
        """
        self._happens(f"{member} acknowledges {_in_short(types)}: {'ok' if code == 0 else f'error code {code}'}")
        verdicts = self.verdicts(member, types)
        refused = [offset for offset, may in verdicts.items() if may is False]
        what = f"{member} acknowledges {_in_short(types)}"
        if code == ErrorCode.NONE and refused:
            what = f"{what}, and is not refused, though {self._why_not(member, refused[0])}"
            self._broken(Guarantee.ONLY_OWNER_MAY_ACKNOWLEDGE, refused[0], what)
        elif code == ErrorCode.NONE:
            for offset, type_ in types.items():
                if self._may_be_owner(member, offset) and offset >= self.log_start:
                    self._acknowledge(self._changing(offset), type_)
                elif self._may_be_owner(member, offset):
                    self._perhaps_acknowledged(self._changing(offset), type_)
        elif self.writes_fail and code not in {ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST}:
            self._not_written(member, types, code)
        elif all(verdicts.values()):
            what = f"{what}, which it owns, and is refused with error code {code}"
            self._broken(Guarantee.OWNER_MAY_ACKNOWLEDGE, next(iter(types)), what)
        elif not self._is_refusal(code, verdicts):
            what = f"{what}, and is refused with error code {code}"
            self._broken(Guarantee.REFUSAL_CODE, next(iter(types)), what)
        else:
            self._refused(member, types)

    def left(self, member: str) -> None:
        """Note that the share session of *member* was closed: what it owned is available again."""
        self._happens(f"{member} closes its session")
        for offset, known in self.records.items():
            if known.state is ACQUIRED and known.owner == member:
                record = self._changing(offset)
                if self.writes_fail:
                    record.earliest_ms = self.now_ms
                    self._note(record, f"the session of {member} was closed, and perhaps it is released: writes fail")
                else:
                    self._release(record, f"the session of {member} was closed")

    # ---- time and leaders

    def time_passed(self, ms: int) -> None:
        """Note that time has passed; the locks whose deadline has surely passed have expired."""
        self._happens(f"{ms} ms pass")
        self.now_ms += ms
        for offset, known in self.records.items():
            if known.state is ACQUIRED and self.now_ms > known.latest_ms:
                event = f"the lock of {known.owner} has expired, at {known.latest_ms} ms at the latest"
                self._release(self._changing(offset), event)

    def failed_over(self) -> None:
        """Note that another leader has taken over: it knows what was persisted, and nothing of what is acquired."""
        self._happens("another leader takes over")
        self.leader += 1
        for offset, known in self.records.items():
            if known.leader >= 0 and (known.state is not TERMINAL or not known.is_stored):
                record = self._changing(offset)
                record.state = AVAILABLE
                record.owner = ""
                record.least = record.persisted
                record.may_be_terminal = record.may_be_stored
                self._note(
                    record, f"another leader has taken over; it counts {record.least} to {record.most} deliveries"
                )

    def writes_changed(self, *, is_failing: bool) -> None:
        """Note that from now on the state cannot be persisted, or can be again."""
        self._happens("writes fail from now on" if is_failing else "writes succeed again")
        self.writes_fail = is_failing
        for offset, known in self.records.items():
            if not is_failing and known.state is ACQUIRED and not self._is_acquired(known):
                self._changing(offset).may_be_unwritten = True

    # ---- what overlaps

    def happened_at_once(self, judgements: Sequence[Callable[[ClientModel], object]]) -> None:
        """
        Judge events that have overlapped, and note them: they have to be right in some order, one after the other.

        Args:
            judgements: The events, as functions that note one in the knowledge that they are given; that time passes
                comes first, since a lock that begins afterwards lasts.

        Raises:
            GuaranteeBrokenError: They are not; it says what is wrong in the order in which they stand.
        """
        self._happens("what comes next has overlapped; it is right in no order")
        before = self.copy()
        before.happenings.pop()
        found = [*before.after_each_order(judgements)]
        if not found:
            for judge in judgements:
                judge(self)
        found[0].leave_open(self, found)
        vars(self).update(vars(found[0]))

    def after_each_order(self, judgements: Sequence[Callable[[ClientModel], object]]) -> Iterator[Self]:
        """
        Yield what is known after each order of *judgements* that is right; this knowledge becomes the last of them.

        How several orders begin is judged once.
        """
        if not judgements:
            yield self
        for number, judge in enumerate(judgements, 1):
            known = self.copy() if number < len(judgements) else self
            with suppress(GuaranteeBrokenError):
                judge(known)
                yield from known.after_each_order([*judgements[: number - 1], *judgements[number:]])

    def leave_open(self, before: ClientKnowledge, found: Sequence[ClientKnowledge]) -> None:
        """
        Let a record be acquired if it is in any of the orders that are right, and free if it is in another one.

        Locks that were taken or renewed while time has passed begin as in any of them.
        """
        passed_ms = self.now_ms - before.now_ms if self.clock_tolerance_ms else 0  # where time is real, at any moment
        for offset in self.records:
            others = [known.records[offset] for known in found if offset in known.records]
            was = before.records.get(offset)
            if all(other is was for other in others):
                continue
            acquired = [other for other in others if other.state is ACQUIRED]
            record = self.records[offset] = [*acquired, *others][0].copy()
            if record.locks != (0 if was is None else was.locks):
                locked = [other for other in others if other.locks == record.locks]
                record.earliest_ms = min(other.earliest_ms for other in locked) - passed_ms
                record.latest_ms = max(other.latest_ms for other in locked)
            if 0 < len(acquired) < len(others):
                record.earliest_ms = min(record.earliest_ms, self.now_ms)

    # ---- the end

    def expect_nothing_left(self) -> None:
        """
        Judge what was never delivered, after a member has accepted all that it got.

        Raises:
            GuaranteeBrokenError: A record was lost.
        """
        for record in self.left_over():
            state = "acquired and never delivered again" if record.state is ACQUIRED else "not delivered"
            what = f"a member has accepted all that it got until it got nothing more, and {record.offset} is {state}"
            self._broken(Guarantee.NOTHING_LOST, record.offset, what)

    def expect_delivered(self, member: str, waiting: Iterable[int]) -> None:
        """
        Judge what *member*, which has fetched until it got nothing more, should have got.

        Raises:
            GuaranteeBrokenError: It did not get one of *waiting*.
        """
        for offset in waiting:
            if self.records[offset].state is AVAILABLE:
                what = f"{member} has fetched until it got nothing more, and {offset} is available and not delivered"
                self._broken(Guarantee.NOTHING_LOST, offset, what)

    def expect_end(self, deliveries: int) -> NoReturn:
        """
        Judge a member that has accepted all that it got, and still gets more.

        Raises:
            GuaranteeBrokenError: Always.
        """
        what = f"a member has accepted all that it got in {deliveries} fetches, and still gets more"
        self._break(Guarantee.DELIVERY_ENDS, what)

    # ---- what changes

    def _add(self, record: KnownRecord, event: str) -> None:
        self.records[record.offset] = record
        self.log_end = record.offset + 1
        self._note(record, event)

    def _existing(self, member: str, offset: int) -> KnownRecord:
        record = self.records.get(offset)
        if record is not None and (record.content is RECORD or self.delivers_ranges):
            return self._changing(offset)
        if record is not None and record.content is Content.CONTROL:
            self._broken(Guarantee.NO_CONTROL_RECORDS, offset, f"{member} gets the transaction marker at {offset}")
        if offset >= self.log_end or not self.delivers_ranges:
            what = f"{member} gets offset {offset}, which was never produced; the log ends before {self.log_end}"
            self._broken(Guarantee.ONLY_PRODUCED, offset, what)
        self.records[offset] = KnownRecord(offset, Content.HOLE, (offset, offset))
        return self.records[offset]

    def _deliver(self, member: str, record: KnownRecord, count: int | None) -> None:
        self._expect_deliverable(member, record)
        if record.state is ACQUIRED:  # it may have expired, and so it has
            self._release(record, f"the lock of {record.owner} must have expired, since {member} gets the record")
        if record.state is TERMINAL and record.why is not None:
            what = f"{member} gets offset {record.offset} again" + (
                "" if count is None else f", with delivery count {count}"
            )
            self._broken(record.why, record.offset, what)
        if record.content is RECORD:
            self._count(member, record, count)
        record.state = ACQUIRED
        record.owner = member
        record.leader = self.leader
        record.may_be_terminal = False
        self._lock(record)
        event = f"delivered to {member}, delivery count {record.most}"
        self._note(record, f"{event}; its lock expires after {self.now_ms + self.settings.lock_duration_ms} ms")

    def _expect_room(self, member: str, record: KnownRecord, locks: int) -> None:
        """Judge that at the limit nothing new is acquired but the rest of a log batch; what is in flight may be."""
        if locks < self.settings.max_record_locks or record.content is not RECORD:
            return
        batch = range(record.batch[0], record.batch[1] + 1)
        if not any(self.records[offset].leader == self.leader for offset in batch if offset in self.records):
            what = (
                f"{member} gets offset {record.offset}, with which a log batch begins, while {locks} records are "
                f"acquired; max_record_locks is {self.settings.max_record_locks}"
            )
            self._broken(Guarantee.RECORD_LOCKS, record.offset, what)

    def _expect_deliverable(self, member: str, record: KnownRecord) -> None:
        offset = record.offset
        if self._is_acquired(record):
            what = f"{member} gets offset {offset}, which {record.owner} owns until {record.earliest_ms} ms"
            self._broken(Guarantee.ONE_OWNER, offset, what)
        elif record.batch[1] < self.log_start:  # the log keeps the batch in which it starts as a whole
            what = f"{member} gets offset {offset}; the log starts at {self.log_start}"
            self._broken(Guarantee.NOTHING_DELETED, offset, what)
        elif record.producer and self._is_read_committed:
            how = "aborted" if record.is_aborted else "open"
            what = f"{member} gets offset {offset}, whose transaction is {how}"
            self._broken(Guarantee.ONLY_COMMITTED, offset, what)

    def _count(self, member: str, record: KnownRecord, count: int | None) -> None:
        least, most = record.least + 1, record.most + 1
        limit = self.settings.delivery_count_limit
        if least > limit or (count is not None and count > limit):
            what = f"{member} gets offset {record.offset} for the {least if count is None else count}. time; "
            self._broken(Guarantee.DELIVERY_LIMIT, record.offset, f"{what}the limit is {limit}")
        elif count is None:
            record.least, record.most = least, most
        elif least <= count <= most:
            record.least = record.most = count
        else:
            expected = f"{least}" if least == most else f"{least} to {most}"
            what = f"{member} gets offset {record.offset} with delivery count {count}; expected {expected}"
            self._broken(Guarantee.DELIVERY_COUNT, record.offset, what)

    def _acknowledge(self, record: KnownRecord, type_: str) -> None:
        if type_ == "ACCEPT":
            self._end(record, Guarantee.ACCEPTED_IS_FINAL, f"accepted by {record.owner}")
        elif type_ in {"REJECT", "GAP"}:
            self._end(record, Guarantee.REJECTED_IS_FINAL, f"rejected by {record.owner}")
        elif type_ == "RELEASE":
            self._release(record, f"released by {record.owner}", is_persisted=True)
        elif type_ == "RENEW":
            renewed_ms = record.latest_ms
            self._lock(record)
            record.renewed_ms = renewed_ms
            self._note(record, f"renewed by {record.owner}")
        else:
            message = f"unknown acknowledge type {type_}"
            raise ValueError(message)

    def _perhaps_acknowledged(self, record: KnownRecord, type_: str) -> None:
        """Note an acknowledgement below the log start offset: it does what it says, or nothing."""
        record.earliest_ms = self.now_ms
        if type_ == "RENEW":
            record.latest_ms = self._deadline_ms + self.clock_tolerance_ms
        record.may_be_unwritten = True
        self._note(record, f"{type_} by {record.owner}, below the log start offset: it succeeds, and may do nothing")

    def _refused(self, member: str, types: Mapping[int, str]) -> None:
        """Note that nothing has changed; but a broker does not take a renewal back if a later part is refused."""
        for offset, type_ in types.items():
            if type_ == "RENEW" and self._may_be_owner(member, offset) and self.settings.renew_acknowledge_enable:
                record = self._changing(offset)
                record.latest_ms = self._deadline_ms + self.clock_tolerance_ms
                self._note(record, f"perhaps renewed by {member}: its acknowledgement was refused")

    def _not_written(self, member: str, types: Mapping[int, str], code: int) -> None:
        """Note that a write has failed: the acknowledgement is rolled back, or perhaps only the answer was lost."""
        for offset in types:
            if self._may_be_owner(member, offset):
                record = self._changing(offset)
                record.may_be_stored = True
                self._note(record, f"not acknowledged by {member}: error code {code}, writes fail")
        self._refused(member, types)

    def _lock(self, record: KnownRecord) -> None:
        record.earliest_ms = self._deadline_ms - self.clock_tolerance_ms
        record.latest_ms = self._deadline_ms + self.clock_tolerance_ms
        record.renewed_ms = 0
        record.locks += 1
        record.may_be_unwritten = False

    def _release(self, record: KnownRecord, event: str, *, is_persisted: bool = False) -> None:
        """Make a record available again, or terminal if its delivery count is at the limit."""
        is_persisted = is_persisted or not (self.writes_fail or record.may_be_unwritten)
        record.may_be_unwritten = not is_persisted
        if is_persisted:
            record.persisted = record.least
        if record.least >= self.settings.delivery_count_limit:
            self._end(record, Guarantee.DELIVERY_LIMIT, f"{event}, after its last delivery")
            record.is_stored = is_persisted
        else:
            record.state = AVAILABLE
            record.owner = ""
            self._note(record, event)

    def _end(self, record: KnownRecord, why: Guarantee, event: str) -> None:
        record.state = TERMINAL
        record.is_stored = True
        record.why = why
        self._note(record, event)
        record.owner = ""

    def _happens(self, what: str) -> None:
        self.happenings.append(GroupHappening(f"at {self.now_ms} ms: {what}", set()))

    def _note(self, record: KnownRecord, event: str) -> None:
        record.life.append(f"at {self.now_ms} ms: {event}")
        self.happenings[-1].offsets.add(record.offset)

    def _broken(self, guarantee: Guarantee, offset: int, what: str) -> NoReturn:
        record = self.records.get(offset)
        self._break(guarantee, what, offset, () if record is None else record.life)

    def _break(self, guarantee: Guarantee, what: str, offset: int | None = None, life: Sequence[str] = ()) -> NoReturn:
        others = [each.what for each in self.happenings if offset is None or offset not in each.offsets]
        raise GuaranteeBrokenError(guarantee, what, offset, life, others[-MOST_OTHERS:])


def _ranges(deliveries: Iterable[Delivery]) -> str:
    return ", ".join(f"{first}-{last}" for first, last, _ in deliveries) or "nothing"


def _in_short(types: Mapping[int, str]) -> str:
    return ", ".join(f"{offset} {type_}" for offset, type_ in types.items())
