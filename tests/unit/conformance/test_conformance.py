"""Conformance, with the vectors that come with the library: those who follow a release pass, and others do not."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from sharestate import KAFKA_4_4
from sharestate.conformance import (
    Conformance,
    ConformanceVerdict,
    RuleConformance,
    VectorOutcome,
    conform,
    read_vectors,
)
from sharestate.conversation import Level, ReplayVerdict, replay
from sharestate.errors import InvalidRequestError, UnreadableFileError
from sharestate.json_lines import write_json
from sharestate.partition import acknowledge, commands, next_fetch, throttling
from sharestate.partition.acknowledgement_form import acknowledgements
from sharestate.partition.locks import Locks
from sharestate.partition.state import PartitionState
from tests.support.conforming import HEADER, TOP, VECTOR, planted, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sharestate import AcknowledgementBatch
    from sharestate.partition.locks import Lock

VECTORS: Final = read_vectors()

RULES: Final = TOP / "tests/data/vectors/rules"
"""The recordings of rules of which nothing else is an example."""


def failed(found: Conformance) -> dict[str, RuleConformance]:
    """Return the rules that fail, by their numbers."""
    return {rule.number: rule for rule in found.rules if rule.verdict is ConformanceVerdict.FAILED}


@pytest.mark.parametrize(
    ("release", "profile"), [("4.2.2", "kafka-4.2"), ("4.3.1", "kafka-4.3"), ("4.4.0", "kafka-4.4")]
)
def test_the_library_follows_each_release(release: str, profile: str) -> None:
    """Every vector of a release is answered alike, but for locks that expire early, which it does not know."""
    found = conform(served(profile), VECTORS, release)

    unsupported = [each for each in found.outcomes if each.verdict is ConformanceVerdict.UNSUPPORTED]
    early = [each for each in unsupported if each.vector.accident is None]
    assert (found.verdict, found.limit, failed(found)) == (ConformanceVerdict.PASSED, None, {})
    assert len(found.outcomes) == len(VECTORS.of(release)) > 250
    assert len(early) == 4
    assert all(each.vector.exchanges[each.place or 0][0]["op"] == "fire_lock" for each in early)


def test_who_has_healed_the_bugs_of_kafka_fails_one_rule() -> None:
    """What shows a bug of Kafka is counted for rule 24.1 alone."""
    assert failed(conform(served("kafka-4.4-healed"), VECTORS, "4.4.0")).keys() == {"24.1"}


@pytest.mark.parametrize(
    ("plant", "rules"),
    [("b1", {"7.2"}), ("b3", {"9"}), ("b13", {"7.6"}), ("gap_to_the_queue", {"21", "21.1"})],
)
def test_a_broken_rule_fails_and_no_other(plant: str, rules: set[str], tmp_path: Path) -> None:
    """The shortest conversation ends where the answers part, and Kafka's profile answers all of it."""
    rules_failed = failed(conform(planted(plant), VECTORS, "4.4.0"))

    assert rules_failed.keys() == rules
    shortest = next(iter(rules_failed.values())).shortest
    assert shortest is not None
    assert shortest.differences
    (tmp_path / "shortest.jsonl").write_text(shortest.trace)
    assert replay(tmp_path / "shortest.jsonl", KAFKA_4_4, Level.OBSERVABLE).verdict is ReplayVerdict.PASSED


def test_every_rule_has_a_vector_or_the_reason_why_it_has_none() -> None:
    """What is not asked is not judged, and its reason is said."""
    asked = (VectorOutcome(vector=each, verdict=ConformanceVerdict.PASSED) for each in VECTORS.of("4.4.0"))
    found = Conformance(release="4.4.0", level=Level.OBSERVABLE, index=VECTORS, outcomes=tuple(asked))

    unasked = {rule.number: rule for rule in found.rules if rule.number and not rule.counts}
    assert unasked.keys() == VECTORS.unasked.keys() == {"21.6", "24", "24.2", "24.4"}
    assert {number: rule.reason for number, rule in unasked.items()} == VECTORS.unasked
    assert {rule.verdict for rule in unasked.values()} == {ConformanceVerdict.UNJUDGED}


def test_later_rules_are_missed_in_an_earlier_release() -> None:
    """The rules of 4.3 fail those of the dead-letter queue, which 4.4.0 has brought, with its bugs."""
    numbers = failed(conform(served("kafka-4.3"), VECTORS, "4.4.0")).keys()

    assert numbers == {"21", "21.1", "21.2", "21.3", "21.4", "21.5", "24.1"}


def test_nothing_supported_is_not_judged() -> None:
    """A peer that knows no request has no rule that fails, and none that passes."""
    program = 'import sys\nfor line in sys.stdin: print(\'{"bad_request": "no"}\', flush=True)'

    found = conform([sys.executable, "-c", program], VECTORS, "4.4.0")

    assert found.verdict is ConformanceVerdict.UNJUDGED
    assert {rule.verdict for rule in found.rules if rule.counts} == {ConformanceVerdict.UNSUPPORTED}


def test_a_peer_that_keeps_ending_is_given_up() -> None:
    """After ten vectors it is asked no more, and what is left is not judged."""
    program = "import sys\nsys.stdin.readline(); print('{}', flush=True)"

    found = conform([sys.executable, "-c", program], VECTORS, "4.4.0")

    assert found.limit == "the peer has ended, or given no answer, in 10 vectors"
    assert sum(each.verdict is not ConformanceVerdict.UNJUDGED for each in found.outcomes) == 10
    assert found.verdict is ConformanceVerdict.FAILED


def test_what_there_was_no_time_for_is_not_judged() -> None:
    """Without a failure the verdict on all is that it is not judged."""
    found = conform(served("kafka-4.4"), VECTORS, "4.4.0", limit_s=0.0)

    assert (found.verdict, found.limit) == (ConformanceVerdict.UNJUDGED, "0 s have passed")


def test_a_release_without_vectors_is_refused() -> None:
    """The error names those there are."""
    with pytest.raises(ValueError, match=r"vectors of 4\.2\.2, 4\.3\.1, 4\.4\.0, and not of 3\.0"):
        conform(served("kafka-4.4"), VECTORS, "3.0")


# ---- planted bugs


def moves_the_start() -> Callable[[PartitionState], int]:
    """Return what moves the SPSO to where the next fetch begins, as if it were an advance."""
    original = next_fetch.next_fetch_offset

    def find(state: PartitionState) -> int:
        state.start_offset = max(state.start_offset, offset := original(state))
        return offset

    return find


def refuses(is_refused: Callable[[Sequence[AcknowledgementBatch]], bool]) -> Callable[..., object]:
    """Return the check of acknowledgements that refuses more than what is malformed."""

    def check(batches: Sequence[AcknowledgementBatch]) -> object:
        checked = acknowledgements(batches)
        if is_refused(checked):
            message = "refused"
            raise InvalidRequestError(message)
        return checked

    return check


def first_expired(self: Locks, now_ms: int) -> Lock | None:
    """Return the first lock whose deadline has come, not passed."""
    return next((lock for lock in self if lock.deadline_ms <= now_ms), None)


def latest_expired(self: Locks, now_ms: int) -> Lock | None:
    """Return the lock with the first deadline that was made last."""
    expired = [lock for lock in self if lock.deadline_ms < now_ms]
    return min(expired, key=lambda lock: (lock.deadline_ms, -lock.creation), default=None)


PLANTS: Final = {
    "2: where a fetch begins moves the SPSO": ("2", next_fetch, "next_fetch_offset", moves_the_start()),
    "8.2: one record is a reversed range": (
        "8.2",
        commands,
        "acknowledgements",
        refuses(lambda batches: any(first >= last for first, last, _ in batches)),
    ),
    "8.2: ranges have to ascend": (
        "8.2",
        commands,
        "acknowledgements",
        refuses(lambda batches: any(next_[0] < each[1] for each, next_ in pairwise(batches))),
    ),
    "20: locks of single records are not renewed": ("20", acknowledge, "renew_records", lambda *_: None),
    "20: no delivery is throttled": ("20", throttling, "piece", lambda *_: 10**6),
    "20: complete records are not counted": ("20", PartitionState, "count_completed", lambda *_: None),
    "24.5: a lock expires at its deadline": ("24.5", Locks, "first_expired", first_expired),
    "24.5: the lock made last expires first": ("24.5", Locks, "first_expired", latest_expired),
}
"""The rule, and what is put in the place of which name."""


@pytest.mark.parametrize(("rule", "owner", "name", "planted"), PLANTS.values(), ids=list(PLANTS))
def test_the_vectors_of_a_rule_notice_a_bug(
    rule: str, owner: object, name: str, planted: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A conversation that shows the rule alone is answered otherwise once the rule is broken."""
    files = sorted(RULES.glob(f"ex-{rule}-*.jsonl"))
    verdicts = {replay(file, KAFKA_4_4, Level.OBSERVABLE).verdict for file in files}
    monkeypatch.setattr(owner, name, planted)

    broken = {replay(file, KAFKA_4_4, Level.OBSERVABLE).verdict for file in files}

    assert verdicts == {ReplayVerdict.PASSED}
    assert ReplayVerdict.FAILED in broken


# ---- files of vectors


def broken() -> Iterator[tuple[list[object], str]]:
    """Go through files that are none, and what is said of each."""
    yield [], ":1:"
    yield [HEADER | {"vectors": 2}, VECTOR], ":1: vectors:"
    yield [HEADER | {"releases": []}, VECTOR], ":1: releases: there is none"
    yield [HEADER, VECTOR | {"rules": ["2"]}], ":2: rules: the header has no rule 2"
    yield [HEADER, VECTOR, VECTOR], ":3: name: there is another vector with this name"
    yield [HEADER, VECTOR | {"exchanges": [[1, {}]]}], ":2: exchanges"


@pytest.mark.parametrize(("lines", "message"), list(broken()))
def test_what_is_no_file_of_vectors_is_refused(lines: list[object], message: str, tmp_path: Path) -> None:
    """The error has the file, the line and the field."""
    file = tmp_path / "vectors.jsonl"
    file.write_text("".join(f"{write_json(line)}\n" for line in lines))

    with pytest.raises(UnreadableFileError) as raised:
        read_vectors(file)

    assert str(raised.value).startswith(f"{file}{message}")
