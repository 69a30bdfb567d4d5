"""A short search for differences, for each release whose rules the library has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sharestate.conversation.compare import Level
from sharestate.conversation.replay import ReplayVerdict, replay
from sharestate.testing import invariants_of, mix_for, observe, seeded
from sharestate.testing.search import CommandPeer, Plan, StateError, compare, search
from tests.oracle.build import RELEASES, Oracle
from tests.oracle.search.divergences import DIVERGENCES
from tests.oracle.search.profiles import profile_of
from tests.oracle.search.task import KafkaTask

pytestmark = pytest.mark.oracle

OPERATIONS = 60_000


@pytest.mark.parametrize("oracle", RELEASES, indirect=True)
def test_a_short_search_finds_no_difference(oracle: Oracle, tmp_path: Path) -> None:
    """Random sequences are answered as Kafka answers them, but for the known divergences."""
    arguments = ["--kafka", oracle.kafka, "--ops", str(OPERATIONS), "--jobs", "2", "--out", str(tmp_path)]

    ended = subprocess.run(
        [sys.executable, "-m", "tests.oracle.search", *arguments], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "; 0 differences; " in ended.stdout.splitlines()[-1]


def test_a_planted_change_is_found_and_made_small(oracle: Oracle, tmp_path: Path) -> None:
    """With an old rule planted a search stops, with few requests, to which Kafka answers as without the plant."""
    profile = profile_of(oracle.kafka)
    command, plants = tuple(oracle.command()), ("tests.planted.rules.release_count",)
    task = KafkaTask(command=command, profile=profile, kafka=oracle.kafka, plants=plants)

    progress = search(Plan(task=task, operations=20_000))

    finding = progress.findings[0]
    assert finding.op == "release"
    assert finding.steps <= 5
    file = tmp_path / "found.jsonl"
    file.write_text(finding.conversation)
    assert replay(file, profile, Level.OBSERVABLE).verdict is ReplayVerdict.PASSED


def test_a_search_is_taken_up_where_it_was_left(oracle: Oracle, tmp_path: Path) -> None:
    """The state file tells where to go on, and refuses to be another search's."""
    state = tmp_path / "state.json"
    task = KafkaTask(command=tuple(oracle.command()), profile=profile_of(oracle.kafka), kafka=oracle.kafka)
    plan = Plan(task=task, operations=1000, seed=5, state=state)

    first, second = search(plan), search(plan)

    assert (first.next, second.next) == (105, 205)
    assert second.tally.total == first.compared + second.compared
    with pytest.raises(StateError, match=r"seed 5"):
        search(Plan(task=task, operations=1000, seed=6, state=state))


def test_kafka_is_a_peer_of_the_kit(oracle: Oracle) -> None:
    """The test kit compares Kafka's own class in one line, with its crashes and leaks as data, and needs no state."""
    profile = profile_of(oracle.kafka)

    for level in (Level.OBSERVABLE, Level.ANSWERS):
        assert compare(oracle.command(), profile, level=level, seeds=range(15), divergences=DIVERGENCES) > 100


def test_kafka_keeps_the_invariants(oracle: Oracle) -> None:
    """Of what Kafka's class answers, its crashes break one invariant and B14 another; nothing breaks the rest."""
    profile = profile_of(oracle.kafka)
    broken = set()
    with CommandPeer(oracle.command()) as kafka:
        for seed in range(100):
            try:
                observe(seeded(seed, mix_for(profile)), kafka, invariants_of(profile))
            except AssertionError as error:
                broken.add(str(error).split(": ")[1])

    assert broken <= {"errors_are_typed", "a_fenced_partition_stays_fenced"}
