"""Comparing what the library and Kafka have answered, request by request, in the light of the known divergences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

from sharestate.conversation.compare import Difference, Level, differences
from sharestate.json_lines import Json, read_json, write_json
from tests.oracle.search.divergences import DIVERGENCES, Divergence
from tests.oracle.search.triggers import Scene

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sharestate.values.profiles import Profile
    from tests.oracle.search.library import Answered

LEVEL: Final = Level.OBSERVABLE
"""What is compared: all but what an implementation with other internals may do otherwise."""

LATER: Final = tuple(row for row in DIVERGENCES if row.later)
"""The rows that may show long after their trigger."""


@frozen
class Mismatch:
    """The first request of a share partition's life that the two have answered otherwise."""

    index: int
    """Where it is in the sequence."""

    kafka: Json
    """What Kafka has answered."""

    differences: tuple[Difference, ...]
    """Where the library's response differs from that."""

    @property
    def paths(self) -> frozenset[str]:
        """The places where they differ, less the numbers in them: what stays when a sequence is made shorter."""
        return frozenset(without_numbers(difference.path) for difference in self.differences)


@frozen
class Verdict:
    """What became of one share partition's life."""

    mismatch: Mismatch | None = None
    """Where the two went apart."""

    row: Divergence | None = None
    """The known divergence that accounts for it, or that was set off and has not shown."""

    @property
    def is_failure(self) -> bool:
        """Whether the two went apart and nothing accounts for it."""
        return self.mismatch is not None and self.row is None

    @property
    def is_latent(self) -> bool:
        """Whether a divergence was set off and has not shown."""
        return self.mismatch is None and self.row is not None


def without_numbers(path: str) -> str:
    """
    Return *path* with any index for every index.

    >>> without_numbers("state.batches[12].cell[0][1]")
    'state.batches[].cell[][]'
    """
    return "".join(letter for letter in path if not letter.isdigit())


def lives(sequence: Sequence[Answered]) -> Iterator[range]:
    """Yield the indices of each share partition's life: it begins with ``open``."""
    begins = [index for index, step in enumerate(sequence) if step.request["op"] == "open"]
    for begin, end in zip(begins, [*begins[1:], len(sequence)], strict=True):
        yield range(begin, end)


def verdict(life: range, sequence: Sequence[Answered], lines: Sequence[str], profile: Profile) -> Verdict:
    """Return what became of *life* under *profile*, given the *lines* that Kafka has answered to *sequence*."""
    mismatch = first_mismatch(life, sequence, lines)
    end = life.stop if mismatch is None else mismatch.index + 1
    scenes = {index: _scene(index, sequence, profile) for index in range(life.start + 1, end)}
    earlier = [row for scene in scenes.values() if scene for row in LATER if row.is_set_off_by(scene)]
    if mismatch is None:
        return Verdict(None, earlier[0] if earlier else None)
    return Verdict(mismatch, _account(mismatch, sequence[mismatch.index], scenes.get(mismatch.index), earlier))


def first_mismatch(life: range, sequence: Sequence[Answered], lines: Sequence[str]) -> Mismatch | None:
    """Return where *life* goes apart, given the *lines* that Kafka has answered to *sequence*."""
    for index in life:
        response, line = sequence[index].response, lines[index]
        if write_json(response) != line:
            kafka = read_json(line)
            if found := differences(LEVEL.view(kafka), LEVEL.view(response)):
                return Mismatch(index, kafka, found)
    return None


def _account(
    mismatch: Mismatch, step: Answered, scene: Scene | None, earlier: Iterable[Divergence]
) -> Divergence | None:
    """Return the row that accounts for *mismatch* at *step*: one that *scene* sets off, or one that was *earlier*."""
    if scene is None:
        return None
    candidates = [*(row for row in DIVERGENCES if row.is_set_off_by(scene)), *earlier]
    return next((row for row in candidates if row.describes(scene.op, step.response, mismatch)), None)


def _scene(index: int, sequence: Sequence[Answered], profile: Profile) -> Scene | None:
    """Return the request *index* between two states; None if the library did not survive it."""
    before, step = sequence[index - 1], sequence[index]
    if "crashed" in step.response:
        return None
    return Scene(step.request, before.response["state"], step.response["state"], profile)
