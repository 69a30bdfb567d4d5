"""
A share partition as one dictionary entry for each offset: slow, plain, and written without any code of the library's.

What it says is what a share partition without Kafka's bugs does. `RecordsInFlight` has what there is, and
`RecordAcquisition` how members acquire; here is the rest.

Source:
    KIP-932, KIP-1191, KIP-1206, KIP-1222; SharePartition (Kafka 4.4.0), without the bugs B6, B9b, B10, B15, B17, B22,
    B23 and F4 to F7.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from attrs import Factory, define, frozen

from sharestate.testing.record_model.acquisition import RecordAcquisition, Request
from sharestate.testing.record_model.in_flight import DEFAULTS, DONE, ModelBatch, ModelRecord

TYPES: Final = {0: "ARCHIVED", 1: "ACKNOWLEDGED", 2: "AVAILABLE", 3: "ARCHIVED"}
"""What a record becomes by the number of an acknowledgement type; 4 is RENEW."""

REJECT: Final = 3

RENEW: Final = 4

STATES: Final = {0: "AVAILABLE", 2: "ACKNOWLEDGED", 3: "ARCHIVING", 4: "ARCHIVED"}
"""The states that are persisted, by number."""

NUMBERS: Final = {name: number for number, name in STATES.items()}

UNINITIALIZED: Final = -1
"""The start offset of a share partition of which nothing was ever persisted."""


@frozen
class Letter:
    """Records that go to the dead-letter queue together."""

    first: int
    last: int
    count: int
    cause: str


@define
class Write:
    """A write that was issued."""

    number: int
    start_offset: int
    complete: int
    records: dict[int, tuple[int, int]]
    """The number of the state, and the delivery count, of each offset."""

    letters: list[Letter]
    """What goes to the dead-letter queue after it."""

    is_final: bool
    """Whether what it says stands whatever is answered: a lock has expired, or the dead-letter queue has answered."""


@define
class RecordModel(RecordAcquisition):
    """What a share partition is after some requests."""

    state_epoch: int = 0
    opened_with: dict[str, Any] = Factory(dict)
    lookup: dict[str, Any] = Factory(dict)

    default_answer: Any = "ok"
    answers: deque[Any] = Factory(deque)
    held: dict[int, Write] = Factory(dict)
    writes: list[Write] = Factory(list)
    """The writes of the last request."""

    has_failed: bool = False
    """Whether a write of the last request has failed."""

    issued: int = 0

    default_letter_answer: Any = "ok"
    letter_answers: deque[Any] = Factory(deque)
    held_letters: dict[int, Letter] = Factory(dict)
    letters: list[Letter] = Factory(list)
    """What the last request has handed to the dead-letter queue."""

    handed_over: int = 0
    fetch_lock: str | None = None
    """The fetch that no other may run beside."""

    # ---- requests

    def run(self, request: Request) -> Any:  # noqa: ANN401 - a result is JSON
        """
        Carry out *request*, and return its result.

        That of an acquisition is a list of (offset, delivery count), that of a command with a future is its status.

        Raises:
            LookupError: There is no such request.
        """
        self.writes, self.letters, self.has_failed = [], [], False
        self.answers = deque(request.get("answers", ()))
        self.letter_answers = deque(request.get("dlq_answers", ()))
        handler = getattr(self, f"_{request['op'].replace('dlq', 'dead_letter')}", None)
        if handler is None:
            message = f"the model knows no request {request['op']!r}"
            raise LookupError(message)
        result = handler(request)
        if self.has_failed:  # locks that have expired meanwhile are due
            self._expire()
        return result

    def _open(self, request: Request) -> None:
        self.opened_with = {**DEFAULTS, **request.get("config", {})}
        self.config = dict(self.opened_with)
        self.lifecycle = request.get("lifecycle", "EMPTY")

    def _configure(self, request: Request) -> None:
        without_any = {"dlq_topic": None}  # a group without a configuration has no topic either
        wanted = {**self.opened_with, **(without_any if request["config"] is None else request["config"])}
        self.config |= {name: wanted[name] for name in self.rules.changeable}

    def _fence(self, _request: Request) -> None:
        self.lifecycle = "FENCED"

    def _advance(self, request: Request) -> None:
        self.now_ms += request["ms"]
        self._expire()

    def _lookup(self, request: Request) -> None:
        self.lookup = request["lookup"]

    def _default_answer(self, request: Request) -> None:
        self.default_answer = request["answer"]

    def _default_dead_letter_answer(self, request: Request) -> None:
        self.default_letter_answer = request["answer"]

    def _state(self, _request: Request) -> None:
        """Return nothing: the state is there to be looked at."""

    def _timers(self, _request: Request) -> int:
        return self.lock_count()

    def _lock_fetch(self, request: Request) -> bool:
        is_free = self.lifecycle == "ACTIVE" and self.fetch_lock is None
        self.fetch_lock = request["id"] if is_free else self.fetch_lock
        return is_free

    def _unlock_fetch(self, _request: Request) -> None:
        self.fetch_lock = None

    def _can_acquire(self, request: Request) -> bool:
        if self._next_fetch_offset(request) != self.end + 1:
            return True
        return self._in_flight() < int(self.config["max_record_locks"])

    def _next_fetch_offset(self, _request: Request) -> int:
        offsets = sorted(self.records)
        if not offsets or self.start > offsets[-1]:
            return self.end
        gap = self.gap[0] if self._has_gap() and self.gap else None
        for offset in offsets:
            if gap is not None and offset > gap:
                return gap
            if gap is not None:
                gap = max(gap, offset + 1)
            if self._is_free(offset):
                return offset
        return self.end + 1

    # ---- initialization

    def _initialize(self, request: Request) -> str:
        if self.lifecycle == "ACTIVE":
            return "ok"
        if self.lifecycle != "EMPTY":
            return "refused"
        self.lifecycle = "INITIALIZING"
        self.lookup = request.get("lookup", self.lookup)
        answer = request.get("answer", "ok")
        return "pending" if answer == "hold" else self._load(answer)

    def _load(self, answer: Any) -> str:  # noqa: ANN401 - JSON
        if self.lifecycle == "FENCED":
            return "refused"
        self.lifecycle = "FAILED"
        state = {} if answer == "ok" else answer
        if not isinstance(state, dict) or state.keys() - {"state_epoch", "start_offset", "state_batches"}:
            return "refused"
        start = state.get("start_offset", 0)
        if start == UNINITIALIZED:
            kind = str(self.config["auto_offset_reset"]).split(":", maxsplit=1)[0]
            start = self.lookup.get("timestamp" if kind == "by_duration" else kind, 0)
        batches = state.get("state_batches", [])
        if not isinstance(start, int) or not self._can_load(start, batches):
            return "refused"
        self.lifecycle = "ACTIVE"
        self.state_epoch = state.get("state_epoch", 0)
        self.start = self.end = start
        self._load_batches(batches)
        if self.rules.is_kip and state.get("start_offset", 0) == UNINITIALIZED:
            self._issue([], is_final=False)
        for first, last, number, count in batches:
            if STATES[number] == "ARCHIVING":
                is_often = count >= self.config["delivery_count_limit"]
                self._hand_over(Letter(first, last, count, "delivery_count_exceeded" if is_often else "client_reject"))
        return "ok"

    def _can_load(self, start: int, batches: list[Any]) -> bool:
        for first, last, number, _ in batches:
            if not start <= first <= last or number not in STATES:
                return False
            if STATES[number] == "ARCHIVING" and not self.rules.has_dead_letters:
                return False
            start = last + 1
        return True

    def _load_batches(self, batches: list[Any]) -> None:
        missing = None
        for first, last, number, count in batches:
            if missing is None and first > max(self.records, default=self.start - 1) + 1:
                missing = max(self.records, default=self.start - 1) + 1
            batch = ModelBatch(first, last)
            for offset in batch.offsets:
                own = ModelBatch(offset, offset) if self.rules.is_by_record else batch
                self.records[offset] = ModelRecord(STATES[number], count, own)
        if batches:
            self.end = max(self.records)
            self.gap = None if missing is None else (missing, self.end)
            self._move_start()

    # ---- acknowledgements and releases

    def _acknowledge(self, request: Request) -> str:
        changed: list[int] = []
        for first, last, types in request["batches"]:
            if refusal := self._begin_range(request["member"], first, last, types, changed):
                for offset in changed:
                    self._restore(self.records[offset])
                return refusal
        return self._persist(changed)

    def _begin_range(self, member: str, first: int, last: int, types: list[int], changed: list[int]) -> str:
        """Return why a range cannot be acknowledged; if it can, change it."""
        if any(kind not in {*TYPES, RENEW} for kind in types):
            return "INVALID_REQUEST"
        if last < self.start:
            return ""
        batches = self._touched(first, last)
        if not batches or batches[-1].last < last:
            return "INVALID_REQUEST" if batches else "INVALID_RECORD_STATE"
        for batch in batches:
            if batch.last < self.start:
                continue
            if not batch.is_split and self.records[batch.first].member != member:
                return "INVALID_RECORD_STATE"
            if not max(first, self.start) <= batch.first <= batch.last <= last or len(types) > 1:
                self._split(batch)
            named = [offset for offset in batch.offsets if max(first, self.start) <= offset <= last]
            kinds = {offset: types[0 if len(types) == 1 else offset - first] for offset in named}
            if refusal := self._begin_records(member, kinds, changed):
                return refusal
        return ""

    def _touched(self, first: int, last: int) -> list[ModelBatch]:
        """Return the batches that a range touches, with the floor of where it begins, or of the SPSO within it."""
        batches = self._from_floor(first, last)
        if batches or first >= self.start:
            return batches
        if self._floor(self.start) is None:
            self.met.add("B5")
        return self._from_floor(self.start, last)

    def _begin_records(self, member: str, kinds: dict[int, int], changed: list[int]) -> str:
        """Return why records cannot be acknowledged; those before the one that cannot have changed."""
        for offset, kind in kinds.items():
            record = self.records[offset]
            if record.state != "ACQUIRED" or record.member != member:
                return "INVALID_RECORD_STATE"
            if kind == RENEW and not self.config["renew_acknowledge_enable"]:
                return "INVALID_RECORD_STATE"
            if kind == RENEW:
                self._renew(record, offset)
                continue
            self._begin(record, TYPES[kind])
            if kind == REJECT and self._has_queue():
                record.state, record.cause = "ARCHIVING", "client_reject"
            changed.append(offset)
        return ""

    def _renew(self, record: ModelRecord, offset: int) -> None:
        if record.batch.is_split:
            self._lock([record])
        elif offset == record.batch.first:  # the others have the same lock
            self._lock(self.records[each] for each in record.batch.offsets)

    def _release(self, request: Request) -> str:
        changed = []
        for batch in self.batches():
            first = self.records[batch.first]
            is_straddling = batch.first < self.start <= batch.last
            if is_straddling and first.state == "ACQUIRED" and first.member in {request["member"], ""}:
                self._split(batch)
            for offset in batch.offsets:
                record = self.records[offset]
                if record.state == "ACQUIRED" and record.member in {request["member"], ""}:
                    self._begin(record, "ARCHIVED" if offset < self.start else "AVAILABLE")
                    changed.append(offset)
        return self._persist(changed)

    def _begin(self, record: ModelRecord, state: str) -> None:
        """Change a record, until a write says whether the change stands."""
        record.before = record.state, record.count, record.member
        self._put(record, state)

    def _put(self, record: ModelRecord, state: str) -> None:
        """Let a record have no owner, and another state: if it was delivered often enough, it is not available."""
        if state == "AVAILABLE" and record.count >= self.config["delivery_count_limit"]:
            state = "ARCHIVING" if self._has_queue() else "ARCHIVED"
        record.state, record.member, record.cause = state, "", "delivery_count_exceeded"

    def _restore(self, record: ModelRecord) -> None:
        record.state, record.count, record.member = record.before

    # ---- writes

    def _persist(self, changed: list[int], *, is_final: bool = False) -> str:
        if not changed:
            return "ok"
        if self.rules.is_kip and max(changed) < self.start:
            for offset in changed:
                self._unlock(self.records[offset])
            self._move_start()
            return "ok"
        return self._issue(changed, is_final=is_final)

    def _issue(self, changed: list[int], *, is_final: bool) -> str:
        carried = {offset: (NUMBERS[self.records[offset].state], self.records[offset].count) for offset in changed}
        write = Write(self.issued, self.start, self.complete(), carried, self._letters_of(changed), is_final)
        self.issued += 1
        self.writes.append(write)
        if not is_final:
            for offset in changed:
                self.records[offset].write = write.number
        answer = self.answers.popleft() if self.answers else self.default_answer
        if answer == "hold":
            self.held[write.number] = write
            return "pending"
        return self._answer(write, answer)

    def _letters_of(self, changed: list[int]) -> list[Letter]:
        """Return what goes to the dead-letter queue: a whole batch together, the records of a split one by one."""
        letters = []
        for offset in changed:
            record = self.records[offset]
            batch = record.batch if not record.batch.is_split else ModelBatch(offset, offset)
            if record.state == "ARCHIVING" and offset == batch.first:
                letters.append(Letter(batch.first, batch.last, record.count, record.cause))
        return letters

    def _complete(self, request: Request) -> None:
        if "dlq" in request:
            self._letter_answered(self.held_letters.pop(request["dlq"]))
        elif request["write"] == "read":
            self.lookup = request.get("lookup", self.lookup)
            self._load(request["answer"])
        else:
            self._answer(self.held.pop(request["write"]), request["answer"])

    def _answer(self, write: Write, answer: Any) -> str:  # noqa: ANN401 - JSON
        is_success = answer == "ok"
        self.has_failed |= not is_success
        has_waited = False
        for record in [record for record in self.records.values() if record.write == write.number]:
            record.write = None
            if is_success or record.is_given_up:
                self._unlock(record)
                has_waited |= record.is_given_up
                continue
            if record.deadline_ms is not None and record.deadline_ms < self.now_ms:  # handled by now, or not yet
                self.met |= {"B15", "B23"}
            self._restore(record)
        if is_success or (write.is_final and (not self.rules.is_kip or self._is_quiet())):
            self._move_start()
        elif has_waited:
            self._pass_archived("F4", "F6")
        if is_success or write.is_final:
            for letter in write.letters:
                self._hand_over(letter)
        return "ok" if is_success else "failed"

    def _is_quiet(self) -> bool:
        """Return whether no lock and no write is left."""
        return not self.held and all(record.deadline_ms is None for record in self.records.values())

    def flaw(self, write: Write, start_offset: int, written: dict[int, tuple[int, int]]) -> str:
        """
        Return what is wrong with a write of the KIP's form that stands for *write*; nothing if it is "".

        It may say more than what has changed, or say by its start offset that records are done. What has changed has
        to be in it, and what it passes or calls done has to be done, whatever becomes of the other writes.

        Args:
            write: What has changed; it is not answered yet.
            start_offset: The start offset that is written; below 0 for none.
            written: The number of the state, and the delivery count, of each offset that is written.
        """
        done = {offset for offset, (state, _) in write.records.items() if STATES[state] in DONE}
        done |= {o for o, r in self.records.items() if r.state in DONE and (r.write is None or r.is_given_up)}
        for offset, changed in write.records.items():
            if offset >= max(start_offset, self.start) and written.get(offset) != changed:
                return f"offset {offset} is {changed}, and {written.get(offset)} is written"
        for offset in self.records:
            is_passed = self.start <= offset < start_offset
            if offset not in done and (is_passed or STATES.get(written.get(offset, (0, 0))[0]) in DONE):
                return f"offset {offset} is not done, and is passed or written as done"
        return ""

    # ---- the dead-letter queue

    def _hand_over(self, letter: Letter) -> None:
        number = self.handed_over
        self.handed_over += 1
        self.letters.append(letter)
        answer = self.letter_answers.popleft() if self.letter_answers else self.default_letter_answer
        if answer == "hold":
            self.held_letters[number] = letter
        else:
            self._letter_answered(letter)

    def _letter_answered(self, letter: Letter) -> None:
        """Archive what the queue has taken, or has failed to take, and persist that."""
        offsets = list(range(letter.first, letter.last + 1))
        for offset in offsets:
            self._give_up(self.records[offset])
        self._issue(offsets, is_final=True)

    # ---- time, and the log

    def _expire(self) -> None:
        """Handle the locks that are over one after another, each with a write of its own."""
        while due := self._due():
            first = self.records[due[0]].lock
            chosen = due if self.rules.is_kip else [offset for offset in due if self.records[offset].lock == first]
            expired = [offset for offset in chosen if self._expire_one(offset)]
            self._persist(sorted(expired), is_final=True)

    def _expire_one(self, offset: int) -> bool:
        """Handle the lock of a record that is over; return whether the record has changed."""
        record = self.records[offset]
        record.lock_is_over = True
        if record.write is not None:
            return False
        record.batch.is_split |= record.batch.first < self.start <= record.batch.last
        self._put(record, "ARCHIVED" if offset < self.start else "AVAILABLE")
        self._unlock(record)
        return True

    def _due(self) -> list[int]:
        """Return the offsets whose locks are over, in the order in which they expire."""
        due = [
            offset
            for offset, record in self.records.items()
            if record.deadline_ms is not None
            and record.deadline_ms < self.now_ms
            and (not record.lock_is_over or (record.write is None and record.state == "ACQUIRED"))
        ]
        return sorted(due, key=lambda offset: (self.records[offset].deadline_ms, self.records[offset].lock, offset))

    def _log_start(self, request: Request) -> None:
        start = request["offset"]
        if start > self.start:
            self._archive("AVAILABLE", self.start, start - 1, self.batches())
            self.start = start
            self.end = max(self.end, start) if self.records else start
            if self.gap and self._has_gap() and self.gap[0] < start:
                self.met.add("F5")
                self._shrink_gap(start)
            self._pass_archived("F4")
