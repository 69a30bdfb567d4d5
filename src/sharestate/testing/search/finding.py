"""A difference that nothing accounts for, with the shortest way there."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from attrs import frozen

from sharestate.json_lines import brief
from sharestate.testing.protocol.exchange import Exchange, trace
from sharestate.testing.search.asked import Asked, asked, renumbered
from sharestate.testing.search.judging import read_response
from sharestate.testing.search.shrinking import PASSES, ShownConversation
from sharestate.testing.shrinking import shrunk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sharestate.testing.generator.surroundings import Request, Steps
    from sharestate.testing.search.divergences import FirstDifference
    from sharestate.testing.search.judging import Judgement
    from sharestate.testing.search.library import Answered

MOST_ATTEMPTS: Final = 5000
"""How many shorter conversations are tried, at most: some seconds' work for a peer in process."""

MOST_S: Final = 60.0
"""For how long they are tried, at most: a peer that ends, or gives no answer, has to be run again for each. [s]"""


@frozen(kw_only=True)
class FoundDifference:
    """A difference that nothing accounts for."""

    number: int
    """The number of the sequence."""

    op: str
    """The operation at which it shows."""

    differences: tuple[str, ...]
    """Where the responses differ: the peer's is the expected one."""

    request: Request
    """The request."""

    conversation: str
    """The shortest way there that was found, with what the peer has answered, as a trace file."""

    steps: int
    """How many requests that takes."""

    signature: tuple[str, ...]
    """What it has in common with other findings of the same kind."""

    def __str__(self) -> str:
        """Return it for people, with the conversation at the end."""
        lines = (
            f"a difference after {self.steps} requests (sequence {self.number}), at {brief(self.request, limit=300)}",
            "where the peer's response is the expected one:",
            *(f"  {difference}" for difference in self.differences),
        )
        return "\n".join(lines) + f"\n\n{self.conversation}"


def signature(life: Sequence[Answered], failure: Judgement) -> tuple[str, ...]:
    """Return what findings of the same kind have in common: the operation, and the places that differ."""
    return life[-1].request["op"], *sorted(_paths(failure.mismatch))


def smallest(
    number: int,
    life: Sequence[Answered],
    failure: Judgement,
    compare: Callable[[Steps[None]], tuple[list[Answered], list[str], Judgement]],
) -> FoundDifference:
    """
    Return the finding that *failure* is, after as few requests as still show it.

    Args:
        number: The number of the sequence.
        life: The requests of a share partition, up to the one at which it shows.
        failure: What became of it.
        compare: Sends a sequence to both peers; returns the library's answers, the peer's lines and the verdict.
    """
    paths = _paths(failure.mismatch)
    op = life[-1].request["op"]
    attempts, ends_s = 0, monotonic() + MOST_S

    def shows(candidate: list[Asked]) -> ShownConversation | None:
        nonlocal attempts
        attempts += 1
        if attempts > MOST_ATTEMPTS or (attempts > 1 and monotonic() > ends_s):
            return None
        sent: list[Asked] = []
        steps, _, judged = compare(renumbered(candidate, sent))
        found = judged.mismatch
        if not judged.is_failure or found is None or steps[found.index].request["op"] != op:
            return None
        if paths.isdisjoint(found.paths) or str(steps[-1].response.get("crashed")).startswith("Malformed"):
            return None
        length = found.index + 1
        states = [step.response.get("state") for step in steps[:length]]
        return ShownConversation(sent[:length], states, tuple(map(str, found.differences)))

    whole = asked(life)
    shown = shows(whole)
    shortest = whole if shown is None else shrunk(shown, shows, PASSES).steps
    steps, lines, judged = compare(renumbered(shortest, []))
    mismatch = judged.mismatch or failure.mismatch
    return FoundDifference(
        number=number,
        op=op,
        differences=() if mismatch is None else tuple(map(str, mismatch.differences)),
        request=steps[-1].request,
        conversation=_conversation(f"search-{number}", steps, lines),
        steps=len(steps),
        signature=signature(life, failure),
    )


def _paths(mismatch: FirstDifference | None) -> frozenset[str]:
    return frozenset() if mismatch is None else mismatch.paths


def _conversation(name: str, steps: Sequence[Answered], lines: Sequence[str]) -> str:
    exchanges = [
        Exchange(request=step.request, response=read_response(line), before=None)
        for step, line in zip(steps, lines, strict=True)
    ]
    return trace(name, exchanges)
