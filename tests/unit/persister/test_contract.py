"""What every persister has to keep to: ours does, and the contract sees who does not."""

from __future__ import annotations

import pytest

from sharestate import InMemoryPersister, Persister
from sharestate.testing.persister_contract import PersisterContract, broken_clauses, clauses

from .planted import BREAKS, Raises, WritesInReverse


class TestInMemoryPersister(PersisterContract):
    """The persister that keeps everything in memory keeps to the contract."""

    def make_persister(self) -> Persister:
        """Return one that stores nothing."""
        return InMemoryPersister()


class Planted(PersisterContract):
    """The contract for a persister with a bug."""

    def __init__(self, kind: type[InMemoryPersister]) -> None:
        """Put *kind* to the test."""
        self.kind = kind

    def make_persister(self) -> Persister:
        """Return one that stores nothing."""
        return self.kind()


@pytest.mark.parametrize(("kind", "clause"), BREAKS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_bug_is_found(kind: type[InMemoryPersister], clause: str) -> None:
    """Each planted bug breaks the clause that it is about."""
    assert clause in broken_clauses(Planted(kind))


def test_every_clause_can_be_broken() -> None:
    """There is no clause that all persisters keep to, whatever they do."""
    broken = {clause for kind in BREAKS for clause in broken_clauses(Planted(kind))}

    assert broken == set(clauses(TestInMemoryPersister()))


@pytest.mark.parametrize(
    ("kind", "clause", "said"),
    [
        (WritesInReverse, "test_writes_take_effect_in_order", "the start offset: expected 12, found 14"),
        (Raises, "test_the_uninitialized_is_refused", "OSError('refused')"),
    ],
)
def test_what_is_wrong_is_said(kind: type[InMemoryPersister], clause: str, said: str) -> None:
    """A broken clause says what was expected and what was found, or what the persister has raised."""
    assert broken_clauses(Planted(kind))[clause] == said
