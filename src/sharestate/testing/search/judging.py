"""Comparing what the library and a peer have answered, request by request, in the light of the known divergences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from sharestate.conversation.compare import Level
from sharestate.errors import MalformedInputError
from sharestate.json_lines import Json, read_json, write_json
from sharestate.testing.search.command import error_response
from sharestate.testing.search.divergences import Divergence, FirstDifference, RequestScene

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sharestate.testing.search.library import Answered
    from sharestate.values.profiles import Profile


@frozen
class Judgement:
    """What became of one share partition's life."""

    mismatch: FirstDifference | None = None
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


def lives(sequence: Sequence[Answered]) -> Iterator[range]:
    """Yield the indices of each share partition's life: it begins with ``open``."""
    begins = [index for index, step in enumerate(sequence) if step.request["op"] == "open"]
    for begin, end in zip(begins, [*begins[1:], len(sequence)], strict=True):
        yield range(begin, end)


def read_response(line: str) -> Json:
    """Return the response that *line* is; a peer that has written something else has raised an error."""
    try:
        return read_json(line)
    except MalformedInputError as error:
        return error_response(error)


@frozen(kw_only=True)
class Judge:
    """What makes a mismatch, and what accounts for one."""

    profile: Profile
    """The library's rules."""

    level: Level = Level.OBSERVABLE
    """What is compared."""

    divergences: tuple[Divergence, ...] = ()
    """The known divergences."""

    def verdict(self, life: range, sequence: Sequence[Answered], lines: Sequence[str]) -> Judgement:
        """Return what became of *life*, given the *lines* that the peer has answered to *sequence*."""
        mismatch = self.first_mismatch(life, sequence, lines)
        end = life.stop if mismatch is None else mismatch.index + 1
        scenes = {index: self._scene(index, sequence) for index in range(life.start + 1, end)}
        later = [row for row in self.divergences if row.later]
        earlier = [row for scene in scenes.values() if scene for row in later if row.is_set_off_by(scene)]
        if mismatch is None:
            return Judgement(None, earlier[0] if earlier else None)
        row = self._account(mismatch, sequence[mismatch.index], scenes.get(mismatch.index), earlier)
        return Judgement(mismatch, row)

    def first_mismatch(self, life: range, sequence: Sequence[Answered], lines: Sequence[str]) -> FirstDifference | None:
        """Return where *life* goes apart, given the *lines* that the peer has answered to *sequence*."""
        for index in life:
            response, line = sequence[index].response, lines[index]
            if write_json(response) != line:
                peer = read_response(line)
                if found := self.level.differences(peer, response):
                    return FirstDifference(index, peer, found)
        return None

    def _account(
        self, mismatch: FirstDifference, step: Answered, scene: RequestScene | None, earlier: Iterable[Divergence]
    ) -> Divergence | None:
        """Return the row that accounts for *mismatch* at *step*: one that *scene* sets off, or that was *earlier*."""
        if scene is None:
            return None
        candidates = [*(row for row in self.divergences if row.is_set_off_by(scene)), *earlier]
        return next((row for row in candidates if row.describes(scene.op, step.response, mismatch)), None)

    def _scene(self, index: int, sequence: Sequence[Answered]) -> RequestScene | None:
        """Return the request *index* between two states; None if the library did not survive it."""
        before, step = sequence[index - 1], sequence[index]
        if "crashed" in step.response:
            return None
        return RequestScene(step.request, before.response["state"], step.response["state"], self.profile)
