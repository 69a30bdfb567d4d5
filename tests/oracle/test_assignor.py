"""A short search for differences from Kafka's assignor, for each release whose rules the library has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sharestate import KAFKA_4_4
from sharestate.broker.groups import assignor
from sharestate.conversation import Level, ReplayVerdict, replay
from tests.oracle.assignor.cases import LENGTH, Sequence
from tests.oracle.assignor.search import command_of, search, write
from tests.oracle.build import RELEASES, OracleUnavailableError

REQUESTS = 2_000


@pytest.fixture
def command(request: pytest.FixtureRequest) -> list[str]:
    """What runs Kafka's assignor, of the release that is the parameter."""
    try:
        return command_of(request.param)
    except OracleUnavailableError as error:
        if "oracle" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            raise
        pytest.skip(str(error))


@pytest.mark.oracle
@pytest.mark.parametrize("command", ["4.2.1", *RELEASES], indirect=True)
def test_a_short_search_finds_no_difference(command: list[str]) -> None:
    """Random groups are assigned as Kafka assigns them; some of them make Kafka's assignor fail."""
    tally, finding = search(command, range(10**6), REQUESTS)

    assert finding is None
    assert tally.total() >= REQUESTS
    assert tally.keys() == {
        "homogeneous",
        "heterogeneous",
        "NoSuchElementException",
        "PartitionAssignorException",
    }


@pytest.mark.oracle
@pytest.mark.parametrize("command", ["4.3.1"], indirect=True)
def test_a_planted_bug_is_found(command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Turns that go back in each second round differ soon; what is written shows Kafka's answer (rule A8)."""
    taken = assignor._Rota.next  # noqa: SLF001 - a bug is planted there

    def to_and_fro(self: assignor._Rota) -> int | None:
        if self.position == len(self.members) and self.has_assigned and len(self.filled) < len(self.members):
            self.members = self.members[::-1]
        return taken(self)

    monkeypatch.setattr(assignor._Rota, "next", to_and_fro)  # noqa: SLF001 - as above
    _, finding = search(command, range(10**6), REQUESTS)
    monkeypatch.undo()

    assert finding is not None
    assert len(finding.steps) < 12
    write(finding, "4.3.1", tmp_path / "found.jsonl")
    assert replay(tmp_path / "found.jsonl", KAFKA_4_4, Level.FULL).verdict is ReplayVerdict.PASSED


def test_a_sequence_is_the_same_again() -> None:
    """The same number gives the same requests; two numbers give others."""
    first = Sequence(5).requests()

    assert (len(first), Sequence(5).requests()) == (LENGTH, first)
    assert Sequence(6).requests() != first
