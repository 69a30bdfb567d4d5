"""
The search for a random run of leaders that goes wrong, and how its steps become few.

A run is anything with ``run`` and ``finish``, which raise ``FailoverError`` at the first fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from random import Random
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias

from sharestate.testing.shrinking import Pass, shrunk, with_plainer_steps, without_ranges


class FailoverStep(NamedTuple):
    """
    One step; its numbers choose among what is possible at that moment, so that any steps make a run.

    Attributes:
        kind: The name of a method of FailoverRun.
        numbers: Its arguments.
    """

    kind: str
    numbers: tuple[int, int, int]


class FailoverError(AssertionError):
    """
    Something is wrong in a run.

    The state that a new leader would read is not true, a write was answered wrongly, the SPSO has passed a record that
    is not done, or in the end something is never done.
    """


class RandomRun(Protocol):
    """A run, to go on with."""

    def run(self, steps: Iterable[FailoverStep]) -> None:
        """Carry out *steps*."""

    def finish(self) -> None:
        """Let everything be done."""


Mix: TypeAlias = Mapping[str, tuple[int, ...]]
"""The weights of each kind of step: a run takes one of them, so that in some it does not happen. [weight]"""

WRITES: Final[Mix] = MappingProxyType(
    {
        "fetch": (4,),
        "acknowledge": (9, 14),
        "answer": (3, 6, 9),
        "deliver": (0, 2),
        "pass_time": (0, 1, 3),
        "release": (0, 1),
        "move_log_start": (0, 0, 1),
        "crash": (0, 1),
    }
)
"""What may become of writes: in some runs they are answered late."""

EVERYTHING: Final[Mix] = MappingProxyType(
    {
        **WRITES,
        "fetch": (6, 9),
        "move_log_start": (0, 1, 3),
        "append_transaction": (0, 1, 3),
        "compact": (0, 1, 3),
        "configure": (1,),
        "answer_dead_letter": (0, 2, 4),
    }
)
"""
The same with what the log does, full windows and dead-letter queues: all that has ever let a share partition stall.
"""


def random_steps(random: Random, mix: Mix = WRITES) -> list[FailoverStep]:
    """Return the steps of a random run."""
    weights = [random.choice(choices) for choices in mix.values()]
    kinds = random.choices(list(mix), weights, k=random.randint(10, 60))
    return [FailoverStep(kind, (random.randrange(64), random.randrange(64), random.randrange(64))) for kind in kinds]


def failure(begin: Callable[[], RandomRun], steps: Iterable[FailoverStep]) -> str | None:
    """Return the message of the first fault in *steps* and the finish, in a run that *begin* returns, or None."""
    try:
        failovers = begin()
        failovers.run(steps)
        failovers.finish()
    except FailoverError as error:
        return str(error)
    return None


class _Failing(NamedTuple):
    steps: list[FailoverStep]


def fewest_steps(begin: Callable[[], RandomRun], steps: Sequence[FailoverStep]) -> list[FailoverStep]:
    """Return as few of *steps* as still fail, each of their numbers as low as it can be while the others stay."""

    def shows(fewer: list[FailoverStep]) -> _Failing | None:
        return None if failure(begin, fewer) is None else _Failing(fewer)

    passes: tuple[Pass[_Failing], ...] = partial(without_ranges, first=0, last=0), with_plainer_steps(_lower)
    return shrunk(_Failing([*steps]), shows, passes).steps


def _lower(step: FailoverStep) -> Iterator[FailoverStep]:
    """Yield *step* with one lower number, the lowest one first."""
    for place, number in enumerate(step.numbers):
        for lower in range(number):
            first, second, third = (lower if at == place else old for at, old in enumerate(step.numbers))
            yield FailoverStep(step.kind, (first, second, third))


def search(begin: Callable[[], RandomRun], seeds: Iterable[int], mix: Mix = WRITES) -> str | None:
    """
    Return the first fault in the random runs of *seeds*, with the fewest steps that lead to it; None without one.

    The steps are a list for ``FailoverRun.run``, in Python.

    Args:
        begin: Begins a run.
        seeds: Which runs are tried; the same seed stands for the same steps.
        mix: What happens in them.
    """
    for seed in seeds:
        steps = random_steps(Random(seed), mix)  # noqa: S311 - a replayable run
        if failure(begin, steps) is not None:
            steps = fewest_steps(begin, steps)
            listed = "".join(f"    {step},\n" for step in steps)
            return f"{failure(begin, steps)}, seed {seed}:\n[\n{listed}]"
    return None
