"""Fetches: a broker asks where to read, reads the log there, and acquires for a member what it found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sharestate.testing.log import batch_on_the_line
from sharestate.values.records import AcquireMode, IsolationLevel

if TYPE_CHECKING:
    from sharestate.testing.choices import Choices
    from sharestate.testing.world import Response, Steps, World
    from sharestate.values.records import RecordBatch

LIMITS: Final = (500, 1, 2, 3, 5, 8, 13, 30)
"""Values of ``max_records`` and ``batch_size``. [records]"""


def where_to_fetch(world: World) -> Steps[int | None]:
    """Ask for the next fetch offset; None if the share partition takes no fetch now."""
    if world.choices.chance(25):
        response = yield from world.ask("can_acquire")
        if response.get("result") is False and world.choices.chance(70):
            return None
    response = yield from world.ask("next_fetch_offset")
    offset = response.get("result")
    return offset if isinstance(offset, int) else None


def acquire_at(world: World, fetch_offset: int) -> Steps[None]:
    """Read the log at *fetch_offset* and acquire; if the log no longer goes that far back, say where it begins."""
    log, choices = world.log, world.choices
    if choices.chance(80):
        log.grow_to(fetch_offset + choices.between(0, 20))
    if world.committed and choices.chance(80):
        log.decide_below(fetch_offset + 1)
    if not log.start <= fetch_offset <= log.end:
        yield from world.ask("log_start", offset=log.start)
        return
    batches = log.read(fetch_offset, most=choices.between(1, 5), committed=world.committed)
    yield from acquire(world, choices.one_of(world.members), fetch_offset, batches)


def acquire(world: World, member: str, fetch_offset: int, batches: list[RecordBatch]) -> Steps[Response]:
    """Acquire from *batches* for *member*, and remember what it got."""
    choices = world.choices
    response = yield from world.ask(
        "acquire",
        member=member,
        mode=mode(choices).value,
        batch_size=choices.one_of(LIMITS),
        max_records=choices.one_of(LIMITS),
        fetch_offset=fetch_offset,
        batches=[batch_on_the_line(batch) for batch in batches],
        **isolation(world, batches),
    )
    remember(world, member, response)
    return response


def mode(choices: Choices) -> AcquireMode:
    """Return an acquire mode."""
    return AcquireMode.RECORD_LIMIT if choices.chance(30) else AcquireMode.BATCH_OPTIMIZED


def isolation(world: World, batches: list[RecordBatch]) -> dict[str, Any]:
    """Return the fields ``aborted`` and ``isolation`` of a fetch that found *batches*."""
    if not world.committed:
        return {"aborted": None, "isolation": IsolationLevel.READ_UNCOMMITTED.value}
    found = world.log.aborted_in(batches[0].first_offset, batches[-1].last_offset) if batches else []
    aborted = [[entry.producer_id, entry.first_offset] for entry in found]
    return {"aborted": aborted, "isolation": IsolationLevel.READ_COMMITTED.value}


def remember(world: World, member: str, response: Response) -> None:
    """Take note of what *member* has acquired."""
    result = response.get("result")
    if isinstance(result, dict) and "acquired" in result:
        world.hold(member, [(first, last) for first, last, _ in result["acquired"]])
