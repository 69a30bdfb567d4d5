"""What the page says is let pass is what the kit lets pass."""

from __future__ import annotations

from generate.allowances import KNOWN_BUGS, LEFT_OPEN, Door
from sharestate import Quirk
from sharestate.testing.groups import KAFKA_ALLOWANCES
from sharestate.testing.protocol.coordinator_invariants import COORDINATOR_4_4, COORDINATOR_HEALED


def test_the_bug_that_invariants_let_pass_is_listed() -> None:
    """It is the one that breaks what no share coordinator of Kafka keeps; no healed profile has another."""
    (of_coordinators,) = set(COORDINATOR_HEALED) - set(COORDINATOR_4_4)
    listed = [(row.bug, row.breaks) for row in KNOWN_BUGS if Door.INVARIANTS in row.doors]

    assert listed == [("C2", of_coordinators.__name__)]


def test_the_bugs_that_clients_may_allow_are_listed() -> None:
    """They are those that machines can name, and quirks, which healed profiles lack; F8 follows from the quirk B6."""
    of_clients = {row.bug for row in KNOWN_BUGS if Door.CLIENTS in row.doors}

    assert of_clients == KAFKA_ALLOWANCES.keys()
    assert of_clients - {"F8"} | {"B6"} <= set(Quirk)


def test_what_is_left_open_says_where() -> None:
    """Each row is a sentence, with a reason and at least one door."""
    assert all(row.what.endswith(".") and row.why.endswith(".") and row.doors for row in LEFT_OPEN)
