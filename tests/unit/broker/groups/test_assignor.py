"""The rules of the assignor, with cases that were worked out by hand or asked of Kafka's class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sharestate import MalformedInputError
from sharestate.broker.groups import (
    AssignmentOrder,
    NoUnfilledMemberError,
    SubscribedMember,
    SubscriptionType,
    UnknownSubscribedTopicError,
    assign,
)

Target = Mapping[str, Sequence[int]]


def one_topic(**targets: Sequence[int]) -> list[SubscribedMember]:
    """Return members that subscribe to ``t``, by what they had of it."""
    return [
        SubscribedMember(member_id=name, topic_ids=["t"], target={"t": list(had)} if had else {})
        for name, had in targets.items()
    ]


def assigned(members: Sequence[SubscribedMember], *arguments: Any, **options: Any) -> dict[str, dict[str, list[int]]]:  # noqa: ANN401 - those of assign
    """Return the target assignment as plain values."""
    members_of = assign(members, *arguments, **options).members
    return {name: {topic: list(numbers) for topic, numbers in each.items()} for name, each in members_of.items()}


@pytest.mark.parametrize(
    ("before", "partitions", "after"),
    [
        ({"A": [], "B": []}, 5, {"A": [0, 2, 4], "B": [1, 3]}),
        ({"A": [0, 2, 4], "B": [1, 3], "C": []}, 5, {"A": [2, 4], "B": [1, 3], "C": [0]}),
        ({"A": [2, 4], "B": [1, 3]}, 5, {"A": [0, 2, 4], "B": [1, 3]}),
        ({"A": [], "B": [], "C": []}, 2, {"A": [0, 1], "B": [0], "C": [1]}),
        ({"A": [], "B": [], "C": [], "D": [], "E": []}, 2, {"A": [0, 1], "B": [0], "C": [0], "D": [1], "E": [1]}),
        ({"A": [0, 1], "B": [], "C": []}, 2, {"A": [0, 1], "B": [0], "C": [1]}),
        ({"A": [1], "B": [0], "D": [0]}, 2, {"A": [1], "B": [0], "D": [0]}),
        ({"A": [0], "B": [0]}, 2, {"A": [1], "B": [0]}),
    ],
    ids=["two", "one joins", "one has left", "shared", "five for two", "two join", "under-shared", "over-shared"],
)
def test_one_topic(before: dict[str, list[int]], partitions: int, after: dict[str, list[int]]) -> None:
    """Kafka's class answers so, for members and partitions in their natural order (rules A4 to A10)."""
    assert assigned(one_topic(**before), {"t": partitions}) == {name: {"t": each} for name, each in after.items()}


def test_only_what_is_initialized_is_assigned() -> None:
    """A partition that is not initialized goes to nobody, nor does one that is not there (rule A1)."""
    found = assigned(one_topic(A=[], B=[]), {"t": 3}, {"t": [0, 2, 3], "u": [0]})

    assert found == {"A": {"t": [0]}, "B": {"t": [2]}}


T12 = {"A": ["1"], "B": ["2"], "C": ["1", "2"]}


@pytest.mark.parametrize(
    ("subscriptions", "topics", "before", "after"),
    [
        (T12, {"1": 2, "2": 2}, {}, {"A": {"1": [0]}, "B": {"2": [0]}, "C": {"1": [1], "2": [1]}}),
        (T12, {"1": 4, "2": 4}, {}, {"A": {"1": [0, 2]}, "B": {"2": [0, 2]}, "C": {"1": [1, 3], "2": [1, 3]}}),
        (
            {"A": ["2"], "B": ["2"], "C": ["1", "2"]},
            {"1": 4, "2": 4},
            {"A": {"1": [0, 2]}, "B": {"2": [0, 2]}, "C": {"1": [1, 3], "2": [1, 3]}},
            {"A": {"1": [], "2": [0, 1]}, "B": {"2": [2]}, "C": {"1": [0, 1, 2, 3], "2": [3]}},
        ),
        (
            {"A": ["1"], "B": ["1", "2"]},
            {"1": 2, "2": 2, "3": 2},
            {"A": {"3": [0, 1]}},
            {"A": {"3": [0, 1], "1": [0]}, "B": {"1": [1], "2": [0, 1]}},
        ),
    ],
    ids=["two each", "four each", "a subscription changes", "a topic of nobody is kept"],
)
def test_several_subscriptions(
    subscriptions: Mapping[str, Sequence[str]],
    topics: Mapping[str, int],
    before: Mapping[str, Target],
    after: Mapping[str, Target],
) -> None:
    """Each topic is shared out among those who subscribe to it, as Kafka's class does it (rules A3 and A12)."""
    members = [
        SubscribedMember(member_id=name, topic_ids=chosen, target=before.get(name, {}))
        for name, chosen in subscriptions.items()
    ]

    assert assigned(members, topics) == after


def test_a_topic_that_nobody_subscribes_to_is_dropped_if_all_subscribe_alike() -> None:
    """In a homogeneous group; the topic that they subscribe to may stay without a partition (rule A12)."""
    members = [SubscribedMember(member_id="A", topic_ids=["t"], target={"u": [0], "t": []})]

    assert assigned(members, {"t": 0, "u": 1}) == {"A": {"t": []}}


def test_nobody_subscribes_to_anything() -> None:
    """Then there is no target for anyone, and none for a group without members (rule A12)."""
    members = [SubscribedMember(member_id="A", target={"t": [0]})]

    assert assigned(members, {"t": 1}) == {}
    assert assigned([], {"t": 1}) == {}


def test_capacities_are_rounded_up_one_after_the_other() -> None:
    """Three members share two partitions with two members each: 4 / 3 of a partition for each of them (rule A4)."""
    (share,) = assign(one_topic(A=[], B=[], C=[]), {"t": 2}).shares

    assert (share.sharing, dict(share.capacities)) == (2, {"A": 2, "B": 1, "C": 1})
    assert share.partitions == (("t", 0), ("t", 1))


def test_a_round_of_nobody_fails() -> None:
    """
    A has a partition that is not there any more, and so no room for the one that is (rule A11).

    With two members and one partition, both should have it: capacities 1 and 1. B takes it and is filled; the
    partition wants one more, somebody got it in this round, and the next round has nobody.
    """
    with pytest.raises(NoUnfilledMemberError) as failure:
        assign(one_topic(A=[5], B=[]), {"t": 1})

    assert (failure.value.code.name, failure.value.exception) == ("UNKNOWN_SERVER_ERROR", "NoSuchElementException")


def test_a_topic_that_the_metadata_does_not_have() -> None:
    """A subscription to it fails as in Kafka, with Kafka's text (rule A1)."""
    with pytest.raises(UnknownSubscribedTopicError, match="subscribed to topic t which doesn't exist") as failure:
        assign(one_topic(A=[]), {})

    assert failure.value.exception == "PartitionAssignorException"


def test_the_order_of_what_is_given_does_not_matter() -> None:
    """By ids, the answer is the same for members, subscriptions and targets in any order (rule A13)."""
    members = [
        SubscribedMember(member_id="A", topic_ids=["t", "u"], target={"u": [1, 0], "t": [2]}),
        SubscribedMember(member_id="B", topic_ids=["u", "t"]),
    ]
    turned = [
        SubscribedMember(member_id="B", topic_ids=["t", "u"]),
        SubscribedMember(member_id="A", topic_ids=["u", "t"], target={"t": [2], "u": [0, 1]}),
    ]

    assert assign(members, {"t": 3, "u": 3}) == assign(turned, {"u": 3, "t": 3})


def test_javas_order_numbers_members_by_their_hashes() -> None:
    """``m7`` comes before ``m13`` in a hash map of Java, whatever was put into it first (a recording shows it)."""
    members = [SubscribedMember(member_id=name) for name in ("m4", "m13", "m29", "m27", "m7")]
    orders = {order: assign(members, {}, order=order).numbering for order in AssignmentOrder}

    assert orders == {
        AssignmentOrder.SORTED: ("m13", "m27", "m29", "m4", "m7"),
        AssignmentOrder.JAVA: ("m27", "m29", "m4", "m7", "m13"),
        AssignmentOrder.GIVEN: ("m4", "m13", "m29", "m27", "m7"),
    }


def test_a_group_can_be_taken_as_heterogeneous() -> None:
    """Then each topic is shared out by itself, which gives A, the first member, one more of each."""
    members = [SubscribedMember(member_id=name, topic_ids=["t", "u"]) for name in "AB"]

    apart = assigned(members, {"t": 1, "u": 1}, subscription_type=SubscriptionType.HETEROGENEOUS)
    together = assigned(members, {"t": 1, "u": 1})

    assert apart == {"A": {"t": [0], "u": [0]}, "B": {"t": [0], "u": [0]}}
    assert together == {"A": {"t": [0]}, "B": {"u": [0]}}


ONE = SubscribedMember(member_id="A")


@pytest.mark.parametrize(
    ("arguments", "options", "field"),
    [
        ((5, {}), {}, "members"),
        (([ONE, "B"], {}), {}, "members[1]"),
        (([ONE, ONE], {}), {}, "members[1].member_id"),
        (([SubscribedMember(member_id=b"A")], {}), {}, "members[0].member_id"),  # type: ignore[arg-type]
        (([SubscribedMember(member_id="A", topic_ids=[7])], {}), {}, "members[0].topic_ids[0]"),  # type: ignore[list-item]
        (([SubscribedMember(member_id="A", topic_ids="orders")], {}), {}, "members[0].topic_ids"),
        (([SubscribedMember(member_id="A", topic_ids=7)], {}), {}, "members[0].topic_ids"),  # type: ignore[arg-type]
        (([SubscribedMember(member_id="A", target={"t": [-1]})], {}), {}, "members[0].target['t']"),
        (([SubscribedMember(member_id="A", target={"t": 1})], {}), {}, "members[0].target['t']"),  # type: ignore[dict-item]
        (([SubscribedMember(member_id="A", target=["t"])], {}), {}, "members[0].target"),  # type: ignore[arg-type]
        (([ONE], None), {}, "topics"),
        (([ONE], {}), {"subscription_type": "homogeneous"}, "subscription_type"),
        (([ONE], {"t": -1}), {}, "topics['t']"),
        (([ONE], {"t": 2**31}), {}, "topics['t']"),
        (([ONE], {"t": 1}, {"t": [2**31]}), {}, "initialized['t']"),
        (([ONE], {}), {"order": "java"}, "order"),
        (([ONE], {"t": 1}), {"order": AssignmentOrder.JAVA}, "topics"),
        (([SubscribedMember(member_id="A", target={"t": []})], {}), {"order": AssignmentOrder.GIVEN}, "topics"),
    ],
)
def test_a_wrong_argument_is_refused(arguments: Any, options: Any, field: str) -> None:  # noqa: ANN401 - wrong ones
    """With the path of what is wrong."""
    with pytest.raises(MalformedInputError) as refusal:
        assign(*arguments, **options)

    assert refusal.value.field == field
