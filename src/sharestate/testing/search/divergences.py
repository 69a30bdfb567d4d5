"""Where a peer answers otherwise than the library, and the known divergences that account for it, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from attrs import field, frozen

from sharestate.json_lines import Json

if TYPE_CHECKING:
    from sharestate.conversation.compare import Difference
    from sharestate.testing.generator.surroundings import Request
    from sharestate.values.profiles import Profile

State: TypeAlias = dict[str, Any]
"""The state in a response of the line protocol."""


@frozen
class FirstDifference:
    """The first request of a share partition's life that the two have answered otherwise."""

    index: int
    """Where it is in the sequence."""

    peer: Json
    """What the peer has answered."""

    differences: tuple[Difference, ...]
    """Where the library's response differs from that."""

    @property
    def paths(self) -> frozenset[str]:
        """The places where they differ, less the numbers in them: what stays when a sequence is made shorter."""
        return frozenset(without_numbers(difference.path) for difference in self.differences)


def without_numbers(path: str) -> str:
    """
    Return *path* with any index for every index.

    >>> without_numbers("state.batches[12].cell[0][1]")
    'state.batches[].cell[][]'
    """
    return "".join(letter for letter in path if not letter.isdigit())


@frozen
class RequestScene:
    """One request between two states of the library's share partition."""

    request: Request
    """The request."""

    before: State
    """The state before it."""

    after: State
    """The state after it."""

    profile: Profile
    """The library's rules."""

    @property
    def op(self) -> str:
        """The operation."""
        return str(self.request["op"])


ANY_PART: Final = ("result", "events", "state")
"""The parts of a response."""


def _names(names: Iterable[str]) -> frozenset[str]:
    return frozenset(names)


def _exceptions(names: Iterable[str | None]) -> frozenset[str | None]:
    return frozenset(names)


def _parts(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(names)


def _always(_scene: RequestScene) -> bool:
    return True


@frozen(kw_only=True)
class Divergence:
    """
    One row: something that a peer does and the library does not.

    >>> row = Divergence(id="no-renew", ops=["acknowledge"], is_set_off_by=lambda scene: "4" in str(scene.request))
    >>> sorted(row.ops), row.later
    (['acknowledge'], False)
    """

    id: str
    """The row's name."""

    peer: str = ""
    """What the peer does, in a sentence."""

    library: str = ""
    """What the library does instead."""

    ops: frozenset[str] = field(converter=_names)
    """The operations at which it shows."""

    is_set_off_by: Callable[[RequestScene], bool] = _always
    """What sets it off, judged by the request and the library's state before and after it."""

    raises: frozenset[str | None] = field(default=frozenset({None}), converter=_exceptions)
    """The exceptions that the peer throws then; None where it throws none."""

    library_answers: Json = field(factory=dict)
    """A part of the library's response then."""

    differs_in: tuple[str, ...] = field(default=ANY_PART, converter=_parts)
    """The parts of the response that may differ then."""

    later: bool = False
    """Whether it may show long after its trigger."""

    def describes(self, op: str, response: Json, mismatch: FirstDifference) -> bool:
        """Return whether *mismatch*, which the library's *response* to the operation *op* is, is what the row says."""
        parts = {difference.path.partition(".")[0].partition("[")[0] for difference in mismatch.differences}
        return (
            op in self.ops
            and raised(mismatch.peer) in self.raises
            and parts <= set(self.differs_in)
            and has(response, self.library_answers)
        )


def has(value: Json, part: Json) -> bool:
    """
    Return whether *part* is a part of *value*: of an object, the members that it has.

    >>> has({"a": {"b": 1, "c": 2}}, {"a": {"c": 2}}), has({"a": [1, 2]}, {"a": [1]})
    (True, False)
    """
    if isinstance(part, dict):
        return isinstance(value, dict) and all(name in value and has(value[name], part[name]) for name in part)
    return bool(value == part)


def raised(response: Json) -> str | None:
    """Return the class of the exception that an operation has thrown; None for none."""
    match response:
        case {"result": {"raised": {"exception": str(exception)}}}:
            return exception
        case _:
            return None
