"""Planted bugs of a leader's side that have to do with batches, holes, transactions or the dead-letter queue."""

from __future__ import annotations

from typing import Any, Final

from attrs import Factory, define

from sharestate.testing.record_model.acquisition import Fetch, Request
from sharestate.testing.record_model.in_flight import ModelBatch, ModelRecord
from sharestate.testing.record_model.model import STATES, Letter, RecordModel, Write


class LosesTheRestOfABatch(RecordModel):
    """A fetch that finds a part of an available batch loses the rest of it."""

    def _take_again(self, fetch: Fetch, batch: ModelBatch, room: int, *, is_throttled: bool) -> list[int]:
        taken = super()._take_again(fetch, batch, room, is_throttled=is_throttled)
        for offset in batch.offsets if taken else ():
            if not fetch.first <= offset <= fetch.last:
                self.records[offset].state = "ACKNOWLEDGED"
        return taken


class TakesWholeBatches(RecordModel):
    """A fetch that finds a part of an available batch delivers all of it."""

    def _take_again(self, fetch: Fetch, batch: ModelBatch, room: int, *, is_throttled: bool) -> list[int]:
        first, last = min(fetch.first, batch.first), max(fetch.last, batch.last)
        wider = Fetch(fetch.member, fetch.log, first, last, fetch.room, fetch.batch_size, fetch.is_strict)
        return super()._take_again(wider, batch, room, is_throttled=is_throttled)


class TakesWhatAnotherHas(RecordModel):
    """A fetch with other batches than those in flight delivers what another member has."""

    def _split(self, batch: ModelBatch) -> None:
        was_split = batch.is_split
        super()._split(batch)
        for offset in batch.offsets if not was_split else ():
            if self.records[offset].state == "ACQUIRED":
                self.records[offset].state, self.records[offset].member = "AVAILABLE", ""


class RenewsAtASplit(RecordModel):
    """A batch that is split gives its records whole new locks."""

    def _split(self, batch: ModelBatch) -> None:
        if not batch.is_split:
            for offset in batch.offsets:
                if self.records[offset].deadline_ms is not None:
                    self._lock([self.records[offset]])
        super()._split(batch)


class AcquiresHoles(RecordModel):
    """Offsets between batches in flight, which the log does not have, are acquired when it goes on."""

    def _acquire(self, request: Request) -> list[tuple[int, int]]:
        if self.records and self.gap is None:
            self.gap = (self.start, self.end)
        return super()._acquire(request)


class WaitsAtAHole(RecordModel):
    """The SPSO waits for offsets that the log does not have."""

    def _skip_natural_gaps(self, first: int) -> None:
        """Do nothing."""


class KeepsWhatWasCompacted(RecordModel):
    """Records that the log has lost stay available, and are asked for again and again."""

    def _acquire(self, request: Request) -> list[tuple[int, int]]:
        first = request["batches"][0][0] if request["batches"] else 0
        return super()._acquire({**request, "fetch_offset": max(request["fetch_offset"], first)})


class DeliversAborted(RecordModel):
    """Records of aborted transactions are delivered."""

    def _archive_aborted(self, log: list[Any], aborted: Any) -> bool:  # noqa: ANN401, ARG002 - JSON
        """Do nothing."""
        return False


class AbortsForEver(RecordModel):
    """A marker does not end a transaction: what its producer sends next is taken for aborted, too."""

    def _archive_aborted(self, log: list[Any], aborted: Any) -> bool:  # noqa: ANN401 - JSON
        return super()._archive_aborted([batch for batch in log if len(batch) < 3 or not batch[2]["control"]], aborted)


class AbortsAllProducers(RecordModel):
    """A transaction that was aborted takes those of other producers with it."""

    def _archive_aborted(self, log: list[Any], aborted: Any) -> bool:  # noqa: ANN401 - JSON
        producers = {batch[2]["producer_id"] for batch in log if batch[2:]}
        everybody = [(producer, first) for _, first in aborted for producer in producers]
        return super()._archive_aborted(log, everybody)


class AcknowledgesWholeBatches(RecordModel):
    """An acknowledgement of a part of a batch counts for all of it."""

    def _begin_records(self, member: str, kinds: dict[int, int], changed: list[int]) -> str:
        refusal = super()._begin_records(member, kinds, changed)
        rest = {
            other: kinds[offset]
            for offset in kinds
            for other in self.records[offset].batch.offsets
            if self.records[other].state == "ACQUIRED" and self.records[other].member == member
        }
        return refusal or super()._begin_records(member, rest, changed)


class TakesTheFirstType(RecordModel):
    """Of the types of several records, the first one counts for all."""

    def _begin_range(self, member: str, first: int, last: int, types: list[int], changed: list[int]) -> str:
        return super()._begin_range(member, first, last, types[:1], changed)


class ExpiresOneRecord(RecordModel):
    """When the lock of a whole batch expires, only its first record is released."""

    def _expire_one(self, offset: int) -> bool:
        record = self.records[offset]
        if not record.batch.is_split and offset > record.batch.first:
            record.lock_is_over, record.deadline_ms = True, None
            return False
        return super()._expire_one(offset)


class IgnoresTheRecordLimit(RecordModel):
    """Mode record_limit rounds up to batches of the log, as the other one does."""

    def _acquire(self, request: Request) -> list[tuple[int, int]]:
        return super()._acquire({**request, "mode": "batch_optimized"})


class CountsTheRest(RecordModel):
    """What is left of a batch in mode record_limit counts as delivered."""

    def _add(self, member: str, batch: ModelBatch, count: int) -> None:
        super()._add(member, batch, count)
        for offset in batch.offsets[count:]:
            self.records[offset].count = 1


class LogStartTakesWholeBatches(RecordModel):
    """The log start archives the whole batch that it moves into."""

    def _log_start(self, request: Request) -> None:
        super()._log_start(request)
        record = self.records.get(self.start)
        for offset in record.batch.offsets if record else ():
            if self.records[offset].state == "AVAILABLE":
                self._give_up(self.records[offset])


class ForgetsDeadLettersAfterAFailure(RecordModel):
    """When the dead-letter queue fails, its records stay on their way to it for ever."""

    def _complete(self, request: Request) -> None:
        if "dlq" in request and request["answer"] != "ok":
            self.held_letters.pop(request["dlq"])
        else:
            super()._complete(request)


class SendsDeadLettersAtOnce(RecordModel):
    """Records go to the dead-letter queue before it is persisted that they do."""

    def _issue(self, changed: list[int], *, is_final: bool) -> str:
        status = super()._issue(changed, is_final=is_final)
        for letter in self.writes[-1].letters:
            self._hand_over(letter)
        self.writes[-1].letters = []
        return status


class SendsWhatFailed(RecordModel):
    """Records go to the dead-letter queue although the write that says so has failed."""

    def _answer(self, write: Write, answer: Any) -> str:  # noqa: ANN401 - JSON
        status = super()._answer(write, answer)
        for letter in write.letters if status == "failed" and not write.is_final else ():
            self._hand_over(letter)
        return status


class ResumesNothing(RecordModel):
    """A new leader leaves records on their way to the dead-letter queue."""

    def _load(self, answer: Any) -> str:  # noqa: ANN401 - JSON
        status = super()._load(answer)
        self.letters, self.held_letters, self.handed_over = [], {}, 0
        return status


class SkipsTheQueue(RecordModel):
    """What was delivered too often is archived without going to the dead-letter queue."""

    def _put(self, record: ModelRecord, state: str) -> None:
        super()._put(record, state)
        if record.state == "ARCHIVING":
            record.state = "ARCHIVED"


@define
class AppliesAnswersTwice(RecordModel):
    """A second answer that a write has succeeded is applied once more."""

    answered: dict[int, Write] = Factory(dict)

    def _complete(self, request: Request) -> None:
        number = request.get("write")
        if isinstance(number, int) and number in self.answered:
            for offset, (state, count) in self.answered[number].records.items():
                if offset in self.records and request["answer"] == "ok":
                    self.records[offset] = ModelRecord(STATES[state], count, self.records[offset].batch)
            self._move_start()
            return
        if isinstance(number, int):
            self.answered[number] = self.held[number]
        super()._complete(request)
        if isinstance(number, int):
            self.held[number] = self.answered[number]


@define
class ArchivesTwice(RecordModel):
    """A second answer of the dead-letter queue writes once more that its records are archived."""

    answered: dict[int, Letter] = Factory(dict)

    def _complete(self, request: Request) -> None:
        number = request.get("dlq")
        if number is None:
            super()._complete(request)
            return
        letter = self.held_letters[number]
        if number in self.answered and letter.first not in self.records:
            return
        super()._complete(request)
        self.answered[number] = self.held_letters[number] = letter


class PassesOneGap(RecordModel):
    """The SPSO passes one natural gap for a fetch, and waits before the next one."""

    def _skip_natural_gaps(self, first: int) -> None:
        floor = self._floor(self.start)
        if self.records and self.start < first and (floor is None or floor.last < self.start):
            super()._skip_natural_gaps(min([first, *(offset for offset in self.records if offset > self.start)]))


class WaitsAfterTheLogStart(RecordModel):
    """What the log start has archived is not passed: a full window stalls."""

    def _pass_archived(self, *bugs: str) -> None:
        if "F4" not in bugs:
            super()._pass_archived(*bugs)


class WaitsAfterACompaction(RecordModel):
    """What was compacted away is not passed: a full window stalls."""

    def _pass_archived(self, *bugs: str) -> None:
        if "F6" not in bugs:
            super()._pass_archived(*bugs)


class WaitsAfterAnAbort(RecordModel):
    """What is of aborted transactions is not passed: a full window stalls."""

    def _pass_archived(self, *bugs: str) -> None:
        if "F7" not in bugs:
            super()._pass_archived(*bugs)


class LooksForAGapBelowTheStart(RecordModel):
    """When the log start moves into a gap, the next fetch still begins where the gap did."""

    def _log_start(self, request: Request) -> None:
        gap = self.gap
        super()._log_start(request)
        self.gap = gap


class HalvesNothing(RecordModel):
    """A batch that keeps failing is delivered as a whole until its last delivery."""

    def _choose(self, batch: ModelBatch, offsets: list[int], room: int | None) -> list[int]:
        return super()._choose(ModelBatch(batch.first, batch.last + len(batch.offsets)), offsets, room)


class MixesLastDeliveries(RecordModel):
    """A record's last delivery brings the next records of its batch, too."""

    def _choose(self, batch: ModelBatch, offsets: list[int], room: int | None) -> list[int]:
        taken = super()._choose(batch, offsets, room)
        following = taken[-1] + 1 if taken else -1
        if len(taken) == 1 and following in offsets and self._is_free(following):
            taken.append(following)
        return taken


BUGS: Final[dict[str, type[RecordModel]]] = {
    "rest of a batch lost": LosesTheRestOfABatch,
    "rest of a batch delivered": TakesWholeBatches,
    "split batch released": TakesWhatAnotherHas,
    "split batch renewed": RenewsAtASplit,
    "hole acquired": AcquiresHoles,
    "start waits at a hole": WaitsAtAHole,
    "compacted record available": KeepsWhatWasCompacted,
    "aborted record delivered": DeliversAborted,
    "marker ends nothing": AbortsForEver,
    "abort for all producers": AbortsAllProducers,
    "part acknowledges all": AcknowledgesWholeBatches,
    "first type for all records": TakesTheFirstType,
    "one record of a batch expires": ExpiresOneRecord,
    "record limit rounded up": IgnoresTheRecordLimit,
    "rest counted as delivered": CountsTheRest,
    "one gap passed": PassesOneGap,
    "archived by the log start, not passed": WaitsAfterTheLogStart,
    "compacted record not passed": WaitsAfterACompaction,
    "aborted record not passed": WaitsAfterAnAbort,
    "gap below the log start": LooksForAGapBelowTheStart,
    "batch not halved": HalvesNothing,
    "last delivery with others": MixesLastDeliveries,
    "log start takes the whole batch": LogStartTakesWholeBatches,
    "dead letter forgotten after a failure": ForgetsDeadLettersAfterAFailure,
    "dead letter sent too early": SendsDeadLettersAtOnce,
    "dead letter of a failed write": SendsWhatFailed,
    "dead letter not resumed": ResumesNothing,
    "dead-letter queue left out": SkipsTheQueue,
    "write answered twice": AppliesAnswersTwice,
    "dead letter answered twice": ArchivesTwice,
}
"""All of them by name; the docstring of each says what it does."""
