"""The program of what was found is kept as a file, and run again; what is no such file is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sharestate import MalformedInputError
from sharestate.testing.groups import GuaranteeBrokenError
from sharestate.testing.partitions import SharePartitionDiffersError
from sharestate.testing.program_files import MAX_PROGRAM
from tests.planted.share_groups import BUGS as GROUP_BUGS
from tests.planted.share_partitions import BUGS as PARTITION_BUGS
from tests.support import mock_machine, partition_machine
from tests.support.mock_share_group import MockShareGroup

PROGRAM: dict[str, Any] = {
    "sharestate_program": 1,
    "machine": "groups",
    "events": [
        [
            "group_starts",
            {
                "delivery_count_limit": 2,
                "lock_duration_ms": 1000,
                "max_record_locks": 200,
                "isolation_level": "read_committed",
                "renew_acknowledge_enable": True,
            },
            1,
        ],
        ["member_fetches", "m1", 1000],
        ["at_once", [0], [["member_acknowledges", "m1", [[0, 0, ["RELEASE"]]]], ["time_passes", 5]]],
    ],
}


def run(content: str, folder: Path) -> None:
    """Run the program that a file has."""
    file = folder / "program.json"
    file.write_text(content)
    mock_machine.MockMachine.replay(file)


@pytest.mark.parametrize("bug", ["types shifted", "stored together", "one more deleted", "abort ends all transactions"])
def test_what_members_have_found_is_found_again(bug: str, tmp_path: Path) -> None:
    """The file has the shortest program, in which the same guarantee is broken."""
    machine = mock_machine.machine_of(GROUP_BUGS[bug])
    machine.programs = tmp_path
    found = mock_machine.broken_by(machine, shrinks=True)
    assert found is not None
    (file,) = tmp_path.iterdir()

    with pytest.raises(GuaranteeBrokenError) as caught:
        machine.replay(file)

    assert caught.value.guarantee is found.guarantee
    assert found.__notes__[-1] == f"The program is in {file}: MockMachine.replay() runs it."
    mock_machine.machine_of(MockShareGroup).replay(file)


@pytest.mark.parametrize("bug", ["failed write not rolled back", "aborted record delivered", "dead letter not resumed"])
def test_what_an_adversary_has_found_is_found_again(bug: str, tmp_path: Path) -> None:
    """At the leader's side the same differs."""
    machine = partition_machine.machine_of(PARTITION_BUGS[bug])
    machine.programs = tmp_path
    found = partition_machine.difference_of(machine, shrinks=True)
    assert found is not None
    (file,) = tmp_path.iterdir()

    with pytest.raises(SharePartitionDiffersError) as caught:
        machine.replay(file)

    assert caught.value.what == found.what


@pytest.mark.parametrize("version", [1, 2])
def test_a_program_may_be_written_by_hand(version: int, tmp_path: Path) -> None:
    """All that is needed is in the file; files of the version before are read, too."""
    run(json.dumps({**PROGRAM, "sharestate_program": version}), tmp_path)


def events(*more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return the program with more events."""
    return {**PROGRAM, "events": [*PROGRAM["events"], *more]}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "of a later version": ({**PROGRAM, "sharestate_program": 3}, "sharestate_program"),
    "of another machine": ({**PROGRAM, "machine": "partitions"}, "machine"),
    "with an unknown field": ({**PROGRAM, "seed": 7}, "seed"),
    "without events": ({**PROGRAM, "events": []}, "events"),
    "without a start": ({**PROGRAM, "events": PROGRAM["events"][1:]}, "events"),
    "with two starts": (events(PROGRAM["events"][0]), "events"),
    "with an event without a name": (events([]), "events[3][0]"),
    "with an unknown event": (events(["teardown"]), "events[3][0]"),
    "with too few arguments": (events(["member_fetches", "m1"]), "events[3]"),
    "with another argument": (events(["member_fetches", "m1", 0]), "events[3][2]"),
    "with too many records": (events(["producer_sends", 10_001, None]), "events[3][1]"),
    "with an unknown type": (events(["member_acknowledges", "m1", [[0, 0, ["ACCEPTED"]]]]), "events[3][2][0][2][0]"),
    "with an overlap in another": (events(["at_once", [0], [["at_once", [0], []]]]), "events[3][2][0][0]"),
}
"""What is no program, and the field that the error names."""


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_program_is_refused(name: str, tmp_path: Path) -> None:
    """The error names what is wrong, and the file."""
    content, field = WRONG[name]
    with pytest.raises(MalformedInputError) as caught:
        run(json.dumps(content), tmp_path)

    assert caught.value.field == field
    assert caught.value.__notes__ == [f"in {tmp_path / 'program.json'}"]


def test_a_program_is_no_larger_than_one_is(tmp_path: Path) -> None:
    """What is larger is not even read to its end."""
    with pytest.raises(MalformedInputError, match="characters at most"):
        run(" " * (MAX_PROGRAM + 1), tmp_path)
