"""Requests to a group coordinator that are refused: what is wrong with them, and where; nothing is changed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from sharestate import topic_id_of
from sharestate.broker.groups import GROUPS_4_4
from sharestate.conversation import BadRequestError, GroupConversation

T1 = "AAECAwQFBgcICQoLDA0ODw"


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"op": "nothing"}, "op"),
        ({"op": "open", "config": {"group.share.max.size": 0}}, "config.max_size"),
        ({"op": "open", "config": {"no.such.key": 1}}, "config"),
        ({"op": "open", "config": {"group.share.max.size": "a"}}, "config.group.share.max.size"),
        ({"op": "open", "topics": {"t1": ["not an id", 1]}}, "topics.t1[0]"),
        ({"op": "open", "topics": {"t1": [T1, 4097]}}, "topics.t1[1]"),
        ({"op": "heartbeat", "group": "g", "epoch": 2**31}, "epoch"),
        ({"op": "heartbeat", "group": "g", "extra": 1}, "extra"),
        ({"op": "heartbeat", "group": "x" * 2**15}, "group"),
        ({"op": "initialized", "group": "g", "topics": {"x": [0]}}, "topics"),
        ({"op": "initialized", "group": "g", "topics": {T1: [-1]}}, f"topics.{T1}[0]"),
        ({"op": "metadata", "delete": ["none"]}, "delete[0]"),
        ({"op": "metadata", "topics": {f"t{number}": [T1, 1] for number in range(1025)}}, "topics"),
        ({"op": "metadata", "topics": {f"t{n}": [topic_id_of(UUID(int=n)), 4096] for n in range(1, 17)}}, "topics"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_bad_request_names_the_field(request_: Any, field: str) -> None:  # noqa: ANN401 - JSON
    """The state is the same before and after."""
    conversation = GroupConversation(GROUPS_4_4)
    conversation.answer({"op": "open", "topics": {"t1": [T1, 1]}}, 1)
    conversation.answer({"op": "heartbeat", "group": "g", "member": "A", "topics": ["t1"]}, 2)
    before = conversation.answer({"op": "state"}, 3)

    with pytest.raises(BadRequestError) as caught:
        conversation.answer(request_, 4)

    assert (caught.value.field, caught.value.line) == (field, 4)
    assert conversation.answer({"op": "state"}, 5) == before


def test_a_coordinator_has_to_be_open() -> None:
    """Nothing but ``open`` comes first."""
    with pytest.raises(BadRequestError, match="open"):
        GroupConversation(GROUPS_4_4).answer({"op": "state"}, 1)


def test_settings_may_be_texts() -> None:
    """As in Kafka's properties."""
    conversation = GroupConversation(GROUPS_4_4)
    conversation.answer({"op": "open", "config": {"group.share.heartbeat.interval.ms": "7000"}}, 1)

    answer: Any = conversation.answer({"op": "heartbeat", "group": "g", "member": "A", "topics": ["t1"]}, 2)

    assert answer["result"]["interval"] == 7000
