"""Findings about settings get what was computed of the load, with its effect, or the reason why nothing was."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from sharestate.diagnose import Diagnosis, diagnose, read_facts
from sharestate.diagnose.diagnosis import PARTITION_RULES
from sharestate.simulate import SETTINGS_OF_RULES, advise, advise_findings, fit
from sharestate.simulate.load import SETTINGS
from tests.support.hand_made_stories import Story

DATA: Final = Path(__file__).parents[2] / "data"
TWO: Final = DATA / "simulate/two-loads.jsonl.gz"
"""Two loads on a broker of 4.4.0 whose locks are too short."""


def advised(source: Path, group: str | None = None, **named: Any) -> Diagnosis:  # noqa: ANN401 - those of advise_findings
    """Return the diagnosis of a history, or of a group of it, with what was computed."""
    facts = read_facts(source, wanted=lambda _, key: group in {None, key[0]})
    return advise_findings(diagnose(facts), source, **named)


def computed(found: Diagnosis) -> dict[str, tuple[str, ...]]:
    """Return what was computed, by the names of rules."""
    return {each.rule.name: each.computed for each in found.findings}


def test_a_lock_that_is_too_short_has_what_a_longer_one_would_have_avoided() -> None:
    """The sentences are those of the advice on the load that is fitted to the group; the history has 780 duplicates."""
    found = computed(advised(TWO, "load-0"))
    expected = [each.sentence for each in advise(fit(TWO, group="load-0").load).advice if each.setting != "members"]

    first, *others = found["lock-too-short"]
    assert first == "as it was, duplicates: 850 simulated, 780 in the history"
    assert [each for each in others if each in expected] == expected
    assert any(
        each.startswith("share.record.lock.duration.ms 2s would have avoided 100 % of 850 dup") for each in others
    )
    assert found["late-acknowledgements"] == ()  # the same settings, which are not said twice
    assert found["spso-held-back"] == ()  # no setting is to blame


def test_a_load_that_cannot_be_simulated_is_not_advised_on() -> None:
    """Of 12 polls three take 1.3 s, and the others 0.1 s: no times of single records that are fitted make that."""
    (said,) = computed(advised(DATA / "diagnose/bad.jsonl.gz"))["lock-too-short"]

    assert said.startswith("nothing, because the simulated load is not like the history: duplicates: ")
    assert said.endswith(" simulated, 60 in the history")


def test_the_time_is_bounded() -> None:
    """Where it is over nothing is tried any more, which is said of each group."""
    found = advised(TWO, is_over=lambda: True)

    assert not any(computed(found).values())
    assert [note for note in found.notes if "computed" in note] == [
        "group load-0: settings were not computed, because the time for it was over.",
        "group load-1: settings were not computed, because the time for it was over.",
    ]


def test_values_that_were_not_tried_are_named() -> None:
    """Nothing is said of a setting that was tried in part."""
    times = iter(range(100))
    found = computed(advised(TWO, "load-0", is_over=lambda: next(times) > 2))

    polls = [each for each in found["lock-too-short"] if each.startswith("max.poll.records")]
    assert polls == ["max.poll.records: nothing is said, as the time was over when 1 of 2 values were tried."]


def test_a_long_load_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many records as take no time are simulated, and their duplicates compared as parts."""
    monkeypatch.setattr("sharestate.simulate.finding_advice.MOST_SIMULATED", 200)
    found = advised(TWO, "load-1")
    (first, *_) = computed(found)["lock-too-short"]

    assert "group load-1: computed with the first 200 records of the load that the history shows." in found.notes
    assert first.endswith("simulated, 132 in the history")
    assert first.startswith("as it was, duplicates: 1")


def test_findings_without_a_setting_are_left_alone(tmp_path: Path) -> None:
    """A member that never acknowledges is not helped by any."""
    story = Story(log=100)
    story.fetch("m1")
    for _ in range(6):
        story.work("m2", 0.3)
    found = advised(story.save(tmp_path / "silent.jsonl"))

    assert set(computed(found)) == {"never-acknowledges"}
    assert found.notes[-1] == "No settings were computed: no finding is about one that can be."


def test_rules_and_settings_are_known() -> None:
    """Each name in the table is one of a rule, and of a setting."""
    assert set(SETTINGS_OF_RULES) <= {rule.name for rule in PARTITION_RULES}
    assert {name for names in SETTINGS_OF_RULES.values() for name in names} <= set(SETTINGS)
