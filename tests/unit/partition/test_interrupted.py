"""Commands that end with an error in the middle, such as MemoryError: nothing has changed but splits and renewals."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import CO_GENERATOR
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import sharestate
from sharestate import KAFKA_4_3, KIP_932, Effects, Profile
from sharestate.partition import commands, state, writes
from sharestate.partition.cells import Cell
from tests.support.scenes import Scene, acknowledgement

CORE: Final = {str(path) for path in (Path(sharestate.__file__).parent / "partition").glob("[!s]*.py")} - {
    str(commands.__file__)
} | {str(state.__file__)}
"""The modules that carry out commands; in `commands` and `share_partition` one has not begun, or is over."""

both_policies = pytest.mark.parametrize("profile", [KAFKA_4_3, KIP_932], ids=["broker", "kip"])


def prepared(profile: Profile) -> Scene:
    """Return a share partition with a split batch and a whole one that m1 holds, and a pending write of another."""
    scene = Scene(profile=profile).load()
    scene.acquire("m1", 0, "[0-59][60-79][80-89]", cut=20)
    scene.acknowledge("m1", "0:accept", "5:release", "40:accept")
    scene.is_holding = True
    scene.acknowledge("m1", "80-89:accept")
    return scene


def fails_at(call: int, command: Callable[[], object]) -> bool:
    """Run *command*, let its *call*-th call of a function of the core fail, and return whether there was one."""
    made = 0

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal made
        code = frame.f_code
        # Generators are left out, for closing one is a call as well; so is what a command does after its write.
        made += event == "call" and code.co_filename in CORE and not code.co_flags & CO_GENERATOR
        if made == call:
            raise MemoryError
        return None

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        command()
    except MemoryError:
        return True
    finally:
        sys.settrace(outer)
    return False


def acknowledge(scene: Scene, *ranges: str) -> Effects:
    """Acknowledge for m1, and do nothing else."""
    return scene.partition.acknowledge("m1", list(map(acknowledgement, ranges)), now_ms=0)


COMMANDS: Final[dict[str, Callable[[Scene], object]]] = {
    "a range": lambda scene: acknowledge(scene, "1-4:accept"),
    "types": lambda scene: acknowledge(scene, "1-4:accept,release,reject,accept"),
    "a whole batch": lambda scene: acknowledge(scene, "60-79:reject"),
    "single records": lambda scene: acknowledge(scene, "50:accept", "4:reject", "41:release"),
    "everything": lambda scene: acknowledge(scene, "60-79:accept", "41:accept", "2-3:accept", "1:release"),
    "a release": lambda scene: scene.partition.release("m1", now_ms=0),
}


@both_policies
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_change_is_withdrawn_wherever_it_fails(profile: Profile, command: Callable[[Scene], object]) -> None:
    """After an error at any call the records are as they were, and the next command works."""
    for call in count(1):
        scene = prepared(profile)
        before = scene.partition.snapshot()
        if not fails_at(call, lambda: command(scene)):  # noqa: B023 - called at once
            break
        scene.partition.check()
        assert scene.partition.snapshot() == before, call
    assert call > 10


@pytest.mark.parametrize(
    ("made", "command"),
    [
        ("with_lock", lambda scene: acknowledge(scene, "60-61:accept")),
        ("renewed", lambda scene: acknowledge(scene, "60-79:renew")),
        ("renewed", lambda scene: acknowledge(scene, "1-3:renew")),
    ],
    ids=["split", "renewal", "renewal of records"],
)
def test_cells_are_made_before_locks_change(
    monkeypatch: pytest.MonkeyPatch, made: str, command: Callable[[Scene], object]
) -> None:
    """If there is no memory for the cells of a split or a renewal, no lock waits for cells that were never made."""
    scene = prepared(KAFKA_4_3)
    before = scene.partition.snapshot()

    def fail(*_: object) -> Cell:
        raise MemoryError

    monkeypatch.setattr(Cell, made, fail)
    with pytest.raises(MemoryError):
        command(scene)

    scene.partition.check()
    assert scene.partition.snapshot() == before


@both_policies
def test_a_write_that_cannot_be_made_is_withdrawn(profile: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    """By then the write policy has formed what it carries, the records are counted, and the number is given."""
    scene = prepared(profile)
    before = scene.partition.snapshot()
    monkeypatch.setattr(writes, "WriteShareGroupState", None)
    with pytest.raises(TypeError, match="not a type"):
        acknowledge(scene, "60-79:accept")

    scene.partition.check()
    assert scene.partition.snapshot() == before
