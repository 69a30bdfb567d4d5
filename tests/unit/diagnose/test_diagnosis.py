"""What a diagnosis says as a whole: of healthy groups nothing, and of what it does not know why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from sharestate.diagnose import Diagnosis, HistoryFacts, Severity, compare, diagnose, read_facts
from sharestate.errors import HistoryError
from sharestate.history import Header
from tests.support.hand_made_stories import ACCEPT, RELEASE, RENEW, TOPIC, Story

DATA: Final = Path(__file__).parents[2] / "data/diagnose"


def found(diagnosis: Diagnosis) -> list[str]:
    """Return the names of the rules that found something."""
    return [each.rule.name for each in diagnosis.findings]


# ---- healthy groups


def steady() -> list[Story]:
    """Two members that accept what comes."""
    story = Story(log=100)
    for _ in range(20):
        story.write(10)
        story.work("m1")
        story.work("m2")
    return [story]


def deployed() -> list[Story]:
    """Members that come and go with what they hold, and a record that is given back once."""
    story = Story(log=300)
    for number in range(6):
        member = f"m{number}"
        for _ in range(4):
            story.work(member)
        ((first, last, _),) = story.fetch(member)
        story.say(member, RELEASE if number == 3 else ACCEPT, (first, first))
        story.say(member, ACCEPT, (first + 1, last - 1))
        story.happens("close", member)
    return [story]


def renewing() -> list[Story]:
    """Work that takes longer than a lock, with renewals."""
    story = Story(log=60)
    while acquired := story.fetch("m1"):
        ranges = [(first, last) for first, last, _ in acquired]
        for _ in range(3):
            story.wait(0.8)
            story.say("m1", RENEW, *ranges)
        story.say("m1", ACCEPT, *ranges)
    return [story]


def with_a_backlog() -> list[Story]:
    """A backlog that is worked off, in partitions of about one size, of which members have as many."""
    stories = [Story(partition, log=200 + 50 * partition) for partition in range(4)]
    for _ in range(25):
        for partition, story in enumerate(stories):
            story.write(5)
            story.work(f"m{partition % 2}")
    return stories


def taken_over() -> list[Story]:
    """A leader that moves once, and a burst."""
    story = Story(log=40)
    for _ in range(3):
        story.work("m1")
    story.fetch("m1")
    story.lead(1, start=30)
    story.write(200)
    while story.work("m2"):
        pass
    story.wait(5)
    return [story]


@pytest.mark.parametrize("tell", [steady, deployed, renewing, with_a_backlog, taken_over])
def test_of_a_healthy_group_nothing_is_said(tell: Callable[[], list[Story]]) -> None:
    """Nothing is found, and all is checked."""
    first, *others = tell()
    diagnosis = diagnose(first.facts(*others))

    assert (diagnosis.findings, diagnosis.not_checked, diagnosis.notes) == ((), (), ())


# ---- what is not known


def test_what_needs_a_state_that_was_not_read_is_not_checked() -> None:
    """That is said once, of all rules that need it, with the reason; nothing is found."""
    story = Story(log=10)
    story.fetch("m1")
    facts = HistoryFacts(Header())
    for number, event in enumerate(event for event in story.events if event.kind != "initialize"):
        facts.apply(event._replace(seq=number))
    diagnosis = diagnose(facts)

    assert not diagnosis.findings
    assert {each.reason for each in diagnosis.not_checked} == {"the history does not say what a leader has read"}
    assert [each.rule for each in diagnosis.not_checked] == [None, None]
    assert diagnosis.to_json()["not_checked"][0]["partition"] == 0


def test_without_times_nothing_is_said_of_durations() -> None:
    """Rules that need times are not checked, the others are."""
    story = Story(log=100)
    for _ in range(9):
        story.work("m1")
    facts = HistoryFacts(Header(lacks=frozenset({"write"})))
    for event in story.events:
        facts.apply(event._replace(at_us=None))
    diagnosis = diagnose(facts)
    names = {each.rule.name for each in diagnosis.not_checked if each.rule is not None}

    assert not diagnosis.findings
    assert {"lock-too-short", "lag-grows", "leader-moves"} <= names
    assert not names & {"poison-records", "released-often"}


def test_kafka_is_not_blamed_where_something_was_computed_otherwise() -> None:
    """What needs agreement is not checked, and a note says why."""
    story = Story(log=100)
    story.happens("fetch", "m1", {"max_records": 10}, {"acquired": ()})
    diagnosis = diagnose(story.facts())
    names = {each.rule.name for each in diagnosis.not_checked if each.rule is not None}

    assert names == {"stalled", "wrong-lag", "broker-threw"}
    assert "1 time something was observed and computed otherwise" in diagnosis.notes[0]


def test_a_history_in_order_of_arrival_is_refused(tmp_path: Path) -> None:
    """With the command that puts it in order."""
    path = tmp_path / "arrival.jsonl"
    path.write_text('{"sharestate_history":2,"order":"arrival"}\n')

    with pytest.raises(HistoryError, match="sharestate log verify"):
        read_facts(path)


# ---- findings


def test_a_finding_says_where_what_and_what_to_do() -> None:
    """Of a broker's log on which a quarter of the deliveries was too slow."""
    diagnosis = diagnose(read_facts(DATA / "bad.jsonl.gz"))
    first, _ = diagnosis.findings

    assert found(diagnosis) == ["lock-too-short", "late-acknowledgements"]
    assert first.place.named(diagnosis.topics) == "group billing, payments-0"
    assert "60 deliveries of 240 (25 %) have expired after 1 s" in first.evidence
    assert "Set share.record.lock.duration.ms of the group to 2000" in first.advice
    assert diagnosis.to_json()["findings"][0]["facts"]["expired"] == 60


def test_the_gravest_findings_come_first() -> None:
    """Those of a rule together."""
    story = Story(log=400, delivery_count_limit=2)
    for _ in range(60):
        story.work("m1", how=RELEASE)
    story.happens("log_start", request={"offset": 390})
    severities = [each.rule.severity for each in diagnose(story.facts()).findings]

    assert severities[0] is Severity.CRITICAL
    assert severities == sorted(severities, key=list(Severity).index)


# ---- two histories


def test_a_comparison_names_what_has_changed_most() -> None:
    """The good run redelivers nothing, and has other locks."""
    compared = compare(read_facts(DATA / "bad.jsonl.gz"), read_facts(DATA / "good.jsonl.gz"))
    changed = {each.measure.name: (each.here, each.there) for each in compared.changed}

    assert compared.groups == ("billing",)
    assert next(iter(changed)) == "again"
    assert changed["expired"] == (25.0, 0.0)
    assert compared.settings == (("billing", "record_lock_duration_ms", 1000, 3000),)
    assert (compared.found, compared.gone, compared.limits) == (("lock-too-short", "late-acknowledgements"), (), ())


def test_a_history_does_not_differ_from_itself() -> None:
    """Nothing has changed."""
    facts = read_facts(DATA / "bad.jsonl.gz")
    compared = compare(facts, facts)

    assert (compared.changed, compared.settings, compared.found, compared.gone, compared.limits) == ((),) * 5


def test_what_is_not_comparable_is_said() -> None:
    """Other lengths, other topics, other groups."""
    short, long = Story(log=100), Story(1, log=100)
    for _ in range(3):
        short.work("m1", 1)
        long.work("m1", 9)
    compared = compare(short.facts(), long.facts())

    assert any(f"{TOPIC}-0, and {TOPIC}-1" in each for each in compared.limits)
    assert any("one is 3 s long, the other 27 s" in each for each in compared.limits)
    alone = compare(short.facts(), HistoryFacts(Header()))
    assert (alone.groups, alone.limits) == ((), ("group g is in one of them only",))


# ---- memory


def test_memory_does_not_grow_with_the_history() -> None:
    """After ten times as many rounds, facts hold no more ranges, samples and classes of durations."""

    def held(rounds: int) -> tuple[int, int]:
        story = Story(log=10)
        for _ in range(rounds):
            story.write(10)
            story.work("m1", 1.1)
        (facts,) = story.facts().partitions.values()
        return len(list(facts.deliveries.held())), len(facts.lag.samples)

    few, many = held(20), held(300)

    assert few[0] == many[0]
    assert few[1] < many[1] <= 256
