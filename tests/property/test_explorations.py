"""
Without Kafka's bugs everything holds in every state that small share groups come to.

`make explore` looks at those of which there are thousands of states, too, and finds the bugs that take seconds.
"""

from __future__ import annotations

import os
from typing import Final

import pytest

from sharestate import KAFKA_4_4, KIP_932, Profile
from sharestate.testing.explore import explore
from tests.support.explorations import BUGS, HEALTHY, SLOW, WITH_QUEUE, answered, shown, shown_in

IS_LONG: Final = int(os.environ.get("SHARESTATE_TIMES", "1")) > 1
"""Whether there is a minute."""

GROUPS: Final = list(HEALTHY) if IS_LONG else ["B10", "B15", "F7"]

PROFILES: Final = (KAFKA_4_4.healed, KIP_932)
"""The others differ from them in what a group may be configured to do while it runs."""


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
@pytest.mark.parametrize("name", GROUPS)
def test_everything_holds(name: str, profile: Profile) -> None:
    """All states were looked at, everything holds in each, and everything is done in some."""
    exploration = explore(HEALTHY[name], profile)
    assert exploration.counterexample is None, str(exploration.counterexample)
    assert exploration.holds


@pytest.mark.skipif(not IS_LONG, reason="it takes seconds: make explore")
def test_everything_holds_with_a_queue() -> None:
    """The same with a dead-letter queue."""
    exploration = explore(WITH_QUEUE, KAFKA_4_4.healed)
    assert exploration.counterexample is None, str(exploration.counterexample)
    assert exploration.holds


@pytest.mark.skipif(not IS_LONG, reason="it takes seconds: make explore")
@pytest.mark.parametrize("name", sorted(SLOW))
def test_finds_slow_bugs(name: str) -> None:
    """Bugs of Kafka whose shortest ways are long are found by them, and their conversations lead the library there."""
    bug = BUGS[name]
    found = explore(bug.configuration, bug.profile).counterexample
    assert found is not None
    assert (found.name, len(found.steps) - 1) == (bug.breaks, bug.steps)
    assert shown_in(answered(found.conversation, bug.profile)) == shown(found.steps[-1].after.leader)
