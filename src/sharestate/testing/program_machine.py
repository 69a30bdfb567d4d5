"""What the machines of this kit have in common that search by programs of events: how they run, and are run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar

try:
    from hypothesis import currently_in_test_context
    from hypothesis import event as count_event
    from hypothesis import settings as hypothesis_settings
    from hypothesis.stateful import RuleBasedStateMachine, TestCaseProperty
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    message = "the machines of sharestate.testing need the extra 'testing': pip install 'sharestate[testing]'"
    raise ModuleNotFoundError(message, name=error.name) from error

from sharestate.testing.program_files import EventChecks, read_program, write_program
from sharestate.testing.programs import (
    Event,
    ProgramPass,
    ProgramRun,
    ProgramSearch,
    ProgramStep,
    add_events,
    events_of,
)
from sharestate.testing.thorough import PHASES


class ProgramMachine(RuleBasedStateMachine):
    """
    A machine of Hypothesis whose ``TestCase`` searches with seeds, and makes the program that it finds short by events.

    A machine says how a run goes on at random, and how one step of a program is run.
    """

    shrink_s: ClassVar[float] = 60.0
    """How long the program of an error is made shorter at most. [s]"""

    programs: ClassVar[Path | None] = None
    """A folder in which the program of what is found is kept, as a file for ``replay``; None to keep none."""

    reached: ClassVar[Counter[str]]
    """How many events and situations of each kind the last search has come to, of all runs."""

    _door: ClassVar[str]
    """What kind of machine runs the programs."""

    _event_checks: ClassVar[EventChecks]
    """What their events may be in a file."""

    _runs: ClassVar[int]
    """Runs of a search at least, but only so many more of them than the profile has examples as follows."""

    _runs_for_an_example: ClassVar[int]

    _start: ClassVar[str]
    """The name of the first event."""

    _start_arguments: ClassVar[tuple[str, ...]]
    """The names of its arguments."""

    # ---- what a door says

    def _happens_at_random(self, pick: Any, count: int) -> None:  # noqa: ANN401 - picks one of several options
        """Start, and let *count* events happen."""
        raise NotImplementedError

    @property
    def _program(self) -> list[Event]:
        """The start and all events so far."""
        raise NotImplementedError

    def _numbered(self, event: Event) -> Event | None:
        """Return an event of a program as it can happen now, without origins; None if it cannot."""
        raise NotImplementedError

    def _named(self, event: Event) -> Event:
        """Return an event that is about to happen with origins for what it refers to."""
        raise NotImplementedError

    def _run(self, number: int, event: Event) -> None:
        """Run the event of step *number*, and keep the origin of what it leads to."""
        raise NotImplementedError

    @classmethod
    def _passes(cls) -> Sequence[ProgramPass]:
        """Return what makes programs shorter or plainer."""
        raise NotImplementedError

    def _later(self, run: ProgramRun) -> Sequence[list[ProgramStep]]:  # noqa: ARG002 - for machines that have such
        """Return the programs that begin where a program has come to."""
        return ()

    @classmethod
    def _kind_of(cls, error: Exception) -> Hashable:
        """Return what stays the same of an error when its program becomes shorter."""
        return type(error).__qualname__

    def note(self, what: str) -> None:
        """Take note of an event, or of a situation that it comes into: it is counted, by Hypothesis too."""
        type(self).reached[what] += 1
        if currently_in_test_context():
            count_event(what)

    # ---- the search

    def __init_subclass__(cls, **named: Any) -> None:  # noqa: ANN401 - what the base class takes
        """Run more often than the profile of Hypothesis says, unless ``TestCase.settings`` is set afterwards."""
        super().__init_subclass__(**named)
        cls.reached = Counter()
        if not hasattr(cls, "_runs"):
            return
        case = TestCaseProperty().__get__(None, cls)
        cls.TestCase = case  # type: ignore[assignment] # Hypothesis forgets it once it has 128 others
        profile = case.settings
        case.settings = hypothesis_settings(
            profile,
            max_examples=max(profile.max_examples, min(cls._runs, cls._runs_for_an_example * profile.max_examples)),
            phases=set(profile.phases) & set(PHASES),
        )

        def run(self: Any) -> None:  # noqa: ANN401 - a class that Hypothesis makes
            cls._search(self.settings)

        run.__dict__.update(vars(case.runTest))  # pytest and Hypothesis know by it that this is Hypothesis's test
        case.runTest = run  # type: ignore[method-assign] # Hypothesis has no other way to act on what it has found

    @classmethod
    def replay(cls, file: Path) -> None:
        """
        Run the program in a file; what it finds is raised.

        Args:
            file: A file that a search has left in ``programs``.

        Raises:
            MalformedInputError: It is no program for this kind of machine.
            OSError: It cannot be read.
        """
        events = read_program(file, cls._door, cls._start, cls._event_checks)
        machine = cls()
        try:
            for number, event in enumerate(events):
                machine._run(number, event)
        finally:
            machine.teardown()

    @classmethod
    def _search(cls, settings: hypothesis_settings) -> None:
        cls.reached.clear()
        try:
            cls._run_seeds(settings)
        except Exception as error:
            if cls.programs is not None and (events := events_of(error)):
                file = cls.programs / f"{cls.__name__}-{type(error).__name__}.json"
                write_program(file, cls._door, events)
                error.add_note(f"The program is in {file}: {cls.__name__}.replay() runs it.")
            raise

    @classmethod
    def _run_seeds(cls, settings: hypothesis_settings) -> None:
        """Run what seeds lead to; the error of what fails has a short program as a note."""
        ProgramSearch(
            run=lambda seed: cls._run_at_random(seed, settings.stateful_step_count),
            replay=cls._replay,
            kind_of=cls._kind_of,
            passes=cls._passes(),
            shrink_s=cls.shrink_s,
            text=cls._text,
        ).search(settings)

    @classmethod
    def _run_at_random(cls, seed: int, count: int) -> None:
        """Run what a seed leads to; an error knows the events."""
        machine = cls()
        try:
            try:
                machine._happens_at_random(Random(seed).choice, count)  # noqa: S311 - to be repeated
            finally:
                machine.teardown()
        except Exception as error:
            add_events(error, machine._program)
            raise

    @classmethod
    def _replay(cls, steps: Sequence[ProgramStep]) -> ProgramRun:
        """Run the steps that are possible, up to the first that fails."""
        machine, run = cls(), ProgramRun()
        try:
            try:
                for step in steps:
                    event = machine._numbered(step.event)
                    if event is not None:
                        run.steps.append(ProgramStep(step.number, machine._named(event)))
                        run.events.append(event)
                        machine._run(step.number, event)
            finally:
                machine.teardown()
        except Exception as error:  # noqa: BLE001 - whatever the implementation raises
            run.error = error
        run.later = machine._later(run)
        return run

    @classmethod
    def _text(cls, events: Sequence[Event]) -> str:
        """Return a program as Hypothesis prints it: it runs when it is pasted."""
        (start, *arguments), *others = events
        named = ", ".join(f"{name}={value!r}" for name, value in zip(cls._start_arguments, arguments, strict=True))
        lines = [
            f"state = {cls.__name__}()",
            f"state.{start}({named})",
            *(f"state.happens(event={event!r})" for event in others),
            "state.teardown()",
        ]
        return "\n".join(lines)
