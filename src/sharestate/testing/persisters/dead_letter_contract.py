"""
The contract of dead-letter queues as tests: inherit ``DeadLetterQueueContract`` and implement its two abstract methods.

With ``change_settings`` no clause is left out.

Each clause of ``sharestate.dead_letters.DeadLetterQueue`` is a method, which raises AssertionError if it does not hold.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

from attrs import evolve

from sharestate.dead_letters.records import DeadLetterRecord, SourceRecord
from sharestate.dead_letters.settings import DeadLetterSettings
from sharestate.errors import DeadLetterQueueConfigError, MalformedInputError
from sharestate.testing.persisters.clauses import Contract, expect, fail, not_tested
from sharestate.values.dead_letters import DeadLetterCause, DeadLetterRequest
from sharestate.values.records import SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from sharestate.dead_letters.protocol import DeadLetterQueue

OPEN: Final = DeadLetterSettings(topic_name="dlq.contract", topic_group_enable=True)
REJECTED: Final = DeadLetterCause.CLIENT_REJECT
EXCEEDED: Final = DeadLetterCause.DELIVERY_COUNT_EXCEEDED
SOURCE: Final = {
    3: SourceRecord(b"key 3", b"value 3"),
    4: SourceRecord(None, b"value 4"),
    6: SourceRecord(b"key 6", None),
    7: SourceRecord(b"", b"\xff\x00"),
}
"""The records of partition 0; there is none at 5."""


class DeadLetterQueueContract(Contract):
    """
    Tests that any ``DeadLetterQueue`` passes; pytest collects them in a subclass whose name begins with ``Test``.

    A new queue is made for each of them, with no dead letters.
    """

    group_id: ClassVar[str] = "contract"
    """The group that is used."""

    other_group_id: ClassVar[str] = "other-contract"
    """Another one."""

    topic_id: ClassVar[str] = "dGhlIHRvcGljJ3MgaWQhIQ"
    """The topic that is used."""

    topic_name: ClassVar[str] = "orders"
    """Its name, which the queue has to know."""

    @abstractmethod
    def make_queue(self, settings: DeadLetterSettings, source: Mapping[int, SourceRecord]) -> DeadLetterQueue:
        """
        Return a new queue.

        Args:
            settings: The settings of every group.
            source: The records of partition 0 by offset. Other partitions have none.
        """

    @abstractmethod
    def dead_letters(self, queue: DeadLetterQueue) -> Sequence[DeadLetterRecord]:
        """Return the dead letters that *queue* has written, in the order of its topic."""

    def change_settings(self, queue: DeadLetterQueue, settings: DeadLetterSettings) -> None:  # noqa: ARG002 - of those that can
        """Let the settings of every group be others from now on; the clause about that is not tested without it."""
        not_tested("the contract has no change_settings()")

    # ---- requests in short

    def request(  # noqa: PLR0913 - what a request says
        self,
        first: int,
        last: int,
        *,
        number: int = 0,
        count: int = 1,
        cause: DeadLetterCause = REJECTED,
        partition: int = 0,
        group_id: str | None = None,
    ) -> DeadLetterRequest:
        """Return a request."""
        key = SharePartitionKey(group_id=group_id or self.group_id, topic_id=self.topic_id, partition=partition)
        return DeadLetterRequest(key, number, first, last, count, cause)

    def written(self, queue: DeadLetterQueue, *requests: DeadLetterRequest) -> Sequence[DeadLetterRecord]:
        """Send *requests*, each of which has to succeed, and return all dead letters."""
        for request in requests:
            if (error := self.failure(queue.enqueue(request))) is not None:
                fail(f"{request} failed: {error!r}")
        return self.dead_letters(queue)

    def failure(self, future: Future[None]) -> BaseException | None:
        """Return what *future* fails with; None if it does not."""
        try:
            self.wait(future)
        except Exception as error:  # a queue may fail with any
            if not future.done():  # nobody has answered
                raise
            return error
        return None

    def offsets(self, records: Sequence[DeadLetterRecord]) -> list[tuple[str, ...]]:
        """Return group, partition and offset of each of *records*, as their headers have them."""
        names = ("__dlq.errors.group", "__dlq.errors.partition", "__dlq.errors.offset")
        return [tuple(dict(record.headers)[name].decode() for name in names) for record in records]

    def mine(self, *offsets: int, partition: int = 0) -> list[tuple[str, ...]]:
        """Return what ``offsets`` returns for *offsets* of the group that is used."""
        return [(self.group_id, str(partition), str(offset)) for offset in offsets]

    # ---- the clauses: what is written

    def test_there_is_a_dead_letter_for_each_offset(self) -> None:
        """There is one for every offset, the first and the last one included, whether a record is there or not."""
        records = self.written(self.make_queue(OPEN, SOURCE), self.request(3, 7))
        expect(self.offsets(records), self.mine(3, 4, 5, 6, 7), "the dead letters of 3-7")

    def test_the_headers_say_what_has_happened(self) -> None:
        """The headers are Kafka's, in Kafka's order, as UTF-8 text."""
        requests = (
            self.request(3, 3, count=2, group_id="a\N{LATIN SMALL LETTER E WITH ACUTE}"),
            self.request(12345678901, 12345678901, count=10, cause=EXCEEDED, partition=11),
        )
        expected = [
            [self.topic_name, "0", "3", "a\N{LATIN SMALL LETTER E WITH ACUTE}", "2", "Offset rejected by client."],
            [
                self.topic_name,
                "11",
                "12345678901",
                self.group_id,
                "10",
                "Offset delivery count exceeded the threshold.",
            ],
        ]
        names = ("topic", "partition", "offset", "group", "delivery.count", "message")
        headers = [
            tuple((f"__dlq.errors.{name}", value.encode()) for name, value in zip(names, values, strict=True))
            for values in expected
        ]
        records = self.written(self.make_queue(OPEN, SOURCE), *requests)
        expect(sorted(tuple(record.headers) for record in records), sorted(headers), "the headers")

    def test_key_and_value_are_copied(self) -> None:
        """Key and value are the record's, bytes as they are, if the group's settings say so; None for what is not."""
        queue = self.make_queue(evolve(OPEN, copy_record_enable=True), SOURCE)
        copies = [SOURCE.get(offset, SourceRecord()) for offset in (3, 4, 5, 6, 7)]
        records = self.written(queue, self.request(3, 7))
        expect([SourceRecord(record.key, record.value) for record in records], copies, "the copies of 3-7")

    def test_nothing_is_copied_unasked(self) -> None:
        """Key and value are None if the group's settings do not say otherwise."""
        records = self.written(self.make_queue(OPEN, SOURCE), self.request(3, 7))
        expect([(record.key, record.value) for record in records], [(None, None)] * 5, "the copies of 3-7")

    def test_share_partitions_share_a_queue(self) -> None:
        """Groups and partitions do not mix: each dead letter says whose it is, and has a copy of its own record."""
        queue = self.make_queue(evolve(OPEN, copy_record_enable=True), SOURCE)
        requests = (
            self.request(3, 3),
            self.request(3, 3, partition=1),
            self.request(3, 3, group_id=self.other_group_id),
        )
        records = self.written(queue, *requests)
        expected = [*self.mine(3), *self.mine(3, partition=1), (self.other_group_id, "0", "3")]
        expect(sorted(self.offsets(records)), sorted(expected), "whose the dead letters are")
        values = {offset: record.value for offset, record in zip(self.offsets(records), records, strict=True)}
        expect([values[offset] for offset in expected], [b"value 3", None, b"value 3"], "the copies")

    def test_what_comes_again_is_written_again(self) -> None:
        """A request that was written before, by this leader or one before it, is written again."""
        records = self.written(self.make_queue(OPEN, SOURCE), self.request(3, 4), self.request(3, 4))
        expect(sorted(self.offsets(records)), sorted(self.mine(3, 4, 3, 4)), "the dead letters of 3-4, twice")

    def test_numbers_come_again(self) -> None:
        """The next leader counts from 0 again: other records under a number that was there before are written."""
        records = self.written(self.make_queue(OPEN, SOURCE), self.request(3, 3), self.request(6, 7))
        expect(sorted(self.offsets(records)), sorted(self.mine(3, 6, 7)), "the dead letters of 3 and of 6-7")

    # ---- the clauses: answers

    def test_every_request_has_an_answer(self) -> None:
        """Requests that are sent one after the other without waiting are all answered."""
        queue = self.make_queue(OPEN, SOURCE)
        futures = [queue.enqueue(self.request(offset, offset, number=offset)) for offset in (3, 4, 5)]
        expect([self.failure(future) for future in futures], [None] * 3, "the answers to three requests")
        expect(sorted(self.offsets(self.dead_letters(queue))), self.mine(3, 4, 5), "the dead letters of 3-5")

    def test_what_the_settings_refuse_fails(self) -> None:
        """A request fails with the reason of the settings, in its future, and nothing is written."""
        settings = evolve(OPEN, topic_group_enable=False)
        queue = self.make_queue(settings, SOURCE)
        error = self.failure(queue.enqueue(self.request(3, 4)))
        if not isinstance(error, DeadLetterQueueConfigError):
            fail(f"a request that the settings refuse ended with {error!r}")
        expect(error, settings.refusal(self.group_id), "the refusal")
        expect(list(self.dead_letters(queue)), [], "the dead letters after a refusal")

    def test_settings_are_looked_up_for_every_request(self) -> None:
        """A request is carried out, or refused, by the settings as they are then, whatever they were before."""
        queue = self.make_queue(OPEN, SOURCE)
        self.written(queue, self.request(3, 3))
        self.change_settings(queue, evolve(OPEN, copy_record_enable=True))
        records = self.written(queue, self.request(4, 4))
        copies = [None, SOURCE[4].value]
        expect([record.value for record in records], copies, "the copies of 3 and, with other settings, of 4")
        refusing = evolve(OPEN, topic_group_enable=False)
        self.change_settings(queue, refusing)
        error = self.failure(queue.enqueue(self.request(6, 6)))
        expect(error, refusing.refusal(self.group_id), "what a request ends with that the settings refuse now")
        self.change_settings(queue, OPEN)
        records = self.written(queue, self.request(7, 7))
        expect(sorted(self.offsets(records)), self.mine(3, 4, 7), "the dead letters of 3, 4 and 7, but not of 6")

    def test_a_malformed_request_is_refused(self) -> None:
        """A malformed request fails with MalformedInputError, at once or in the future, and changes nothing."""
        queue = self.make_queue(OPEN, SOURCE)
        for request in (None, self.request(4, 3), self.request(-1, 3)):
            error: BaseException | None
            try:
                error = self.failure(queue.enqueue(request))  # type: ignore[arg-type] # that is the point
            except MalformedInputError as refusal:
                error = refusal
            if not isinstance(error, MalformedInputError):
                fail(f"{request} ended with {error!r}")
        expect(list(self.dead_letters(queue)), [], "the dead letters after malformed requests")
