"""The line protocol of the assignor."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate.conversation import AssignorConversation, BadRequestError

TOPIC = "AAECAwQFBgcICQoLDA0ODw"
MEMBER = {"id": "A", "topics": [TOPIC]}
ASSIGN = {"op": "assign", "topics": {TOPIC: 1}, "members": [MEMBER]}


def answer(request: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the result of one request."""
    return AssignorConversation().answer(request, 1)["result"]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (7, ""),
        ({}, "op"),
        ({"op": "open"}, "op"),
        ({"op": "assign", "members": []}, "topics"),
        ({**ASSIGN, "topics": {"orders": 1}}, "topics"),
        ({**ASSIGN, "members": [{"id": "A", "topics": ["orders"]}]}, "members[0].topics[0]"),
        ({**ASSIGN, "members": [{**MEMBER, "target": {"orders": []}}]}, "members[0].target"),
        ({**ASSIGN, "members": [MEMBER, MEMBER]}, "members[1].id"),
        ({**ASSIGN, "initialized": {TOPIC: [-1]}}, f"initialized.{TOPIC}[0]"),
        ({**ASSIGN, "order": "sorted"}, "order"),
        ({**ASSIGN, "type": "both"}, "type"),
        ({**ASSIGN, "key": ""}, "key"),
        ({"op": "hashes", "topics": ["orders"]}, "topics[0]"),
        ({"op": "hashes", "pairs": [[TOPIC]]}, "pairs[0]"),
        ({"op": "hashes", "pairs": [[TOPIC, 2**31]]}, "pairs[0][1]"),
    ],
)
def test_a_bad_request_is_refused(request_: Any, field: str) -> None:  # noqa: ANN401 - JSON
    """With the path of what is wrong."""
    with pytest.raises(BadRequestError) as refusal:
        AssignorConversation().answer(request_, 1)

    assert refusal.value.field == field


def test_the_assignor_fails_as_kafkas_does() -> None:
    """A subscription to a topic that is not there is answered with Kafka's error and text."""
    assert answer({**ASSIGN, "topics": {}}) == {
        "raised": {
            "error": "UNKNOWN_SERVER_ERROR",
            "exception": "PartitionAssignorException",
            "message": f"Members are subscribed to topic {TOPIC} which doesn't exist in the topic metadata.",
        }
    }


def test_the_type_can_be_chosen() -> None:
    """It is that of the subscriptions, unless the request has one."""
    assert answer(ASSIGN)["type"] == "homogeneous"
    assert answer({**ASSIGN, "type": "heterogeneous"})["type"] == "heterogeneous"


def test_hashes_are_javas() -> None:
    """Signed, as Kafka's classes have them."""
    pairs = [[TOPIC, 3], ["KHnhHEAbRvOK4NGrXOcIGQ", 0]]

    assert answer({"op": "hashes", "strings": ["A"], "topics": ["KHnhHEAbRvOK4NGrXOcIGQ"], "pairs": pairs}) == {
        "A": 65,
        "KHnhHEAbRvOK4NGrXOcIGQ": -1100644771,
        f"{TOPIC}:3": 3,
        "KHnhHEAbRvOK4NGrXOcIGQ:0": 239750467,
    }
