"""Random lives of share groups: at every step they are what their records say; what is refused changes nothing."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharestate.broker.groups import (
    GROUP_PROFILES,
    AssignmentOrder,
    GroupCoordinator,
    GroupProfile,
    GroupTables,
)
from sharestate.broker.groups.record_order import RecordOrder
from sharestate.broker.groups.records import GroupRecord, decode_record
from sharestate.conversation import BadRequestError, GroupConversation
from tests.support.group_data import RECORDINGS, exchanges, raw_records

TOPICS: Final = {"t0": "AAECAwQFBgcICQoLDA0ODw", "t1": "s2cR6zkGp8hgPXHUCeelTQ"}
"""Ids of topics, by name."""

GROUPS: Final = st.sampled_from("gh")
NAMES: Final = st.lists(st.sampled_from(sorted(TOPICS)), max_size=2, unique=True)
PARTITIONS: Final = st.dictionaries(
    st.sampled_from(sorted(TOPICS.values())), st.lists(st.integers(0, 3), max_size=3, unique=True), max_size=2
)


def asked(op: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return requests of one operation."""
    return st.fixed_dictionaries({"op": st.just(op), **fields})


REQUESTS: Final = st.one_of(
    asked(
        "heartbeat",
        group=GROUPS,
        member=st.sampled_from("abc"),
        epoch=st.sampled_from([-2, -1, 0, 0, 1, 2, 3, 4, 2**31 - 1]),
        topics=st.none() | NAMES,
    ),
    asked("initialized", group=GROUPS, topics=PARTITIONS),
    asked("uninitialized", group=GROUPS, topics=PARTITIONS),
    asked("metadata", topics=st.just({"t1": [TOPICS["t1"], 4]})),
    asked("advance", ms=st.sampled_from([1, 1000, 31_000, 46_000])),
    asked(
        "alter",
        group=GROUPS,
        topics=st.dictionaries(st.sampled_from("xy"), st.just([[0, 5]])) | st.just({"t0": [[1, 5]]}),
    ),
    asked("delete_offsets", group=GROUPS, topics=NAMES),
    asked("delete_state", group=GROUPS),
    asked("delete_group", group=GROUPS),
)

each_profile = pytest.mark.parametrize("profile", GROUP_PROFILES.values(), ids=lambda profile: profile.name)


def opened(profile: GroupProfile) -> GroupConversation:
    """Return a conversation about two topics."""
    conversation = GroupConversation(profile)
    conversation.answer({"op": "open", "topics": {"t0": [TOPICS["t0"], 2], "t1": [TOPICS["t1"], 3]}}, 1)
    return conversation


@each_profile
@given(requests=st.lists(REQUESTS, max_size=12))
def test_the_groups_are_what_their_records_say(profile: GroupProfile, requests: list[Any]) -> None:
    """After every request, another coordinator that has read all records, from their bytes, has the same groups."""
    conversation = opened(profile)
    folded = GroupTables(profile.first_epoch, RecordOrder(is_java=True))

    for number, request in enumerate(requests, 2):
        answer: Any = conversation.answer(request, number)
        for key, value in raw_records(answer):
            folded.replay(decode_record(key, value), 0)
        live = conversation.coordinator.state.tables
        assert (folded.groups, folded.state_partitions) == (live.groups, live.state_partitions)
        assert folded.groups_of_topics == live.groups_of_topics
        if "raised" in (answer["result"] or {}):
            assert answer["records"] == []


@pytest.mark.parametrize("recording", RECORDINGS[::8], ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_restart_forgets_nothing_but_times(recording: Any) -> None:  # noqa: ANN401 - a path
    """Whatever Kafka has written can be loaded at every prefix, and gives groups with the same members and epochs."""
    written: list[GroupRecord] = []
    for _, response in exchanges(recording):
        written += [decode_record(key, value) for key, value in raw_records(response)]
        coordinator = GroupCoordinator(order=AssignmentOrder.JAVA)
        coordinator.load(written, now_ms=5)
        shown = response["state"]["groups"]
        groups = coordinator.state.tables.groups.values
        for group_id in shown:
            assert groups[group_id].epoch == shown[group_id]["epoch"]
            assert groups[group_id].metadata_hash == shown[group_id]["metadata_hash"]
            assert {each.member_id: each.epoch for each in groups[group_id].members.values.values()} == {
                member_id: member["epoch"] for member_id, member in shown[group_id]["members"].items()
            }


@given(
    line=st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3), st.lists, max_leaves=5),
    data=st.data(),
)
def test_what_cannot_be_read_changes_nothing(line: Any, data: st.DataObject) -> None:  # noqa: ANN401 - JSON
    """A request with a field of any other kind is answered, or refused with an error of the library's own."""
    conversation = opened(GROUP_PROFILES["kafka-4.4"])
    conversation.answer({"op": "heartbeat", "group": "g", "member": "a", "epoch": 0, "topics": ["t0"]}, 2)
    before = json.dumps(conversation.answer({"op": "state"}, 3))
    request = data.draw(REQUESTS)
    field = data.draw(st.sampled_from(sorted(request)))

    try:
        conversation.answer(request | {field: line}, 4)
    except BadRequestError:
        assert json.dumps(conversation.answer({"op": "state"}, 5)) == before
