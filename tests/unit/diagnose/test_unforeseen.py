"""Situations that no bound was set on, of members side by side: those in trouble are named, others are not."""

from __future__ import annotations

from typing import Any

from sharestate.diagnose import DiagnosisFinding, diagnose
from tests.support.hand_made_stories import ACCEPT, RELEASE, Story
from tests.support.working_members import WorkingMembers


def found(story: Story) -> dict[str, DiagnosisFinding]:
    """Return the findings by the names of their rules."""
    return {each.rule.name: each for each in diagnose(story.facts()).findings}


def is_healthy(story: Story) -> bool:
    """Return whether nothing is found, and all was checked."""
    diagnosis = diagnose(story.facts())
    return not diagnosis.findings and not diagnosis.not_checked


def four(**named: Any) -> WorkingMembers:  # noqa: ANN401 - those of members
    """Return four members that keep up with ten records a second for ten minutes."""
    members = WorkingMembers()
    members.arrive(1, 10, 600)
    for number in range(4):
        members.work(f"m{number}", 0.1, **named)
    return members


def test_half_a_minute_of_outage_in_ten_is_no_poison() -> None:
    """What members need is away for half a minute: 3 % of the records are given up, all of them neighbors."""
    findings = found(four(outcome=lambda _, now_s: RELEASE if 300 <= now_s < 330 else ACCEPT).run(600))

    assert "poison-records" not in findings
    assert 20 * findings["given-up-in-numbers"].facts["records"] < findings["given-up-in-numbers"].facts["delivered"]


def test_single_records_that_fail_are_poison_however_many() -> None:
    """One of 200 fails with every member: 29 of them, far from each other."""
    findings = found(four(outcome=lambda offset, _: RELEASE if offset % 200 == 199 else ACCEPT).run(600))

    assert findings["poison-records"].facts["records"] >= 20
    assert "given-up-in-numbers" not in findings


def test_one_slow_host_of_six_is_named() -> None:
    """A longer lock would help, but one member is to blame, and its name is said."""
    members = WorkingMembers(record_lock_duration_ms=5_000)
    members.arrive(1, 40, 120)
    for number in range(5):
        members.work(f"m{number}", 0.1)
    members.work("slow", 1)
    finding = found(members.run(120))["lock-too-short"]

    assert "of the expired were those of 1 member of 6: slow" in finding.evidence
    assert finding.advice.startswith("See first why slow took so long, where others did not. Set share.record.lock")


def test_one_slow_poll_does_not_make_the_lock_too_short() -> None:
    """Nothing is said of a tenth of the records until they come again; one poll in 20 took half of the lock."""
    story = Story(log=200)
    for number in range(20):
        ((first, last, _),) = story.fetch("m1")
        story.wait(0.6 if number == 0 else 0.01)
        story.say("m1", ACCEPT, (first, last - 1))
    story.wait(1.1)
    while story.work("m1", 0.01):
        pass
    findings = found(story)

    assert "left-unacknowledged" in findings
    assert "lock-too-short" not in findings


def test_a_group_without_members_is_not_healthy() -> None:
    """The members have closed after three minutes, and records go on arriving for two."""
    members = WorkingMembers()
    members.arrive(1, 10, 300)
    for number in range(2):
        members.work(f"m{number}", 0.1, end_s=180)
    finding = found(members.run(300))["nobody-fetches"]

    assert finding.facts["lag"] >= 1_190
    assert finding.evidence.startswith("Nobody has fetched for 1 min 59 s at the end, and 1,2")


def test_a_client_that_is_killed_again_and_again_is_named() -> None:
    """Four times in ten minutes, each time with a poll of ten records: far less than 1 % of the deliveries."""
    members = four()
    for number in range(4):
        begin_s = 130.0 * number
        members.work(f"k{number}", 60, begin_s=begin_s, end_s=begin_s + 20, leaves="disconnect")
    findings = found(members.run(600))

    assert set(findings) == {"sessions-lost"}
    assert findings["sessions-lost"].facts["sessions"] == 4


def test_a_deployment_is_healthy() -> None:
    """Members are replaced one by one; each closes while it holds records, which others get."""
    members = WorkingMembers()
    members.arrive(1, 10, 600)
    for number in range(10):
        members.work(f"m{number}", 0.08, begin_s=60 * number, end_s=60 * number + 63)

    assert is_healthy(members.run(600))


def test_a_job_that_runs_now_and_then_is_healthy() -> None:
    """A member comes every two minutes for ten seconds; at the end it is about to come again."""
    members = WorkingMembers()
    members.arrive(5, 10, 600)
    for number in range(5):
        members.work(f"m{number}", 0.01, begin_s=120 * number, end_s=120 * number + 10)

    assert is_healthy(members.run(599))
