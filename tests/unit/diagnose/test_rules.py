"""Each rule names the situation that was planted for it, and is silent where it nearly is one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from sharestate.broker import QUICK_SETTINGS, StandingClock, TestBroker
from sharestate.diagnose import HistoryFacts, diagnose
from sharestate.diagnose.diagnosis import PARTITION_RULES
from sharestate.diagnose.group_rules import GROUP_RULES
from sharestate.history import AppendedBatch, Header
from tests.support import recorded_histories
from tests.support.hand_made_stories import ACCEPT, LACKS, REJECT, RELEASE, RENEW, Story
from tests.support.wire_members import WireMember, filled

DATA: Final = Path(__file__).parents[2] / "data"

Case = Callable[[], HistoryFacts]


def found(facts: HistoryFacts) -> list[str]:
    """Return the names of the rules that found something."""
    return list(dict.fromkeys(each.rule.name for each in diagnose(facts).findings))


def told(tell: Callable[..., Story], *arguments: Any, **named: Any) -> Case:  # noqa: ANN401 - those of *tell*
    """Return what tells a story, and returns the facts about it."""
    return lambda: tell(*arguments, **named).facts()


# ---- deliveries


def working(seconds: float, rounds: int = 8) -> Story:
    """Return a story in which one of four batches takes so long."""
    story = Story(log=200)
    for number in range(rounds):
        story.work("m1", seconds if number % 4 == 0 else 0.1)
    return story


def silent(*, accepts: bool) -> Story:
    """Return a story of a member that holds ten records for longer than their lock lasts, or accepts them before."""
    story = Story(log=100)
    held = story.fetch("m1")
    if accepts:
        story.wait(0.9)
        story.say("m1", ACCEPT, *((first, last) for first, last, _ in held))
    for _ in range(6):
        story.work("m2", 0.3)
    return story


def left(count: int) -> Story:
    """Return a story in which nothing is said of so many of 100 records until they come again."""
    story = Story(log=200)
    for number in range(10):
        ((first, last, _),) = story.fetch("m1")
        story.wait(0.1)
        story.say("m1", ACCEPT, (first, last - 1) if number < count else (first, last))
        if number < count:
            story.wait(1.1)
            story.work("m1")
    return story


def refused(count: int) -> Story:
    """Return a story in which so many acknowledgements of 20 are refused."""
    story = Story(log=200)
    for number in range(20):
        ((first, last, _),) = story.fetch("m1")
        story.say("m1", ACCEPT, (first, last))
        if number < count:
            story.say("m1", ACCEPT, (first + 5, last), error="invalid_record_state")
    return story


def lost(how: str) -> Story:
    """Return a story in which two members are gone, by *how*."""
    story = Story(log=60)
    for member in ("m1", "m2"):
        story.fetch(member)
        story.happens(how, member)
    while story.work("m3"):
        pass
    return story


def released(every: int) -> Story:
    """Return a story in which each so many-th batch is given back once."""
    story = Story(log=200)
    for number in range(20):
        story.work("m1", how=RELEASE if number % every == 0 else ACCEPT)
    return story


def failing(records: int, times: int = 5, log: int = 200, **config: int) -> Story:
    """Return a story in which so many records are given back so often, while others are accepted."""
    story = Story(log=log, **config)
    for _ in range(200):
        acquired = story.fetch("m1", 10)
        if not acquired:
            break
        for first, last, count in acquired:
            bad = min(records, last + 1) - first
            if bad > 0 and count <= times:
                story.say("m1", RELEASE, (first, first + bad - 1))
                first += bad  # noqa: PLW2901 - what is left of it
            if first <= last:
                story.say("m1", ACCEPT, (first, last))
    return story


def near(times: int) -> Story:
    """Return a story of ten records that were given back so often."""
    story = Story(log=10)
    for _ in range(times):
        story.work("m1", how=RELEASE)
    return story


def rejected(count: int) -> Story:
    """Return a story in which so many of 100 records are rejected."""
    story = Story(log=100)
    for number in range(10):
        ((first, last, _),) = story.fetch("m1")
        bad = number < count
        if bad:
            story.say("m1", REJECT, (first, first))
        story.say("m1", ACCEPT, (first + bad, last))
    return story


def renewed(how: tuple[int, ...]) -> Story:
    """Return a story in which locks are renewed, and then all is acknowledged in this way."""
    story = Story(log=100)
    for _ in range(4):
        acquired = [(first, last) for first, last, _ in story.fetch("m1")]
        story.wait(0.8)
        story.say("m1", RENEW, *acquired)
        story.wait(0.8)
        story.say("m1", how, *acquired)
    return story


def kept(rounds: int) -> Story:
    """Return a story of a record whose lock is renewed so often."""
    story = Story(log=30)
    story.fetch("m1", 1)
    for _ in range(rounds):
        story.wait(0.9)
        story.say("m1", RENEW, (0, 9))
    story.say("m1", ACCEPT, (0, 9))
    return story


def batched(seconds: float) -> Story:
    """Return a story of batches of ten where two are wanted, the last of which are accepted after so long."""
    story = Story(log=100)
    for _ in range(5):
        ((first, last, _),) = story.fetch("m1", 2)
        story.say("m1", ACCEPT, (first, first + 4))
        story.wait(seconds)
        story.say("m1", ACCEPT, (first + 5, last))
    return story


# ---- how it gets on


def full(how: str) -> Story:
    """Return a story in which 100 records may be in flight: one is held, or all are, or a member works on them."""
    story = Story(log=300, max_record_locks=100, record_lock_duration_ms=30_000)
    ranges = [story.fetch("m1")[0] for _ in range(10)]
    story.wait(0.1)
    if how == "done":
        story.say("m1", ACCEPT, (1, 9), *((first, last) for first, last, _ in ranges[1:]))
    elif how == "worked":
        story.say("m1", ACCEPT, *((first, last) for first, last, _ in ranges))
    for _ in range(5):
        story.wait(0.5)
        story.fetch("m2")
    return story


def held_back(lock_s: float) -> Story:
    """Return a story in which the first record is accepted after two and a half seconds, those behind it at once."""
    story = Story(log=50, record_lock_duration_ms=round(lock_s * 1000))
    ((first, last, _),) = story.fetch("m1")
    story.say("m1", ACCEPT, (first + 1, last))
    for _ in range(3):
        story.work("m2")
    for _ in range(5):
        story.wait(0.5)
        story.fetch("m2")
    return story


def lagging(written: int) -> Story:
    """Return a story in which so many records are written while ten are done."""
    story = Story(log=20)
    for _ in range(40):
        story.write(written)
        story.work("m1", 0.5)
    return story


def gone(seconds: float) -> Story:
    """Return a story whose only member is not there for so long at the end, while records go on arriving."""
    story = Story(log=100)
    for _ in range(5):
        story.work("m1", 0.5)
    story.happens("close", "m1")
    story.wait(seconds)
    story.write(10)
    return story


def transaction(seconds: float) -> Story:
    """Return a story of a transaction that is open for so long, with records behind it."""
    story = Story(isolation="read_committed", record_lock_duration_ms=30_000)
    append = story.append
    append(0, 0, producer_id=7, transactional=True)
    append(1, 10)
    for _ in range(5):
        story.fetch("m1")
        story.wait(seconds / 5)
    story.fetch("m1")
    append(11, 11, producer_id=7, control="commit", transactional=True)
    story.work("m1")
    return story


def begun(reset: str, log: int) -> Story:
    """Return a story of a group that begins so, with a log of so many records."""
    story = Story(log=log, auto_offset_reset=reset)
    story.write(20)
    story.work("m1")
    return story


def deleted(offset: int) -> Story:
    """Return a story in which the log start moves after 20 records were done."""
    story = Story(log=60)
    for _ in range(2):
        story.work("m1")
    story.happens("log_start", request={"offset": offset})
    story.work("m1")
    return story


def moved(times: int, every_s: float) -> Story:
    """Return a story in which leaders change so often."""
    story = Story(log=100)
    for epoch in range(1, times + 1):
        story.work("m1", every_s)
        story.lead(epoch, start=10 * epoch)
    return story


def empty(*, log: int) -> Story:
    """Return a story of sixty fetches that get nothing though the log has so many records."""
    story = Story(log=log)
    for _ in range(60):
        story.wait(0.1)
        story.happens("fetch", "m1", {"max_records": 10, "read_to": -1})
    return story


def threw(*, is_seen: bool) -> Story:
    """Return a story of a fetch that has met a bug of Kafka's, or has not."""
    story = Story(log=20)
    defect = {"defect": "B8"} if is_seen else {}
    story.happens("fetch", "m1", {"max_records": 10, **defect}, {"error": "unknown_server_error"} if is_seen else None)
    return story


def unread(error: str | None) -> Story:
    """Return a story in which another leader has read the state, or was answered with an error."""
    story = Story(log=20)
    story.work("m1")
    if error is None:
        story.lead(1, start=10)
    else:
        story.happens("initialize", request={"leader_epoch": 1}, response={"error": error})
    return story


def answered(slow: int) -> HistoryFacts:
    """Return the facts about 20 acknowledgements, so many of which took a second and a half."""
    story = Story(log=200)
    for _ in range(20):
        story.work("m1")
    facts, count = HistoryFacts(Header(lacks=LACKS)), 0
    for event in story.events:
        count += event.kind == "acknowledge"
        took_us = 1_500_000 if count <= slow else 5_000
        facts.apply(event._replace(done_us=None if event.at_us is None else event.at_us + took_us))
    return facts


def reset(start: int) -> Story:
    """Return a story in which 20 records were done, and a leader reads this SPSO."""
    story = Story(log=30)
    for _ in range(2):
        story.work("m1")
    story.lead(1, start=start)
    story.happens("fetch", "m1", {"fetch_offset": start, "batches": (AppendedBatch(start, start + 9),)})
    return story


# ---- groups


def spread(*counts: int) -> HistoryFacts:
    """Return the facts about partitions with so many records."""
    stories = [Story(partition, log=count) for partition, count in enumerate(counts)]
    for story in stories:
        while story.work("m1"):
            pass
    return stories[0].facts(*stories[1:])


def assigned(**partitions: int) -> HistoryFacts:
    """Return the facts about members that fetch from so many of six partitions, the last ones of them."""
    stories = [Story(partition, log=10) for partition in range(6)]
    for partition, story in enumerate(stories):
        for _ in range(3):
            story.wait(0.2)
            for name, count in partitions.items():
                if partition >= 6 - count:
                    story.work(name, 0)
    return stories[0].facts(*stories[1:])


# ---- what Kafka's class and a broker do


def recorded(name: str, profile: str = "kafka-4.4") -> HistoryFacts:
    """Return the facts about a recorded conversation with Kafka's class, up to what ends a stall in one (F5)."""
    facts = HistoryFacts(Header(lacks=recorded_histories.LACKS))
    for event in recorded_histories.history_of(DATA / name, profile=profile):
        if event.request == {"offset": 15}:
            break
        facts.apply(event)
    return facts


def writes_that_fail(*, times: int) -> HistoryFacts:
    """Return the facts about a broker on which so many writes of twelve fail."""
    with TestBroker(clock=StandingClock(), config=QUICK_SETTINGS) as broker:
        topic_id = filled(broker, 60)
        with WireMember(broker, topic_id) as member:
            member.fetch()
            for number in range(12):
                if number < times:
                    with broker.failing_writes():
                        member.acknowledge((number, number, 1))
                else:
                    member.acknowledge((number, number, 1))
        history = broker.history()
    facts = HistoryFacts(history.header)
    for event in history:
        facts.apply(event)
    return facts


CASES: Final[dict[str, tuple[Case, Case]]] = {
    "lock-too-short": (told(working, 1.2), told(working, 0.9)),
    "never-acknowledges": (told(silent, accepts=False), told(silent, accepts=True)),
    "left-unacknowledged": (told(left, 2), told(left, 0)),
    "late-acknowledgements": (told(refused, 3), told(refused, 2)),
    "sessions-lost": (told(lost, "disconnect"), told(lost, "close")),
    "released-often": (told(released, 5), told(released, 20)),
    "poison-records": (told(failing, 1), told(failing, 1, times=4)),
    "given-up-in-numbers": (told(failing, 30), told(failing, 19)),
    "near-limit": (told(near, 4), told(near, 3)),
    "rejected": (told(rejected, 5), told(rejected, 4)),
    "limit-of-one": (told(failing, 0, delivery_count_limit=1), told(failing, 0, delivery_count_limit=2)),
    "limit-of-two": (told(failing, 1, delivery_count_limit=2), told(failing, 1, times=1, delivery_count_limit=2)),
    "renewed-in-vain": (told(renewed, RELEASE), told(renewed, ACCEPT)),
    "renewed-too-long": (told(kept, 12), told(kept, 10)),
    "more-than-polled": (told(batched, 1.2), told(batched, 0.9)),
    "window-full-of-done-records": (told(full, "done"), told(full, "worked")),
    "window-full-of-held-records": (told(full, "held"), told(full, "worked")),
    "spso-held-back": (told(held_back, 1.2), told(held_back, 2)),
    "throttled": (told(failing, 50, times=4), told(failing, 50, times=2)),
    "nobody-fetches": (told(gone, 61), told(gone, 59)),
    "lag-grows": (told(lagging, 20), told(lagging, 10)),
    "open-transaction": (told(transaction, 11), told(transaction, 9)),
    "skipped-at-start": (told(begun, "latest", 30), told(begun, "latest", 0)),
    "deleted-before-done": (told(deleted, 40), told(deleted, 20)),
    "leader-moves": (told(moved, 3, 1), told(moved, 3, 700)),
    "broker-threw": (told(threw, is_seen=True), told(threw, is_seen=False)),
    "not-active": (told(unread, "group_id_not_found"), told(unread, None)),
    "slow-answers": (lambda: answered(3), lambda: answered(1)),
    "offsets-reset": (told(reset, 0), told(reset, 20)),
    "empty-fetches": (told(empty, log=10), told(empty, log=0)),
    "hot-partition": (lambda: spread(20, 200, 30), lambda: spread(60, 200, 60)),
    "uneven-assignment": (lambda: assigned(m1=6, m2=1), lambda: assigned(m1=6, m2=3)),
    "stalled": (
        lambda: recorded("vectors/found/found-stall-in-a-full-window.jsonl"),
        lambda: recorded("vectors/found/found-stall-in-a-full-window.jsonl", "kafka-4.4-healed"),
    ),
    "wrong-lag": (
        lambda: recorded("vectors/section19/ex-24.B22.jsonl"),
        lambda: recorded("vectors/section19/ex-24.B22.jsonl", "kafka-4.4-healed"),
    ),
    "failing-writes": (lambda: writes_that_fail(times=3), lambda: writes_that_fail(times=2)),
}
"""A planted case of each rule, and one that nearly is."""


@pytest.mark.parametrize("name", CASES)
def test_a_planted_situation_is_named(name: str) -> None:
    """What was planted is among what was found."""
    assert name in found(CASES[name][0]())


@pytest.mark.parametrize("name", CASES)
def test_what_nearly_is_one_is_not_named(name: str) -> None:
    """A situation on the other side of the bound is not found."""
    assert name not in found(CASES[name][1]())


def test_each_rule_has_its_cases() -> None:
    """No rule is without a planted case."""
    names = {rule.name for rule in PARTITION_RULES} | {rule.name for rule in GROUP_RULES}
    assert set(CASES) == names


BUGS: Final = {
    "F1": "vectors/found/found-stall-in-a-full-window.jsonl",
    "F4": "vectors/found/found-stall-after-the-log-start.jsonl",
    "F5": "vectors/found/found-stall-in-a-gap-below-the-log-start.jsonl",
    "F6": "vectors/found/found-stall-after-compaction.jsonl",
    "F7": "vectors/found/found-stall-after-an-aborted-transaction.jsonl",
    "B22": "vectors/section19/ex-24.B22.jsonl",
    "B23": "vectors-4.4/dlq-B23-negative-count.jsonl",
    "F2": "vectors/found/found-negative-complete-count.jsonl",
}
"""What Kafka's class has answered where each bug shows (docs/kafka-bugs.md)."""


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_of_kafka_are_named(bug: str) -> None:
    """Each with its name, where what is in flight proves it."""
    findings = {each.facts.get("bug"): each.rule.name for each in diagnose(recorded(BUGS[bug])).findings}

    assert findings.get(bug) == ("wrong-lag" if bug in {"B22", "B23", "F2"} else "stalled")
