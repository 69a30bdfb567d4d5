"""Machines of the test kit, run always in the same way."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine

E = TypeVar("E", bound=AssertionError)


def error_of(
    machine: type[RuleBasedStateMachine], kind: type[E], *, max_examples: int, shrinks: bool = False
) -> E | None:
    """Search with *machine*, and return the error of a *kind* that it finds; the shortest one found if it *shrinks*."""
    test = machine.TestCase
    test.settings = settings(
        max_examples=max_examples,
        phases=[Phase.generate, Phase.shrink] if shrinks else [Phase.generate],
        derandomize=True,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow],  # where other processes have the CPU
        print_blob=False,  # where `CI` is set, Hypothesis prints one after the program
    )
    try:
        test().runTest()
    except kind as error:
        return error
    return None
