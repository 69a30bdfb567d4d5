"""Dead-letter queues with one bug each, and the clauses of the contract that each of them breaks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias

from attrs import evolve

from sharestate import DeadLetterCause, DeadLetterRequest, InMemoryDeadLetterQueue, SharePartitionKey
from sharestate.dead_letters import DeadLetterRecord, DeadLetterSettings, SourceRecord

ReadRecord: TypeAlias = Callable[[SharePartitionKey, int], SourceRecord | None]
"""Returns the record of a share partition at an offset."""


def is_request(request: object) -> bool:
    """Return whether *request* is a well-formed one: the contract tries others too."""
    return isinstance(request, DeadLetterRequest) and 0 <= request.first_offset <= request.last_offset


def answered() -> Future[None]:
    """Return a future of success."""
    future: Future[None] = Future()
    future.set_result(None)
    return future


class Changing(InMemoryDeadLetterQueue):
    """A queue that changes each request before it carries it out."""

    def change(self, request: DeadLetterRequest) -> DeadLetterRequest:
        """Return what is carried out instead of *request*."""
        raise NotImplementedError

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Carry out something else."""
        return super().enqueue(self.change(request) if is_request(request) else request)


class LeavesOutTheLast(Changing):
    """The last offset is taken for the one after the range."""

    def change(self, request: DeadLetterRequest) -> DeadLetterRequest:
        """Return *request* without its last offset."""
        return request._replace(last_offset=max(request.first_offset, request.last_offset - 1))


class WritesOnePerRequest(Changing):
    """A batch makes one dead letter."""

    def change(self, request: DeadLetterRequest) -> DeadLetterRequest:
        """Return *request* for its first offset."""
        return request._replace(last_offset=request.first_offset)


class MixesUpCauses(Changing):
    """Every record is said to be rejected."""

    def change(self, request: DeadLetterRequest) -> DeadLetterRequest:
        """Return *request* with the cause of a rejection."""
        return request._replace(cause=DeadLetterCause.CLIENT_REJECT)


class CountsOneMore(Changing):
    """The delivery count is one too high."""

    def change(self, request: DeadLetterRequest) -> DeadLetterRequest:
        """Return *request* with a higher count."""
        return request._replace(delivery_count=request.delivery_count + 1)


class WritesNumbers(InMemoryDeadLetterQueue):
    """Delivery counts are written as numbers, not as text."""

    @property
    def records(self) -> tuple[DeadLetterRecord, ...]:
        """The dead letters with another fifth header."""
        return tuple(
            record._replace(
                headers=tuple(
                    (name, int(value).to_bytes(2) if name.endswith("count") else value)
                    for name, value in record.headers
                )
            )
            for record in super().records
        )


class WritesInReverse(InMemoryDeadLetterQueue):
    """The dead letters of a request descend."""

    @property
    def records(self) -> tuple[DeadLetterRecord, ...]:
        """The dead letters in the other order."""
        return super().records[::-1]


class SortsHeaders(InMemoryDeadLetterQueue):
    """Headers are in the order of their names."""

    @property
    def records(self) -> tuple[DeadLetterRecord, ...]:
        """The dead letters with sorted headers."""
        return tuple(record._replace(headers=tuple(sorted(record.headers))) for record in super().records)


class LeavesOutMissing(InMemoryDeadLetterQueue):
    """There is no dead letter where there is nothing to copy."""

    @property
    def records(self) -> tuple[DeadLetterRecord, ...]:
        """The dead letters but for those of the offset at which the contract has no record."""
        return tuple(record for record in super().records if record.headers[2][1] != b"5")


class CopiesTexts(InMemoryDeadLetterQueue):
    """What is no UTF-8 is lost."""

    @property
    def records(self) -> tuple[DeadLetterRecord, ...]:
        """The dead letters with values that are text."""
        return tuple(
            record._replace(value=record.value and record.value.decode(errors="ignore").encode())
            for record in super().records
        )


class EmptyForNone(InMemoryDeadLetterQueue):
    """What is not there is written as empty."""

    @property
    def records(self) -> tuple[DeadLetterRecord, ...]:
        """The dead letters with a key and a value."""
        return tuple(record._replace(key=record.key or b"", value=record.value or b"") for record in super().records)


class NoneForEmpty(InMemoryDeadLetterQueue):
    """What is empty is written as if it were not there."""

    @property
    def records(self) -> tuple[DeadLetterRecord, ...]:
        """The dead letters without empty keys and values."""
        return tuple(record._replace(key=record.key or None, value=record.value or None) for record in super().records)


class CopiesUnasked(InMemoryDeadLetterQueue):
    """Key and value are always copied."""

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Copy, whatever the settings say."""
        self.settings = evolve(self.settings, copy_record_enable=True)
        return super().enqueue(request)


class ReadsOnePartition(InMemoryDeadLetterQueue):
    """Records are read from partition 0, whatever the partition."""

    def __init__(self, settings: DeadLetterSettings, *, read_record: ReadRecord, **arguments: Any) -> None:  # noqa: ANN401 - passed on
        """Have every partition share the records."""
        super().__init__(
            settings, read_record=lambda key, offset: read_record(evolve(key, partition=0), offset), **arguments
        )


class RemembersNumbers(InMemoryDeadLetterQueue):
    """A request with a number that was there before is taken for the same one."""

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Write what is new by its number."""
        seen = is_request(request) and any(
            (old.key, old.number) == (request.key, request.number) for old in self.requests
        )
        return answered() if seen else super().enqueue(request)


class RemembersRanges(InMemoryDeadLetterQueue):
    """A request that was there before is not written again."""

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Write what is new."""
        return answered() if request in self.requests else super().enqueue(request)


class KnowsOneGroup(InMemoryDeadLetterQueue):
    """The group of the first request stands in all of them."""

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Put the first key into every request."""
        if self.requests and is_request(request):
            request = request._replace(key=self.requests[0].key)
        return super().enqueue(request)


class AnswersBeforeItWrites(InMemoryDeadLetterQueue):
    """Success says that a request has arrived."""

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Answer, and forget."""
        if not is_request(request) or self.settings.refusal(request.key.group_id):
            return super().enqueue(request)
        return answered()


class AnswersOnlyTheFirst(InMemoryDeadLetterQueue):
    """There is one answer to the requests that come together."""

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Answer if nothing came before."""
        future = super().enqueue(request)
        return future if len(self.requests) == 1 else Future()


class WritesWhatIsRefused(InMemoryDeadLetterQueue):
    """The settings are not asked."""

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Write whatever comes."""
        if not is_request(request):
            return super().enqueue(request)
        self._write(request)
        return answered()


class RaisesRefusals(InMemoryDeadLetterQueue):
    """A refusal is raised, and is in no future."""

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Raise what has failed."""
        future = super().enqueue(request)
        future.result()
        return future


class WritesBeforeItAsks(InMemoryDeadLetterQueue):
    """A request that is refused has been written."""

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Write, then refuse."""
        if is_request(request) and self.settings.refusal(request.key.group_id):
            self._write(request)
        return super().enqueue(request)


class RefusesInItsOwnWords(InMemoryDeadLetterQueue):
    """A refusal is an error of its own."""

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Fail with another error."""
        future = super().enqueue(request)
        if future.exception() is None:
            return future
        other: Future[None] = Future()
        other.set_exception(OSError("refused"))
        return other


class KeepsItsFirstSettings(InMemoryDeadLetterQueue):
    """The settings are those that it was made with."""

    def __init__(self, settings: DeadLetterSettings, **named: Any) -> None:  # noqa: ANN401 - what a queue is made with
        """Remember the settings."""
        super().__init__(settings, **named)
        self.first_settings = settings

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Do as the first settings say."""
        self.settings = self.first_settings
        return super().enqueue(request)


class KeepsSettingsThatLetItWrite(InMemoryDeadLetterQueue):
    """A refusal is looked up anew, and what is copied is not."""

    def __init__(self, settings: DeadLetterSettings, **named: Any) -> None:  # noqa: ANN401 - what a queue is made with
        """Remember what is copied."""
        super().__init__(settings, **named)
        self.copies = settings.copy_record_enable

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Copy as the first settings say."""
        self.settings = evolve(self.settings, copy_record_enable=self.copies)
        return super().enqueue(request)


class TakesAnything(InMemoryDeadLetterQueue):
    """What is malformed succeeds."""

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Take what is none."""
        return super().enqueue(request) if is_request(request) else answered()


BREAKS: dict[type[InMemoryDeadLetterQueue], str] = {
    LeavesOutTheLast: "test_there_is_a_dead_letter_for_each_offset",
    WritesOnePerRequest: "test_there_is_a_dead_letter_for_each_offset",
    WritesInReverse: "test_there_is_a_dead_letter_for_each_offset",
    LeavesOutMissing: "test_there_is_a_dead_letter_for_each_offset",
    MixesUpCauses: "test_the_headers_say_what_has_happened",
    CountsOneMore: "test_the_headers_say_what_has_happened",
    WritesNumbers: "test_the_headers_say_what_has_happened",
    SortsHeaders: "test_the_headers_say_what_has_happened",
    CopiesTexts: "test_key_and_value_are_copied",
    NoneForEmpty: "test_key_and_value_are_copied",
    EmptyForNone: "test_nothing_is_copied_unasked",
    CopiesUnasked: "test_nothing_is_copied_unasked",
    ReadsOnePartition: "test_share_partitions_share_a_queue",
    KnowsOneGroup: "test_share_partitions_share_a_queue",
    RemembersRanges: "test_what_comes_again_is_written_again",
    RemembersNumbers: "test_numbers_come_again",
    AnswersBeforeItWrites: "test_every_request_has_an_answer",
    AnswersOnlyTheFirst: "test_every_request_has_an_answer",
    WritesWhatIsRefused: "test_what_the_settings_refuse_fails",
    RaisesRefusals: "test_what_the_settings_refuse_fails",
    WritesBeforeItAsks: "test_what_the_settings_refuse_fails",
    RefusesInItsOwnWords: "test_what_the_settings_refuse_fails",
    KeepsItsFirstSettings: "test_settings_are_looked_up_for_every_request",
    KeepsSettingsThatLetItWrite: "test_settings_are_looked_up_for_every_request",
    TakesAnything: "test_a_malformed_request_is_refused",
}
"""The clause that each of them breaks, and maybe others with it."""
