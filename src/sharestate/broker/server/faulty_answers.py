"""Answers to clients that go wrong on purpose: what a table of faults says, between handlers and connections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sharestate.broker.node.topics import Topics
from sharestate.broker.server.api_versions import ANNOUNCED
from sharestate.broker.server.calls import Answer, Call, Response, Unanswered
from sharestate.broker.server.clocks import Clock
from sharestate.broker.server.connection import ClientConnection
from sharestate.broker.server.faults import STATE_APIS, AppliedFault, Disconnect, Fail, Faults, SeenRequest
from sharestate.persister.kafka.frames import Fields

# ---- what requests name

_TOPIC_ARRAYS: Final = ("topics", "topic_data", "v3_and_below_topics")
_TOPIC_NAMES: Final = ("name", "topic_name", "topic")
_PARTITION_ARRAYS: Final = ("partitions", "partition_data", "partition_indexes")
_PARTITION_INDEXES: Final = ("partition_index", "index", "partition")
"""What requests call topics, partitions, and the arrays of them."""


def seen_request(call: Call) -> SeenRequest:
    """
    Return a request of a client as faults see it.

    A ShareFetch names partitions when a share session begins, when they are added, and with what it acknowledges.
    """
    return SeenRequest(
        api=ANNOUNCED[call.api_key].name,
        group_id=call.fields.get("group_id"),
        partitions=frozenset(_partitions(call.fields, call.node.topics)),
        client_id=call.client_id,
        request=call.fields,
    )


def _partitions(fields: Fields, topics: Topics) -> Iterator[tuple[str, int]]:
    for topic in _first(fields, _TOPIC_ARRAYS) or ():
        if isinstance(topic, dict):
            topic_id = topic.get("topic_id")
            name = _first(topic, _TOPIC_NAMES) or topics.name_of(topic_id or "") or topic_id
            for partition in _first(topic, _PARTITION_ARRAYS) or ():
                index = _first(partition, _PARTITION_INDEXES) if isinstance(partition, dict) else partition
                yield str(name), int(index)


def _first(fields: Fields, names: Iterable[str]) -> Any:  # noqa: ANN401 - a field of a request
    return next((fields[name] for name in names if name in fields), None)


# ---- responses that say nothing but an error


class _Array(NamedTuple):
    """
    An array of a request, and that of the response which has an entry for each of its entries.

    Attributes:
        asked: The array of the request.
        answered: That of the response.
        name: What an entry of the response calls one of the request that is no more than a text.
        error: The field for the error.
    """

    asked: str
    answered: str
    name: str = ""
    error: str = "error_code"


_NESTED: Final[Mapping[int, Sequence[tuple[_Array, ...]]]] = MappingProxyType(
    {
        0: [(_Array("topic_data", "responses"), _Array("partition_data", "partition_responses"))],
        2: [(_Array("topics", "topics"), _Array("partitions", "partitions"))],
        3: [(_Array("topics", "topics"),)],
        10: [(_Array("coordinator_keys", "coordinators", "key"),)],
        15: [(_Array("groups", "groups", "group_id"),)],
        19: [(_Array("topics", "topics"),)],
        20: [(_Array("topics", "responses"),), (_Array("topic_names", "responses", "name"),)],
        21: [(_Array("topics", "topics"), _Array("partitions", "partitions"))],
        24: [
            (
                _Array("v3_and_below_topics", "results_by_topic_v3_and_below"),
                _Array("partitions", "results_by_partition", "partition_index", "partition_error_code"),
            )
        ],
        32: [(_Array("resources", "results"),)],
        37: [(_Array("topics", "results"),)],
        42: [(_Array("groups_names", "results", "group_id"),)],
        44: [(_Array("resources", "responses"),)],
        75: [(_Array("topics", "topics"),)],
        77: [(_Array("group_ids", "groups", "group_id"),)],
        90: [(_Array("groups", "groups"),)],
    }
)
"""Of the APIs whose responses have no error as a whole, or not in all versions: where those of their parts are."""


def failed_response(call: Call, error_code: int) -> Response:
    """
    Return the response in which everything that was asked has failed.

    Source:
        AbstractRequest.getErrorResponse of each API (Kafka 4.4.0).
    """
    response: dict[str, Any] = {"error_code": error_code}
    for arrays in _NESTED.get(call.api_key, ()):
        if call.fields.get(arrays[0].asked) is not None:
            response[arrays[0].answered] = _failed_parts(call.fields, arrays, error_code)
    return response


def _failed_parts(fields: Fields, arrays: tuple[_Array, ...], error_code: int) -> list[Response]:
    array, *inner = arrays
    parts: list[Response] = []
    for entry in fields[array.asked]:
        names = entry if isinstance(entry, dict) else {array.name: entry}
        part: dict[str, Any] = {name: value for name, value in names.items() if isinstance(value, str | int)}
        part[array.error] = error_code
        if inner:
            part[inner[0].answered] = _failed_parts(entry, tuple(inner), error_code)
        parts.append(part)
    return parts


# ---- between handlers and connections


class FaultyAnswers:
    """
    Lets go wrong what a table of faults says, of requests that clients send.

    Args:
        faults: The table.
        clock: The time by which answers are delayed.
    """

    def __init__(self, faults: Faults, clock: Clock) -> None:
        """Begin with nothing that goes wrong."""
        self._faults = faults
        self._clock = clock
        self._happening: dict[ClientConnection, tuple[AppliedFault, Call]] = {}

    def instead(self, connection: ClientConnection, call: Call) -> Answer | None:
        """Return the answer to a request that is not carried out; None if it is to be carried out."""
        if not self._faults or ANNOUNCED[call.api_key].name in STATE_APIS.values():
            return None
        happening = self._faults.happening_to(seen_request(call))
        if happening is None:
            return None
        action = happening.fault.action
        if isinstance(action, Fail) and not action.is_carried_out:
            return failed_response(call, action.error_code)
        self._happening[connection] = happening, call
        return None

    def send(self, connection: ClientConnection, answer: Answer, write: Callable[[Answer], None]) -> None:
        """Write down the *answer* to the request of a connection, another one, later, or not at all."""
        happening, call = self._happening.pop(connection, (None, None))
        if happening is None or call is None:
            write(answer)
            return
        match happening.fault.action:
            case Fail(error_code):
                write(failed_response(call, error_code))
            case Disconnect():
                write(Unanswered.CLOSES)
            case _:
                happening.hold(lambda: write(answer), self._clock)

    def forget(self, connection: ClientConnection) -> None:
        """Forget a connection that has ended."""
        self._happening.pop(connection, None)
