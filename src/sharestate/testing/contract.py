"""Contracts as tests: classes with a method for each clause, which raises AssertionError if it does not hold."""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, ClassVar, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

T = TypeVar("T")


class Contract(ABC):  # noqa: B024 - what is made for each clause is for the subclasses to say
    """The clauses are the methods named ``test_...``; pytest collects those of a class named ``Test...``."""

    timeout_s: ClassVar[float] = 30.0
    """The longest time that an answer may take. [s]"""

    def wait(self, future: Future[T]) -> T:
        """Return what *future* ends with; override it if somebody has to be polled for that."""
        return future.result(timeout=self.timeout_s)


def expect(found: T, expected: T, what: str) -> None:
    """Raise AssertionError unless *found* is as *expected*."""
    if found != expected:
        fail(f"{what}: expected {expected!r}, found {found!r}")


def fail(message: str) -> NoReturn:
    """Raise AssertionError."""
    raise AssertionError(message)


def clauses(contract: Contract) -> Sequence[str]:
    """Return the names of the tests of *contract*."""
    return [name for name in dir(contract) if name.startswith("test_")]


def broken_clauses(contract: Contract) -> dict[str, str]:
    """Return the clauses that do not hold, without pytest: the names of the tests that fail, with their messages."""
    broken = {}
    for name in clauses(contract):
        try:
            getattr(contract, name)()
        except AssertionError as error:
            broken[name] = str(error)
        except Exception as error:  # noqa: BLE001 - any error of what is tested, or TimeoutError if it never answers
            broken[name] = repr(error)
    return broken
