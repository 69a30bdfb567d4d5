"""
A share partition as one dictionary entry for each offset: slow, plain, and written without any code of the library's.

It follows the rules where the boundaries of batches do not matter: every log batch and every persisted batch has one
record, no record is missing from the log, and there is no dead-letter queue. What it says is what a share partition
without Kafka's bugs does.

Source:
    KIP-932; SharePartition (Kafka 4.3.1), without the bugs B6, B9b, B10, B15, B17 and B22.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, TypeAlias

from attrs import Factory, define, field, frozen

Request: TypeAlias = dict[str, Any]
"""A request of the line protocol."""

TYPES: Final = {0: "ARCHIVED", 1: "ACKNOWLEDGED", 2: "AVAILABLE", 3: "ARCHIVED"}
"""What a record becomes by the number of an acknowledgement type; 4 is RENEW."""

RENEW: Final = 4

STATES: Final = {0: "AVAILABLE", 2: "ACKNOWLEDGED", 4: "ARCHIVED"}
"""The states that are persisted, by number."""

NUMBERS: Final = {name: number for number, name in STATES.items()}

DONE: Final = frozenset({"ACKNOWLEDGED", "ARCHIVED"})
"""The terminal states."""

DEFAULTS: Final = {
    "max_record_locks": 2000,
    "delivery_count_limit": 5,
    "record_lock_duration_ms": 30_000,
    "renew_acknowledge_enable": True,
    "auto_offset_reset": "latest",
}
"""The settings of a group that has set none."""


ALL_SETTINGS: Final = frozenset(DEFAULTS)


@frozen(kw_only=True)
class Rules:
    """What Kafka's releases and the KIP do differently."""

    changeable: frozenset[str] = ALL_SETTINGS
    """The settings that may change while a share partition is in use."""

    is_kip: bool = False
    """
    Whether writes are those of the KIP. Nothing is written of records below the SPSO; the start offset is, once there
    is none. Locks that are over expire together, with one write that moves the SPSO only if it succeeds.
    """


@define
class Record:
    """One record in flight."""

    state: str
    """AVAILABLE, ACQUIRED, ACKNOWLEDGED or ARCHIVED."""

    count: int
    """How often it was delivered."""

    member: str = ""
    """Who has it."""

    deadline_ms: int | None = None
    """When its lock expires; None if it has none."""

    lock: int = 0
    """The number of its lock: locks with one deadline expire in the order in which they were made."""

    lock_is_over: bool = False
    """Whether its lock has expired while a write was pending."""

    write: int | None = None
    """The write that has to succeed for its last change to stand."""

    before: tuple[str, int, str] = ("", 0, "")
    """State, count and member before that change."""

    is_given_up: bool = False
    """Whether it was archived while a write was pending, whose outcome does not matter any more."""


@define
class Write:
    """A write that was issued."""

    number: int
    start_offset: int
    complete: int
    records: dict[int, tuple[int, int]]
    """The number of the state, and the delivery count, of each offset."""

    is_expiry: bool
    """Whether it is that of an expired lock, which stands whatever is answered."""


@define
class RecordModel:
    """What a share partition is after some requests."""

    rules: Rules = Factory(Rules)
    now_ms: int = 0
    lifecycle: str = "EMPTY"
    start: int = 0
    """The SPSO."""

    end: int = 0
    """The last offset in flight; the next one to be fetched if there is none."""

    state_epoch: int = 0
    records: dict[int, Record] = Factory(dict)
    gap: tuple[int, int] | None = None
    """Where offsets that the leader before has never persisted begin, and what the end was then."""

    config: dict[str, Any] = field(factory=lambda: dict(DEFAULTS))
    opened_with: dict[str, Any] = Factory(dict)
    default_answer: Any = "ok"
    answers: deque[Any] = Factory(deque)
    held: dict[int, Write] = Factory(dict)
    writes: list[Write] = Factory(list)
    """The writes of the last request."""

    has_failed: bool = False
    """Whether a write of the last request has failed."""

    issued: int = 0
    locks: int = 0
    lookup: dict[str, Any] = Factory(dict)

    # ---- requests

    def run(self, request: Request) -> Any:  # noqa: ANN401 - a result is JSON
        """
        Carry out *request*, and return its result.

        That of an acquisition is a list of (offset, delivery count), that of a command with a future is its status.

        Raises:
            NotImplementedError: It is beyond what the model knows.
        """
        self.writes, self.has_failed = [], False
        self.answers = deque(request.get("answers", ()))
        op = request["op"]
        if op in {"state", "timers", "default_answer"}:
            if op == "default_answer":
                self.default_answer = request["answer"]
            return self.lock_count() if op == "timers" else None
        handler = getattr(self, f"_{op}", None)
        if handler is None:
            raise NotImplementedError(op)
        result = handler(request)
        if self.has_failed:  # locks that have expired meanwhile are due
            self._expire()
        return result

    def _open(self, request: Request) -> None:
        self.opened_with = {**DEFAULTS, **request.get("config", {})}
        self.config = dict(self.opened_with)
        self.lifecycle = request.get("lifecycle", "EMPTY")

    def _configure(self, request: Request) -> None:
        wanted = {**self.opened_with, **(request["config"] or {})}
        self.config |= {name: wanted[name] for name in self.rules.changeable}

    def _fence(self, _request: Request) -> None:
        self.lifecycle = "FENCED"

    def _advance(self, request: Request) -> None:
        self.now_ms += request["ms"]
        self._expire()

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
        self.lookup = request.get("lookup", {})
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
        if start == -1:
            kind = str(self.config["auto_offset_reset"]).split(":", maxsplit=1)[0]
            start = self.lookup.get("timestamp" if kind == "by_duration" else kind, 0)
        batches = state.get("state_batches", [])
        if not isinstance(start, int) or any(first < start for first, *_ in batches):
            return "refused"
        self.lifecycle = "ACTIVE"
        self.state_epoch = state.get("state_epoch", 0)
        self.start = self.end = start
        for first, last, number, count in batches:
            if first != last:
                message = "a persisted batch of more than one record"
                raise NotImplementedError(message)
            self.records[first] = Record(STATES[number], count)
        if batches:
            self.end = max(self.records)
            missing = [offset for offset in range(start, self.end) if offset not in self.records]
            self.gap = (missing[0], self.end) if missing else None
            self._move_start()
        if self.rules.is_kip and state.get("start_offset", 0) == -1:
            self._issue([], is_expiry=False)
        return "ok"

    # ---- acquisition

    def _acquire(self, request: Request) -> list[tuple[int, int]]:
        batches, fetch_offset = request["batches"], request["fetch_offset"]
        offsets = [first for first, last, *_ in batches]
        if offsets and offsets != list(range(fetch_offset, fetch_offset + len(batches))):
            message = "a fetch of batches with more than one record, or with holes"
            raise NotImplementedError(message)
        if self.lifecycle != "ACTIVE" or not offsets or offsets[-1] < self.start:
            return []
        room = min(request["max_records"], self.config["max_record_locks"] - self._in_flight())
        last = offsets[-1]
        if room <= 0 and fetch_offset <= self.end:  # what is in flight may always be delivered again
            room = min(request["max_records"], self.end - fetch_offset + 1)
            last = min(last, self.end)
        taken = self._choose(range(offsets[0], last + 1), room)
        for offset in taken:
            self._take(offset, request["member"])
        if not taken:
            return []
        self._shrink_gap(taken[-1] + 1)
        if request.get("isolation") == "read_committed":
            self._archive_aborted(batches, request.get("aborted") or ())
        return [(offset, self.records[offset].count) for offset in taken if self.records[offset].state == "ACQUIRED"]

    def _choose(self, offsets: range, room: int) -> list[int]:
        """Return what is acquired of the fetched *offsets*, which are not beyond what may be in flight."""
        in_flight = [offset for offset in offsets if offset in self.records]
        fills_gaps = not in_flight or self._has_gap()
        limit = self.config["delivery_count_limit"]
        threshold = max(2, (limit + 1) // 2)
        taken: list[int] = []
        for offset in offsets:
            if len(taken) >= room:
                break
            if offset not in self.records:
                is_after = not in_flight or offset > in_flight[-1]
                is_new = offset >= max(self.start, self.end if not self.records else 0)
                if is_new and (is_after or fills_gaps):
                    taken.append(offset)
            elif self._is_free(offset):
                is_throttled = self.records[offset].count >= threshold
                if is_throttled and taken:
                    break
                taken.append(offset)
                if is_throttled:
                    break
        return taken

    def _take(self, offset: int, member: str) -> None:
        if offset in self.records:
            self.records[offset].count += 1
        else:
            self.records[offset] = Record("", 1)
            if offset == min(self.records):
                self.start = offset
            self.end = max(self.end, offset)
        record = self.records[offset]
        record.state, record.member = "ACQUIRED", member
        self._lock(record)

    def _archive_aborted(self, batches: list[Any], aborted: Any) -> None:  # noqa: ANN401 - JSON
        """Archive what is acquired of aborted transactions, by whichever member."""
        waiting = [tuple(pair) for pair in aborted]
        aborting: set[int] = set()
        for offset, _, *attributes in batches:
            aborting |= {producer for producer, first in waiting if first <= offset}
            waiting = [(producer, first) for producer, first in waiting if first > offset]
            if not attributes:
                continue
            producer, control = attributes[0]["producer_id"], attributes[0]["control"]
            if control is not None and control.upper() == "ABORT":
                aborting.discard(producer)
                continue
            record = self.records.get(offset)
            is_aborted = attributes[0]["transactional"] and producer in aborting
            if is_aborted and record is not None and record.state == "ACQUIRED":
                self._give_up(record)

    # ---- acknowledgements and releases

    def _acknowledge(self, request: Request) -> str:
        changed: list[int] = []
        for first, last, types in request["batches"]:
            if first != last:
                message = "an acknowledgement of more than one record at once"
                raise NotImplementedError(message)
            if refusal := self._begin_acknowledgement(request["member"], first, types[0], changed):
                for offset in changed:
                    self._restore(self.records[offset])
                return refusal
        return self._persist(changed)

    def _begin_acknowledgement(self, member: str, offset: int, kind: int, changed: list[int]) -> str:
        """Return why a record cannot be acknowledged; if it can, change it."""
        if offset < self.start:
            return ""
        record = self.records.get(offset)
        if record is None:
            return "INVALID_REQUEST" if any(other < offset for other in self.records) else "INVALID_RECORD_STATE"
        if record.state != "ACQUIRED" or record.member != member:
            return "INVALID_RECORD_STATE"
        if kind != RENEW:
            self._begin(record, TYPES[kind])
            changed.append(offset)
        elif self.config["renew_acknowledge_enable"]:
            self._lock(record)
        else:
            return "INVALID_RECORD_STATE"
        return ""

    def _release(self, request: Request) -> str:
        changed = []
        for offset in sorted(self.records):
            record = self.records[offset]
            if record.state == "ACQUIRED" and record.member in {request["member"], ""}:
                self._begin(record, "ARCHIVED" if offset < self.start else "AVAILABLE")
                changed.append(offset)
        return self._persist(changed)

    def _begin(self, record: Record, state: str) -> None:
        """Change a record, until a write says whether the change stands."""
        record.before = record.state, record.count, record.member
        if state == "AVAILABLE" and record.count >= self.config["delivery_count_limit"]:
            state = "ARCHIVED"
        record.state, record.member = state, ""

    def _restore(self, record: Record) -> None:
        record.state, record.count, record.member = record.before

    # ---- writes

    def _persist(self, changed: list[int], *, is_expiry: bool = False) -> str:
        if not changed:
            return "ok"
        if self.rules.is_kip and changed[-1] < self.start:
            for offset in changed:
                self._unlock(self.records[offset])
            self._move_start()
            return "ok"
        return self._issue(changed, is_expiry=is_expiry)

    def _issue(self, changed: list[int], *, is_expiry: bool) -> str:
        write = Write(
            self.issued,
            self.start,
            self.complete(),
            {offset: (NUMBERS[self.records[offset].state], self.records[offset].count) for offset in changed},
            is_expiry,
        )
        self.issued += 1
        self.writes.append(write)
        if not is_expiry:
            for offset in changed:
                self.records[offset].write = write.number
        answer = self.answers.popleft() if self.answers else self.default_answer
        if answer == "hold":
            self.held[write.number] = write
            return "pending"
        return self._answer(write, answer)

    def _complete(self, request: Request) -> None:
        if request["write"] == "read":
            self.lookup = request.get("lookup", self.lookup)
            self._load(request["answer"])
        else:
            self._answer(self.held.pop(request["write"]), request["answer"])

    def _answer(self, write: Write, answer: Any) -> str:  # noqa: ANN401 - JSON
        is_success = answer == "ok"
        self.has_failed |= not is_success
        for record in [record for record in self.records.values() if record.write == write.number]:
            record.write = None
            if is_success or record.is_given_up:
                self._unlock(record)
            else:
                self._restore(record)
        if is_success or (write.is_expiry and not self.rules.is_kip):
            self._move_start()
        return "ok" if is_success else "failed"

    # ---- time, and the log

    def _expire(self) -> None:
        """Handle the locks that are over one after another, each with a write of its own."""
        while due := self._due():
            due.sort(key=lambda offset: (self.records[offset].deadline_ms, self.records[offset].lock))
            expired = [offset for offset in (due if self.rules.is_kip else due[:1]) if self._expire_one(offset)]
            self._persist(sorted(expired), is_expiry=True)

    def _expire_one(self, offset: int) -> bool:
        """Handle a lock that is over; return whether its record has changed."""
        record = self.records[offset]
        record.lock_is_over = True
        if record.write is not None:
            return False
        record.state = "ARCHIVED" if self._is_last(offset, record) else "AVAILABLE"
        record.member = ""
        self._unlock(record)
        return True

    def _due(self) -> list[int]:
        return [
            offset
            for offset, record in self.records.items()
            if record.deadline_ms is not None
            and record.deadline_ms < self.now_ms
            and (not record.lock_is_over or (record.write is None and record.state == "ACQUIRED"))
        ]

    def _is_last(self, offset: int, record: Record) -> bool:
        return offset < self.start or record.count >= self.config["delivery_count_limit"]

    def _log_start(self, request: Request) -> None:
        start = request["offset"]
        if start <= self.start:
            return
        for offset, record in self.records.items():
            if record.state == "AVAILABLE" and self.start <= offset < start:
                self._give_up(record)
        self.start = start
        self.end = max(self.end, start) if self.records else start

    # ---- what requests have in common

    def complete(self) -> int:
        """Return how many records at or above the SPSO are terminal."""
        return sum(record.state in DONE for offset, record in self.records.items() if offset >= self.start)

    def lock_count(self) -> int:
        """Return how many locks there are that have not expired."""
        return sum(record.deadline_ms is not None and not record.lock_is_over for record in self.records.values())

    def _in_flight(self) -> int:
        return self.end - self.start + 1 if self.records else 0

    def _is_free(self, offset: int) -> bool:
        record = self.records[offset]
        return record.state == "AVAILABLE" and record.write is None

    def _lock(self, record: Record) -> None:
        self.locks += 1
        record.lock, record.lock_is_over = self.locks, False
        record.deadline_ms = self.now_ms + self.config["record_lock_duration_ms"]

    def _unlock(self, record: Record) -> None:
        record.deadline_ms, record.lock_is_over = None, False

    def _give_up(self, record: Record) -> None:
        record.state, record.member = "ARCHIVED", ""
        record.is_given_up = record.write is not None
        self._unlock(record)

    def _has_gap(self) -> bool:
        """Return whether there may be records between those in flight: until something beyond them is acquired."""
        return self.gap is not None and self.gap[1] == self.end

    def _shrink_gap(self, offset: int) -> None:
        self.gap = (offset, self.gap[1]) if self.gap and self._has_gap() and offset <= self.gap[1] else None

    def _move_start(self) -> None:
        """Pass all that is done, from the beginning on."""
        offsets = sorted(self.records)
        if not offsets or offsets[0] > self.start:
            return  # what comes first has not been fetched yet
        floor = max(offset for offset in offsets if offset <= self.start)
        if not self._is_durable(floor):
            return
        gap = self.gap[0] if self.gap and self._has_gap() else None
        passed: list[int] = []
        for offset in offsets:
            if not self._is_durable(offset) or (gap is not None and offset > gap):
                break
            if gap is not None:
                gap = max(gap, offset + 1)
            passed.append(offset)
        if not passed:
            return
        for offset in passed:
            del self.records[offset]
        self._pass(passed[-1])

    def _pass(self, last: int) -> None:
        """Move the SPSO past the offset *last*, which was the last one to be done."""
        if not self.records:
            self.start = self.end = max(self.start, last + 1)
            return
        start = max(self.start, min(self.records))
        if self.gap and self._has_gap():
            start = max(self.start, min(start, max(self.gap[0], last + 1)))
            self.gap = (max(self.gap[0], start), self.gap[1]) if start <= self.gap[1] else None
        self.start = start

    def _is_durable(self, offset: int) -> bool:
        return self.records[offset].state in DONE and self.records[offset].write is None
