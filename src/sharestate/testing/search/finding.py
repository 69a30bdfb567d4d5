"""A difference that nothing accounts for, with the shortest way there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from sharestate.json_lines import brief, read_json
from sharestate.testing.exchange import Exchange, trace
from sharestate.testing.search.shrinking import Sameness, shrunk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sharestate.testing.generator.model import Request
    from sharestate.testing.search.divergences import Mismatch
    from sharestate.testing.search.judging import Verdict
    from sharestate.testing.search.library import Answered


@frozen(kw_only=True)
class Finding:
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


def signature(life: Sequence[Answered], failure: Verdict) -> tuple[str, ...]:
    """Return what findings of the same kind have in common: the operation, and the places that differ."""
    return life[-1].request["op"], *sorted(_paths(failure.mismatch))


def smallest(
    number: int,
    life: Sequence[Answered],
    failure: Verdict,
    compare: Callable[[Sequence[Request]], tuple[list[Answered], list[str], Verdict]],
) -> Finding:
    """
    Return the finding that *failure* is, after as few requests as still show it.

    Args:
        number: The number of the sequence.
        life: The requests of a share partition, up to the one at which it shows.
        failure: What became of it.
        compare: Sends requests to both peers; returns the library's answers, the peer's lines and the verdict.
    """
    requests = [step.request for step in life]
    same = Sameness(requests[-1]["op"], _paths(failure.mismatch))

    def shows(candidate: list[Request]) -> bool:
        steps, _, judged = compare(candidate)
        is_whole = len(steps) == len(candidate) and not str(steps[-1].response.get("crashed")).startswith("Malformed")
        return is_whole and judged.is_failure and same.holds(candidate, judged.mismatch)

    requests = shrunk(requests, shows)
    steps, lines, judged = compare(requests)
    mismatch = judged.mismatch or failure.mismatch
    return Finding(
        number=number,
        op=same.op,
        differences=() if mismatch is None else tuple(map(str, mismatch.differences)),
        request=requests[-1],
        conversation=_conversation(f"search-{number}", steps, lines),
        steps=len(steps),
        signature=signature(life, failure),
    )


def _paths(mismatch: Mismatch | None) -> frozenset[str]:
    return frozenset() if mismatch is None else mismatch.paths


def _conversation(name: str, steps: Sequence[Answered], lines: Sequence[str]) -> str:
    exchanges = [
        Exchange(request=step.request, response=read_json(line), before=None)
        for step, line in zip(steps, lines, strict=True)
    ]
    return trace(name, exchanges)
