"""Several share partitions beside each other: what is mixed up is found, which one of them does not show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sharestate.testing.groups import GuaranteeBrokenError
from tests.planted.mixed_up import MIXED_UP, StatesByPartition
from tests.support.mock_machine import broken_by
from tests.support.mock_neighbours import MockNeighbours, NeighboursMachine


def machine_of(broker_type: type[MockNeighbours], **fields: Any) -> type[NeighboursMachine]:  # noqa: ANN401 - as classes have them
    """Return a machine of one kind of share partitions."""
    return type("NeighboursMachine", (NeighboursMachine,), {"broker_type": broker_type, **fields})


def test_nothing_is_found_in_correct_ones() -> None:
    """What happens at one share partition is judged there, and what concerns others at those."""
    assert broken_by(machine_of(MockNeighbours), max_examples=100) is None


@pytest.mark.parametrize("bug", MIXED_UP)
def test_what_is_mixed_up_is_found(bug: type[MockNeighbours], tmp_path: Path) -> None:
    """The program is short, says what happens at other share partitions, and runs from its file."""
    machine = machine_of(bug, programs=tmp_path)

    found = broken_by(machine, shrinks=True)

    assert found is not None
    (file,) = tmp_path.iterdir()
    assert ('"elsewhere"' in file.read_text()) is (bug is not StatesByPartition)  # which the end shows
    assert file.read_text().count("\n  [") <= 9
    with pytest.raises(GuaranteeBrokenError) as caught:
        machine.replay(file)
    assert caught.value.guarantee is found.guarantee
    machine_of(MockNeighbours).replay(file)


@pytest.mark.parametrize("bug", MIXED_UP)
def test_one_share_partition_does_not_show_it(bug: type[MockNeighbours]) -> None:
    """With the first one only, each of these bugs is missed."""
    assert broken_by(machine_of(bug, share_partitions=((0, 0),)), max_examples=50) is None
