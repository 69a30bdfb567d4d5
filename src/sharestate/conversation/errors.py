"""What a conversation, a trace or a list of known differences can be refused for."""

from __future__ import annotations

from attrs import define

from sharestate.error_codes import ErrorCode
from sharestate.errors import ShareStateError


@define(eq=False, slots=False)
class BadRequestError(ShareStateError):
    """A line that is no valid request; nothing was changed, and the conversation goes on."""

    line: int = 0
    """The line's number in the conversation; the first one is 1."""

    field: str = ""
    """The part of the request that was wrong, as a path: ``batches[3][0]``; empty for the line as a whole."""

    code = ErrorCode.INVALID_REQUEST


@define(eq=False, slots=False)
class UnreadableFileError(ShareStateError):
    """A trace, or a list of known differences, that cannot be read."""

    file: str = ""
    """The file, as it was given."""

    line: int | None = None
    """The line's number, the first one being 1; None if the file as a whole cannot be read."""

    field: str = ""
    """The part of the line that was wrong, as a path; empty for the line as a whole."""

    def __str__(self) -> str:
        """Return the place and what is wrong there, in one line: ``a.jsonl:1: trace: ...``."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, self.field, self.message) if part)
