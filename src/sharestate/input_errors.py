"""
The base class of the library's errors, and the errors of input that is wrong before anything is known.

A module of its own because what checks values raises them, while other errors carry values; ``errors`` has them all.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from attrs import define, fields

from sharestate.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable


@define(eq=False, slots=False)
class ShareStateError(Exception):
    """
    The base class of the errors that the library raises or returns.

    Errors of one class that say the same are equal, so what carries them can be compared.

    Attributes:
        message: The text for the client, in Kafka's words where Kafka has some; None if the persister gave no text.
    """

    message: str | None = None

    code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR
    """The error code that a broker would put on the wire."""

    kafka_exception: ClassVar[str | None] = None
    """The Java exception behind the code where it is not the usual one."""

    @property
    def retriable(self) -> bool:
        """True if the same request may succeed when it is sent again."""
        return self.code.retriable

    @property
    def exception(self) -> str:
        """The simple name of the exception that Kafka's class would raise."""
        return self.kafka_exception or self.code.exception

    def __eq__(self, other: object) -> bool:
        """Return whether *other* is of the same class and carries the same."""
        return type(self) is type(other) and self._carried() == other._carried()

    def __hash__(self) -> int:
        """Return a hash of the class and the message."""
        return hash((type(self), self.message))

    def __reduce__(self) -> tuple[Callable[[], Self], tuple[()], dict[str, Any]]:
        """Pickle and copy by field names: exceptions go by position, which keyword-only fields do not have."""
        return partial(type(self), **self._carried()), (), vars(self)

    def _carried(self) -> dict[str, Any]:
        return {attribute.name: getattr(self, attribute.name) for attribute in fields(type(self))}

    def __str__(self) -> str:
        """Return the message, or the code's name if there is none."""
        return self.code.name if self.message is None else self.message


@define(eq=False, slots=False)
class MalformedInputError(ShareStateError, ValueError):
    """
    An argument of the wrong type, or outside what the wire can carry.

    Attributes:
        field: The argument, as a path: ``batches[3].first_offset``.
    """

    field: str | None = None

    code = ErrorCode.INVALID_REQUEST

    def __str__(self) -> str:
        """Return the message, after the argument that it is about."""
        return f"{self.field}: {super().__str__()}" if self.field else super().__str__()


class SnapshotError(MalformedInputError):
    """A snapshot of another version or profile, or one that contradicts itself; ``field`` names the part."""


@define(eq=False, slots=False)
class InvalidConfigurationError(ShareStateError):
    """
    A setting that is refused when it is made.

    Attributes:
        key: The setting, by Kafka's name for it; None if brokers have no such setting.
    """

    key: str | None = None

    code = ErrorCode.INVALID_CONFIG
