"""Requests that an ``op`` and its fields make: what the protocols of coordinators and sessions have in common."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from attrs import frozen

from sharestate.json_checks import Check, Field, an_object, boolean, member, one_of, record
from sharestate.json_lines import Json


@frozen(kw_only=True)
class OperationRequest:
    """A request for an operation."""

    op: str
    """The operation."""

    key: str = ""
    """Whom it is for, where a conversation is with several."""

    quiet: bool
    """True if the state is left out of the response."""

    fields: Mapping[str, Any]
    """The operation's fields, with the values that they stand for."""


def _request(*, op: str, quiet: bool, key: str = "", **fields: Any) -> OperationRequest:  # noqa: ANN401 - of different types
    return OperationRequest(op=op, key=key, quiet=quiet, fields=fields)


def request_check(
    operations: Mapping[str, Mapping[str, Field]], further: Mapping[str, Field] = MappingProxyType({})
) -> Check[OperationRequest]:
    """
    Return the check for requests that are lines of a protocol.

    Args:
        operations: The fields of each operation.
        further: The fields of every request, besides ``op`` and ``quiet``.
    """
    op = Field(one_of({name: name for name in operations}))
    every = {"op": op, **further, "quiet": Field(boolean, default=False)}
    checks = {name: record({**every, **fields}, _request) for name, fields in operations.items()}

    def check(value: Json, path: str) -> OperationRequest:
        return checks[member(an_object(value, path), "op", op, path)](value, path)

    return check
