"""Acknowledgements: what members say about the records they hold, or held until a short while ago."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sharestate.testing.persister import troubled
from sharestate.values.acknowledgements import AcknowledgeType

if TYPE_CHECKING:
    from sharestate.testing.choices import Choices
    from sharestate.testing.world import Holding, Response, Steps, World

TYPES: Final = {
    AcknowledgeType.ACCEPT: 45,
    AcknowledgeType.RELEASE: 28,
    AcknowledgeType.REJECT: 9,
    AcknowledgeType.RENEW: 12,
    AcknowledgeType.GAP: 6,
}
"""How often each type is sent. [weight]"""

MOST_ENTRIES: Final = 4
"""How many ranges a request acknowledges at most."""


def acknowledge_held(world: World) -> Steps[None]:
    """A member acknowledges some of what it holds."""
    choices = world.choices
    owners = sorted({holding.member for holding in world.holdings})
    if not owners:
        return
    member = choices.one_of(owners)
    held = sorted(
        (holding for holding in world.holdings if holding.member == member),
        key=lambda holding: holding.first_offset,
    )
    begin = choices.between(0, len(held) - 1)
    chosen = held[begin : begin + choices.between(1, MOST_ENTRIES)]
    batches = entries(choices, chosen)
    response = yield from acknowledge(world, member, batches)
    settle(world, chosen, batches, response)


def acknowledge_late(world: World) -> Steps[None]:
    """A member acknowledges what it no longer holds: a repeated request, or one after the lock has lapsed."""
    if world.let_go:
        choices = world.choices
        late = choices.one_of(world.let_go)
        member = choices.one_of(world.members) if choices.chance(20) else late.member
        yield from acknowledge(world, member, entries(choices, [late]))


def acknowledge(world: World, member: str, batches: list[list[Any]]) -> Steps[Response]:
    """Send an acknowledgement."""
    return (yield from world.ask("acknowledge", member=member, batches=batches, **troubled(world)))


def entries(choices: Choices, held: list[Holding]) -> list[list[Any]]:
    """Return the entries of a request for *held*, which ascend: whole ranges, parts of them, or one across all."""
    ranges = [(holding.first_offset, holding.last_offset) for holding in held]
    if len(ranges) > 1 and choices.chance(30):
        ranges = [(ranges[0][0], max(last for _, last in ranges))]
    batches: list[list[Any]] = []
    for first, last in ranges:
        begin, end = choices.part_of(first, last) if choices.chance(35) else (first, last)
        if not batches or begin > batches[-1][1]:
            batches.append([begin, end, types(choices, end - begin + 1)])
    return batches


def types(choices: Choices, size: int) -> list[int]:
    """Return one acknowledgement type for a range of *size* records, or one for each."""
    if choices.chance(30):
        few = [choices.weighted(TYPES) for _ in range(choices.between(1, 4))]
        return [int(choices.one_of(few)) for _ in range(size)]
    return [int(choices.weighted(TYPES))]


def settle(world: World, held: list[Holding], batches: list[list[Any]], response: Response) -> None:
    """Take note of what was acknowledged; now and then a member forgets to, and repeats itself."""
    if world.choices.chance(10):
        return
    renewed = [(first, last) for first, last, kinds in batches if kinds[0] == AcknowledgeType.RENEW]
    member = held[0].member
    rest = [piece for holding in held for piece in not_in(holding, batches)]
    world.let_go_of(held)
    world.holdings += rest
    result = response.get("result")
    if isinstance(result, dict) and result.get("status") == "ok":
        world.hold(member, renewed)


def not_in(holding: Holding, batches: list[list[Any]]) -> list[Holding]:
    """Return the parts of *holding* that no entry of *batches*, which ascend, covers."""
    pieces, first = [], holding.first_offset
    for begin, end, _ in batches:
        if begin > first and first <= holding.last_offset:
            pieces.append(holding._replace(first_offset=first, last_offset=min(begin - 1, holding.last_offset)))
        first = max(first, end + 1)
    if first <= holding.last_offset:
        pieces.append(holding._replace(first_offset=first))
    return pieces


def release(world: World) -> Steps[None]:
    """A member's session is closed."""
    members = [holding.member for holding in world.holdings] or world.members
    member = world.choices.one_of(members)
    yield from world.ask("release", member=member, **troubled(world))
    world.let_go_of([holding for holding in world.holdings if holding.member == member])
