"""What is let pass is what the kit lets pass."""

from __future__ import annotations

from sharestate.testing.allowances import KNOWN_BUGS, LEFT_OPEN, Door
from sharestate.testing.coordinator_invariants import COORDINATOR_4_4, COORDINATOR_HEALED
from sharestate.testing.guarantees import Guarantee
from sharestate.testing.over_time import STALLING, a_full_window_waits_for_something


def test_the_bugs_that_invariants_let_pass_are_listed() -> None:
    """They are those of `STALLING`, and the one that breaks what no share coordinator of Kafka keeps."""
    name = a_full_window_waits_for_something.__name__
    (of_coordinators,) = set(COORDINATOR_HEALED) - set(COORDINATOR_4_4)
    listed = [(row.bug, row.breaks) for row in KNOWN_BUGS if Door.INVARIANTS in row.doors]

    stalls = [(bug, name) for bugs in STALLING.values() for bug in bugs]
    assert listed == [*stalls, ("C2", of_coordinators.__name__)]


def test_the_bugs_that_clients_may_allow_break_a_guarantee() -> None:
    """What they break is a guarantee of the clients' side."""
    assert {row.breaks for row in KNOWN_BUGS if Door.CLIENTS in row.doors} <= set(Guarantee)


def test_what_is_left_open_says_where() -> None:
    """Each row is a sentence, with a reason and at least one door."""
    assert all(row.what.endswith(".") and row.why.endswith(".") and row.doors for row in LEFT_OPEN)
