"""Files for the assignor, and what is wrong with some."""

from __future__ import annotations

from typing import Any

import pytest

from sharestate import MalformedInputError
from sharestate.broker.groups import AssignmentInput, SubscribedMember, assignment_changes, changes_json
from sharestate.broker.groups.assignment_json import MAX_MEMBERS, MAX_PARTITIONS, read_assignment_input

MEMBER = {"id": "A", "topics": ["t"], "target": {"t": [0, 1]}}
FILE = {"assignment": 1, "topics": {"t": 2}, "members": [MEMBER]}


def test_a_file_is_read() -> None:
    """It has members, topics, and perhaps the partitions that are initialized."""
    member = SubscribedMember(member_id="A", topic_ids=("t",), target={"t": (0, 1)})

    assert read_assignment_input(FILE) == AssignmentInput(members=(member,), topics={"t": 2})
    assert read_assignment_input({**FILE, "initialized": {"t": [1]}}).initialized == {"t": (1,)}
    assert read_assignment_input({**FILE, "initialized": None}).initialized is None


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ([], ""),
        ({**FILE, "assignment": 2}, "assignment"),
        ({"assignment": 1, "members": []}, "topics"),
        ({**FILE, "extra": 1}, "extra"),
        ({**FILE, "topics": {"t": -1}}, "topics.t"),
        ({**FILE, "topics": {"t": 2**31}}, "topics.t"),
        ({**FILE, "topics": {"t": MAX_PARTITIONS, "u": 1}}, "topics"),
        ({**FILE, "topics": {"t" * 257: 1}}, "topics"),
        ({**FILE, "members": {"A": []}}, "members"),
        ({**FILE, "members": [MEMBER, MEMBER]}, "members[1].id"),
        ({**FILE, "members": [{"topics": []}]}, "members[0].id"),
        ({**FILE, "members": [{"id": "A" * 257, "topics": []}]}, "members[0].id"),
        ({**FILE, "members": [{"id": "A"}]}, "members[0].topics"),
        ({**FILE, "members": [{"id": "A", "topics": [1]}]}, "members[0].topics[0]"),
        ({**FILE, "members": [{"id": "A", "topics": [], "target": {"t": [0, -1]}}]}, "members[0].target.t[1]"),
        ({**FILE, "members": [{"id": "A", "topics": [], "target": []}]}, "members[0].target"),
        ({**FILE, "members": [None] * (MAX_MEMBERS + 1)}, "members"),
        ({**FILE, "members": [{"id": f"{n}", "topics": ["t"] * 2**16} for n in range(5)]}, "members"),
        ({**FILE, "initialized": {"t": 5}}, "initialized.t"),
    ],
)
def test_another_form_is_refused(changed: Any, field: str) -> None:  # noqa: ANN401 - JSON
    """With the path of what is wrong."""
    with pytest.raises(MalformedInputError) as refusal:
        read_assignment_input(changed)

    assert refusal.value.field == field


def test_what_changes() -> None:
    """C joins A and B: A gives up what C gets; nothing is under-shared, and nobody unfilled."""
    members = [
        {"id": "C", "topics": ["t"]},
        {"id": "A", "topics": ["t"], "target": {"t": [0, 2, 4]}},
        {"id": "B", "topics": ["t"], "target": {"t": [1, 3]}},
    ]
    given = read_assignment_input({"assignment": 1, "topics": {"t": 5}, "members": members})

    changes = changes_json(assignment_changes(given.members, given.assign()))

    assert changes == {
        "assignment": 1,
        "type": "homogeneous",
        "members": [
            {"id": "A", "partitions": {"t": [2, 4]}, "gained": {}, "lost": {"t": [0]}, "has": 2, "capacity": 2},
            {"id": "B", "partitions": {"t": [1, 3]}, "gained": {}, "lost": {}, "has": 2, "capacity": 2},
            {"id": "C", "partitions": {"t": [0]}, "gained": {"t": [0]}, "lost": {}, "has": 1, "capacity": 1},
        ],
        "under_shared": [],
    }


def test_what_is_under_shared() -> None:
    """C has left: partition 1 should have two members, but the only one with room has it already (rule A10)."""
    targets = {"A": [1], "B": [0], "D": [0]}
    members = [{"id": name, "topics": ["t"], "target": {"t": had}} for name, had in targets.items()]
    given = read_assignment_input({"assignment": 1, "topics": {"t": 2}, "members": members})

    changes = assignment_changes(given.members, given.assign())

    assert changes_json(changes)["under_shared"] == [{"topic": "t", "partition": 1, "members": 1, "sharing": 2}]
    assert [member.member_id for member in changes.members if member.is_unfilled] == ["A"]


def test_a_member_that_has_topics_of_nobody() -> None:
    """What is kept of a topic that nobody subscribes to is no part of what a member should have (rule A12)."""
    members = [
        SubscribedMember(member_id="A", topic_ids=["t"], target={"u": [0, 1]}),
        SubscribedMember(member_id="B"),
    ]
    given = AssignmentInput(members=tuple(members), topics={"t": 1, "u": 2})

    first, second = assignment_changes(members, given.assign()).members

    assert (dict(first.partitions), first.has, first.capacity) == ({"t": (0,), "u": (0, 1)}, 1, 1)
    assert (second.has, second.capacity) == (0, 0)
