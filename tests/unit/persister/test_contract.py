"""The contract of persisters: `InMemoryPersister` keeps it, and each clause fails for some planted bug."""

from __future__ import annotations

import pytest

from sharestate import InMemoryPersister, Persister
from sharestate.testing import PersisterContract
from sharestate.testing.contract import broken_clauses, clauses

from .planted import BREAKS, Raises, WritesInReverse


class TestInMemoryPersister(PersisterContract):
    """`InMemoryPersister` keeps the contract."""

    def make_persister(self) -> Persister:
        """Return one that stores nothing."""
        return InMemoryPersister()


class Planted(PersisterContract):
    """The contract for a persister with a bug."""

    def __init__(self, kind: type[InMemoryPersister]) -> None:
        """Test *kind*."""
        self.kind = kind

    def make_persister(self) -> Persister:
        """Return one that stores nothing."""
        return self.kind()


@pytest.mark.parametrize(("kind", "clause"), BREAKS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_bug_is_found(kind: type[InMemoryPersister], clause: str) -> None:
    """Each planted bug fails its clause."""
    assert clause in broken_clauses(Planted(kind))


def test_every_clause_can_be_broken() -> None:
    """Every clause fails for some planted bug."""
    broken = {clause for kind in BREAKS for clause in broken_clauses(Planted(kind))}

    assert broken == set(clauses(TestInMemoryPersister()))


@pytest.mark.parametrize(
    ("kind", "clause", "message"),
    [
        (WritesInReverse, "test_writes_take_effect_in_order", "the start offset: expected 12, found 14"),
        (Raises, "test_requests_before_the_initialization_are_refused", "OSError('refused')"),
    ],
)
def test_a_failed_clause_has_a_message(kind: type[InMemoryPersister], clause: str, message: str) -> None:
    """The message has the expected and the found value, or the error of the persister."""
    assert broken_clauses(Planted(kind))[clause] == message
