"""The known divergences: each is what a recording of Kafka shows, and nothing else passes for one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sharestate.json_lines import write_json
from sharestate.testing import Request
from sharestate.testing.search import KAFKA_DIVERGENCES
from sharestate.testing.search.judging import Judge, Judgement
from sharestate.testing.search.library import answered, given
from sharestate.values.profiles import KAFKA_4_3, KAFKA_4_4, Profile
from tests.oracle.search.divergences import DIVERGENCES, KafkaDivergence

DATA = Path(__file__).parents[1] / "data"


def file_of(name: str) -> Path:
    """Return the file of a recording."""
    (file,) = (file for file in DATA.rglob(f"{name}.jsonl") if "ours" not in file.stem)
    return file


VECTORS = [
    pytest.param(name, row, profile, id=f"{name} {profile.name}")
    for row in DIVERGENCES
    for name in row.vectors
    for profile in ((KAFKA_4_4,) if "4.4" in file_of(name).parts[-2] else (KAFKA_4_3, KAFKA_4_4))
]
"""Kafka 4.4.0 answers the recordings of 4.3.1 in the same way (tests/oracle/test_recordings.py)."""


def recorded(name: str) -> tuple[list[Request], list[str]]:
    """Return the requests of a recording, and what Kafka has answered."""
    _, *lines = map(json.loads, file_of(name).read_text().splitlines())
    return [line["request"] for line in lines], [write_json(line["response"]) for line in lines]


def judged(requests: list[Request], responses: list[str], profile: Profile = KAFKA_4_4) -> Judgement:
    """Return what becomes of *requests* under *profile*, to which Kafka has answered *responses*."""
    steps = answered(given(requests), profile)
    return Judge(profile=profile, divergences=DIVERGENCES).verdict(range(len(steps)), steps, responses)


def test_each_row_has_recordings() -> None:
    """The table and the recordings name the same rows."""
    assert [row.id for row in DIVERGENCES] == [row.id for row in KAFKA_DIVERGENCES]
    assert all(row.vectors for row in DIVERGENCES)


@pytest.mark.parametrize(("name", "row", "profile"), VECTORS)
def test_a_row_accounts_for_its_recordings(name: str, row: KafkaDivergence, profile: Profile) -> None:
    """What Kafka was recorded to do is what the row says, from its trigger to what differs."""
    assert judged(*recorded(name), profile).row == row


@pytest.mark.parametrize(("name", "row", "profile"), VECTORS)
def test_a_row_accounts_for_nothing_before_its_trigger(name: str, row: KafkaDivergence, profile: Profile) -> None:
    """Where Kafka answers otherwise before the divergence is set off, that is a difference."""
    requests, responses = recorded(name)
    mismatch = judged(requests, responses, profile).mismatch
    assert mismatch is not None
    first = json.loads(responses[0])
    first["state"]["end_offset"] += 1

    verdict = judged(requests, [write_json(first), *responses[1:]], profile)

    assert verdict.is_failure
    assert verdict.mismatch is not None
    assert verdict.mismatch.index == 0 < mismatch.index, row.id


def test_another_exception_is_a_difference() -> None:
    """A row accounts only for the exceptions that it names, even when it is set off."""
    requests, responses = recorded("ex-19.B5")
    responses = [response.replace("NullPointerException", "ArithmeticException") for response in responses]

    assert judged(requests, responses).is_failure


def test_a_divergence_that_does_not_show_is_latent() -> None:
    """A row that may show later is counted when the sequence ends before that."""
    requests, responses = recorded("ex-19.B4")
    shows = judged(requests, responses).mismatch
    assert shows is not None

    verdict = judged(requests[: shows.index], responses[: shows.index])

    assert verdict.is_latent
    assert verdict.row is not None
    assert verdict.row.id == "B4"
