"""Changes, and the writes that carry them: what shows at once, their numbers and the counts that they carry."""

from __future__ import annotations

import pytest

from tests.support.scenes import Scene


def acquired() -> Scene:
    """Return a scene in which m1 has acquired 0-4, 5-9 and 10-14, and writes wait for their answers."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9][10-14]", cut=5)
    scene.is_holding = True
    return scene


def test_a_change_shows_before_it_is_written() -> None:
    """State, count and owner change at once; the lock stays until the answer (rule 1.3)."""
    scene = acquired()
    scene.acknowledge("m1", "0-4:accept")

    assert scene.batches[0] == "[0-4] ACKNOWLEDGED/1/-*"
    assert scene.partition.delivery_complete_count == 5
    assert (scene.offsets, scene.deadlines) == ((0, 14), [(0, 14, 10_000)])


def test_the_complete_count_of_a_write_includes_pending_ones() -> None:
    """The complete count of a write includes changes that are in flight (rule 20.4)."""
    scene = acquired()
    scene.acknowledge("m1", "5-9:accept")

    assert scene.acknowledge("m1", "0-4:accept") == ("W(0; 0-4 st2 dc1; cc 10)",)


def test_writes_are_numbered_from_zero() -> None:
    """Each write has the next number, whatever caused it."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-4][5-9][10-14]", cut=5)
    scene.acknowledge("m1", "0-4:release")
    scene.wait(10_001)
    scene.acquire("m1", 0, "[0-4]")
    scene.release("m1")

    assert [write.number for effects in scene.effects for write in effects.writes] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("entries", "completed"),
    [
        (["3:release"], 0),
        (["3:accept"], 1),
        (["3:reject"], 1),
        (["3:release", "5:accept", "7:release"], 1),
        (["2-4:release"], 0),
        (["2-4:accept,release,gap"], 2),
    ],
)
def test_terminal_records_alone_count_as_complete(entries: list[str], completed: int) -> None:
    """A write's delivery complete count grows by the records that it makes terminal, however they are named."""
    scene = Scene().load()
    scene.acquire("m1", 0, "[0-9]")
    scene.acknowledge("m1", "9:accept")

    (write,) = scene.acknowledge("m1", *entries)

    assert write.rpartition("; ")[2] == f"cc {1 + completed})"
