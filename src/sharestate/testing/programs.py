"""
The search for a program of events that ends in a failure, and how the program becomes short.

Hypothesis chooses the seed of a run and nothing else: to choose each event takes it four times as long as what happens
then, and to make a program short by leaving out choices takes minutes. Here events are left out. One that refers to
what an earlier one has brought about names it by that event, so that the others may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from time import monotonic
from typing import Any, Final, NamedTuple, TypeAlias

from attrs import define, field, frozen
from hypothesis import Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from sharestate.testing.shrinking import Pass, shrunk

Event: TypeAlias = tuple[Any, ...]
"""The name of a method of the machine, and its arguments."""

MOST_EVENTS: Final = 8_000
"""How many events are run at most to make a program shorter: a few seconds for what is in memory. [events]"""

SHORT: Final = 4
"""A program of that many events is short, the start included: no shorter one is looked for. [events]"""

MOST_SEEDS: Final = 100
"""How many other runs may lead to a shorter program. [runs]"""

MOST_OTHERS: Final = 4
"""How many other programs are made short. [programs]"""

HEADING: Final = "Failing test case: <state machine>"
"""What comes before a program, as in the notes of Hypothesis."""

_EVENTS: Final = "sharestate_events"
"""The attribute of an error that has the events that led to it."""


class Origin(NamedTuple):
    """
    What led to something that later events refer to.

    Attributes:
        step: The number of the step.
        place: Which one it is of those that the step led to.
    """

    step: int
    place: int


class ProgramStep(NamedTuple):
    """
    One event of a program.

    Attributes:
        number: The number that it keeps whatever is left out.
        event: The event; it refers to what earlier steps led to by their origin.
    """

    number: int
    event: Event


@define
class ProgramRun:
    """
    What has become of a program.

    Attributes:
        steps: The steps that were possible, up to a failure; the first one is the start.
        events: The same as the machine has run them.
        error: What it ends with; None if it does not fail.
        later: Programs that begin where this one has come to, the last one first.
    """

    steps: list[ProgramStep] = field(factory=list)
    events: list[Event] = field(factory=list)
    error: Exception | None = None
    later: Sequence[list[ProgramStep]] = ()


Replay: TypeAlias = Callable[[Sequence[ProgramStep]], ProgramRun]
"""A function that runs steps as far as they are possible, up to a failure."""

ProgramPass: TypeAlias = Pass[ProgramRun]
"""One way to make a program shorter or plainer."""


@frozen
class ProgramSearch:
    """
    How a machine is searched.

    Attributes:
        run: Runs what a seed leads to; its error knows the events.
        replay: Runs steps.
        kind_of: What stays the same of an error when its program becomes shorter.
        passes: What makes a program shorter or plainer, the quick ones first.
        shrink_s: How long programs are made shorter at most. [s]
        text: The program as it is printed.
    """

    run: Callable[[int], None]
    replay: Replay
    kind_of: Callable[[Exception], Hashable]
    passes: Sequence[ProgramPass]
    shrink_s: float
    text: Callable[[Sequence[Event]], str]

    def search(self, settings: hypothesis_settings) -> None:
        """
        Search, and raise the error of the shortest program found that fails, with its text as a note.

        Args:
            settings: The number of runs, and whether programs are made short (``Phase.shrink``).
        """
        phases = [phase for phase in settings.phases if phase not in {Phase.shrink, Phase.explain}]

        @hypothesis_settings(settings, phases=phases, print_blob=False)
        @given(seed=st.integers(0, 2**24 - 1))  # of larger ones Hypothesis prefers the small ones
        def run_one(seed: int) -> None:
            self.run(seed)

        try:
            run_one()
        except Exception as error:
            found = self._short(error) if Phase.shrink in settings.phases else None
            if found is not None and found.error is not None:
                add_events(found.error, found.events)
                found.error.add_note(f"{HEADING}\n{self.text(found.events)}")
                raise found.error from None
            if events_of(error):  # as it was found; run again, it may end otherwise
                error.add_note(f"{HEADING}\n{self.text(events_of(error))}")
            raise

    def _short(self, error: Exception) -> ProgramRun | None:
        """Return a short program that fails as *error* says; None if it does not when it is run again."""
        until_s = monotonic() + self.shrink_s
        found = self.shortest(events_of(error), until_s)
        left = MOST_OTHERS if found else 0
        for seed in range(MOST_SEEDS):
            if found is None or len(found.events) <= SHORT or not left or monotonic() > until_s:
                break
            try:
                self.run(seed)
            except Exception as other_error:  # noqa: BLE001 - whatever the implementation raises
                if self.kind_of(other_error) == self.kind_of(error):
                    left -= 1
                    other = self.shortest(events_of(other_error), until_s)
                    if other and len(other.events) < len(found.events):
                        found = other
        return found

    def shortest(self, events: Iterable[Event], until_s: float) -> ProgramRun | None:
        """
        Return the shortest program found that fails as *events* do; None if they do not fail when they are run again.

        Args:
            events: The start, and what has happened up to the failure.
            until_s: When it has to be short enough, by ``time.monotonic``. [s]
        """
        found = self.replay([ProgramStep(number, event) for number, event in enumerate(events)])
        if found.error is None:
            return None
        kind, left = self.kind_of(found.error), MOST_EVENTS

        def shows(candidate: list[ProgramStep]) -> ProgramRun | None:
            nonlocal left
            if left <= 0 or monotonic() > until_s:
                return None
            run = self.replay(candidate)
            left -= len(run.steps)
            return run if run.error is not None and self.kind_of(run.error) == kind else None

        return shrunk(found, shows, self.passes)


def add_events(error: Exception, events: Sequence[Event]) -> None:
    """Let *error* know the start, and the events that led to it."""
    vars(error)[_EVENTS] = [*events]


def events_of(error: Exception) -> Sequence[Event]:
    """Return the start, and the events that led to *error*; nothing if it does not know them."""
    found: Sequence[Event] = vars(error).get(_EVENTS, ())
    return found
