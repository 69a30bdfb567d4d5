"""
What must hold: *always*, of each step and each state, and *eventually*, if everybody goes on.

The last one is judged where nobody holds anything and nothing waits for an answer. There a fetch has to change
something, unless everything is done. Everywhere else somebody can go on: a member acknowledges, a write is answered, a
lock expires. Nothing goes on for ever, as deliveries are counted; so what never stands still ends with everything done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from sharestate.errors import InvariantError
from sharestate.partition.record_machine import TERMINAL
from sharestate.testing.explore.explored_state import ExploredState, leader_shape
from sharestate.testing.explore.steps import raised
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from sharestate.testing.explore.steps import ExploredGroup, Step
    from sharestate.values.snapshot import Snapshot


class Always(NamedTuple):
    """
    What must hold of each step.

    Attributes:
        name: Its name.
        reason: The sentence that holds.
        contradictions: Yields what contradicts it: in the state before, the step, with what is around.
    """

    name: str
    reason: str
    contradictions: Callable[[ExploredGroup, ExploredState, Step], Iterator[str]]


class Contradiction(NamedTuple):
    """
    Something that must hold, and does not.

    Attributes:
        name: The name of what must hold.
        text: The contradiction, and the sentence that must hold.
    """

    name: str
    text: str


def _accepted_again(_: ExploredGroup, before: ExploredState, step: Step) -> Iterator[str]:
    for first, last, _count in step.acquired:
        for offset in sorted(before.confirmed.intersection(range(first, last + 1))):
            yield f"{offset} was accepted, and is delivered again"


def _beyond_limit(around: ExploredGroup, _before: ExploredState, step: Step) -> Iterator[str]:
    for first, last, count in step.acquired:
        if count > around.configuration.delivery_count_limit:
            yield f"{first}-{last} is delivered for the {count}th time"


def _lost(around: ExploredGroup, before: ExploredState, step: Step) -> Iterator[str]:
    after = step.after
    start = after.leader.start_offset
    if start == before.leader.start_offset:
        return
    for position in after.log:
        batch = around.configuration.log[position]
        for offset in range(max(batch.first_offset, after.log_start), min(batch.last_offset + 1, start)):
            if offset not in after.finished:
                yield f"the SPSO is {start}, and {offset} is not done"


def _below_start(_: ExploredGroup, _before: ExploredState, step: Step) -> Iterator[str]:
    start = step.after.leader.start_offset
    for first, last, _count in step.acquired:
        if first < start:
            yield f"{first}-{last} is delivered, and the SPSO is {start}"


def _moved_back(_: ExploredGroup, before: ExploredState, step: Step) -> Iterator[str]:
    old, new = before.leader, step.after.leader
    if old.leader_epoch == new.leader_epoch and new.start_offset < old.start_offset:
        yield f"the SPSO was {old.start_offset}, and is {new.start_offset}"


def _miscounted(_: ExploredGroup, _before: ExploredState, step: Step) -> Iterator[str]:
    leader = step.after.leader
    count = sum(1 for offset in _terminal(leader) if offset >= leader.start_offset)
    if count != leader.delivery_complete_count:
        yield f"the delivery complete count is {leader.delivery_complete_count}, and {count} records are terminal"


def _terminal(leader: Snapshot) -> Iterator[int]:
    """Yield the offsets in flight that are terminal, or will be once a write has succeeded."""
    for first, last, is_split, runs in leader.batches:
        offset = first
        for size, cell in runs:
            end = offset + size if is_split else last + 1
            if leader.cells[cell].state in TERMINAL:
                yield from range(offset, end)
            offset = end


ALWAYS: Final = (
    Always("accepted is final", "what was accepted, and confirmed, is never delivered again", _accepted_again),
    Always("delivery limit", "no record is delivered more often than the limit says", _beyond_limit),
    Always("nothing is lost", "the SPSO passes a record only when it is done, or gone", _lost),
    Always("nothing below the SPSO", "what lies below the SPSO is not delivered", _below_start),
    Always("the SPSO moves on", "a leader's SPSO never moves back", _moved_back),
    Always("complete count", "the delivery complete count counts the terminal records from the SPSO on", _miscounted),
)
"""What must hold of each step."""

NEVER_STALLS: Final = "nothing stalls"
"""The name of what must hold eventually."""

CONSISTENT: Final = "consistent"
"""The name of what ``SharePartition.check`` asserts."""

NOTHING_RAISED: Final = "nothing is raised"
"""The name of what holds if no request ends in an exception, or does not end."""

NAMES: Final = (*(each.name for each in ALWAYS), CONSISTENT, NOTHING_RAISED, NEVER_STALLS)
"""The names of all that must hold."""


def contradictions(around: ExploredGroup, before: ExploredState, step: Step) -> Iterator[Contradiction]:
    """Yield what must hold and does not in *step*, which begins in *before*."""
    if step.error:
        yield Contradiction(NOTHING_RAISED, step.error)
        return
    for name, reason, of in ALWAYS:
        for text in of(around, before, step):
            yield Contradiction(name, f"{text}: {reason}")


def refused(error: Exception) -> Contradiction:
    """Return what does not hold where a leader does not take a state back, and raises *error*: it checks the state."""
    if isinstance(error.__cause__, InvariantError):
        return Contradiction(CONSISTENT, str(error.__cause__))
    return Contradiction(NOTHING_RAISED, raised(error))


def not_done(around: ExploredGroup, state: ExploredState) -> list[int]:
    """Return the offsets of the log that a fetch may return, and that are not done in *state*."""
    leader, end = state.leader, around.readable_end(state)
    done = set(_terminal(leader))
    return [
        offset
        for position in state.log
        for offset in range(
            max(around.configuration.log[position].first_offset, leader.start_offset, state.log_start),
            min(around.configuration.log[position].last_offset + 1, end),
        )
        if offset not in done
    ]


def is_done(around: ExploredGroup, state: ExploredState) -> bool:
    """Return whether everything is done: the SPSO is where fetches end."""
    return state.leader.start_offset >= around.readable_end(state)


def is_quiet(state: ExploredState) -> bool:
    """Return whether nobody holds anything in *state*, and nothing waits for an answer."""
    leader = state.leader
    return (
        not state.sent
        and not leader.dead_letters
        and not any(cell.state in {RecordState.ACQUIRED, RecordState.ARCHIVING} for cell in leader.cells)
    )


def stalled(around: ExploredGroup, state: ExploredState, fetched: Iterable[ExploredState]) -> Iterator[Contradiction]:
    """Yield that *state* stalls, if it does: *fetched* are the states after each fetch that is possible in it."""
    if not is_quiet(state):
        return
    left = not_done(around, state)
    if left and not any(_differs(state.leader, after.leader) for after in fetched):
        text = f"{left[0]} is not done, nobody holds it, and no fetch brings it on"
        yield Contradiction(NEVER_STALLS, text)


def _differs(one: Snapshot, other: Snapshot) -> bool:
    """Return whether more differs than the memory of what a fetch has to look for."""
    ours, theirs = leader_shape(one), leader_shape(other)
    return ours[:3] + ours[4:] != theirs[:3] + theirs[4:]
