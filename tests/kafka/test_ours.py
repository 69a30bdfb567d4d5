"""Where we answer otherwise than Kafka: the same requests with our answers, written by hand from rule 24."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from sharestate import PROFILES, Quirk
from sharestate.conversation import Level, ReplayVerdict, open_trace, replay
from sharestate.conversation.replay import read_known_differences

DATA: Final = Path(__file__).parents[1] / "data"

NEVER_COPIED: Final = {"B1'", "B4", "B5", "B7", "B8", "B14", "8.2", "orphans"}
"""The rows of rule 24.2: crashes and leaks that no profile shows."""

UNSUPPORTED: Final = {"throws"}
"""The rows of what only a test of Kafka's own class can ask."""


class Pair(NamedTuple):
    """A row of the index: what Kafka answered, and what we answer."""

    row: str
    """The row of rule 24.1 or 24.2 that it is about."""

    kafka: str
    """Kafka's conversation."""

    ours: str
    """Ours."""

    profiles: tuple[str, ...]
    """The profiles that answer so."""

    line: int
    """The line at which the two first differ in what is observable."""


def read_index() -> list[Pair]:
    """Return the rows of the index."""
    index = json.loads((DATA / "ours/index.json").read_text())
    assert index["ours"] == 1
    return [Pair(**{**row, "profiles": tuple(row["profiles"])}) for row in index["rows"]]


PAIRS: Final = read_index()
RELEASES: Final = ("4.3", "4.2", "4.4")
"""Kafka 4.2 and 4.4 have the same bugs, so that what is for 4.3 holds for them too."""

CASES: Final = [
    pytest.param(pair, profile, id=f"{Path(pair.ours).stem} {profile}")
    for pair in PAIRS
    for profile in dict.fromkeys(
        profile.replace("4.3", release) for profile, release in product(pair.profiles, RELEASES)
    )
]

each_pair = pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: Path(pair.ours).stem)


def conversation(file: str) -> list[tuple[int, Any, Any]]:
    """Return line, request and response of each step of the trace *file*."""
    with open_trace(DATA / file) as trace:
        return [(step.line, step.request, step.response) for step in trace.steps]


@pytest.mark.parametrize(("pair", "profile"), CASES)
def test_we_answer_as_the_rules_say(pair: Pair, profile: str) -> None:
    """Every response is the one written by hand, with flags and internals."""
    outcome = replay(DATA / pair.ours, PROFILES[profile], Level.FULL)

    assert outcome.verdict is ReplayVerdict.PASSED, outcome


@each_pair
def test_both_were_asked_the_same(pair: Pair) -> None:
    """Kafka's conversation and ours have the same requests."""
    theirs, ours = ([request for _, request, _ in conversation(file)] for file in (pair.kafka, pair.ours))

    assert theirs == ours


@each_pair
def test_the_answers_first_differ_where_the_row_is_about(pair: Pair) -> None:
    """Up to the line that the index names nothing observable differs, and there something does."""
    both = zip(conversation(pair.kafka), conversation(pair.ours), strict=True)
    view = Level.OBSERVABLE.view

    assert next(line for (line, _, theirs), (_, _, ours) in both if view(theirs) != view(ours)) == pair.line


@each_pair
def test_a_conversation_says_whose_it_is(pair: Pair) -> None:
    """The header has Kafka's name with a suffix, the source, and the profiles of the index."""
    theirs, ours = (json.loads((DATA / file).read_text().partition("\n")[0]) for file in (pair.kafka, pair.ours))

    assert (ours["source"], ours["profiles"]) == ("spec section 24, by hand", list(pair.profiles))
    assert ours["name"] == Path(pair.ours).stem
    assert ours["name"].removeprefix(theirs["name"]) in {"-ours", "-ours-healed", "-healed"}


def test_every_divergence_has_a_pair() -> None:
    """Each row of rule 24.2 has a pair for both forms of the profile, each quirk of 24.1 has one for the healed."""
    healed: dict[str, set[bool]] = {}
    for pair in PAIRS:
        healed.setdefault(pair.row, set()).update(not PROFILES[profile].quirks for profile in pair.profiles)

    assert healed == {
        **{row: {False, True} for row in NEVER_COPIED},
        **{quirk.value: {True} for quirk in Quirk},
    }


def test_every_vector_that_is_known_to_differ_has_a_pair() -> None:
    """What Kafka's vectors show otherwise on purpose is shown by ours, under the same row."""
    vectors = {file.stem for file in DATA.glob("vectors*/**/*.jsonl")}
    known = read_known_differences(DATA / "known-differences.json").rows

    assert {(row.name, row.row) for row in known if row.name in vectors and row.row not in UNSUPPORTED} == {
        (Path(pair.kafka).stem, pair.row)
        for pair in PAIRS
        if pair.row in NEVER_COPIED and pair.kafka.startswith("vectors")
    }


def test_every_conversation_is_in_the_index() -> None:
    """No file lies about unused, and none is used twice."""
    files = [str(file.relative_to(DATA)) for file in DATA.glob("ours/*.jsonl")]

    assert sorted(files) == sorted(pair.ours for pair in PAIRS)
