"""A dead-letter queue in memory, which answers when the test lets it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from types import MappingProxyType
from typing import Final

from sharestate.dead_letters.records import DeadLetterRecord, SourceRecord, dead_letter_records
from sharestate.dead_letters.settings import DeadLetterSettings
from sharestate.errors import ErrorCode, ExternalError, ShareStateError
from sharestate.values.checks import a_callable, expect, integer
from sharestate.values.dead_letters import DeadLetterRequest
from sharestate.values.records import SharePartitionKey

OPEN: Final = DeadLetterSettings(topic_name="dlq.dead-letters", topic_group_enable=True)
"""Settings with which no request is refused, and nothing is copied."""

DEFAULT_MAX_RECORDS: Final = 2**20
"""The most records that a queue keeps unless it is made otherwise: a request may be for any range of offsets."""


class HeldDeadLetterRequest:
    """
    A request whose answer is held back; exactly one of the three methods ends it.

    Attributes:
        request: The request.
        future: The caller's future; it cannot be cancelled.
    """

    def __init__(self, queue: InMemoryDeadLetterQueue, request: DeadLetterRequest) -> None:
        """Hold *request* back."""
        self.request = request
        self.future: Future[None] = Future()
        self.future.set_running_or_notify_cancel()  # from now on `cancel` does nothing
        self._queue = queue

    def answer(self) -> None:
        """Write the dead letters and answer success, or answer why they are refused by now."""
        refusal = self._queue._refusal(self.request)  # noqa: SLF001 - the two are one
        if refusal is not None:
            self.fail(refusal)
        else:
            self._queue._write(self.request)  # noqa: SLF001
            self._release().set_result(None)

    def fail(self, error: Exception) -> None:
        """Answer with *error*; nothing is written."""
        self._release().set_exception(error)

    def lose(self, error: Exception) -> None:
        """Write the dead letters, and answer with *error* all the same, as if the topic's answer was lost."""
        self._queue._write(self.request)  # noqa: SLF001
        self.fail(error)

    def _release(self) -> Future[None]:
        self._queue._held.remove(self)  # noqa: SLF001
        return self.future


class InMemoryDeadLetterQueue:
    """
    Keeps the dead letters of share groups in memory, as a broker would write them.

    It answers at once. While ``is_holding`` is True it holds requests back, and a test answers them: see ``held``.
    What the settings refuse fails at once in any case.

    Args:
        settings: The settings of every group that uses it; those by default refuse and copy nothing.
        topic_names: The names of topics by their ids, for the headers.
        read_record: Returns the record of a share partition at an offset, None if there is none; for copies.
        max_records: A request with which there would be more than this fails. [records]

    Attributes:
        settings: The settings; they may be replaced at any time.
        is_holding: Whether requests that come from now on are held back; False at first.

    >>> from sharestate import DeadLetterCause, DeadLetterRequest, SharePartitionKey
    >>> queue = InMemoryDeadLetterQueue(topic_names={"t": "orders"})
    >>> key = SharePartitionKey(group_id="g", topic_id="t", partition=0)
    >>> queue.enqueue(DeadLetterRequest(key, 0, 7, 7, 5, DeadLetterCause.DELIVERY_COUNT_EXCEEDED)).result()
    >>> for header in queue.records[0].headers:
    ...     print(*header)
    __dlq.errors.topic b'orders'
    __dlq.errors.partition b'0'
    __dlq.errors.offset b'7'
    __dlq.errors.group b'g'
    __dlq.errors.delivery.count b'5'
    __dlq.errors.message b'Offset delivery count exceeded the threshold.'

    Not thread-safe.
    """

    def __init__(
        self,
        settings: DeadLetterSettings = OPEN,
        *,
        topic_names: Mapping[str, str] = MappingProxyType({}),
        read_record: Callable[[SharePartitionKey, int], SourceRecord | None] | None = None,
        max_records: int = DEFAULT_MAX_RECORDS,
    ) -> None:
        """Make a queue that has no dead letters yet."""
        self.settings = expect(settings, DeadLetterSettings, "settings")
        self.is_holding = False
        self._topic_names = topic_names
        self._read_record = None if read_record is None else a_callable(read_record, "read_record")
        self._max_records = integer(max_records, "max_records", 0)
        self._requests: list[DeadLetterRequest] = []
        self._held: list[HeldDeadLetterRequest] = []
        self._records: list[DeadLetterRecord] = []

    def enqueue(self, request: DeadLetterRequest, /) -> Future[None]:
        """Write the dead letters of a range of records."""
        dead_letter_records(request)  # refuses what is malformed
        held = HeldDeadLetterRequest(self, request)
        self._requests.append(request)
        self._held.append(held)
        if not self.is_holding or self._refusal(request) is not None:
            held.answer()
        return held.future

    # ---- for tests

    @property
    def records(self) -> tuple[DeadLetterRecord, ...]:
        """The dead letters, in the order of writing."""
        return tuple(self._records)

    @property
    def requests(self) -> tuple[DeadLetterRequest, ...]:
        """Every request so far, in the order of arrival."""
        return tuple(self._requests)

    @property
    def held(self) -> tuple[HeldDeadLetterRequest, ...]:
        """The requests that are held back, in the order of arrival."""
        return tuple(self._held)

    def _refusal(self, request: DeadLetterRequest) -> ShareStateError | None:
        """Return why *request* is refused: by the settings, or because there is no room; None if it is not."""
        count = len(self._records) + request.last_offset - request.first_offset + 1
        if count <= self._max_records:
            return self.settings.refusal(request.key.group_id)
        message = f"the dead-letter queue keeps at most {self._max_records} records, and this would make {count}"
        return ExternalError(message, ErrorCode.RECORD_LIST_TOO_LARGE, "RecordBatchTooLargeException")

    def _write(self, request: DeadLetterRequest) -> None:
        copy = self._read_record if self.settings.copy_record_enable else None
        self._records += dead_letter_records(
            request,
            topic_name=self._topic_names.get(request.key.topic_id),
            read_record=copy and partial(copy, request.key),
        )
