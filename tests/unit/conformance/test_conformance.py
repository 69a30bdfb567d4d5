"""Conformance, with the vectors that come with the library: those who follow a release pass, and others do not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from sharestate import KAFKA_4_4
from sharestate.conformance import Conformance, ConformanceVerdict, RuleConformance, conform, read_vectors
from sharestate.conversation import Level, ReplayVerdict, replay
from sharestate.errors import UnreadableFileError
from sharestate.json_lines import write_json
from tests.support.conforming import HEADER, VECTOR, planted, served

if TYPE_CHECKING:
    from collections.abc import Iterator

VECTORS: Final = read_vectors()


def failed(found: Conformance) -> dict[str, RuleConformance]:
    """Return the rules that fail, by their numbers."""
    return {rule.number: rule for rule in found.rules if rule.verdict is ConformanceVerdict.FAILED}


@pytest.mark.parametrize(("release", "profile"), [("4.3.1", "kafka-4.3"), ("4.4.0", "kafka-4.4")])
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
    with pytest.raises(ValueError, match=r"vectors of 4\.3\.1, 4\.4\.0, and not of 3\.0"):
        conform(served("kafka-4.4"), VECTORS, "3.0")


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
