"""What users of the test of share partitions implement: what is said of theirs, and the methods that are called."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from sharestate.testing.partitions.events import PartitionSettings, ReadState
from sharestate.testing.partitions.log import LOGS
from sharestate.testing.record_model.in_flight import Rules
from sharestate.values.acknowledgements import AcknowledgementBatch
from sharestate.values.fetched_records import FetchedRecords

OPTIONAL: Final = (
    "move_log_start",
    "configure",
    "take_dead_letters",
    "next_fetch_offset",
    "can_acquire",
    "start_offset",
    "records",
)
"""The methods that an implementation may lack, and with them what they do or show."""


class SharePartitionAdapter:
    """A share partition as its test knows it: what ``SharePartitionMachine`` calls, and what is declared to it."""

    # ---- declarations

    follows: ClassVar[Rules] = Rules()
    """The rules: those of Kafka, unless it is said otherwise."""

    copied_bugs: ClassVar[Collection[str]] = ()
    """The bugs of Kafka that the implementation has too, by their ids in ``KAFKA_BUGS``: a run ends where one shows."""

    members: ClassVar[Sequence[str]] = ("m1", "m10")
    """The member ids; one of them begins as another one does, since they are no prefixes."""

    logs: ClassVar[Sequence[str]] = tuple(LOGS)
    """The logs that are tried; ``single records`` and ``sparse records`` have no batches of more than one record."""

    delivery_count_limit: ClassVar[int | None] = None
    """How often a record may be delivered; None to draw it. [deliveries]"""

    lock_duration_ms: ClassVar[int | None] = None
    """How long a member has what it has acquired; None to draw it. [ms]"""

    max_record_locks: ClassVar[int | None] = None
    """How many records may be in flight; None to draw it. [records]"""

    batch_size: ClassVar[int | None] = None
    """How large a batch in flight becomes before it is cut at one of the log; None to draw it. [records]"""

    acquire_mode: ClassVar[str | None] = None
    """batch_optimized or record_limit; None to draw it."""

    isolation_level: ClassVar[str | None] = None
    """read_uncommitted or read_committed; None to draw it."""

    # ---- to be implemented

    def start(self, settings: PartitionSettings, state: ReadState, leader_epoch: int) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Let a new leader take over, which has read *state*."""
        raise NotImplementedError

    def acquire(
        self, member: str, fetched: FetchedRecords, max_records: int
    ) -> Iterable[Sequence[int]] | Awaitable[Any]:
        """Acquire from what was *fetched*; return (first offset, last offset, delivery count) of each range."""
        raise NotImplementedError

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int | Awaitable[Any] | None:
        """Acknowledge ranges, which ascend, in one request; return the error code of a refusal, or raise it."""
        raise NotImplementedError

    def release(self, member: str) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Release what *member* has: its session is closed."""
        raise NotImplementedError

    def advance_clock(self, ms: int) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Let time pass, and expire the locks that are over then; with 0 those that are due already."""
        raise NotImplementedError

    def take_writes(self) -> Iterable[Sequence[Any]] | Awaitable[Any]:
        """
        Return the writes since the last call.

        Each is (number, start offset, batches of (first, last, state, count)), and the delivery complete count if the
        implementation has one.
        """
        raise NotImplementedError

    def answer_write(self, number: int, *, succeeds: bool) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Report that a write has succeeded, or failed."""
        raise NotImplementedError

    # ---- to be implemented if there is such a thing

    def move_log_start(self, offset: int) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Take note that the log begins at *offset* now."""

    def configure(self, settings: PartitionSettings) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Take note that the settings are these from now on."""

    def take_dead_letters(self) -> Iterable[Sequence[Any]] | Awaitable[Any]:
        """
        Return what has gone to the dead-letter queue since the last call.

        It is (number, first offset, last offset, delivery count, cause), the cause *client_reject* or
        *delivery_count_exceeded*.
        """
        raise NotImplementedError

    def answer_dead_letter(self, number: int, *, succeeds: bool) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Report that the dead-letter queue has taken records, or failed to."""
        raise NotImplementedError

    def next_fetch_offset(self) -> int | Awaitable[int]:
        """Return where the next fetch begins."""
        raise NotImplementedError

    def can_acquire(self) -> bool | Awaitable[bool]:
        """Return whether a fetch could bring something: what is available again, or, as there is room, new records."""
        raise NotImplementedError

    def start_offset(self) -> int | Awaitable[int]:
        """Return the SPSO."""
        raise NotImplementedError

    def records(self) -> Mapping[int, tuple[Any, int, str]] | Awaitable[Any]:
        """
        Return state, delivery count and owner (or an empty string) of each record in flight, by its offset.

        A state is Kafka's name or number of it, or a member of an enumeration with that name: ACQUIRED, or 1.
        """
        raise NotImplementedError

    def stop(self) -> Any:  # noqa: ANN401 - None, or an awaitable
        """Clean up; called once, at the end."""
