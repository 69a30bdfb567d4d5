"""The benchmark of histories."""

from __future__ import annotations

from bench.history import YARDSTICK, measured, noted
from sharestate.history.synthetic import life


def test_the_commands_are_those_of_a_replay() -> None:
    """What is noted of a replay and repeated leads to the same share partitions."""
    partitions = noted(life(1, 300))

    assert partitions
    for each in partitions:
        repeated = list(each.repeated())
        for command, args, keywords in repeated:
            command(*args, **keywords)
        partition = repeated[0][0].__self__  # type: ignore[attr-defined] # it is a bound method
        assert partition.snapshot() == each.partition.snapshot()


def test_every_work_is_measured() -> None:
    """Each work has a time for an event, the yardstick among them."""
    times = measured(60, 1)

    assert YARDSTICK in times
    assert all(each > 0 for (each,) in times.values())
