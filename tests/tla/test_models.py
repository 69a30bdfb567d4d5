"""TLC finds nothing in what is healed, and each bug of Kafka by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from tests.tla.models import BUGS, ShareCoordinatorModel, ShareGroupModel
from tests.tla.tlc import SOME_DAY

pytestmark = pytest.mark.tla


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_found(bug: str, tmp_path: Path) -> None:
    """With a bug of Kafka switched on, what it breaks is found to be broken."""
    checked = BUGS[bug].check(tmp_path)

    assert checked.violated == BUGS[bug].breaks
    assert checked.actions


def test_a_stall_is_found_as_what_never_ends(tmp_path: Path) -> None:
    """Where F7 stalls, the log is never done though members go on: a fetch, and then nothing more."""
    f7 = BUGS["F7"]
    checked = evolve(f7.model, quirks=f7.quirks, judged=("AllIsDone",)).check(tmp_path)

    assert checked.violated == SOME_DAY
    assert checked.actions == ("Fetch",)


def test_healed_share_group(tmp_path: Path) -> None:
    """Without bugs all holds, though a write may fail, another leader take over and records be deleted."""
    model = ShareGroupModel(log="{<<0, 1>>}", types='{"accept"}', failures=1, failovers=1, deletions=1, locks=1)

    checked = model.check(tmp_path)

    assert checked.violated is None
    assert checked.distinct > 30_000


def test_healed_share_coordinator(tmp_path: Path) -> None:
    """Without bugs nobody but the latest leader writes, and what was confirmed is stored."""
    checked = ShareCoordinatorModel(retries=2).check(tmp_path)

    assert checked.violated is None
    assert checked.distinct > 900
