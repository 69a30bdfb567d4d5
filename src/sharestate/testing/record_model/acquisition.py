"""How members acquire, as a part of the model of single records: written without any code of the library's."""

from __future__ import annotations

from typing import Any, Final

from attrs import define, frozen

from sharestate.testing.record_model.in_flight import ModelBatch, ModelRecord, RecordsInFlight

Request = dict[str, Any]
"""A request of the line protocol."""

NO_PRODUCER: Final = -1


@frozen
class Fetch:
    """
    What a member may take of a fetch.

    Attributes:
        member: Who acquires.
        log: The batches of the log: first offset, last offset, and perhaps attributes.
        first: The first offset that was fetched.
        last: The last offset that may be acquired.
        room: How many records may be. [records]
        batch_size: How large a batch has to be to be cut off. [records]
        is_strict: Whether no more than *room* may be acquired; else that is rounded up to batches of the log.
    """

    member: str
    log: list[Any]
    first: int
    last: int
    room: int
    batch_size: int
    is_strict: bool


@define
class RecordAcquisition(RecordsInFlight):
    """The acquisition of records; each method says what happens, in the order in which it does."""

    def _acquire(self, request: Request) -> list[tuple[int, int]]:
        """Return the offset and the delivery count of what is acquired."""
        log, fetch_offset = request["batches"], request["fetch_offset"]
        if self.lifecycle != "ACTIVE" or request["max_records"] <= 0 or not log or log[-1][1] < self.start:
            return []
        first, last = log[0][0], log[-1][1]
        if fetch_offset <= self.start:
            self._skip_natural_gaps(first)
        room = min(request["max_records"], self.config["max_record_locks"] - self._in_flight())
        if room <= 0 and fetch_offset <= self.end:  # what is in flight may always be delivered again
            room = min(request["max_records"], self.end - fetch_offset + 1)
            last = min(last, self.end)
        if room <= 0 or log[-1][1] < self.start:
            return []
        bugs = []
        if fetch_offset < first:  # the log does not have these any more
            touched = [batch for batch in self.batches() if batch.last >= fetch_offset]
            bugs += ["F6"] * self._archive("AVAILABLE", fetch_offset, first - 1, touched)
        is_strict = request.get("mode") == "record_limit"
        fetch = Fetch(request["member"], log, first, last, room, request["batch_size"], is_strict)
        taken = self._take_what_there_is(fetch)
        if taken:
            self._shrink_gap(taken[-1] + 1)
        if taken and request.get("isolation") == "read_committed":
            bugs += ["F7"] * self._archive_aborted(log, request.get("aborted") or ())
        got = [(offset, self.records[offset].count) for offset in taken if self.records[offset].state == "ACQUIRED"]
        if bugs:
            self._pass_archived(*bugs)
        return got

    def _skip_natural_gaps(self, first: int) -> None:
        """Move the SPSO to where the log goes on, past what is terminal between two gaps, unless it lies in a batch."""
        while self.records and self.start < first:
            floor = self._floor(self.start)
            if floor is not None and floor.last >= self.start:
                return
            self.met.add("B10")
            self.start = min([first, *(offset for offset in self.records if offset > self.start)])
            self.end = max(self.end, self.start)
            if self.gap and self._has_gap():
                self._shrink_gap(max(self.gap[0], self.start))
            self._move_start()

    def _take_what_there_is(self, fetch: Fetch) -> list[int]:
        """Take what is available of the batches in flight, and what lies between and after them."""
        floor = self._floor(fetch.first)
        base = max(fetch.first, self.start)
        if floor is not None and floor.last >= fetch.first:
            base = floor.first
        self._meet_at(fetch, base, floor)
        overlap = [batch for batch in self.batches() if min(fetch.first, base) <= batch.first <= fetch.last]
        if not overlap:
            return self._take_new(fetch, base, fetch.last, fetch.room)
        taken: list[int] = []
        for batch in overlap:
            if self._has_gap() and len(taken) < fetch.room:
                taken += self._take_new(fetch, self._not_below_start(base), batch.first - 1, fetch.room - len(taken))
                base = batch.last + 1
            if len(taken) >= fetch.room:
                return taken
            is_throttled = self._is_throttled(fetch, batch)
            if is_throttled and taken:
                return taken
            again = self._take_again(fetch, batch, fetch.room - len(taken), is_throttled=is_throttled)
            taken += again
            if is_throttled and again:
                return taken
        after = self._not_below_start(overlap[-1].last + 1)
        return taken + self._take_new(fetch, after, fetch.last, fetch.room - len(taken))

    def _meet_at(self, fetch: Fetch, base: int, floor: ModelBatch | None) -> None:
        """Note which bugs of Kafka show where an acquisition begins."""
        if floor is not None and floor.last < fetch.first < self.start:
            self.met.add("B6")
        if min(fetch.first, base) > fetch.last:
            self.met.add("B1'")

    def _not_below_start(self, offset: int) -> int:
        if offset < self.start:
            self.met.add("B6")
        return max(offset, self.start)

    # ---- what was never in flight

    def _take_new(self, fetch: Fetch, first: int, last: int, room: int) -> list[int]:
        """Take offsets that are not in flight, up to the end of a batch of the log."""
        if not self.records:
            first = max(first, self.end)
        if room <= 0 or first > last:
            return []
        if room < last - first + 1:
            target = first + room - 1
            rounded = next((end for begin, end, *_ in fetch.log if begin <= target <= end), target)
            last = min(rounded, last) if self._has_gap() else rounded
        taken = list(range(first, last + 1))[: room if fetch.is_strict else None]
        if self.rules.is_by_record:
            for offset in range(first, last + 1):
                self._add(fetch.member, ModelBatch(offset, offset), int(offset in taken))
        elif fetch.is_strict:
            self._add(fetch.member, ModelBatch(first, last), len(taken))
        else:
            for begin, end in self._pieces(fetch, first, last):
                self._add(fetch.member, ModelBatch(begin, end), end - begin + 1)
        if first == min(self.records):
            self.start = first
        self.end = max(self.end, last)
        return taken

    def _pieces(self, fetch: Fetch, first: int, last: int) -> list[tuple[int, int]]:
        """Cut a range where batches of the log begin, into pieces that are large enough."""
        pieces = []
        for begin, *_ in fetch.log:
            if first < begin <= last and begin - first >= fetch.batch_size:
                pieces.append((first, begin - 1))
                first = begin
        return [*pieces, (first, last)]

    def _add(self, member: str, batch: ModelBatch, count: int) -> None:
        """Let the first *count* records of a new batch be acquired, and the others be available."""
        for offset in batch.offsets:
            self.records[offset] = ModelRecord("AVAILABLE", 0, batch)
        chosen = [self.records[offset] for offset in batch.offsets[:count]]
        for record in chosen:
            record.state, record.count, record.member = "ACQUIRED", 1, member
        batch.is_split = count < len(batch.offsets)
        for locked in [[record] for record in chosen] if batch.is_split else [chosen]:
            self._lock(locked)

    # ---- what is delivered again

    def _is_throttled(self, fetch: Fetch, batch: ModelBatch) -> bool:
        """Return whether a batch has a record that was fetched and has been delivered often."""
        fetched = [offset for offset in batch.offsets if fetch.first <= offset <= fetch.last]
        return any(self._is_free(offset) and self.records[offset].count >= self._threshold() for offset in fetched)

    def _threshold(self) -> int:
        return max(2, (int(self.config["delivery_count_limit"]) + 1) // 2)

    def _take_again(self, fetch: Fetch, batch: ModelBatch, room: int, *, is_throttled: bool) -> list[int]:
        is_fetched = fetch.first <= batch.first and batch.last <= fetch.last
        is_too_large = fetch.is_strict and len(batch.offsets) > room
        if not batch.is_split and not self._is_free(batch.first):
            return []
        if not batch.is_split and is_fetched and not is_throttled and not is_too_large:
            for offset in batch.offsets:
                self._take(offset, fetch.member)
            self._lock(self.records[offset] for offset in batch.offsets)
            return list(batch.offsets)
        self._split(batch)
        offsets = [offset for offset in batch.offsets if fetch.first <= offset <= fetch.last]
        taken = self._choose(batch, offsets, room if fetch.is_strict else None)
        for offset in taken:
            self._take(offset, fetch.member)
            self._lock([self.records[offset]])
        return taken

    def _choose(self, batch: ModelBatch, offsets: list[int], room: int | None) -> list[int]:
        """Return what is acquired of a batch record by record: the more often it failed, the less."""
        limit = self.config["delivery_count_limit"]
        taken: list[int] = []
        cap = None
        for offset in offsets:
            if not self._is_free(offset):
                continue
            count = self.records[offset].count
            is_last = limit > 2 and count == limit - 1  # noqa: PLR2004 - with 2 there is no delivery to set apart
            if is_last and taken:
                break
            if cap is None and count >= self._threshold():
                cap = max(1, len(batch.offsets) >> (count - self._threshold() + 1))
            taken.append(offset)
            if is_last or len(taken) in {cap, room}:
                break
        return taken

    def _take(self, offset: int, member: str) -> None:
        record = self.records[offset]
        record.state, record.member = "ACQUIRED", member
        record.count += 1

    # ---- transactions

    def _archive_aborted(self, log: list[Any], aborted: Any) -> bool:  # noqa: ANN401 - JSON
        """Archive what is acquired of aborted transactions, by whichever member; return whether there was anything."""
        is_archived = False
        waiting = [tuple(pair) for pair in aborted]
        aborting: set[int] = set()
        for first, last, *attributes in log:
            if not attributes or attributes[0]["producer_id"] == NO_PRODUCER:
                continue
            aborting |= {producer for producer, begins in waiting if begins <= last}
            waiting = [(producer, begins) for producer, begins in waiting if begins > last]
            producer, control = attributes[0]["producer_id"], attributes[0]["control"]
            if control is not None and control.upper() == "ABORT":
                aborting.discard(producer)
            elif attributes[0]["transactional"] and producer in aborting:
                floor = self._floor(first)
                low = first if floor is None else floor.first
                if floor is None:
                    self.met.add("B8")
                if first < self.start:
                    self.met.add("B22")
                own = [batch for batch in self.batches() if batch.first >= low]
                is_archived |= self._archive("ACQUIRED", first, last, own)
        return is_archived
