"""The contract of persisters: `InMemoryPersister` keeps it, and each clause fails for some planted bug."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import permutations
from types import MappingProxyType
from typing import Final

import pytest

from sharestate import InMemoryPersister, Persister, StateBatch
from sharestate.coordinator import (
    COORDINATOR_4_2,
    COORDINATOR_4_3,
    COORDINATOR_4_4,
    COORDINATOR_PROFILES,
    CoordinatorProfile,
)
from sharestate.testing import PersisterContract, broken_clauses, untested_clauses
from sharestate.testing.persisters.calls import records
from sharestate.testing.persisters.clauses import clauses
from tests.planted.persister_clauses import BREAKS, UNSEEN, Raises, WritesInReverse

DURABILITY: Final = {
    "test_the_state_outlasts_the_persister",
    "test_epochs_outlast_the_persister",
    "test_a_deletion_outlasts_the_persister",
}


class TestInMemoryPersister(PersisterContract):
    """`InMemoryPersister` keeps the contract; its state does not outlast it."""

    def make_persister(self) -> Persister:
        """Return one that stores nothing."""
        return InMemoryPersister(profile=self.rules)


class TestInMemoryPersister43(TestInMemoryPersister):
    """`InMemoryPersister` keeps the contract of Kafka 4.3."""

    rules = COORDINATOR_4_3


class TestInMemoryPersister42(TestInMemoryPersister):
    """`InMemoryPersister` keeps the contract of Kafka 4.2."""

    rules = COORDINATOR_4_2


class Planted(PersisterContract):
    """The contract for a persister with a bug, or with the rules of another release."""

    def __init__(
        self,
        kind: type[InMemoryPersister],
        rules: CoordinatorProfile = COORDINATOR_4_4,
        profile: CoordinatorProfile | None = None,
    ) -> None:
        """Test *kind*, which follows *profile*, by *rules*, which are its own if there is no *profile*."""
        self.kind = kind
        self.rules = rules
        self.profile = rules if profile is None else profile

    def make_persister(self) -> Persister:
        """Return one that stores nothing."""
        return self.kind(profile=self.profile)

    def reopen(self, persister: Persister) -> Persister:
        """Return the same one, unless it has a bug there."""
        reopened: Persister = getattr(persister, "reopened", lambda: persister)()
        return reopened


@cache
def broken(kind: type[InMemoryPersister], rules: CoordinatorProfile) -> Mapping[str, str]:
    """Return the clauses that *kind* breaks; all of them are tried, and so once for all tests."""
    return MappingProxyType(broken_clauses(Planted(kind, rules)))


@pytest.mark.parametrize(
    ("kind", "rules"),
    [(kind, rules) for rules in COORDINATOR_PROFILES.values() for kind in BREAKS if kind not in UNSEEN[rules.name]],
    ids=lambda value: getattr(value, "name", getattr(value, "__name__", "")),
)
def test_a_planted_bug_is_found(kind: type[InMemoryPersister], rules: CoordinatorProfile) -> None:
    """Each planted bug fails its clause."""
    assert BREAKS[kind] in broken(kind, rules)


@pytest.mark.parametrize(
    ("rules", "profile"), list(permutations(COORDINATOR_PROFILES.values(), 2)), ids=lambda profile: profile.name
)
def test_the_rules_of_another_release_are_found(rules: CoordinatorProfile, profile: CoordinatorProfile) -> None:
    """A persister with the rules of one release does not keep the contract of another."""
    assert broken_clauses(Planted(InMemoryPersister, rules, profile))


def test_every_clause_can_be_broken() -> None:
    """Every clause fails for some planted bug."""
    found = {clause for kind in BREAKS for clause in broken(kind, COORDINATOR_4_3)}

    assert found == set(clauses(TestInMemoryPersister()))


def test_durability_is_tested_where_persisters_can_be_reopened() -> None:
    """Without `reopen` the clauses of durability are reported as not tested, and why; no other clause is."""
    untested = untested_clauses(TestInMemoryPersister())

    assert set(untested) == DURABILITY
    assert set(untested.values()) == {"not tested: TestInMemoryPersister does not say how to reopen InMemoryPersister"}
    assert untested_clauses(Planted(InMemoryPersister)) == broken_clauses(Planted(InMemoryPersister)) == {}


@pytest.mark.parametrize(
    ("kind", "clause", "message"),
    [
        (WritesInReverse, "test_writes_take_effect_in_order", "the start offset: expected 12, found 14"),
        (Raises, "test_requests_before_the_initialization_are_refused", "OSError('refused')"),
    ],
)
def test_a_failed_clause_has_a_message(kind: type[InMemoryPersister], clause: str, message: str) -> None:
    """The message has the expected and the found value, or the error of the persister."""
    assert broken(kind, COORDINATOR_4_3)[clause] == message


def test_records_are_compared_and_not_batches() -> None:
    """However records are cut into batches they are equal; batches that overlap are refused."""
    whole = StateBatch(10, 19, 2, 1)
    left, right = whole._replace(last_offset=14), whole._replace(first_offset=15)

    assert records([left, right]) == records([whole]) == (whole,)
    assert records([left, right._replace(delivery_count=2)]) == (left, right._replace(delivery_count=2))
    assert records([left, right._replace(first_offset=16)]) == (left, right._replace(first_offset=16))
    for batches in ([right, left], [left, whole]):
        with pytest.raises(AssertionError, match="does not begin after"):
            records(batches)
