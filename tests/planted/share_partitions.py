"""Bugs of a leader's side that are planted to see that `SharePartitionMachine` finds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from sharestate.testing.record_model.acquisition import Request
from sharestate.testing.record_model.in_flight import ModelRecord
from sharestate.testing.record_model.model import RecordModel, Write
from tests.planted import log_batches, throttling


class RollsNothingBack(RecordModel):
    """A write that fails leaves the change as it was, as if it had succeeded."""

    def _restore(self, record: ModelRecord) -> None:
        self._unlock(record)


class RollsBackToAvailable(RecordModel):
    """A write that fails makes its records available, no matter who had them."""

    def _restore(self, record: ModelRecord) -> None:
        super()._restore(record)
        if record.state == "ACQUIRED":
            record.state, record.member = "AVAILABLE", ""
            self._unlock(record)


class AnswersInOrder(RecordModel):
    """An answer is taken for that to the oldest write."""

    def _complete(self, request: Request) -> None:
        if "write" in request:
            self.held[request["write"]] = self.held.pop(min(self.held))
        super()._complete(request)


class DeliversWhatIsPending(RecordModel):
    """A released record is delivered again before its write has succeeded."""

    def _is_free(self, offset: int) -> bool:
        return self.records[offset].state == "AVAILABLE"


class PassesWhatIsPending(RecordModel):
    """The SPSO passes a terminal record before its write has succeeded."""

    def _is_durable(self, offset: int) -> bool:
        return self.records[offset].state in {"ACKNOWLEDGED", "ARCHIVED"}


class MovesTheStartWithTheWrite(RecordModel):
    """The SPSO moves when a write is issued."""

    def _issue(self, changed: list[int], *, is_final: bool) -> str:
        status = super()._issue(changed, is_final=is_final)
        self._move_start()
        return status

    def _is_durable(self, offset: int) -> bool:
        return self.records[offset].state in {"ACKNOWLEDGED", "ARCHIVED"}


class MovesTheStartAfterAFailure(RecordModel):
    """The SPSO moves although the write of what it passes has failed, and what it carried is lost."""

    def _answer(self, write: Write, answer: Any) -> str:  # noqa: ANN401 - JSON
        status = super()._answer(write, answer)
        if status == "failed" and not write.is_final:
            for offset in write.records.keys() & self.records.keys():
                self._give_up(self.records[offset])
            self._move_start()
        return status


class ExpiresWhatIsPending(RecordModel):
    """A lock that expires while a write is on its way makes its record available."""

    def _expire_one(self, offset: int) -> bool:
        self.records[offset].write = None
        return super()._expire_one(offset)


class ForgetsTheLockOfAFailedWrite(RecordModel):
    """A write that fails leaves its records with their owner for ever: their locks are gone."""

    def _restore(self, record: ModelRecord) -> None:
        super()._restore(record)
        self._unlock(record)


class RenewsAtAFailure(RecordModel):
    """A write that fails gives the owner a whole new lock."""

    def _restore(self, record: ModelRecord) -> None:
        super()._restore(record)
        if record.state == "ACQUIRED":
            self._lock([record])


class ExpiresTooEarly(RecordModel):
    """A lock expires at its deadline, and not after it."""

    def _due(self) -> list[int]:
        self.now_ms += 1
        due = super()._due()
        self.now_ms -= 1
        return due


class ExpiresOneLock(RecordModel):
    """Of locks that expire at the same time only the first one is handled."""

    def _expire(self) -> None:
        if due := self._due():
            changed = [offset for offset in due[:1] if self._expire_one(offset)]
            self._persist(changed, is_final=True)


class WritesNoExpiry(RecordModel):
    """An expired lock is not persisted."""

    def _persist(self, changed: list[int], *, is_final: bool = False) -> str:
        return "ok" if is_final else super()._persist(changed, is_final=is_final)


class UndoesAnExpiry(RecordModel):
    """An expired lock is back when its write fails."""

    def _expire_one(self, offset: int) -> bool:
        record = self.records[offset]
        before = record.state, record.count, record.member
        has_changed = super()._expire_one(offset)
        record.before = before
        return has_changed

    def _answer(self, write: Write, answer: Any) -> str:  # noqa: ANN401 - JSON
        if write.is_final and answer != "ok":
            for offset in write.records.keys() & self.records.keys():
                self._restore(self.records[offset])
        return super()._answer(write, answer)


class LogStartLeavesReleases(RecordModel):
    """The log start leaves records below it whose release is on its way, and a failed write brings them back."""

    def _log_start(self, request: Request) -> None:
        pending = [r for r in self.records.values() if r.write is not None and r.state == "AVAILABLE"]
        super()._log_start(request)
        for record in pending:
            if record.is_given_up:
                record.state, record.is_given_up = "AVAILABLE", False


class LogStartLeavesAvailable(RecordModel):
    """The log start archives nothing."""

    def _give_up(self, record: ModelRecord) -> None:
        """Do nothing."""


class LogStartTakesAcquired(RecordModel):
    """The log start archives what members have acquired."""

    def _log_start(self, request: Request) -> None:
        start = self.start
        super()._log_start(request)
        for offset, record in self.records.items():
            if start <= offset < self.start and record.state == "ACQUIRED":
                self._give_up(record)


class BringsBackWhatWasGivenUp(RecordModel):
    """A record that the log start has archived is back when the write that was on its way fails."""

    def _give_up(self, record: ModelRecord) -> None:
        super()._give_up(record)
        record.is_given_up = False


class CountsNoRedelivery(RecordModel):
    """A delivery counts only the first time."""

    def _take(self, offset: int, member: str) -> None:
        count = self.records[offset].count if offset in self.records else 1
        super()._take(offset, member)
        self.records[offset].count = max(1, count)


class CountsAtRelease(RecordModel):
    """The limit is judged with one delivery too many."""

    def _expire_one(self, offset: int) -> bool:
        limit = self.config["delivery_count_limit"]
        self.config["delivery_count_limit"] = limit + 1
        has_changed = super()._expire_one(offset)
        self.config["delivery_count_limit"] = limit
        return has_changed


class ForgetsCountsAtFailover(RecordModel):
    """A new leader counts deliveries from 0."""

    def _load(self, answer: Any) -> str:  # noqa: ANN401 - JSON
        status = super()._load(answer)
        for record in self.records.values():
            record.count = 0
        return status


class AcquiresUnknownLast(RecordModel):
    """A new leader does not look for records that were acquired and never persisted."""

    def _load(self, answer: Any) -> str:  # noqa: ANN401 - JSON
        status = super()._load(answer)
        self.gap = None
        return status


class ReleasesEverybody(RecordModel):
    """A closed session releases what other members have too."""

    def _release(self, request: Request) -> str:
        for record in self.records.values():
            if record.member:
                record.member = request["member"]
        return super()._release(request)


class ReleasesTerminal(RecordModel):
    """A record that is released at its limit is not archived."""

    def _begin(self, record: ModelRecord, state: str) -> None:
        super()._begin(record, state)
        record.state = state


class IgnoresTheWindow(RecordModel):
    """There is always room for another record in flight."""

    def _in_flight(self) -> int:
        return 0


class CountsOnlyRecords(RecordModel):
    """Records in flight are counted one by one: those that the SPSO waits for behind a gap are forgotten."""

    def _in_flight(self) -> int:
        return sum(record.state == "ACQUIRED" for record in self.records.values())


class DeliversFailingTogether(RecordModel):
    """Records that keep failing are delivered together with others."""

    def _threshold(self) -> int:
        return 10**6


class WritesTheNewStart(RecordModel):
    """A write carries the SPSO that it will lead to."""

    def _issue(self, changed: list[int], *, is_final: bool) -> str:
        start = self.start
        if changed[0] == start and self.records[start].state in {"ACKNOWLEDGED", "ARCHIVED"}:
            self.start = start + 1
        status = super()._issue(changed, is_final=is_final)
        self.start = max(start, self.start - 1) if status == "pending" else self.start
        return status


class FollowsTheLogStartBack(RecordModel):
    """The SPSO follows the log start wherever it is said to be, also back."""

    def _log_start(self, request: Request) -> None:
        super()._log_start(request)
        self.start = request["offset"]


class KeepsItsFirstSettings(RecordModel):
    """A delivery limit that changes while the share partition is in use is ignored."""

    def _configure(self, request: Request) -> None:
        limit = self.config["delivery_count_limit"]
        super()._configure(request)
        self.config["delivery_count_limit"] = limit


class CountsCompleteBelowTheStart(RecordModel):
    """The delivery complete count has what is terminal below the SPSO, too."""

    def complete(self) -> int:
        """Count all of them."""
        return sum(record.state in {"ACKNOWLEDGED", "ARCHIVED"} for record in self.records.values())


class RoundsDeadlines(RecordModel):
    """Locks expire at whole 20 ms, together."""

    def _lock(self, records: Iterable[ModelRecord]) -> None:
        chosen = list(records)
        super()._lock(chosen)
        for record in chosen:
            record.deadline_ms = -(-(record.deadline_ms or 0) // 20) * 20


class ExpiresInOrderOfOffsets(RecordModel):
    """Locks that are over expire in the order of their offsets, whenever they were taken."""

    def _due(self) -> list[int]:
        return sorted(super()._due())


class TakesWhatIsBeyondTheEnd(RecordModel):
    """Of an acknowledgement that reaches beyond what is in flight, the part that is in flight is taken."""

    def _begin_range(self, member: str, first: int, last: int, types: list[int], changed: list[int]) -> str:
        if len(self._from_floor(first, last)) > 1:
            last = min(last, max(self.records))
        return super()._begin_range(member, first, last, types, changed)


BUGS: Final[dict[str, type[RecordModel]]] = {
    "failed write not rolled back": RollsNothingBack,
    "failed write releases": RollsBackToAvailable,
    "answers taken in order": AnswersInOrder,
    "pending record delivered": DeliversWhatIsPending,
    "pending record passed": PassesWhatIsPending,
    "start moves with the write": MovesTheStartWithTheWrite,
    "failed write loses its records": MovesTheStartAfterAFailure,
    "expiry during a write": ExpiresWhatIsPending,
    "lock lost by a failed write": ForgetsTheLockOfAFailedWrite,
    "lock renewed by a failed write": RenewsAtAFailure,
    "expiry at the deadline": ExpiresTooEarly,
    "one expiry at a time": ExpiresOneLock,
    "expiry not written": WritesNoExpiry,
    "expiry undone by a failed write": UndoesAnExpiry,
    "log start and pending release": LogStartLeavesReleases,
    "log start archives nothing": LogStartLeavesAvailable,
    "log start archives acquired": LogStartTakesAcquired,
    "failed write and log start": BringsBackWhatWasGivenUp,
    "redelivery not counted": CountsNoRedelivery,
    "limit forgotten by a late lock": CountsAtRelease,
    "counts lost by a new leader": ForgetsCountsAtFailover,
    "unpersisted records forgotten": AcquiresUnknownLast,
    "session closed for all": ReleasesEverybody,
    "limit forgotten by a release": ReleasesTerminal,
    "in-flight bound ignored": IgnoresTheWindow,
    "in-flight bound counts owners": CountsOnlyRecords,
    "failing records not throttled": DeliversFailingTogether,
    "new start written": WritesTheNewStart,
    "log start followed back": FollowsTheLogStartBack,
    "new delivery limit ignored": KeepsItsFirstSettings,
    "complete count below the start": CountsCompleteBelowTheStart,
    "deadlines rounded": RoundsDeadlines,
    "locks expire by offset": ExpiresInOrderOfOffsets,
    "acknowledged beyond the end": TakesWhatIsBeyondTheEnd,
    **log_batches.BUGS,
    **throttling.BUGS,
}
"""All of them by name; the docstring of each says what it does."""
