"""The thorough profile is known by its name, and no search spends its time on explanations of Hypothesis."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine

from sharestate.testing.groups import ShareGroupMachine
from sharestate.testing.partitions import SharePartitionMachine
from sharestate.testing.persisters import PersisterMachine
from sharestate.testing.thorough import NAME, PHASES, THOROUGH, THOROUGH_SEEDS


def test_the_profile_is_registered() -> None:
    """`--hypothesis-profile` finds it once the module is imported; no run of it is cut short by a deadline."""
    assert settings.get_profile(NAME) is THOROUGH
    assert THOROUGH.deadline is None
    assert THOROUGH.max_examples < len(THOROUGH_SEEDS)
    assert THOROUGH.phases == PHASES


@pytest.mark.parametrize("machine", [PersisterMachine, ShareGroupMachine, SharePartitionMachine])
def test_a_machine_is_not_traced(machine: type[RuleBasedStateMachine]) -> None:
    """Whatever the profile says, Hypothesis does not trace lines to explain what is found."""
    inherited: Any = type("Machine", (machine,), {})

    assert Phase.explain in settings().phases
    assert inherited.TestCase.settings.phases == PHASES


@pytest.mark.parametrize("machine", [PersisterMachine, ShareGroupMachine, SharePartitionMachine])
def test_a_machine_keeps_its_settings(machine: type[RuleBasedStateMachine]) -> None:
    """It has its own number of runs, and its own test, however many machines there are: Hypothesis keeps 128 tests."""
    machines: list[Any] = [type("Machine", (machine,), {}) for _ in range(200)]
    begun, *others = machines
    runs, case = begun.TestCase.settings.max_examples, begun.TestCase
    assert len({other.TestCase for other in others}) == len(others)

    assert begun.TestCase is case
    assert begun.TestCase.settings.max_examples == runs > settings().max_examples
