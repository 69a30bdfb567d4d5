"""A conversation with share coordinators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from sharestate.conversation.coordinator.grammar import Encoded, read_request
from sharestate.conversation.coordinator.served_coordinator import ServedCoordinator, state_record
from sharestate.conversation.coordinator.to_json import raised_json, raw_json, record_json
from sharestate.conversation.operations import OperationRequest
from sharestate.conversation.server import LineServer
from sharestate.coordinator.profiles import CoordinatorProfile
from sharestate.coordinator.records import StateRecord, encode_record
from sharestate.errors import MalformedInputError, RecordFormatError
from sharestate.json_lines import Json
from sharestate.values.requests import StateBatch

MAX_COORDINATORS: Final = 64
"""The largest number of share coordinators in a conversation."""

_RESULT_ONLY: Final = frozenset({"log", "route"})
"""The operations of a coordinator that are answered with their result and nothing else."""


class CoordinatorConversation(LineServer):
    """Any number of independent share coordinators under one profile, distinguished by the requests' ``key``."""

    def __init__(self, profile: CoordinatorProfile) -> None:
        """Start without a coordinator."""
        self._profile = profile
        self._coordinators: dict[str, ServedCoordinator] = {}

    def _answer(self, value: Json) -> Json:
        request = read_request(value)
        handler = self._HANDLERS.get(request.op)
        if handler is not None:
            return {"result": handler(self, **request.fields)}
        if request.op == "open":
            return self._open(request)
        coordinator = self._coordinators.get(request.key)
        if coordinator is None:
            message = "no share coordinator is open with this key"
            raise MalformedInputError(message, "key")
        before = coordinator.cost
        result = coordinator.run(request.op, request.fields)
        self.cost += coordinator.cost - before
        if request.op in _RESULT_ONLY:
            return {"result": result}
        return coordinator.response(result, quiet=request.quiet, is_whole=request.op == "state")

    def _open(self, request: OperationRequest) -> Json:
        fields = dict(request.fields)
        if fields.pop("order") != "sorted":
            return {"result": {"unsupported": request.op}, "records": [], "events": [], "state": None}
        if request.key not in self._coordinators and len(self._coordinators) == MAX_COORDINATORS:
            message = f"a conversation has at most {MAX_COORDINATORS} share coordinators"
            raise MalformedInputError(message, "key")
        coordinator = ServedCoordinator(self._profile, **fields)
        self._coordinators[request.key] = coordinator
        return coordinator.response(None, quiet=request.quiet)

    def _combine(self, *, existing: tuple[StateBatch, ...], new: tuple[StateBatch, ...], start: int) -> Json:
        return [list(batch) for batch in self._profile.combine(existing, new, start)]

    def _encode(self, *, record: StateRecord | Encoded) -> Json:
        try:
            return raw_json(*encode_record(state_record(record)))
        except RecordFormatError as error:
            return raised_json(error)

    def _decode(self, *, record: StateRecord | Encoded) -> Json:
        try:
            return record_json(state_record(record))
        except RecordFormatError as error:
            return raised_json(error)

    _HANDLERS: ClassVar[Mapping[str, Callable[..., Json]]] = MappingProxyType(
        {"combine": _combine, "encode": _encode, "decode": _decode}
    )
    """The handlers of the operations that need no coordinator."""
