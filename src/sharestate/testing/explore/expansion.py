"""What follows a state: every step that is possible in it, and what must hold and does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from sharestate.partition.share_partition import SharePartition
from sharestate.testing.explore.events import GOES_ON, ExploredEventKind, events
from sharestate.testing.explore.explored_state import ExploredState, digest
from sharestate.testing.explore.properties import (
    Contradiction,
    contradictions,
    is_done,
    refused,
    stalled,
)
from sharestate.testing.explore.rules_met import rules_of
from sharestate.testing.explore.step_limit import STEP_LIMIT_S, begin_step, end_step
from sharestate.testing.explore.steps import WITHOUT_LEADER, ExploredGroup, Step, fetchable, has_time, take

if TYPE_CHECKING:
    from collections.abc import Collection

EVENT_LIMIT: Final = 2**16
"""More events than are possible in one state."""


class Found(NamedTuple):
    """
    A contradiction, and where.

    Attributes:
        state: The number of the state.
        event: The position of the event after which it shows; None if it is the state itself.
        contradiction: What does not hold.
    """

    state: int
    event: int | None
    contradiction: Contradiction


class Successor(NamedTuple):
    """
    A state that follows another.

    Attributes:
        digest: What it is known by.
        parent: The number of the state before.
        event: The position of the event among those that are possible there.
        state: The state.
    """

    digest: bytes
    parent: int
    event: int
    state: ExploredState


class Expansion(NamedTuple):
    """
    What follows some states.

    Attributes:
        successors: The states that follow, each once, but for those that the same process has met before.
        expanded: The number of states that were looked at.
        edges: The number of steps.
        crowded: The number of states in which no time is left before a deadline.
        done: The numbers of the states in which everything is done.
        links: Of each state, the digests of those that follow if everybody goes on, one after the other.
        kinds: How often each kind of event happened.
        causes: By how many steps records were changed for each cause.
        rules: How many steps each rule has answered.
        found: What must hold and does not.
    """

    successors: list[Successor]
    expanded: int
    edges: int
    crowded: int
    done: list[int]
    links: list[tuple[int, bytes]]
    kinds: Counter[str]
    causes: Counter[str]
    rules: Counter[str]
    found: list[Found]


def steps(
    around: ExploredGroup, state: ExploredState, partition: SharePartition | None = None
) -> Iterator[tuple[int, Step]]:
    """Yield each possible step from *state*, with its event's position; *partition* is the leader, if there is one."""
    if partition is None:
        partition = SharePartition.restore(state.leader, record_transitions=True)
    begin_step(STEP_LIMIT_S)
    try:
        batches = fetchable(around, state, partition.copy())
    except Exception:  # noqa: BLE001 - the fetch raises it again, as a step
        batches = 1
    finally:
        end_step()
    for position, event in enumerate(events(around.configuration, state, partition, batches)):
        leader = partition if event.kind in WITHOUT_LEADER else partition.copy()
        step = take(around, state, leader, event)
        if step is not None:
            yield position, step


def expand(
    around: ExploredGroup, states: Iterable[tuple[int, ExploredState]], met: set[bytes], judged: Collection[str]
) -> Expansion:
    """
    Return what follows *states*.

    Args:
        around: What is around the leader.
        states: The states, each with its number.
        met: The digests of successors that were returned before; what is returned now is added.
        judged: The names of what must hold.
    """
    expansion = Expansion([], 0, 0, 0, [], [], Counter(), Counter(), Counter(), [])
    expanded = edges = crowded = 0
    for number, state in states:
        fetched, links, raises = [], set[bytes](), False
        expanded += 1
        crowded += not has_time(state)
        if is_done(around, state):
            expansion.done.append(number)
        try:
            partition = SharePartition.restore(state.leader, record_transitions=True)
        except Exception as error:  # noqa: BLE001 - the state is none that the leader takes
            expansion.found.extend(_found(number, None, judged, [refused(error)]))
            continue
        for position, step in steps(around, state, partition):
            expansion.found.extend(_found(number, position, judged, contradictions(around, state, step)))
            if step.error:
                raises = True
                continue
            edges += 1
            expansion.kinds[step.event.kind] += 1
            expansion.causes.update({change.cause for change in step.transitions})
            expansion.rules.update(rules_of(around, state, step))
            if step.event.kind is ExploredEventKind.FETCH:
                fetched.append(step.after)
            known_by = digest(step.after)
            if step.event.kind in GOES_ON:
                links.add(known_by)
            if known_by not in met:
                met.add(known_by)
                expansion.successors.append(Successor(known_by, number, position, step.after))
        expansion.links.append((number, b"".join(sorted(links))))
        if not raises:  # what a step would have brought is not known else
            expansion.found.extend(_found(number, None, judged, stalled(around, state, fetched)))
    return expansion._replace(expanded=expanded, edges=edges, crowded=crowded)


def _found(
    number: int, position: int | None, judged: Collection[str], contradictions_: Iterable[Contradiction]
) -> Iterator[Found]:
    return (Found(number, position, each) for each in contradictions_ if each.name in judged)
