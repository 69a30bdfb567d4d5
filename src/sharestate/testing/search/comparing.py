"""Comparing an implementation with the library, over random sequences of requests."""

from __future__ import annotations

from collections.abc import Sized
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from sharestate.conversation.compare import Level
from sharestate.json_lines import write_json
from sharestate.testing.generator.mix import mix_for
from sharestate.testing.generator.operations import seeded
from sharestate.testing.generator.surroundings import Request, Response
from sharestate.testing.search.command import CommandPeer, PeerDiedError, error_response
from sharestate.testing.search.finding import FoundDifference, smallest
from sharestate.testing.search.judging import Judge, Judgement, lives
from sharestate.testing.search.library import Answered, answered
from sharestate.testing.search.progress import bar_of
from sharestate.values.profiles import LATEST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sharestate.testing.generator.surroundings import Steps
    from sharestate.testing.search.divergences import Divergence
    from sharestate.values.profiles import Profile

Peer: TypeAlias = "Callable[[Request], Response] | Sequence[str]"
"""What is compared: a callable that returns the response to a request, or a command that does so over pipes."""

SEEDS: Final = range(300)
"""The sequences that are compared: some 15,000 requests."""


class DifferenceError(AssertionError):
    """A peer has answered otherwise than the library, and no known divergence accounts for it."""

    def __init__(self, finding: FoundDifference) -> None:
        """Keep the *finding*; the message has all of it."""
        super().__init__(str(finding))
        self.finding = finding


def compare(  # noqa: PLR0913 - each has a default
    peer: Peer,
    reference: Profile = LATEST,
    *,
    level: Level = Level.OBSERVABLE,
    sequence: Callable[[int], Steps[None]] | None = None,
    seeds: Iterable[int] = SEEDS,
    divergences: Iterable[Divergence] = (),
) -> int:
    """
    Compare *peer* with the library under *reference*, and return how many requests both have answered alike.

    A peer that raises an error has answered with that error, until the next ``open``; so has a command that ends.
    Progress shows on a terminal.

    Args:
        peer: A callable that takes a request of the line protocol and returns its response, or a command that does so
            line by line. An ``open`` begins again.
        reference: The library's rules.
        level: What is compared; ``Level.ANSWERS`` for a peer that shows no state.
        sequence: Returns the sequence of a seed; by default all that *reference* knows, see also `plain`.
        seeds: The sequences' numbers.
        divergences: What is known to differ: where one shows, or may show from then on, the sequence ends there.

    Raises:
        DifferenceError: They differ; it has the shortest conversation that was found, for ``sharestate replay``.
        PeerDiedError: The command has ended before it had answered anything.

    >>> from sharestate import KAFKA_4_3
    >>> from sharestate.testing import InProcessServer
    >>> compare(InProcessServer(KAFKA_4_3), KAFKA_4_3, seeds=range(3)) > 100
    True
    """
    sequence = sequence or partial(seeded, mix=mix_for(reference))
    judge = Judge(profile=reference, level=level, divergences=tuple(divergences))
    compared = 0
    with _opened(peer) as answer, bar_of(len(seeds) if isinstance(seeds, Sized) else None) as show:
        for count, seed in enumerate(seeds):
            show(count, f"{compared:,} requests, sequence {seed}")
            compared += _compare_one(seed, sequence(seed), judge, answer)
    return compared


def _opened(peer: Peer) -> AbstractContextManager[Callable[[Request], Response]]:
    return nullcontext(peer) if callable(peer) else CommandPeer(peer)


def _compare_one(seed: int, sequence: Steps[None], judge: Judge, answer: Callable[[Request], Response]) -> int:
    steps = answered(sequence, judge.profile)
    lines = _lines(steps, answer)
    for life in lives(steps):
        judged = judge.verdict(life, steps, lines)
        if judged.mismatch is not None and judged.is_failure:
            found = steps[life.start : judged.mismatch.index + 1]
            raise DifferenceError(smallest(seed, found, judged, partial(_both, judge, answer)))
    return len(steps)


def _both(
    judge: Judge, answer: Callable[[Request], Response], sequence: Steps[None]
) -> tuple[list[Answered], list[str], Judgement]:
    """Return how both answer *sequence*, and what became of them."""
    steps = answered(sequence, judge.profile)
    lines = _lines(steps, answer)
    return steps, lines, judge.verdict(range(len(steps)), steps, lines)


def _lines(steps: Iterable[Answered], answer: Callable[[Request], Response]) -> list[str]:
    """Return the peer's responses as lines; after an error of its own it is asked nothing until the next ``open``."""
    lines: list[str] = []
    error = None
    for step in steps:
        if step.request["op"] == "open":
            error = None
        if error is None:
            try:
                lines.append(write_json(answer(step.request)))
                continue
            except PeerDiedError:
                raise
            except Exception as raised:  # noqa: BLE001 - whatever it is, the peer has answered with it
                error = error_response(raised)
        lines.append(write_json(error))
    return lines
