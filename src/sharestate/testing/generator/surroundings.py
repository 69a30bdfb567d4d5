"""The surroundings of one share partition, as a sequence knows them: log, persisted state, members and clock."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from attrs import Factory, define

from sharestate.values.records import NO_PRODUCER_ID, AbortedTransaction, ControlType, RecordBatch
from sharestate.values.transaction_index import TransactionIndex

if TYPE_CHECKING:
    from sharestate.testing.generator.mix import Mix
    from sharestate.testing.generator.randomness import Choices

T = TypeVar("T")

Request: TypeAlias = dict[str, Any]
"""A request of the line protocol, ready for ``json.dumps``."""

Response: TypeAlias = dict[str, Any]
"""A response of the line protocol, as ``json.loads`` gives it."""

Steps: TypeAlias = Generator[Request, Response, T]
"""A generator of requests that is sent the response to each, and returns a value at its end."""

PRODUCERS: Final = (NO_PRODUCER_ID, 1, 2, 3)
"""The producers' ids; the first stands for producers without one."""

MOST_BATCHES: Final = 60
"""The most batches in a log; retention drops the oldest beyond it. [batches]"""

RECENTLY_HELD: Final = 12
"""The number of ranges that are remembered after their locks, for acknowledgements that come too late."""


@define
class Log:
    """
    The record batches of one partition, in ascending order, with holes where compaction removed some.

    >>> from random import Random
    >>> from sharestate.testing.generator.randomness import Choices
    >>> log = Log(Choices(Random(5)))
    >>> log.grow_to(8)
    >>> [(batch.first_offset, batch.last_offset) for batch in log.read(4, most=2)]
    [(0, 4), (5, 5)]

    Attributes:
        choices: The source of sizes, producers and holes.
        longest_batch: The largest batch that is appended. [records]
        batches: The batches that the log holds now.
        start: The log start offset; it may lie inside the first batch.
        end: The log end offset: that of the next record. Everything below it is replicated.
        transactions: The transactions of all batches that were ever appended.
        cut: The log start of those aborted transactions that began below it, as it was when they ended.
    """

    choices: Choices
    longest_batch: int = 20
    batches: list[RecordBatch] = Factory(list)
    start: int = 0
    end: int = 0
    transactions: TransactionIndex = Factory(TransactionIndex)
    cut: dict[AbortedTransaction, int] = Factory(dict)

    @property
    def stable_end(self) -> int:
        """The last stable offset: from here on, transactions may still be undecided."""
        return max(self.transactions.last_stable_offset, self.start)

    def grow_to(self, offset: int) -> None:
        """Append batches until *offset* has been written."""
        while self.end <= offset:
            self.append()

    def append(self) -> None:
        """Append a batch, or now and then the marker that ends a transaction."""
        opened = self.transactions.open_transactions
        if opened and self.choices.chance(35):
            self.end_transaction()
            return
        producer_id = self.choices.one_of(PRODUCERS)
        transactional = producer_id != NO_PRODUCER_ID and (producer_id in opened or self.choices.chance(60))
        longest = self.longest_batch if self.choices.chance(25) else min(5, self.longest_batch)
        size = self.choices.between(1, longest)
        self._add(RecordBatch(self.end, self.end + size - 1, producer_id, transactional))

    def end_transaction(self) -> None:
        """Write the marker of one of the open transactions; there must be one."""
        opened = self.transactions.open_transactions
        producer_id = self.choices.one_of(sorted(opened))
        control = ControlType.ABORT if self.choices.chance(60) else ControlType.COMMIT
        if control is ControlType.ABORT and opened[producer_id] < self.start:
            self.cut[AbortedTransaction(producer_id, opened[producer_id])] = self.start
        self._add(RecordBatch(self.end, self.end, producer_id, True, control))  # noqa: FBT003 - markers are transactional

    def decide_below(self, offset: int) -> None:
        """End transactions until everything below *offset* is stable."""
        while self.transactions.open_transactions and self.stable_end < offset:
            self.end_transaction()

    def compact(self) -> None:
        """Remove some of the decided batches; the others keep their offsets, as in Kafka's log."""
        percent = self.choices.one_of((25, 50, 90))
        decided = self.stable_end
        self.batches = [
            batch for batch in self.batches if batch.last_offset >= decided or not self.choices.chance(percent)
        ]

    def move_start(self, offset: int) -> None:
        """Delete the records below *offset*, as retention and DeleteRecords do; never moves back."""
        self.start = max(self.start, offset)
        self.end = max(self.end, offset)
        self.batches = [batch for batch in self.batches if batch.last_offset >= self.start]

    def read(self, offset: int, *, most: int, committed: bool = False) -> list[RecordBatch]:
        """Return up to *most* batches from the one that contains *offset* on, or from the first after it."""
        end = self.stable_end if committed else self.end
        if offset >= end:  # also inside a batch: the log start may lie in the first one of an open transaction
            return []
        found = [batch for batch in self.batches if batch.last_offset >= offset and batch.first_offset < end]
        return found[:most]

    def aborted_in(self, first_offset: int, last_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions of a fetch; one that has lost its beginning is listed from the cut on."""
        listed = self.transactions.aborted_in(first_offset, last_offset)
        # A broker lists where it began. Both filter the same records, and seeds keep their sequences.
        return [entry._replace(first_offset=self.cut.get(entry, entry.first_offset)) for entry in listed]

    def _add(self, batch: RecordBatch) -> None:
        self.transactions.append(batch)
        self.batches.append(batch)
        self.end = batch.last_offset + 1
        if len(self.batches) > MOST_BATCHES:
            self.move_start(self.batches[MOST_BATCHES // 2].first_offset)


def batch_to_json(batch: RecordBatch) -> list[Any]:
    """
    Return *batch* as the line protocol writes it.

    >>> batch_to_json(RecordBatch(3, 6)), batch_to_json(RecordBatch(7, 8, 1, True))
    ([3, 6], [7, 8, {'producer_id': 1, 'transactional': True, 'control': None}])
    """
    if batch.producer_id == NO_PRODUCER_ID and not batch.is_transactional:
        return [batch.first_offset, batch.last_offset]
    control = None if batch.control is None else batch.control.value
    attributes = {
        "producer_id": batch.producer_id,
        "transactional": batch.is_transactional,
        "control": control,
    }
    return [batch.first_offset, batch.last_offset, attributes]


@define
class RebuiltState:
    """
    The state that a share coordinator would have stored, rebuilt from the writes that succeeded.

    >>> stored = RebuiltState(state_epoch=2)
    >>> stored.write({"start_offset": 0, "state_batches": [[0, 4, 2, 1], [5, 9, 0, 1]]})
    >>> stored.write({"start_offset": 3, "state_batches": [[5, 6, 2, 2]]})
    >>> stored.as_answer()["state_batches"]
    [[3, 4, 2, 1], [5, 6, 2, 2], [7, 9, 0, 1]]

    Attributes:
        start_offset: The SPSO, or -1 as long as nothing was written.
        state_epoch: The epoch of the state.
        records: Delivery count and state of each offset.

    Source:
        PersisterStateBatchCombiner (Kafka 4.3.1): the higher (delivery count, state) wins, equal neighbors merge.
    """

    start_offset: int = -1
    state_epoch: int = 0
    records: dict[int, tuple[int, int]] = Factory(dict)

    def write(self, write: dict[str, Any]) -> None:
        """Apply a write that was answered with success; its fields are those of the line protocol."""
        self.start_offset = max(self.start_offset, write["start_offset"])
        for first, last, state, delivery_count in write["state_batches"]:
            for offset in range(first, last + 1):
                new = (delivery_count, state)
                self.records[offset] = max(new, self.records.get(offset, new))
        self.records = {offset: record for offset, record in self.records.items() if offset >= self.start_offset}

    def as_answer(self) -> dict[str, Any]:
        """Return the answer to a read of this state."""
        return {
            "state_epoch": self.state_epoch,
            "start_offset": self.start_offset,
            "state_batches": list(self._runs()),
        }

    def _runs(self) -> Iterator[list[int]]:
        run: list[int] = []
        for offset in sorted(self.records):
            delivery_count, state = self.records[offset]
            if run and run[1:] == [offset - 1, state, delivery_count]:
                run[1] = offset
                continue
            if run:
                yield run
            run = [offset, offset, state, delivery_count]
        if run:
            yield run


class Holding(NamedTuple):
    """
    A range that a member has acquired and holds until *deadline_ms*.

    Attributes:
        member: The member that acquired it.
        first_offset: The first offset of the range.
        last_offset: The last offset of the range, included.
        deadline_ms: The time at which the acquisition lock expires, unless it is renewed. [ms]
    """

    member: str
    first_offset: int
    last_offset: int
    deadline_ms: int


@define
class Surroundings:
    """
    The surroundings of one share partition, kept up to date from the responses of the server under test.

    Attributes:
        choices: The source of every choice.
        mix: The proportions of the sequence.
        log: The partition's log.
        members: The members of the group.
        stored: The state that the share coordinator has.
        committed: Whether the group reads committed records only.
        has_queue: Whether the group has a dead-letter queue, which may be switched off and on.
        leader_epoch: The leader epoch of the share partition that is open.
        opened_with: The config it was opened with.
        lock_duration_ms: The duration of new acquisition locks. [ms]
        now_ms: The share partition's clock. [ms]
        is_active: Whether its initialization has succeeded.
        is_read_held: Whether the read has no answer yet.
        held_writes: The writes that have no answer yet, by number.
        held_dead_letters: What the dead-letter queue was handed and has not answered, by number.
        holdings: The ranges that members have acquired and not acknowledged.
        recently_held: The ranges that members held until a short while ago; at most RECENTLY_HELD.
    """

    choices: Choices
    mix: Mix
    log: Log
    members: tuple[str, ...]
    stored: RebuiltState = Factory(RebuiltState)
    committed: bool = False
    has_queue: bool = False
    leader_epoch: int = 0
    opened_with: dict[str, Any] = Factory(dict)
    lock_duration_ms: int = 30_000
    now_ms: int = 0
    is_active: bool = False
    is_read_held: bool = False
    held_writes: dict[int, dict[str, Any]] = Factory(dict)
    held_dead_letters: dict[int, dict[str, Any]] = Factory(dict)
    holdings: list[Holding] = Factory(list)
    recently_held: list[Holding] = Factory(list)

    def ask(self, op: str, **fields: Any) -> Steps[Response]:  # noqa: ANN401 - the fields of a request are JSON
        """Send one request, learn from its response, and return it."""
        request: Request = {"op": op, **fields}
        if self.mix.key:
            request["key"] = self.mix.key
        if self.mix.quiet:
            request["quiet"] = True
        response = yield request
        self._observe(request, response)
        return response

    def hold(self, member: str, ranges: list[tuple[int, int]]) -> None:
        """Note that *member* holds *ranges* as of now."""
        deadline = self.now_ms + self.lock_duration_ms
        self.holdings += [Holding(member, first, last, deadline) for first, last in ranges]

    def expire(self) -> None:
        """Drop the holdings whose locks have expired by now."""
        self.drop([holding for holding in self.holdings if holding.deadline_ms < self.now_ms])

    def drop(self, holdings: list[Holding]) -> None:
        """Move *holdings* to those that were held recently."""
        gone = set(holdings)
        if gone:
            self.holdings = [holding for holding in self.holdings if holding not in gone]
            self.recently_held = [*self.recently_held, *holdings][-RECENTLY_HELD:]

    def reset(self) -> None:
        """Forget everything that a new leader does not have."""
        self.drop(self.holdings)
        self.now_ms = 0
        self.is_active = self.is_read_held = False
        self.held_writes = {}
        self.held_dead_letters = {}

    def _observe(self, request: Request, response: Response) -> None:
        for event in response.get("events") or ():
            self._observe_event(event)
        if request["op"] == "complete":
            self._observe_completion(request)
        elif request["op"] == "initialize":
            result = response.get("result")
            self.is_active = isinstance(result, dict) and result.get("status") == "ok"

    def _observe_event(self, event: list[Any]) -> None:
        match event:
            case ["write", write, "hold"]:
                self.held_writes[write["write"]] = write
            case ["write", write, "ok"]:
                self.stored.write(write)
            case ["dlq", dead_letter, "hold"]:
                self.held_dead_letters[dead_letter["dlq"]] = dead_letter
            case ["read", "hold"]:
                self.is_read_held = True
            case ["future", _, status] if self.is_read_held:
                self.is_active = status == "ok"

    def _observe_completion(self, request: Request) -> None:
        if "dlq" in request:
            self.held_dead_letters.pop(request["dlq"], None)
            return
        if request["write"] == "read":
            self.is_read_held = False
            return
        write = self.held_writes.pop(request["write"], None)
        if write is not None and request["answer"] == "ok":
            self.stored.write(write)
