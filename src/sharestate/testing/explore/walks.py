"""A walk through states: from the beginning by events that are chosen by their positions."""

from __future__ import annotations

from collections.abc import Iterable

from sharestate.testing.explore.expansion import steps
from sharestate.testing.explore.steps import ExploredGroup, Step


class NoSuchEventError(LookupError):
    """In a state there is no event at a position."""

    def __init__(self, event: int, position: int) -> None:
        """Note that event number *event* of a walk, from 0 on, has a *position* that its state does not have."""
        super().__init__(f"in the state after {event} events nothing happens that has the number {position}")
        self.event = event
        """The number of the event, from 0 on, up to which there are states."""


def walk(around: ExploredGroup, positions: Iterable[int]) -> tuple[Step, ...]:
    """
    Return the steps from the beginning, which is the first one, by the events at *positions*.

    Raises:
        NoSuchEventError: A state has no event at a position, or there is none as the last one has raised something.
        SnapshotError: The leader does not take a state back.
    """
    walked = [around.begin()]
    for event, position in enumerate(positions):
        step = next((step for at, step in following(around, walked[-1]) if at == position), None)
        if step is None:
            raise NoSuchEventError(event, position)
        walked.append(step)
    return tuple(walked)


def following(around: ExploredGroup, step: Step) -> list[tuple[int, Step]]:
    """
    Return each step that may follow *step*, with the position of its event; none if it has raised something.

    Raises:
        SnapshotError: The leader does not take the state back.
    """
    return [] if step.error else list(steps(around, step.after))
