"""
What the fields of logged requests have to be that get into a history.

A broker writes them by tables of its own, so nothing here is wrong in a log that nobody has touched. But whatever is
imported has to be readable as a history, so what goes there is checked before anything is made of it. Other fields are
not looked at: error codes have to be among Kafka's, and partitions of a response among those of the request.

Source:
    The messages ``*Request.json`` and ``*Response.json`` of Kafka 4.4.0; RequestConvertToJson.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Final, NamedTuple, NoReturn, TypeAlias

from sharestate.error_codes import ErrorCode
from sharestate.json_checks import refuse
from sharestate.json_lines import Json

_Check: TypeAlias = Callable[[Json], None]
"""Refuses a value that is not what it has to be."""


class _Whole(NamedTuple):
    """The kind of whole numbers, bounds included."""

    low: int
    high: int


class _Text(NamedTuple):
    """The kind of texts."""


_Kind: TypeAlias = _Whole | _Text | Callable[[str], _Check]
"""What a value has to be. A function returns the check of values at a path, which stands in messages."""

_INT8: Final = _Whole(-(2**7), 2**7 - 1)
_INT16: Final = _Whole(-(2**15), 2**15 - 1)
_INT32: Final = _Whole(-(2**31), 2**31 - 1)
_INT64: Final = _Whole(-(2**63), 2**63 - 1)
_TEXT: Final = _Text()

LONGEST_MS: Final = 2**31
"""The longest time that a part of a request takes: its timeouts have 32 bits. [ms]"""

_MOST_ACQUIRED: Final = 2**31 - 1
"""How many records a response may have: a member asks for no more than 32 bits can say. [records]"""


# ---- checks


def _fields(optional: Mapping[str, _Kind] = MappingProxyType({}), /, **required: _Kind) -> Callable[[str], _Check]:
    """Return the kind of an object; what is *optional* may be missing, or null."""

    def at(path: str) -> _Check:
        check_required = _required_fields(required, path)
        if not optional:
            return check_required
        check_optional = _optional_fields(optional, path)

        def check(value: Json) -> None:
            check_required(value)
            check_optional(value)

        return check

    return at


def _required_fields(kinds: Mapping[str, _Kind], path: str) -> _Check:
    # Numbers and texts have no functions of their own: there are dozens in a request.
    numbers = [(name, *kind) for name, kind in kinds.items() if isinstance(kind, _Whole)]
    texts = [name for name, kind in kinds.items() if isinstance(kind, _Text)]
    others = [
        (name, _check(kind, f"{path}.{name}")) for name, kind in kinds.items() if not isinstance(kind, (_Whole, _Text))
    ]

    def check(value: Json) -> None:
        if type(value) is not dict:
            refuse("an object", value, path)
        for name, low, high in numbers:
            number = value[name]
            if type(number) is not int or not low <= number <= high:
                _refuse_number(low, high, number, f"{path}.{name}")
        for name in texts:
            text = value[name]
            if type(text) is not str or not text.isascii():
                check_text(text, f"{path}.{name}")
        for name, check_field in others:
            check_field(value[name])

    return check


def _optional_fields(kinds: Mapping[str, _Kind], path: str) -> _Check:
    checks = [(name, _check(kind, f"{path}.{name}")) for name, kind in kinds.items()]

    def check(value: Json) -> None:
        for name, check_field in checks:
            field = value.get(name)
            if field is not None:
                check_field(field)

    return check


def _check(kind: _Kind, path: str) -> _Check:
    """Return the check of a *kind* at a path."""
    if isinstance(kind, _Text):
        return lambda value: check_text(value, path)
    if not isinstance(kind, _Whole):
        return kind(path)
    low, high = kind

    def check(value: Json) -> None:
        if type(value) is not int or not low <= value <= high:
            _refuse_number(low, high, value, path)

    return check


def _refuse_number(low: int, high: int, value: Json, path: str) -> NoReturn:
    refuse(f"an integer within {low}..{high}", value, path)


def check_text(value: Json, path: str) -> None:
    """Check a text that a history can have."""
    if type(value) is not str:
        refuse("a string", value, path)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:  # JSON has escapes for what neither Kafka nor a history can have
            refuse("text that UTF-8 can write", value, path)


def _boolean(path: str) -> _Check:
    def check(value: Json) -> None:
        if type(value) is not bool:
            refuse("true or false", value, path)

    return check


def _milliseconds(path: str) -> _Check:
    def check(value: Json) -> None:
        if type(value) not in {float, int} or not 0 <= value <= LONGEST_MS:
            refuse(f"milliseconds within 0..{LONGEST_MS}", value, path)

    return check


def _list_of(item: _Kind) -> Callable[[str], _Check]:
    def at(path: str) -> _Check:
        check_item = _check(item, f"{path}[]")

        def check(value: Json) -> None:
            if type(value) is not list:
                refuse("a list", value, path)
            for each in value:
                check_item(each)

        return check

    return at


def _topics(optional: Mapping[str, _Kind] = MappingProxyType({}), /, **fields: _Kind) -> Callable[[str], _Check]:
    """Return the kind of a list of topics with their partitions, which have *fields*."""

    def at(path: str) -> _Check:
        check_partition = _fields(optional, **fields)(f"{path}[].partitions[]")
        check_slowly = _list_of(_fields(topicId=_TEXT, partitions=_list_of(_fields())))(path)

        def check(value: Json) -> None:
            if type(value) is not list:
                refuse("a list", value, path)
            for topic in value:
                if type(topic) is not dict or type(topic["partitions"]) is not list:
                    check_slowly(value)  # which says what is wrong
                topic_id = topic["topicId"]
                if type(topic_id) is not str or not topic_id.isascii():
                    check_text(topic_id, f"{path}[].topicId")
                for partition in topic["partitions"]:
                    check_partition(partition)

        return check

    return at


def _numbers(**kinds: _Whole) -> Callable[[str], _Check]:
    """Return the kind of a list of objects with three or four numbers, which most of a log consists of."""
    names = [*kinds][:3] + [*kinds][-1:]
    get = itemgetter(*names)
    (low_0, high_0), (low_1, high_1), (low_2, high_2), (low_3, high_3) = (kinds[name] for name in names)

    def at(path: str) -> _Check:
        check_slowly = _list_of(_fields(**kinds))(path)

        def check(value: Json) -> None:
            if type(value) is list:
                for row in value:
                    a, b, c, d = get(row) if type(row) is dict else ("",) * 4
                    if not (
                        type(a) is type(b) is type(c) is type(d) is int
                        and low_0 <= a <= high_0
                        and low_1 <= b <= high_1
                        and low_2 <= c <= high_2
                        and low_3 <= d <= high_3
                    ):
                        break
                else:
                    return
            check_slowly(value)  # which says what is wrong

        return check

    return at


# ---- rows of requests and responses


def _fetched(path: str) -> _Check:
    """Return the check of the response to a ShareFetch, whose records are counted."""
    acquired = _numbers(firstOffset=_INT64, lastOffset=_INT64, deliveryCount=_INT16)
    fields = _fields({"acquisitionLockTimeoutMs": _INT32}, responses=_topics({"acquiredRecords": acquired}))
    check_response = fields(path)

    def check(value: Json) -> None:
        check_response(value)
        counts = [
            row["lastOffset"] - row["firstOffset"] + 1
            for topic in value["responses"]
            for partition in topic["partitions"]
            for row in partition.get("acquiredRecords") or ()
        ]
        if counts and (min(counts) < 1 or sum(counts) > _MOST_ACQUIRED):
            refuse(f"ranges of at most {_MOST_ACQUIRED} records together", counts, f"{path}.responses")

    return check


_STATE: Final = _numbers(firstOffset=_INT64, lastOffset=_INT64, deliveryState=_INT8, deliveryCount=_INT16)
_ACKNOWLEDGED: Final = _topics(
    partitionIndex=_INT32,
    acknowledgementBatches=_list_of(_fields(firstOffset=_INT64, lastOffset=_INT64, acknowledgeTypes=_list_of(_INT8))),
)
_NAMED_TOPICS: Final = _list_of(_fields({"topicId": _TEXT, "name": _TEXT}))
_SHARE_REQUEST: Final[Mapping[str, _Kind]] = {
    "shareSessionEpoch": _INT32,
    "topics": _ACKNOWLEDGED,
}
_MEMBER: Final[Mapping[str, _Kind]] = {"groupId": _TEXT, "memberId": _TEXT}
"""Who sends such a request. A broker refuses it without these with INVALID_REQUEST, and logs that (sessions 2)."""

_REQUESTS: Final[Mapping[str, _Kind]] = MappingProxyType(
    {
        "INCREMENTAL_ALTER_CONFIGS": _fields(
            validateOnly=_boolean,
            resources=_list_of(
                _fields(
                    resourceType=_INT8,
                    resourceName=_TEXT,
                    configs=_list_of(_fields({"value": _TEXT}, name=_TEXT, configOperation=_INT8)),
                )
            ),
        ),
        "READ_SHARE_GROUP_STATE": _fields(groupId=_TEXT, topics=_topics(partition=_INT32, leaderEpoch=_INT32)),
        "SHARE_ACKNOWLEDGE": _fields({"isRenewAck": _boolean, **_MEMBER}, **_SHARE_REQUEST),
        "SHARE_FETCH": _fields(
            {"isRenewAck": _boolean, "shareAcquireMode": _Whole(0, 1), **_MEMBER},
            maxWaitMs=_INT32,
            minBytes=_INT32,
            maxBytes=_INT32,
            maxRecords=_INT32,
            batchSize=_INT32,
            forgottenTopicsData=_list_of(_fields(topicId=_TEXT, partitions=_list_of(_INT32))),
            **_SHARE_REQUEST,
        ),
        "WRITE_SHARE_GROUP_STATE": _fields(
            groupId=_TEXT,
            topics=_topics(
                {"deliveryCompleteCount": _INT32},
                partition=_INT32,
                stateEpoch=_INT32,
                leaderEpoch=_INT32,
                startOffset=_INT64,
                stateBatches=_STATE,
            ),
        ),
        "WRITE_TXN_MARKERS": _fields(
            markers=_list_of(
                _fields(
                    producerId=_INT64,
                    topics=_list_of(_fields(name=_TEXT, partitionIndexes=_list_of(_INT32))),
                )
            )
        ),
    }
)
"""What is read of requests, by their names."""

_RESPONSES: Final[Mapping[str, _Kind]] = MappingProxyType(
    {
        "CREATE_TOPICS": _fields(topics=_NAMED_TOPICS),
        "DELETE_RECORDS": _fields(
            topics=_list_of(
                _fields(
                    name=_TEXT,
                    partitions=_list_of(_fields(partitionIndex=_INT32, lowWatermark=_INT64)),
                )
            )
        ),
        "DELETE_TOPICS": _fields(responses=_list_of(_fields({"topicId": _TEXT, "name": _TEXT}))),
        "INCREMENTAL_ALTER_CONFIGS": _fields(responses=_list_of(_fields(resourceName=_TEXT))),
        "METADATA": _fields(brokers=_list_of(_fields(nodeId=_INT32, host=_TEXT, port=_INT32)), topics=_NAMED_TOPICS),
        "PRODUCE": _fields(
            responses=_list_of(
                _fields(
                    {"topicId": _TEXT, "name": _TEXT},
                    partitionResponses=_list_of(_fields(index=_INT32, baseOffset=_INT64)),
                )
            )
        ),
        "READ_SHARE_GROUP_STATE": _fields(
            results=_topics({"stateEpoch": _INT32, "startOffset": _INT64, "stateBatches": _STATE})
        ),
        "SHARE_FETCH": _fetched,
    }
)
"""What is read of responses, likewise."""

APIS: Final = frozenset({*_REQUESTS, *_RESPONSES})
"""The requests that say something of share partitions; the lines of all others are skipped."""

_OF_MEMBERS: Final = frozenset({"SHARE_ACKNOWLEDGE", "SHARE_FETCH"})

_CHECKS: Final = {
    name: (
        _check(_REQUESTS.get(name, _fields()), "request"),
        _check(_RESPONSES.get(name, _fields()), "response"),
    )
    for name in APIS
}


def check_fields(api: str, request: Json, response: Json) -> None:
    """
    Check what is logged of a request, as far as it is read.

    Args:
        api: The name of the request.
        request: The request.
        response: The response.

    Raises:
        MalformedInputError: A field is not what it has to be; ``field`` says which.
        KeyError: A field is missing.
    """
    check_request, check_response = _CHECKS[api]
    check_request(request)
    check_response(response)
    if api in _OF_MEMBERS and response["errorCode"] != ErrorCode.INVALID_REQUEST:
        for name in _MEMBER:
            check_text(request[name], f"request.{name}")


check_line: Final = _fields(
    {"clientInformation": _fields({"softwareVersion": _TEXT})},
    requestHeader=_fields({"clientId": _TEXT}, requestApiVersion=_INT16, correlationId=_INT32),
    connection=_TEXT,
    totalTimeMs=_milliseconds,
    requestQueueTimeMs=_milliseconds,
    localTimeMs=_milliseconds,
    remoteTimeMs=_milliseconds,
)("")
"""The check of all else that is logged of a request."""
