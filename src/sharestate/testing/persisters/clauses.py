"""Contracts as tests: classes with a method for each clause, which raises AssertionError if it does not hold."""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, ClassVar, NoReturn, TypeVar
from unittest import SkipTest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
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


def not_tested(reason: str) -> NoReturn:
    """End a clause that cannot be tested: pytest and unittest report it as skipped, with *reason*."""
    raise SkipTest(reason)


def clauses(contract: Contract) -> Sequence[str]:
    """Return the names of the tests of *contract*."""
    return [name for name in dir(contract) if name.startswith("test_")]


def broken_clauses(contract: Contract) -> dict[str, str]:
    """Return the clauses that do not hold, without pytest: the names of the tests that fail, with their messages."""
    return {
        name: str(error) if isinstance(error, AssertionError) else repr(error)
        for name, error in _errors(contract)
        if not isinstance(error, SkipTest)
    }


def untested_clauses(contract: Contract) -> dict[str, str]:
    """Return the clauses of which nothing is known, without pytest: the names of the tests, with the reasons."""
    return {name: str(error) for name, error in _errors(contract) if isinstance(error, SkipTest)}


def _errors(contract: Contract) -> Iterator[tuple[str, Exception]]:
    """Run the tests, and yield the names and errors of those that do not end well."""
    for name in clauses(contract):
        try:
            getattr(contract, name)()
        except Exception as error:  # noqa: BLE001 - any error of what is tested, or TimeoutError if it never answers
            yield name, error
