"""What is let pass is what the kit lets pass."""

from __future__ import annotations

from sharestate import Quirk
from sharestate.testing.allowances import KNOWN_BUGS, LEFT_OPEN
from sharestate.testing.guarantees import Guarantee


def test_the_bugs_that_clients_may_allow_break_a_guarantee() -> None:
    """They are quirks, which healed profiles lack, and what they break is a guarantee of the clients' side."""
    assert {row.bug for row in KNOWN_BUGS} <= set(Quirk)
    assert {row.breaks for row in KNOWN_BUGS} <= set(Guarantee)


def test_what_is_left_open_says_where() -> None:
    """Each row is a sentence, with a reason and at least one door."""
    assert all(row.what.endswith(".") and row.why.endswith(".") and row.doors for row in LEFT_OPEN)
