"""
Requests in the versions that a broker has: what it announces, and requests of later versions made over for it.

What a version does not have may be left out if it says nothing; else the broker does not support the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from types import MappingProxyType
from typing import Any, Final, TypeVar, get_args

from kio.index import load_request_schema, load_response_schema
from kio.schema.api_versions.v0.request import ApiVersionsRequest
from kio.schema.api_versions.v0.response import ApiVersionsResponse
from kio.static.protocol import RequestPayload

from sharestate.errors import ErrorCode, ExternalError
from sharestate.persister.kafka.frames import read_lenient_response
from sharestate.testing.servers.connections import RawConnection

T = TypeVar("T")

_FORMER: Final[Mapping[str, str]] = MappingProxyType({"coordinator_keys": "key"})
"""Fields that had another name while they were one value instead of several (FindCoordinator 4)."""


class NegotiatedConnection(RawConnection):
    """
    A connection that sends each request in the latest version, up to the one it is given in, that the broker has.

    Answers may differ a little from Kafka's schemas: what is null may be empty, and there may be more than is known.

    Raises:
        ExternalError: Of ``ask``: the broker does not have the API, or no version of it that can say what is asked.
    """

    _announced: Mapping[int, tuple[int, int]] | None = None

    def ask(self, request: RequestPayload, schema: type[T]) -> T:
        """Return the answer, of kio's class for the version that was asked: *schema* or a former one."""
        key, latest = int(request.__api_key__), int(request.__version__)
        if self._announced is None:
            answer = super().ask(ApiVersionsRequest(), ApiVersionsResponse)
            self._announced = {
                int(api.api_key): (int(api.min_version), int(api.max_version)) for api in answer.api_keys
            }
        first, last = self._announced.get(key, (0, -1))
        version = min(latest, last)
        if version < first:
            raise _unsupported(type(request).__name__, f"it is not there in version {latest} or less")
        if version == latest:
            return super().ask(request, schema)
        response: type[T] = load_response_schema(key, version)  # type: ignore[assignment] # of the same name
        return super().ask(at_version(request, version), response)

    def _read(self, schema: type[T], frame: bytes) -> T:
        return read_lenient_response(schema, frame, self._requests)


def at_version(request: RequestPayload, version: int) -> RequestPayload:
    """
    Return *request* in a former version.

    Raises:
        ExternalError: It says what that version does not have.
    """
    made: RequestPayload = _as(load_request_schema(int(request.__api_key__), version), request)
    return made


def _as(schema: Any, value: Any) -> Any:  # noqa: ANN401 - a class of kio's, and an object of another one
    known = {field.name: field for field in fields(schema)}
    given = {}
    for field in fields(value):
        content = getattr(value, field.name)
        if field.name in known:
            given[field.name] = _part(known[field.name], content)
        elif _FORMER.get(field.name) in known:
            (given[_FORMER[field.name]],) = content
        elif field.default is not MISSING and content != field.default:
            raise _unsupported(schema.__name__, f"version {schema.__version__} has no {field.name}")
    return schema(**given)


def _part(field: Field[Any], content: Any) -> Any:  # noqa: ANN401 - of any type
    schema = _part_schema(field.type)
    if schema is None or content is None:
        return content
    return tuple(_as(schema, each) for each in content) if isinstance(content, tuple) else _as(schema, content)


def _part_schema(annotation: Any) -> Any:  # noqa: ANN401 - of any type
    """Return kio's class for what a field consists of; None if that is no entity."""
    if is_dataclass(annotation):
        return annotation
    return next((found for each in get_args(annotation) if (found := _part_schema(each)) is not None), None)


def _unsupported(request: str, reason: str) -> ExternalError:
    message = f"{request}: {reason}"
    code = ErrorCode.UNSUPPORTED_VERSION
    return ExternalError(message, code, code.exception)
