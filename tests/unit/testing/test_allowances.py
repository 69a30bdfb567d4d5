"""What is let pass is what the kit lets pass."""

from __future__ import annotations

from sharestate import Quirk
from sharestate.testing.allowances import KNOWN_BUGS, LEFT_OPEN
from sharestate.testing.coordinator_invariants import COORDINATOR_4_4, COORDINATOR_HEALED
from sharestate.testing.guarantees import Guarantee


def test_the_bugs_that_clients_may_allow_break_a_guarantee() -> None:
    """They are quirks, which healed profiles lack, and what they break is a guarantee of the clients' side."""
    assert {row.bug for row in KNOWN_BUGS} <= set(Quirk)
    assert {row.breaks for row in KNOWN_BUGS} <= set(Guarantee)


def test_what_is_left_open_says_where() -> None:
    """Each row is a sentence, with a reason and at least one door."""
    assert all(row.what.endswith(".") and row.why.endswith(".") and row.doors for row in LEFT_OPEN)


def test_what_only_a_healed_coordinator_keeps_is_one_invariant() -> None:
    """No share coordinator of Kafka keeps it, which is C2."""
    assert {each.__name__ for each in set(COORDINATOR_HEALED) - set(COORDINATOR_4_4)} == {
        "an_initialization_takes_nothing_back"
    }
