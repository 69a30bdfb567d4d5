"""
Changes to put into the library's group coordinator, to see that a search beside Kafka's notices each of them.

A change is a function that puts something wrong in the place of a rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from attrs import evolve

from sharestate.broker.groups import GroupCoordinator, coordinator, heartbeats, initialization, offset_alteration
from sharestate.broker.groups.record_order import RecordOrder
from sharestate.broker.groups.session_timers import SessionTimers
from sharestate.broker.groups.share_group import RefreshDeadline, ShareGroupMember
from sharestate.broker.groups.timeline_map import TimelineMap
from sharestate.broker.groups.topics import ClusterTopics
from sharestate.conversation.groups import conversation
from tests.planted.putting import Planted, adding_to, put

LATEST: Final = "4.4.0"

PLANTED: Final[dict[str, Planted]] = {}
"""The changes, by their names."""

planted = adding_to(PLANTED, LATEST)


def _change_profile(**rules: object) -> None:
    make = GroupCoordinator.__init__

    def made(self: GroupCoordinator, profile: Any, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - of any
        make(self, evolve(profile, **rules), *arguments, **options)

    put(GroupCoordinator, "__init__", made)


# ---- members


@planted
def the_previous_epoch_is_fenced() -> None:
    """A member that has missed a response cannot come with its epoch before."""
    admit = heartbeats._member  # noqa: SLF001 - what is planted

    def member(group: Any, request: Any) -> ShareGroupMember:  # noqa: ANN401 - of any
        known = group.members.values.get(request.member_id)
        if known is not None and 0 < request.member_epoch < known.epoch:
            request = evolve(request, member_epoch=known.epoch + 1)
        return admit(group, request)

    put(heartbeats, "_member", member)


@planted
def sessions_last_a_millisecond_longer() -> None:
    """A member's session ends after its timeout, not with it."""
    start = SessionTimers.start

    def started(self: SessionTimers, group_id: str, member_id: str, deadline_ms: int) -> None:
        start(self, group_id, member_id, deadline_ms + 1)

    put(SessionTimers, "start", started)


@planted
def the_last_member_leaves_the_target_behind() -> None:
    """The assignment epoch of an empty group stays as it was before 4.4 (R60)."""
    _change_profile(resets_assignment_when_empty=False)


# ---- groups


@planted
def nobody_waits_for_initialized_partitions() -> None:
    """Partitions that have been initialized do not raise the group epoch."""
    put(heartbeats, "_is_assignment_pending", lambda _state, _group: False)


@planted
def assignments_wait_longer() -> None:
    """The next assignment is made after the interval, not with its end."""
    may = heartbeats._may_assign  # noqa: SLF001 - what is planted
    put(heartbeats, "_may_assign", lambda state, group, now_ms: may(state, group, now_ms - 1))


@planted
def topics_are_looked_at_once() -> None:
    """A group that has looked at its topics does not look again when they change."""
    put(coordinator, "RefreshDeadline", lambda: RefreshDeadline(2**62, 0))


@planted
def a_topic_has_its_name_as_its_identity() -> None:
    """A topic that is made again under its name has the hash of the one before."""
    hashes: dict[str, int] = {}
    hash_of = ClusterTopics.hash_of

    def remembered(self: ClusterTopics, names: Iterable[str]) -> int:
        return hashes.setdefault(",".join(sorted(names)), hash_of(self, names))

    put(ClusterTopics, "hash_of", remembered)


# ---- state of share partitions


@planted
def added_partitions_start_by_the_reset_policy() -> None:
    """Partitions that are added to a known topic do not start at 0, as before 4.4 (R59)."""
    _change_profile(starts_added_partitions_at_zero=False)


@planted
def initializations_are_never_repeated() -> None:
    """What a persister has not answered is not asked again."""
    missing = initialization.missing_state
    put(heartbeats, "missing_state", lambda state, group_id, names, _now_ms: missing(state, group_id, names, 0))


@planted
def altered_offsets_have_the_next_epoch() -> None:
    """Offsets are altered with the group epoch that the next change will have."""
    plan = offset_alteration.plan_alteration

    def altered(state: Any, group_id: str, *arguments: Any) -> Any:  # noqa: ANN401 - of any
        group = state.find(group_id)
        if group is not None:
            group.epoch += 1
        try:
            return plan(state, group_id, *arguments)
        finally:
            if group is not None:
                group.epoch -= 1

    put(conversation, "plan_alteration", altered)


# ---- the order of records


@planted
def members_are_read_as_they_came() -> None:
    """Members are read in the order in which they have joined."""

    def in_order(self: TimelineMap[Any], added: str | None = None) -> list[str]:
        return list(dict.fromkeys([*self.values, *(() if added is None else (added,))]))

    put(TimelineMap, "in_order", in_order)


@planted
def topics_come_behind_one_another() -> None:
    """A topic that was looked for first goes behind others of its bin."""
    put(RecordOrder, "of_found_topics", RecordOrder.of_topics)
