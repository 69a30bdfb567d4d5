"""What an exploration says of rules agrees with the rules that there are, and with the code that carries them."""

from __future__ import annotations

import re
import sys
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from attrs import evolve, frozen

from generate.citations import headings
from generate.places import places
from sharestate import KAFKA_4_4
from sharestate.testing.explore import BEYOND, Bounds, Step, explore, steps
from sharestate.testing.explore import expansion as expansions
from sharestate.testing.explore.rules_met import SHOWN, rules_of
from sharestate.values.records import AcquireMode
from tests.support.explorations import BUGS, CROWDED, RELEASE, WITH_QUEUE, configuration, with_aborted

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from sharestate.testing.explore import Configuration, ExploredState
    from sharestate.testing.explore.steps import ExploredGroup

PAGE: Final = Path(__file__).parents[2] / "docs/explore.md"

GROUPS: Final[tuple[Configuration, ...]] = (
    CROWDED,
    WITH_QUEUE,
    evolve(WITH_QUEUE, failovers=1),
    with_aborted(1, (3, 3)),
    configuration((0, 1), mode=AcquireMode.RECORD_LIMIT, max_records=(1,)),
    configuration((0, 1), types=RELEASE, delivery_count_limit=3),
    BUGS["F6"].configuration,
)
"""Groups that meet, in their nearest states, every rule that an exploration may meet."""

STATES: Final = 150
"""The states of each group, or a few more. [states]"""

NOT_RUN: Final = {
    "1.1": "a table",
    "1.2": "remembers what it has answered before",
    "1.6": "a value",
    "21": "a field of profiles",
    "21.1": "remembers what it has answered before",
}
"""Rules whose code need not run in a step that they answer, and what it is."""

ALONE: Final = {"1.4", "1.5", "3", "4", "4.2", "5", "6", "7", "7.4", "7.6", "8", "9", "13", "20.2"}
"""Rules of which no code runs in any step but those that they answer."""


@frozen
class Seen:
    """A step that was explored."""

    rules: frozenset[str]
    """The rules that have answered it."""

    carried: frozenset[str]
    """The rules of which code has run."""


@cache
def seen() -> tuple[Seen, ...]:
    """Return the steps of all groups, with the rules of which functions of the state machine have run."""
    carriers = {(place.path, place.name): set[str]() for of_rule in places().values() for place in of_rule}
    for rule, of_rule in places().items():
        for place in of_rule:
            carriers[place.path, place.name].add(rule)
    run = set[str]()
    found: list[Seen] = []

    @cache
    def carried_by(code: CodeType) -> frozenset[str]:
        _, _, path = code.co_filename.rpartition("sharestate/")
        names = accumulate(code.co_qualname.split("."), "{}.{}".format)
        return frozenset[str]().union(*(carriers.get((path, name), ()) for name in names))

    def note(frame: FrameType, _event: str, _argument: object) -> None:
        run.update(carried_by(frame.f_code))

    def take(*arguments: Any) -> Step | None:  # noqa: ANN401 - those of the function
        run.clear()
        before = sys.gettrace()
        sys.settrace(note)
        try:
            return steps.take(*arguments)
        finally:
            sys.settrace(before)

    def of(around: ExploredGroup, before: ExploredState, step: Step) -> set[str]:
        rules = rules_of(around, before, step)
        found.append(Seen(frozenset(rules), frozenset(run)))
        return rules

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expansions, "take", take)
        patch.setattr(expansions, "rules_of", of)
        for group in GROUPS:
            explore(group, KAFKA_4_4.healed, bounds=Bounds(states=STATES))
    return tuple(found)


def test_each_rule_can_be_met_or_has_a_reason() -> None:
    """Each rule is one that an exploration may meet, or one of which it is said why none does."""
    assert SHOWN.isdisjoint(BEYOND)
    assert SHOWN | BEYOND.keys() == set(headings())


def test_the_page_says_why_no_exploration_meets_a_rule() -> None:
    """The table on the page has each of these rules with its reason, and no others."""
    rows = re.findall(r"^\| ([\d., ]+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {rule: reason for rules, reason in rows for rule in rules.split(", ")} == BEYOND


def test_each_rule_that_can_be_met_is_met() -> None:
    """Some groups meet every rule that an exploration may meet."""
    assert frozenset().union(*(step.rules for step in seen())) == SHOWN


@pytest.mark.parametrize("rule", sorted(SHOWN - NOT_RUN.keys()))
def test_a_rule_that_answers_has_run(rule: str) -> None:
    """In each step that a rule is said to have answered, code that carries it has run."""
    assert all(rule in step.carried for step in seen() if rule in step.rules)


@pytest.mark.parametrize("rule", sorted(ALONE))
def test_a_rule_that_has_run_answers(rule: str) -> None:
    """In each step in which code of such a rule has run, it is said to have answered."""
    assert all(rule in step.rules for step in seen() if rule in step.carried)
