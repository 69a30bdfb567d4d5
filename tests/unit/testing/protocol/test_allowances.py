"""What is let pass is what the kit lets pass."""

from __future__ import annotations

from sharestate import Quirk
from sharestate.audit.guarantees import Guarantee
from sharestate.testing.protocol.allowances import KNOWN_BUGS, LEFT_OPEN, Door
from sharestate.testing.protocol.coordinator_invariants import COORDINATOR_4_4, COORDINATOR_HEALED


def test_the_bug_that_invariants_let_pass_is_listed() -> None:
    """It is the one that breaks what no share coordinator of Kafka keeps; no healed profile has another."""
    (of_coordinators,) = set(COORDINATOR_HEALED) - set(COORDINATOR_4_4)
    listed = [(row.bug, row.breaks) for row in KNOWN_BUGS if Door.INVARIANTS in row.doors]

    assert listed == [("C2", of_coordinators.__name__)]


def test_the_bugs_that_clients_may_allow_break_a_guarantee() -> None:
    """They are quirks, which healed profiles lack, and what they break is a guarantee of the clients' side."""
    of_clients = [row for row in KNOWN_BUGS if Door.CLIENTS in row.doors]

    assert {row.bug for row in of_clients} <= set(Quirk)
    assert {row.breaks for row in of_clients} <= set(Guarantee)


def test_what_is_left_open_says_where() -> None:
    """Each row is a sentence, with a reason and at least one door."""
    assert all(row.what.endswith(".") and row.why.endswith(".") and row.doors for row in LEFT_OPEN)
