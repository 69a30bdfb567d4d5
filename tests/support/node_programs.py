"""A node with a planted bug as a machine, and the shortest program that shows the bug."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, ClassVar, NamedTuple

from sharestate.testing.groups import GroupSettings, GuaranteeBrokenError
from sharestate.testing.programs import Event
from sharestate.testing.shrinking import shrunk, without_pairs, without_ranges
from tests.planted.nodes import NodeBug
from tests.support.node_machine import UnwrittenMachine
from tests.support.node_members import WrongAnswerError
from tests.support.searches import error_of

END: Event = ("teardown",)


class PlantedMachine(UnwrittenMachine):
    """A node with a bug, if one is given."""

    bug: ClassVar[NodeBug | None] = None
    last: ClassVar[PlantedMachine]
    """The run that was begun last."""

    def start(self, settings: GroupSettings) -> None:
        """Plant the bug, and begin."""
        type(self).last = self
        self.begin: list[Any] = ["group_starts", settings]
        with ExitStack() as planting:
            if self.bug is not None:
                planting.enter_context(self.bug.planted())
            super().start(settings)
            self.planting = planting.pop_all()

    def stop(self) -> None:
        """Take the bug away."""
        self.planting.close()

    def producer_sends(self, count: int, producer: str | None = None) -> None:
        """Produce a batch, and keep how many records the first one has."""
        if not self.program:
            self.begin = [*self.begin[:2], count]
        super().producer_sends(count, producer)

    @property
    def steps(self) -> list[Event]:
        """What has happened, from the start to the end."""
        return [tuple(self.begin), *self.program, END]


class ProgramRun(NamedTuple):
    """
    What has become of a program.

    Attributes:
        steps: Its steps: how it begins, the events, and the end.
        found_by: What it has broken; None if nothing.
    """

    steps: list[Event]
    found_by: str | None

    @property
    def text(self) -> list[str]:
        """The program as Hypothesis prints it."""
        (_, settings, count), *events, _ = self.steps
        return [
            "state = NodeMachine()",
            f"state.group_starts(settings={settings!r}, count={count})",
            *(f"state.happens(event={event!r})" for event in events),
            "state.teardown()",
        ]


def machine_of(bug: NodeBug | None) -> type[PlantedMachine]:
    """Return a machine with a bug, whose runs are counted from 0."""
    return type("NodeMachine", (PlantedMachine,), {"bug": bug, "runs": 0})


def run(machine: type[PlantedMachine], steps: Sequence[Event]) -> str | None:
    """Run a program, and return what it breaks; None if that is nothing, or the program is not possible."""
    (_, settings, count), *events, _ = steps
    state = machine()
    try:
        try:
            state.group_starts(settings=settings, count=count)
            for event in events:
                state.happens(event=event)
        finally:
            state.teardown()
    except (GuaranteeBrokenError, WrongAnswerError) as error:
        return str(error.guarantee)
    except Exception:  # noqa: BLE001 - an event that is not possible without another one, which was left out
        return None
    return None


def search(bug: NodeBug, max_examples: int = 400) -> tuple[ProgramRun, int] | None:
    """Search for a bug; return what was found, made short, and the number of runs that it took."""
    machine = machine_of(bug)
    error = error_of(machine, AssertionError, max_examples=max_examples)
    if error is None:
        return None
    runs = machine.runs
    found_by = str(vars(error)["guarantee"])

    def shows(steps: list[Event]) -> ProgramRun | None:
        return ProgramRun(steps, found_by) if run(machine, steps) == found_by else None

    return shrunk(ProgramRun(machine.last.steps, found_by), shows, (without_ranges, without_pairs)), runs
