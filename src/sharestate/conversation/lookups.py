"""What the log answers when a share partition's start offset has to be found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from attrs import frozen

from sharestate.conversation.answers import exception_in
from sharestate.conversation.meanings import Answer
from sharestate.errors import ForeignError
from sharestate.json_checks import MAX_INT64, Field, integer, record
from sharestate.json_lines import Json
from sharestate.values.config import OffsetReset

Found: TypeAlias = int | ForeignError | None
"""An offset, or what the log failed with; None if it does not know."""

KINDS: Final[Mapping[OffsetReset, str]] = {
    OffsetReset.EARLIEST: "earliest",
    OffsetReset.LATEST: "latest",
    OffsetReset.BY_DURATION: "timestamp",
}
"""What is looked up for each strategy, as events name it."""

_offset: Final = integer(0, MAX_INT64)
_exception: Final = exception_in("exception")


def _found(value: Json, path: str) -> Answer[Found]:
    if isinstance(value, dict):
        return Answer(value, _exception(value, path))
    return Answer(value, None if value is None else _offset(value, path))


_FIRST: Final[Answer[Found]] = Answer(0, 0)


@frozen(kw_only=True)
class LookupTable:
    """One answer for each kind of look-up."""

    earliest: Answer[Found] = _FIRST
    """Where the log begins."""

    latest: Answer[Found] = _FIRST
    """Where it ends."""

    timestamp: Answer[Found] = _FIRST
    """The first offset at or after a time."""

    def of(self, strategy: OffsetReset) -> Answer[Found]:
        """Return the answer for *strategy*."""
        answer: Answer[Found] = getattr(self, KINDS[strategy])
        return answer


NO_TABLE: Final = LookupTable()
"""Every look-up finds offset 0."""

lookup_table: Final = record({kind: Field(_found, default=_FIRST) for kind in KINDS.values()}, LookupTable)
"""Takes a table; offset 0 is found for what it does not name."""
