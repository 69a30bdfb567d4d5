"""The programs that were found for planted bugs, which the docs show, break what they are said to break."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sharestate.testing.groups import GroupSettings, GuaranteeBrokenError
from tests.planted.record import SHARE_GROUPS, steps_of
from tests.planted.share_groups import BUGS
from tests.support.mock_machine import machine_of
from tests.support.mock_share_group import MockShareGroup

CONTENT: dict[str, Any] = json.loads(SHARE_GROUPS.read_text())
ROWS: list[dict[str, Any]] = CONTENT["rows"]


def run(program: list[str], group_type: type[MockShareGroup]) -> None:
    """Run a program on a kind of share group."""
    names: dict[str, Any] = {"MockMachine": machine_of(group_type), "GroupSettings": GroupSettings}
    try:
        exec("\n".join(program), names)  # noqa: S102 - ours
    finally:
        vars(names["state"])["_runner"].close()  # a program that breaks off has not ended its event loop


def test_every_planted_bug_has_a_program() -> None:
    """Those that are planted are those in the docs, with the same words."""
    assert CONTENT["planted_bugs"] == 1
    assert {row["bug"]: row["what"] for row in ROWS} == {name: bug.__doc__ for name, bug in BUGS.items()}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["bug"]))
def test_a_program_shows_its_bug(row: dict[str, Any]) -> None:
    """It has at most 12 steps, breaks its guarantee, and breaks none without the bug."""
    assert steps_of("\n".join(row["program"])) == row["steps"] <= 12
    with pytest.raises(GuaranteeBrokenError) as caught:
        run(row["program"], BUGS[row["bug"]])
    assert caught.value.guarantee == row["found_by"]
    run(row["program"], MockShareGroup)
