"""
Random sequences of requests, ordinary and wild.

Property tests, the search for differences from Kafka's own class, and benchmarks all draw from here. A sequence yields
requests of the line protocol and is sent the response to each; its next request depends on it, as with a broker's
members. Its only source of choice is the `random.Random` passed in.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from sharestate.testing.generator import ordinary, wild
from sharestate.testing.generator.mix import ORDINARY, Mix
from sharestate.testing.generator.randomness import Choices, Numbers
from sharestate.testing.generator.surroundings import Log, Request, Response, Steps, Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

INTERLEAVED: Final = ("acknowledge", "time", "complete", "log", "release", "late")
"""Steps that may happen while a broker reads the log for a fetch."""

FETCHES: Final = ("AAAAAAAAAAAAAAAAAAAACw", "AAAAAAAAAAAAAAAAAAAADA")
"""The ids of fetches, as they stand in requests for the fetch lock."""

QUERIES: Final = ("state", "timers", "can_acquire")
"""Requests without effect on records, which a broker may make at any time."""


def operations(random: Numbers, mix: Mix = ORDINARY) -> Steps[None]:
    """
    Return a random sequence of requests.

    Args:
        random: The only source of choice, such as a ``random.Random``: the same seed and the same responses give the
            same sequence.
        mix: The proportions of steps, and other settings.

    Returns:
        A generator of requests that has to be sent the response to each; see `converse`.

    >>> sequence = operations(Random(1), Mix(key="k"))
    >>> request = next(sequence)
    >>> request["op"], request["key"], request["timer"]
    ('open', 'k', 'fifo')
    """
    choices = Choices(random)
    surroundings = Surroundings(
        choices,
        mix,
        Log(choices, mix.longest_batch),
        tuple(f"m{number + 1}" for number in range(mix.members)),
        committed=choices.chance(40),
        has_queue=mix.dead_letters > 0 and choices.chance(mix.dead_letters),
    )
    yield from begin(surroundings)
    for _ in range(mix.most_steps):
        choices.begin_step()
        if choices.between(1, mix.mean_steps) == 1:
            return
        yield from step(surroundings, mix.steps)


def seeded(seed: int, mix: Mix = ORDINARY) -> Steps[None]:
    """Return the random sequence of *seed*."""
    return operations(Random(seed), mix)  # noqa: S311 - nobody is kept from guessing it


def converse(sequence: Steps[None], answer: Callable[[Request], Response]) -> Iterator[tuple[Request, Response]]:
    """
    Send every request of *sequence* to *answer*, and yield each with its response.

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


def begin(surroundings: Surroundings) -> Steps[None]:
    """Open the share partition for the first time; the log may have a history by then."""
    choices = surroundings.choices
    if choices.chance(50):
        surroundings.log.grow_to(choices.between(0, 40))
    if choices.chance(20):
        surroundings.log.move_start(choices.between(0, surroundings.log.end))
    if choices.chance(surroundings.mix.wild):
        yield from wild.open_as(surroundings)
    else:
        yield from ordinary.take_over(surroundings)


def step(surroundings: Surroundings, weights: Mapping[str, int]) -> Steps[None]:
    """Take one step, chosen by *weights*, or now and then a wild one."""
    if surroundings.choices.chance(surroundings.mix.wild):
        yield from wild.step(surroundings)
    elif not surroundings.is_active and surroundings.choices.chance(25):
        yield from ordinary.take_over(surroundings)
    else:
        yield from ORDINARY_STEPS[surroundings.choices.weighted(weights)](surroundings)


def fetch(surroundings: Surroundings) -> Steps[None]:
    """Fetch for a member; another step may come between the fetch offset and the acquisition."""
    fetch_offset = yield from ordinary.where_to_fetch(surroundings)
    if fetch_offset is None:
        return
    if surroundings.choices.chance(12):
        yield from step(surroundings, dict.fromkeys(INTERLEAVED, 1))
    yield from ordinary.acquire_at(surroundings, fetch_offset)


def query(surroundings: Surroundings) -> Steps[None]:
    """Send a query; it changes nothing but ``find_next``."""
    yield from surroundings.ask(surroundings.choices.one_of(QUERIES))


def fetch_lock(surroundings: Surroundings) -> Steps[None]:
    """Take the fetch lock or free it, whichever fetch has it."""
    op = surroundings.choices.one_of(("lock_fetch", "unlock_fetch"))
    yield from surroundings.ask(op, id=surroundings.choices.one_of(FETCHES))


def take_over(surroundings: Surroundings) -> Steps[None]:
    """Replace the leader; half of the time it is fenced first and lives on for a few steps."""
    if surroundings.choices.chance(50):
        yield from ordinary.fence(surroundings)
        for _ in range(surroundings.choices.between(0, 3)):
            yield from step(surroundings, dict.fromkeys(INTERLEAVED, 1))
    yield from ordinary.take_over(surroundings)


ORDINARY_STEPS: Final = {
    "fetch": fetch,
    "acknowledge": ordinary.acknowledge_held,
    "time": ordinary.pass_time,
    "complete": ordinary.complete,
    "log": ordinary.change_log,
    "release": ordinary.release,
    "late": ordinary.acknowledge_late,
    "configure": ordinary.configure,
    "persister": ordinary.change_default,
    "query": query,
    "take_over": take_over,
    "fetch_lock": fetch_lock,
}
"""The steps by their names in `Mix.steps`."""
