"""
The exploration: level by level, each state once.

A state that was found has a number. Of all that were found there is a digest, the number of the state before it and the
event between them, 60 bytes or so; the states themselves are kept, packed, until they were looked at. So a way to a
state is walked again from the beginning.
"""

from __future__ import annotations

import gc
import pickle
import signal
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from enum import Enum
from multiprocessing import get_context
from threading import current_thread, main_thread
from types import FrameType
from typing import Final

from attrs import Factory, define, field, frozen

from sharestate.json_lines import Json
from sharestate.testing.explore.configuration import Configuration
from sharestate.testing.explore.endings import LINK, first_without_end
from sharestate.testing.explore.events import possible
from sharestate.testing.explore.expansion import EVENT_LIMIT, Expansion, Found, expand
from sharestate.testing.explore.explored_state import DIGEST_SIZE, ExploredState, digest
from sharestate.testing.explore.properties import NAMES, NEVER_STALLS, Contradiction
from sharestate.testing.explore.rules_met import BEYOND, SHOWN, in_order, rules_of
from sharestate.testing.explore.step_limit import step_limits
from sharestate.testing.explore.steps import ExploredGroup, Step
from sharestate.testing.explore.walks import walk
from sharestate.values.profiles import Profile
from sharestate.worker_processes import begin_worker

CHUNK: Final = 64
"""The number of states that are expanded at a time. [states]"""


class Bound(Enum):
    """What may end an exploration before there is nothing left to look at."""

    STATES = "states"
    """As many states as were allowed were found."""

    SECONDS = "seconds"
    """The time was up."""

    TIME = "time"
    """So many locks began between two deadlines that no time was left between them, though it matters."""

    INTERRUPTED = "interrupted"
    """Somebody has interrupted it, by Ctrl-C or SIGTERM."""


@frozen(kw_only=True)
class Bounds:
    """
    When to stop, finished or not.

    Attributes:
        states: So many states. [states]
        seconds: So much time; None for any. [s]
    """

    states: int = 1_000_000
    seconds: float | None = None


@frozen(kw_only=True)
class Counterexample:
    """
    Something that must hold and does not, with a shortest way there.

    Attributes:
        name: What must hold.
        text: What contradicts it.
        steps: The steps, from the beginning.
        positions: The positions of their events among those that are possible.
    """

    name: str
    text: str
    steps: tuple[Step, ...]
    positions: tuple[int, ...]

    @property
    def conversation(self) -> tuple[Json, ...]:
        """The requests of the line protocol that lead there; what happens elsewhere, as in the log, shows in them."""
        return tuple(request for step in self.steps for request in step.requests)

    def __str__(self) -> str:
        """Return it for people: an event on each line."""
        listed = [f"{number:4}  {_shown(step)}" for number, step in enumerate(self.steps[1:], 1)]
        return "\n".join((f"does not hold: {self.name}: {self.text}", *listed))


def _shown(step: Step) -> str:
    leader = step.after.leader
    what = str(step.event)
    if step.error:
        return f"{what:28} raises {step.error}"
    acquired = ", ".join(f"{first}-{last} x{count}" for first, last, count in step.acquired)
    return f"{what:28} SPSO {leader.start_offset}{f', acquires {acquired}' if acquired else ''}"


@define
class ToDo:
    """
    The states that were not looked at yet, packed in chunks.

    Attributes:
        level: Those of the level that is being looked at.
        next_level: Those that follow from it.
    """

    level: list[bytes] = Factory(list)
    next_level: list[bytes] = Factory(list)


@define(kw_only=True)
class Exploration:
    """
    What was found.

    Attributes:
        around: The configuration and the profile.
        expanded: The number of states that were looked at. [states]
        edges: The number of steps between states.
        crowded: The number of states in which no time is left before a deadline. [states]
        depth: The number of steps from the beginning to the states that were found last.
        done: The numbers of the states in which everything is done.
        kinds: How often each kind of event happened.
        causes: By how many steps records were changed for each cause.
        met: How many steps each rule has answered, the beginning included.
        counterexample: What must hold and does not, by a shortest way; None if all holds.
        truncated: The bound that was met; None if there is nothing left to look at.
        to_do: The states that were not looked at yet.
        digests: What the states that were found are known by, with their numbers, in ascending order.
        parents: Of each state by its number, that of the one before it times ``EVENT_LIMIT``, plus the event between.
        links: Of each step of those who go on, the number of the state before times ``LINK``, plus that after it.
    """

    around: ExploredGroup
    expanded: int = 0
    edges: int = 0
    crowded: int = 0
    depth: int = 0
    kinds: Counter[str] = Factory(Counter)
    causes: Counter[str] = Factory(Counter)
    met: Counter[str] = Factory(Counter)
    counterexample: Counterexample | None = None
    truncated: Bound | None = None
    to_do: ToDo = field(factory=ToDo, repr=False)
    digests: dict[bytes, int] = field(factory=dict, repr=False)
    parents: array[int] = field(factory=lambda: array("Q"), repr=False)
    links: array[int] = field(factory=lambda: array("Q"), repr=False)
    done: array[int] = field(factory=lambda: array("Q"), repr=False)

    @property
    def states(self) -> int:
        """The number of different states that were found."""
        return len(self.parents)

    @property
    def holds(self) -> bool:
        """Whether all that there is was looked at, everything holds, and everything can be done."""
        return (
            self.counterexample is None
            and self.truncated is None
            and self.expanded == self.states
            and len(self.done) > 0
            and not self.never
        )

    @property
    def never(self) -> tuple[str, ...]:
        """The kinds of events that the configuration allows and that have never happened: of them nothing is known."""
        return tuple(kind.value for kind in possible(self.around.configuration) if not self.kinds[kind])

    @property
    def rules(self) -> Mapping[str, int]:
        """How many steps each rule of ``docs/rules.md`` has answered, but for those that no exploration meets."""
        return {rule: self.met[rule] for rule in in_order(SHOWN)}

    def to_json(self) -> dict[str, Json]:
        """Return the result as JSON."""
        found = self.counterexample
        return {
            "profile": self.around.profile.name,
            "holds": self.holds,
            "truncated": None if self.truncated is None else self.truncated.value,
            "states": self.states,
            "expanded": self.expanded,
            "edges": self.edges,
            "depth": self.depth,
            "done": len(self.done),
            "never": list(self.never),
            "events": dict(sorted(self.kinds.items())),
            "causes": dict(sorted(self.causes.items())),
            "rules": dict(self.rules),
            "rules_beyond": {rule: BEYOND[rule] for rule in in_order(BEYOND)},
            "counterexample": None
            if found is None
            else {"name": found.name, "text": found.text, "conversation": list(found.conversation)},
        }

    def find(self, known_by: bytes, parent: int, event: int) -> int | None:
        """Give the state with this digest a number, if it is new."""
        number = len(self.parents)
        if self.digests.setdefault(known_by, number) != number:
            return None
        self.parents.append(parent * EVENT_LIMIT + event)
        return number

    def add(self, expansion: Expansion) -> list[tuple[int, ExploredState]]:
        """Count what *expansion* has brought, and return the states that are new, each with its number."""
        self.expanded += expansion.expanded
        self.edges += expansion.edges
        self.crowded += expansion.crowded
        self.kinds += expansion.kinds
        self.causes += expansion.causes
        self.met += expansion.rules
        self.done.extend(expansion.done)
        numbered = [
            (self.find(known_by, parent, event), state) for known_by, parent, event, state in expansion.successors
        ]
        for number, links in expansion.links:
            for first in range(0, len(links), DIGEST_SIZE):
                self.links.append(number * LINK + self.digests[links[first : first + DIGEST_SIZE]])
        return [(number, state) for number, state in numbered if number is not None]

    def way(self, number: int) -> list[int]:
        """Return the positions of the events that lead to the state with this number."""
        positions = []
        while number:
            number, position = divmod(self.parents[number], EVENT_LIMIT)
            positions.append(position)
        return positions[::-1]

    def show(self, found: Found) -> Counterexample:
        """Return *found* with the way there, which is walked again."""
        way = self.way(found.state) + ([] if found.event is None else [found.event])
        return Counterexample(
            name=found.contradiction.name,
            text=found.contradiction.text,
            steps=walk(self.around, way),
            positions=tuple(way),
        )


def explore(  # noqa: PLR0913 - what is explored, and how
    configuration: Configuration,
    profile: Profile,
    *,
    bounds: Bounds = Bounds(),
    judged: Collection[str] = NAMES,
    jobs: int = 1,
    show: Callable[[Exploration], None] = lambda _: None,
) -> Exploration:
    """
    Look at every state that a share group may come to, the nearest ones first, until something does not hold.

    What is found is the same with any number of processes.

    Args:
        configuration: The group and its surroundings.
        profile: The rules of the leader; the share coordinator has those of the same release.
        bounds: When to stop.
        judged: The names of what must hold, some of ``NAMES``.
        jobs: The number of processes.
        show: Called from time to time with what was found so far.

    Raises:
        MalformedInputError: The profile has no dead-letter queue, and the group has one.

    Complexity:
        Linear in the states, of which there are exponentially many in all that may happen: about a millisecond each,
        150 bytes of memory, and for those that are still to be looked at half a kilobyte.
    """
    around = ExploredGroup(configuration=configuration, profile=profile)
    exploration = Exploration(around=around)
    step = around.begin()
    begin = step.after
    exploration.met.update(rules_of(around, begin, step))
    exploration.find(digest(begin), 0, 0)
    exploration.to_do.level = packed([(0, begin)])
    go_on(exploration, bounds=bounds, judged=judged, jobs=jobs, show=show)
    return exploration


def go_on(
    exploration: Exploration,
    *,
    bounds: Bounds,
    judged: Collection[str] = NAMES,
    jobs: int = 1,
    show: Callable[[Exploration], None] = lambda _: None,
) -> None:
    """Go on with *exploration*, which has met a bound; the arguments are those of ``explore``."""
    exploration.truncated = None
    until = None if bounds.seconds is None else time.monotonic() + bounds.seconds
    to_do = exploration.to_do
    with ExitStack() as stack:
        stack.enter_context(step_limits())
        run = _run_here(exploration.around, judged) if jobs == 1 else _run_apart(stack, exploration, judged, jobs)
        stops = _Stops(bounds, until, stack.enter_context(interruptions()))
        while to_do.level and _finish_level(exploration, run(to_do.level.copy()), stops, show):
            pass
    if exploration.counterexample is None and exploration.truncated is None:
        exploration.truncated = Bound.TIME if exploration.crowded else None
        exploration.counterexample = _without_end(exploration) if NEVER_STALLS in judged else None


def _without_end(exploration: Exploration) -> Counterexample | None:
    """Return a nearest state from which not everything can be done any more; None if there is none."""
    number = first_without_end(exploration.states, exploration.links, exploration.done)
    if number is None or not exploration.done:  # if nothing is ever done, no state is to blame
        return None
    text = "from here on not everything can be done any more, whatever happens"
    return exploration.show(Found(number, None, Contradiction(NEVER_STALLS, text)))


def _finish_level(
    exploration: Exploration,
    expansions: Iterator[Expansion],
    stops: Callable[[Exploration], Bound | None],
    show: Callable[[Exploration], None],
) -> bool:
    """
    Look at the rest of a level, and return whether to go on with the next one.

    What does not hold of a state ends it; what does not hold of a step is a step further away, and has to wait for the
    other states of the level.
    """
    to_do = exploration.to_do
    nearest: Found | None = None
    for expansion in expansions:
        new = exploration.add(expansion)
        del to_do.level[0]
        to_do.next_level += packed(new)
        nearest = _nearest([*([] if nearest is None else [nearest]), *expansion.found])
        show(exploration)
        exploration.truncated = stops(exploration)
        if exploration.truncated is not None or (nearest is not None and nearest.event is None):
            break
    if nearest is not None:
        exploration.counterexample = exploration.show(nearest)
        exploration.truncated = None
    if not to_do.level:
        to_do.level, to_do.next_level = to_do.next_level, []
        exploration.depth += bool(to_do.level)
    return nearest is None and exploration.truncated is None


def _nearest(found: list[Found]) -> Found | None:
    """Return the first that shows without another step, else the first; None if there is none."""
    return min(found, key=lambda each: each.event is not None, default=None)


@frozen
class _Stops:
    """When to stop; asked between two chunks, where what is known is whole and can be gone on with."""

    bounds: Bounds
    until: float | None
    is_interrupted: Callable[[], bool]

    def __call__(self, exploration: Exploration) -> Bound | None:
        """Return the bound that is met, if one is."""
        if self.is_interrupted():
            return Bound.INTERRUPTED
        if exploration.states >= self.bounds.states:
            return Bound.STATES
        return Bound.SECONDS if self.until is not None and time.monotonic() >= self.until else None


@contextmanager
def interruptions() -> Iterator[Callable[[], bool]]:
    """
    Yield what says whether a Ctrl-C or a SIGTERM has come; another one does as usual, and so do those in other threads.

    Only where nobody else handles them: a SIGTERM that would end the process would leave those of a pool behind.
    """
    came: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        signal.signal(number, usual[signal.Signals(number)])

    usual = {
        number: handler
        for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL))
        if current_thread() is main_thread() and signal.getsignal(number) is handler
    }
    for number in usual:
        signal.signal(number, note)
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


def packed(states: list[tuple[int, ExploredState]]) -> list[bytes]:
    """Return *states* in chunks, as bytes: what they share is in them once."""
    return [pickle.dumps(states[first : first + CHUNK], 5) for first in range(0, len(states), CHUNK)]


def unpacked(chunk: bytes) -> list[tuple[int, ExploredState]]:
    """Return the states of a chunk of ``packed``, each with its number."""
    states: list[tuple[int, ExploredState]] = pickle.loads(chunk)  # noqa: S301 - our own, and never from a file
    return states


# ---- one process, and several

_Run = Callable[[list[bytes]], Iterator[Expansion]]


def _run_here(around: ExploredGroup, judged: Collection[str]) -> _Run:
    met: set[bytes] = set()
    return lambda level: (expand(around, unpacked(chunk), met, judged) for chunk in level)


def _run_apart(stack: ExitStack, exploration: Exploration, judged: Collection[str], jobs: int) -> _Run:
    given = exploration.around.configuration, exploration.around.profile, tuple(judged)
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_start, initargs=given)
    stack.callback(pool.shutdown, cancel_futures=True)
    return lambda level: _in_order(pool, level, 4 * jobs)


def _in_order(pool: Executor, level: list[bytes], ahead: int) -> Iterator[Expansion]:
    """Yield the expansions in the order of their chunks; so many are worked on at a time."""
    waiting: deque[Future[bytes]] = deque()
    for chunk in level:
        waiting.append(pool.submit(_expand_apart, chunk))
        if len(waiting) >= ahead:
            yield pickle.loads(waiting.popleft().result())  # noqa: S301 - of a process of our own
    while waiting:
        yield pickle.loads(waiting.popleft().result())  # noqa: S301 - of a process of our own


_work: dict[str, Callable[[bytes], Expansion]] = {}
"""What a process of a pool has to do."""


def _start(configuration: Configuration, profile: Profile, judged: Collection[str]) -> None:
    begin_worker()
    gc.disable()  # nothing that a step makes refers to itself, and to look for that takes a tenth of the time
    around, met = ExploredGroup(configuration=configuration, profile=profile), set[bytes]()
    _work["expand"] = lambda chunk: expand(around, unpacked(chunk), met, judged)


def _expand_apart(chunk: bytes) -> bytes:
    with step_limits():
        return pickle.dumps(_work["expand"](chunk), 5)
