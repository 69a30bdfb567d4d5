"""TLC finds nothing in what is healed, and each bug of Kafka by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tla.models import BUGS, LIVENESS, STALLS, ShareCoordinatorModel, ShareGroupModel
from tests.tla.tlc import SOME_DAY

pytestmark = pytest.mark.tla


@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_found(bug: str, tmp_path: Path) -> None:
    """With a bug of Kafka switched on, what it breaks is found to be broken."""
    checked = BUGS[bug].check(tmp_path)

    assert checked.violated == (SOME_DAY if BUGS[bug].breaks in LIVENESS else BUGS[bug].breaks)
    assert checked.actions


@pytest.mark.parametrize("bug", STALLS)
def test_stalls_are_found_as_what_never_ends(bug: str, tmp_path: Path) -> None:
    """Where a share partition stalls, the log is never done: after a few steps there is no other."""
    checked = STALLS[bug].check(tmp_path)

    assert checked.violated == SOME_DAY
    assert checked.actions[-1] == ("Confirm" if bug in {"F1", "F8"} else "Fetch")


def test_a_log_with_a_gap(tmp_path: Path) -> None:
    """Without bugs all holds, though offsets between log batches are delivered that the log does not have."""
    checked = BUGS["B10"].model.check(tmp_path)

    assert checked.violated is None
    assert checked.distinct > 10_000


@pytest.mark.parametrize(("queue", "types"), [("FALSE", '{"accept"}'), ("TRUE", '{"reject"}')])
def test_healed_share_group(queue: str, types: str, tmp_path: Path) -> None:
    """Without bugs all holds, though a write may fail, another leader take over and records be deleted."""
    model = ShareGroupModel(log="{<<0, 1>>}", types=types, queue=queue, failures=1, failovers=1, deletions=1, locks=1)

    checked = model.check(tmp_path)

    assert checked.violated is None
    assert checked.distinct > 30_000


def test_healed_share_coordinator(tmp_path: Path) -> None:
    """Without bugs nobody but the latest leader writes, and what was confirmed is stored."""
    checked = ShareCoordinatorModel(retries=2).check(tmp_path)

    assert checked.violated is None
    assert checked.distinct > 900
