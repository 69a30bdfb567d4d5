"""The line protocol of the assignor: requests for a target assignment, and for what Java makes of keys."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from sharestate.broker.groups import AssignmentError, AssignmentOrder, SubscriptionType
from sharestate.broker.groups.assignment_json import AssignmentInput, input_fields, partitions_json
from sharestate.broker.groups.assignment_order import TOPIC_PARTITIONS
from sharestate.broker.groups.java_hash_map import TEXTS, TOPIC_IDS
from sharestate.conversation.server import LineServer
from sharestate.coordinator.wire import topic_id_bytes
from sharestate.errors import MalformedInputError
from sharestate.json_checks import Check, Field, an_object, integer, list_of, member, one_of, record, refuse, row, text
from sharestate.json_lines import Json


def _topic(value: Json, path: str) -> str:
    """Check the id of a topic."""
    topic = text(value, path)
    try:
        topic_id_bytes(topic)
    except MalformedInputError:
        refuse("a UUID in 22 characters of URL-safe base64", value, path)
    return topic


OPERATIONS: Final[Mapping[str, Mapping[str, Field]]] = MappingProxyType(
    {
        "assign": {
            **input_fields(_topic),
            "order": Field(
                one_of({"hash": AssignmentOrder.JAVA, "given": AssignmentOrder.GIVEN}), default=AssignmentOrder.JAVA
            ),
            "type": Field(one_of({kind.value: kind for kind in SubscriptionType}), default=None),
        },
        "hashes": {
            "strings": Field(list_of(text), default=()),
            "topics": Field(list_of(_topic), default=()),
            "pairs": Field(
                list_of(row(_topic, integer(0, 2**31 - 1), make=lambda topic, number: (topic, number))), default=()
            ),
        },
    }
)
"""The fields of each operation, besides its name."""

_COST_OF_PARTITION: Final = 128
"""What it costs to assign a partition, of which a request gives the number alone: 3 µs. [characters]"""

_op: Final = Field(one_of({op: op for op in OPERATIONS}))


def _request(**fields: Any) -> Mapping[str, Any]:  # noqa: ANN401 - of different types
    return fields


_REQUESTS: Final[Mapping[str, Check[Mapping[str, Any]]]] = MappingProxyType(
    {op: record({"op": _op, **fields}, _request) for op, fields in OPERATIONS.items()}
)


class AssignorConversation(LineServer):
    """The assignor of Kafka, which remembers nothing from request to request; that of all releases is the same."""

    def _answer(self, value: Json) -> Json:
        op = member(an_object(value, ""), "op", _op, "")
        fields = {name: field for name, field in _REQUESTS[op](value, "").items() if name != "op"}
        if op == "hashes":
            return {"result": _hashes(**fields)}
        self.cost += _COST_OF_PARTITION * sum(fields["topics"].values())
        return {"result": _assigned(**fields)}


def _assigned(*, order: AssignmentOrder, type: SubscriptionType | None, **given: Any) -> Json:  # noqa: A002, ANN401 - the protocol's name, and what the assignor is given
    try:
        target = AssignmentInput(**given).assign(order, type)
    except AssignmentError as error:
        return {"raised": {"error": error.code.name, "exception": error.exception, "message": error.message}}
    return {
        "type": target.subscription_type.value,
        "members": {member_id: partitions_json(each) for member_id, each in target.members.items()},
        "order": list(target.numbering),
    }


def _hashes(
    *, strings: tuple[str, ...], topics: tuple[str, ...], pairs: tuple[tuple[str, int], ...]
) -> Mapping[str, int]:
    """Return Java's hash codes, which are signed, by what they are of."""
    codes = {each: TEXTS.hash_code(each) for each in strings}
    codes |= {each: TOPIC_IDS.hash_code(each) for each in topics}
    codes |= {f"{topic}:{number}": TOPIC_PARTITIONS.hash_code((topic, number)) for topic, number in pairs}
    return {text: ((code + 2**31) & 0xFFFFFFFF) - 2**31 for text, code in codes.items()}
