"""What is true of every target assignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from sharestate.broker.groups import (
    AssignmentOrder,
    NoUnfilledMemberError,
    SubscribedMember,
    TargetAssignment,
    assign,
)

TOPICS = ("AAECAwQFBgcICQoLDA0ODw", "-_-_-_-_-_-_-_-_-_-_-A", "IoNTqcc65nJltKVVhKBPPQ")

orders = st.sampled_from(AssignmentOrder)
counts = st.fixed_dictionaries({topic: st.integers(0, 9) for topic in TOPICS})
ids = st.sampled_from([f"m{number}" for number in range(12)] + ["AaAa", "BBBB", "AaBB", "BBAa"])
targets = st.dictionaries(st.sampled_from(TOPICS), st.lists(st.integers(0, 10), max_size=6), max_size=3)
members_of_groups = st.lists(
    st.builds(
        lambda member_id, topics, target: SubscribedMember(member_id=member_id, topic_ids=topics, target=target),
        ids,
        st.lists(st.sampled_from(TOPICS), unique=True, max_size=3),
        targets,
    ),
    max_size=12,
    unique_by=lambda member: member.member_id,
)
newcomers = st.lists(st.tuples(ids, st.lists(st.sampled_from(TOPICS), unique=True, min_size=1)), max_size=12)


def flat(target: TargetAssignment) -> Counter[tuple[str, int]]:
    """Return how many members each partition has."""
    return Counter(
        (topic, number)
        for partitions in target.members.values()
        for topic, numbers in partitions.items()
        for number in numbers
    )


def after(members: Sequence[SubscribedMember], target: TargetAssignment) -> list[SubscribedMember]:
    """Return *members* with the target that was made for them."""
    return [
        SubscribedMember(
            member_id=member.member_id,
            topic_ids=member.topic_ids,
            target=target.members.get(member.member_id, {}),
        )
        for member in members
    ]


def made(
    members: Sequence[SubscribedMember], topics: dict[str, int], order: AssignmentOrder
) -> TargetAssignment | None:
    """Return the target assignment, or None where Kafka's assignor fails, too (rule A11)."""
    try:
        return assign(members, topics, order=order)
    except NoUnfilledMemberError:
        return None


@given(members=members_of_groups, topics=counts, order=orders)
def test_nobody_has_more_than_the_rules_allow(
    members: list[SubscribedMember], topics: dict[str, int], order: AssignmentOrder
) -> None:
    """
    Nobody has more than the capacity in a pool, and no partition more members than its sharing (rules A4, A6, A7).

    Capacities differ by one at most, and add up to what the partitions should have together.
    """
    target = made(members, topics, order)
    if target is None:
        return
    partitions = flat(target)
    for share in target.shares:
        held = {
            member: [each for topic in share.topic_ids for each in target.members[member].get(topic, ())]
            for member in target.members
        }

        assert sum(share.capacities.values()) == share.sharing * len(share.partitions)
        assert max(share.capacities.values()) - min(share.capacities.values()) <= 1
        assert all(len(each) <= share.capacities.get(member, 0) for member, each in held.items())
        assert all(count <= share.sharing for (topic, _), count in partitions.items() if topic in share.topic_ids)


@given(newcomers=newcomers, topics=counts, order=orders)
def test_a_group_that_begins_has_what_it_subscribes_to_and_shares_all_of_it(
    newcomers: list[tuple[str, list[str]]], topics: dict[str, int], order: AssignmentOrder
) -> None:
    """Without a previous target, each has partitions of subscribed topics only, and all of these go to somebody."""
    members = [SubscribedMember(member_id=name, topic_ids=chosen) for name, chosen in dict(newcomers).items()]
    target = assign(members, topics, order=order)
    wanted = {(topic, number) for member in members for topic in member.topic_ids for number in range(topics[topic])}
    subscribed = {member.member_id: member.topic_ids for member in members}

    assert set(flat(target)) == wanted
    assert all(set(each) <= set(subscribed[member]) for member, each in target.members.items())


@given(
    newcomers=newcomers,
    topics=counts,
    initialized=st.dictionaries(st.sampled_from(TOPICS), st.sets(st.integers(0, 12))),
    order=orders,
)
def test_only_initialized_partitions_are_given_out(
    newcomers: list[tuple[str, list[str]]],
    topics: dict[str, int],
    initialized: dict[str, set[int]],
    order: AssignmentOrder,
) -> None:
    """Nobody gets a partition that is not initialized, or not there (rule A1)."""
    members = [SubscribedMember(member_id=name, topic_ids=chosen) for name, chosen in dict(newcomers).items()]

    given_out = flat(assign(members, topics, initialized, order=order))

    assert all(number in initialized.get(topic, ()) and number < topics[topic] for topic, number in given_out)


@given(newcomers=newcomers, topics=counts, order=orders)
def test_a_full_group_stays_as_it_is(
    newcomers: list[tuple[str, list[str]]], topics: dict[str, int], order: AssignmentOrder
) -> None:
    """Asked again with the target that was made, and nothing else changed, the assignor moves nothing."""
    members = [SubscribedMember(member_id=name, topic_ids=chosen) for name, chosen in dict(newcomers).items()]
    first = assign(members, topics, order=order)
    is_full = all(
        sum(topic in share.topic_ids for topic, numbers in first.members[member].items() for _ in numbers) == capacity
        for share in first.shares
        for member, capacity in share.capacities.items()
    )

    again = assign(after(members, first), topics, order=order)

    assert again.members == first.members or not is_full


@given(members=members_of_groups, topics=counts)
def test_the_default_order_is_that_of_ids(members: list[SubscribedMember], topics: dict[str, int]) -> None:
    """In whatever order members and their targets are given, the same comes out."""
    turned = [
        SubscribedMember(
            member_id=member.member_id,
            topic_ids=member.topic_ids[::-1],
            target={topic: numbers[::-1] for topic, numbers in reversed(list(member.target.items()))},
        )
        for member in reversed(members)
    ]

    assert made(turned, topics, AssignmentOrder.SORTED) == made(members, topics, AssignmentOrder.SORTED)
