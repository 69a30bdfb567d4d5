"""
The one random generator of sequences of requests, ordinary and wild.

Everything that needs random operations draws them from here: property tests, the search for differences from Kafka's
own class, benchmarks. A sequence yields requests of the line protocol and is sent the responses: what it asks next
depends on what it was answered, as with a broker's members. Its only source of choice is the `random.Random` passed in.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from sharestate.testing import acknowledging, fetching, leading, persister, wild
from sharestate.testing.choices import Choices
from sharestate.testing.log import Log
from sharestate.testing.mix import ORDINARY, Mix
from sharestate.testing.world import Request, Response, Steps, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

INTERLEAVED: Final = ("acknowledge", "time", "complete", "log", "release", "late")
"""Steps that may happen while a broker reads the log for a fetch."""

FETCHES: Final = ("AAAAAAAAAAAAAAAAAAAACw", "AAAAAAAAAAAAAAAAAAAADA")
"""The ids of fetches, as they stand in requests for the fetch lock."""

QUERIES: Final = ("state", "timers", "can_acquire")
"""Requests that a broker may make at any time."""


def operations(random: Random, mix: Mix = ORDINARY) -> Steps[None]:
    """
    Return a random sequence of requests.

    Args:
        random: The only source of choice: the same seed and the same responses give the same sequence.
        mix: What it is made of.

    Returns:
        A generator of requests that has to be sent the response to each; see `converse`.

    >>> sequence = operations(Random(1), Mix(key="k"))
    >>> request = next(sequence)
    >>> request["op"], request["key"], request["timer"]
    ('open', 'k', 'fifo')
    """
    choices = Choices(random)
    world = World(
        choices,
        mix,
        Log(choices, mix.longest_batch),
        tuple(f"m{number + 1}" for number in range(mix.members)),
        committed=choices.chance(40),
    )
    yield from begin(world)
    for _ in range(mix.most_steps):
        if choices.between(1, mix.mean_steps) == 1:
            return
        yield from step(world, mix.steps)


def seeded(seed: int, mix: Mix = ORDINARY) -> Steps[None]:
    """Return the random sequence that *seed* stands for."""
    return operations(Random(seed), mix)  # noqa: S311 - nobody is kept from guessing it


def converse(sequence: Steps[None], answer: Callable[[Request], Response]) -> Iterator[tuple[Request, Response]]:
    """
    Have every request of *sequence* answered, and yield each with its response.

    >>> refuse = lambda request: {"result": {"unsupported": request["op"]}, "events": [], "state": None}
    >>> [request["op"] for request, _ in converse(seeded(1, Mix(mean_steps=1)), refuse)][:2]
    ['open', 'initialize']
    """
    try:
        request = next(sequence)
        while True:
            response = answer(request)
            yield request, response
            request = sequence.send(response)
    except StopIteration:
        return


def begin(world: World) -> Steps[None]:
    """Start the sequence's first leader; the log may have a history by then."""
    choices = world.choices
    if choices.chance(50):
        world.log.grow_to(choices.between(0, 40))
    if choices.chance(20):
        world.log.move_start(choices.between(0, world.log.end))
    if choices.chance(world.mix.wild):
        yield from wild.open_as(world)
    else:
        yield from leading.take_over(world)


def step(world: World, weights: Mapping[str, int]) -> Steps[None]:
    """Take one step, chosen by *weights*; a wild one now and then."""
    if world.choices.chance(world.mix.wild):
        yield from wild.step(world)
    elif not world.is_active and world.choices.chance(25):
        yield from leading.take_over(world)
    else:
        yield from ORDINARY_STEPS[world.choices.weighted(weights)](world)


def fetch(world: World) -> Steps[None]:
    """Fetch for a member; other things may happen while the log is read."""
    fetch_offset = yield from fetching.where_to_fetch(world)
    if fetch_offset is None:
        return
    if world.choices.chance(12):
        yield from step(world, dict.fromkeys(INTERLEAVED, 1))
    yield from fetching.acquire_at(world, fetch_offset)


def query(world: World) -> Steps[None]:
    """Ask for something that changes nothing but ``find_next``."""
    yield from world.ask(world.choices.one_of(QUERIES))


def fetch_lock(world: World) -> Steps[None]:
    """A fetch takes the fetch lock, or lets it go, be it its own or not."""
    op = world.choices.one_of(("lock_fetch", "unlock_fetch"))
    yield from world.ask(op, id=world.choices.one_of(FETCHES))


def take_over(world: World) -> Steps[None]:
    """The leader is fenced, not always at once, and a new one takes over."""
    if world.choices.chance(50):
        yield from leading.fence(world)
        for _ in range(world.choices.between(0, 3)):
            yield from step(world, dict.fromkeys(INTERLEAVED, 1))
    yield from leading.take_over(world)


ORDINARY_STEPS: Final = {
    "fetch": fetch,
    "acknowledge": acknowledging.acknowledge_held,
    "time": leading.pass_time,
    "complete": persister.complete,
    "log": leading.change_log,
    "release": acknowledging.release,
    "late": acknowledging.acknowledge_late,
    "configure": leading.configure,
    "persister": persister.change_default,
    "query": query,
    "take_over": take_over,
    "fetch_lock": fetch_lock,
}
"""The steps that `Mix.steps` weighs."""
