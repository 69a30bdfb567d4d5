"""The writes of a replayed share partition that have no answer yet, and what their members were answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from attrs import Factory, define, field

from sharestate.errors import ErrorCode
from sharestate.history.columns import ERRORS
from sharestate.history.replay_state import WriteContent, are_same_batches, content_of, find_write
from sharestate.values.requests import WriteShareGroupState

_REFUSALS: Final = frozenset({ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST})
"""The errors of an acknowledgement that no failed write has."""


@define
class PendingWrites:
    """The writes of a share partition that have no answer yet."""

    by_number: dict[int, WriteShareGroupState] = field(factory=dict)
    """The writes by their numbers."""

    expected: dict[int, tuple[str, str | None]] = field(factory=dict)
    """The kind and the answered error of the events whose writes are pending, by the numbers of the writes."""

    abandoned: list[WriteContent] = Factory(list)
    """The writes of the leader before this one that were pending as it was replaced."""

    def add(self, writes: Iterable[WriteShareGroupState]) -> None:
        """Add writes that were issued."""
        for write in writes:
            self.by_number[write.number] = write

    def abandon(self) -> int:
        """Note that the leader is gone, whose writes decide nothing any more; return how many there were. [writes]"""
        count = len(self.by_number)
        self.abandoned = list(map(content_of, self.by_number.values()))
        self.by_number.clear()
        self.expected.clear()
        return count

    def find(self, content: WriteContent) -> int | None:
        """Return the number of the oldest write with *content*; None if there is none."""
        return find_write(self.by_number, content)

    def similar(self, content: WriteContent) -> int | None:
        """Return the number of the oldest write with the state batches of *content*; None if there is none."""
        batches = content[-1]
        return next((n for n, write in self.by_number.items() if are_same_batches(write[6], batches)), None)

    def is_abandoned(self, content: WriteContent) -> bool:
        """Return whether *content* is that of a write of the leader before this one, which is forgotten then."""
        if content not in self.abandoned:
            return False
        self.abandoned.remove(content)
        return True

    def implied_error(self, number: int) -> ErrorCode | None:
        """Return why a write has failed that was not observed itself, if its member's answer says so."""
        observed = self.expected.get(number, ("", None))[1]
        error = None if observed is None else ERRORS[observed]
        return None if error in _REFUSALS else error

    def contents(self) -> Iterator[tuple[int, WriteContent]]:
        """Yield the number and the content of each write."""
        for number, write in self.by_number.items():
            yield number, content_of(write)
