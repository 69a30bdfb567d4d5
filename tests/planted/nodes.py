"""Bugs planted in a node: each takes the place of one function of its sessions, its fetches, its groups or its log."""

# ruff: noqa: ANN401, ARG001, PLR0913, SLF001 - a bug has the arguments of what it replaces, whatever their types are

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final
from unittest.mock import patch

from attrs import frozen

from sharestate.broker.groups import assignor
from sharestate.broker.node import share_fetch, transactions
from sharestate.broker.node.fetch_queue import WaitingFetches
from sharestate.broker.node.log_batches import OffsetOutOfRange
from sharestate.broker.node.log_service import LogService
from sharestate.broker.node.share_partitions import SharePartitions
from sharestate.broker.node.share_requests import NO_ERROR, ShareFetchPartition
from sharestate.broker.node.share_service import ShareService
from sharestate.broker.sessions import ShareSessionCache, contexts
from sharestate.broker.sessions.share_session import FINAL_EPOCH, ShareSession
from sharestate.values.fetched_records import IsolationLevel


@frozen
class NodeBug:
    """A function with a bug, and the place where it belongs."""

    what: str
    """What it does wrong."""

    owner: object
    """The class, or the module, of the function that it replaces."""

    name: str
    """The function's name there."""

    replacement: Callable[..., Any]
    """The function with the bug; it gets the one that it replaces first."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Plant it for a while."""
        original = getattr(self.owner, self.name)

        @wraps(original)
        def replacement(*args: Any, **named: Any) -> Any:
            return self.replacement(original, *args, **named)

        with patch.object(self.owner, self.name, replacement):
            yield


SEEN_BY_MEMBERS: Final[dict[str, NodeBug]] = {}
"""Those that members, producers and administrators notice."""

SEEN_IN_SESSIONS: Final[dict[str, NodeBug]] = {}
"""Those of sessions that nobody notices in one answer: who comes first."""

SEEN_IN_TARGETS: Final[dict[str, NodeBug]] = {}
"""Those of target assignments."""

Table = dict[str, NodeBug]


def planted(table: Table, owner: object, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a bug to a table, under its name."""

    def add(bug: Callable[..., Any]) -> Callable[..., Any]:
        table[bug.__name__.replace("_", " ")] = NodeBug(bug.__doc__ or "", owner, name, bug)
        return bug

    return add


# ---- sessions


@planted(SEEN_BY_MEMBERS, ShareSessionCache, "acknowledge")
def epoch_stays_after_an_acknowledgement(original: Any, self: Any, group_id: Any, member_id: Any, epoch: Any) -> None:
    """An acknowledgement leaves the session's epoch as it is."""
    session = self.sessions.get((group_id, member_id))
    before = session and session.epoch
    original(self, group_id, member_id, epoch)
    if session is not None:
        session.epoch = before


@planted(SEEN_BY_MEMBERS, ShareSessionCache, "new_context")
def epoch_stays_after_a_fetch(original: Any, self: Any, *args: Any, **named: Any) -> Any:
    """A fetch that goes on with a session leaves its epoch as it is."""
    context = original(self, *args, **named)
    if context.session is not None:
        context.session.epoch = context.epoch
    return context


@planted(SEEN_BY_MEMBERS, contexts, "_note_sent")
def new_partition_stays_new(original: Any, session: Any, known: Any, found: Any) -> None:
    """A partition that is new to a session is in each of its responses."""
    original(session, known, found)
    session.partitions[known].requires_update_in_response = True


@planted(SEEN_BY_MEMBERS, ShareSessionCache, "release")
def closed_session_releases_nothing(original: Any, self: Any, group_id: Any, member_id: Any) -> tuple[()]:
    """What a member holds goes on being locked when it closes its session."""
    original(self, group_id, member_id)
    return ()


@planted(SEEN_BY_MEMBERS, ShareSessionCache, "release")
def closed_session_releases_one_partition(original: Any, self: Any, group_id: Any, member_id: Any) -> Any:
    """Of the partitions of a session that is closed only the first one is released."""
    return original(self, group_id, member_id)[:1]


@planted(SEEN_BY_MEMBERS, ShareSessionCache, "disconnect")
def lost_connection_closes_the_next_session(original: Any, self: Any, connection_id: Any) -> Any:
    """The end of a connection closes the session that its member has opened on another one since."""
    remembered = self.connections.get(connection_id, {})
    remembered.update(dict.fromkeys(remembered, False))
    return original(self, connection_id)


@planted(SEEN_BY_MEMBERS, ShareSessionCache, "disconnect")
def lost_connection_releases_nothing(original: Any, self: Any, connection_id: Any) -> Any:
    """The end of a connection closes its session, and releases nothing."""
    return original(self, connection_id)._replace(closed={})


@planted(SEEN_BY_MEMBERS, ShareSessionCache, "disconnect")
def lost_connection_ends_the_group(original: Any, self: Any, connection_id: Any) -> Any:
    """The end of a connection drops the share partitions of a group that has other members."""
    groups = tuple(dict.fromkeys(key.group_id for key in self.connections.get(connection_id, ())))
    return original(self, connection_id)._replace(empty_groups=groups)


@planted(SEEN_BY_MEMBERS, ShareSession, "update")
def forgotten_partition_stays(original: Any, self: Any, listed: Any, forgotten: Any, *, renames: Any) -> None:
    """A partition that a request forgets stays in the session."""
    original(self, listed, (), renames=renames)


@planted(SEEN_BY_MEMBERS, ShareSession, "update")
def new_partition_does_not_join(original: Any, self: Any, listed: Any, forgotten: Any, *, renames: Any) -> None:
    """A partition that a request adds to a session is not fetched."""
    original(self, (), forgotten, renames=renames)


@planted(SEEN_IN_SESSIONS, contexts, "rotated")
def first_partition_stays_first(original: Any, partitions: Any, epoch: Any) -> Any:
    """Partitions are fetched in the same order at each epoch."""
    return tuple(partitions)


@planted(SEEN_IN_SESSIONS, ShareSession, "move_to_end")
def partition_with_records_keeps_its_place(original: Any, self: Any, known: Any) -> None:
    """A partition that has had records is not put behind the others."""


# ---- fetches


@planted(SEEN_BY_MEMBERS, share_fetch, "_acquired")
def each_partition_has_max_records(
    original: Any, asked: Any, partition: Any, led: Any, read: Any, max_records: Any, now_ms: Any
) -> Any:
    """Each partition of a fetch may have as many records as it asks for, not all together."""
    return original(asked, partition, led, read, asked.max_records, now_ms)


@planted(SEEN_BY_MEMBERS, share_fetch, "_acquired")
def out_of_range_passes_nothing(
    original: Any, asked: Any, partition: Any, led: Any, read: Any, max_records: Any, now_ms: Any
) -> Any:
    """A fetch that finds that the log begins later leaves it at that."""
    if isinstance(read, OffsetOutOfRange):
        return ShareFetchPartition(partition.topic_id, partition.partition)
    return original(asked, partition, led, read, max_records, now_ms)


@planted(SEEN_BY_MEMBERS, share_fetch, "_read")
def reads_what_is_not_committed(original: Any, asked: Any, places: Any, acquired_count: Any) -> Any:
    """Records are read whether their transaction is committed or not."""
    return original(asked._replace(isolation=IsolationLevel.READ_UNCOMMITTED), places, acquired_count)


@planted(SEEN_BY_MEMBERS, share_fetch, "sliced")
def first_batch_left_out(original: Any, batches: Any, acquired: Any) -> Any:
    """A response has all batches of what was acquired but the first one, if there are several."""
    found = original(batches, acquired)
    return found[1:] or found


@planted(SEEN_BY_MEMBERS, WaitingFetches, "add")
def waits_for_one_partition(original: Any, self: Any, number: Any, fetch: Any, *, deadline_ms: Any, keys: Any) -> None:
    """A fetch of several partitions waits for the first one of them."""
    original(self, number, fetch, deadline_ms=deadline_ms, keys=keys[:2])


@planted(SEEN_BY_MEMBERS, WaitingFetches, "next_deadline_ms")
def waits_for_ever(original: Any, self: Any) -> None:
    """A fetch that waits is not answered at its deadline."""


@planted(SEEN_BY_MEMBERS, LogService, "take_changes")
def append_wakes_nobody(original: Any, self: Any) -> tuple[()]:
    """Fetches that wait sleep on when a log grows."""
    original(self)
    return ()


@planted(SEEN_BY_MEMBERS, SharePartitions, "take_effects")
def release_wakes_nobody(original: Any, self: Any, led: Any, now_ms: Any) -> None:
    """Fetches that wait sleep on when records become available again."""
    before = dict(self.woken)
    original(self, led, now_ms)
    for key in self.woken.keys() - before.keys():
        del self.woken[key]


@planted(SEEN_BY_MEMBERS, SharePartitions, "next_deadline_ms")
def expiry_waits_for_a_request(original: Any, self: Any) -> None:
    """Locks expire only when something else happens to the share partition."""


@planted(SEEN_BY_MEMBERS, SharePartitions, "drop_log")
def leader_survives_a_failover(original: Any, self: Any, key: Any, now_ms: Any) -> None:
    """After a failover the leader goes on with what it knew."""


# ---- acknowledgements


@planted(SEEN_BY_MEMBERS, ShareService, "_acknowledge")
def acknowledgement_in_a_fetch_is_lost(original: Any, self: Any, unanswered: Any, plan: Any, now_ms: Any) -> None:
    """What a fetch acknowledges is answered, and not acknowledged."""
    if unanswered.context is None:
        original(self, unanswered, plan, now_ms)
    else:
        unanswered.outcomes.update(dict.fromkeys(plan.passed, NO_ERROR))


@planted(SEEN_BY_MEMBERS, ShareService, "_acknowledge")
def last_acknowledgement_is_lost(original: Any, self: Any, unanswered: Any, plan: Any, now_ms: Any) -> None:
    """What a request acknowledges that closes its session is answered, and not acknowledged."""
    if unanswered.request.share_session_epoch == FINAL_EPOCH:
        unanswered.outcomes.update(dict.fromkeys(plan.passed, NO_ERROR))
    else:
        original(self, unanswered, plan, now_ms)


@planted(SEEN_BY_MEMBERS, ShareService, "_fetch_response")
def refusal_in_a_fetch_is_silent(original: Any, self: Any, unanswered: Any, context: Any, timeout_ms: Any) -> Any:
    """A fetch whose acknowledgement is refused is answered as if it were not."""
    unanswered.outcomes = dict.fromkeys(unanswered.outcomes, NO_ERROR)
    return original(self, unanswered, context, timeout_ms)


# ---- transactions


@planted(SEEN_BY_MEMBERS, transactions.Transactions, "end")
def one_partition_gets_a_marker(original: Any, self: Any, *args: Any, **named: Any) -> Any:
    """The end of a transaction is written to one of its partitions."""
    answer = original(self, *args, **named)
    return (
        answer
        if answer.ended is None
        else answer._replace(ended=answer.ended._replace(partitions=answer.ended.partitions[:1]))
    )


# ---- target assignments


@planted(SEEN_IN_TARGETS, assignor, "_assignable")
def last_partition_has_nobody(original: Any, topic_id: Any, topics: Any, initialized: Any) -> Any:
    """The last partition of a topic goes to nobody."""
    return original(topic_id, topics, initialized)[:-1]


@planted(SEEN_IN_TARGETS, assignor, "_assignable")
def partition_that_is_not_initialized(original: Any, topic_id: Any, topics: Any, initialized: Any) -> Any:
    """Partitions are given out that are not initialized."""
    return original(topic_id, topics, None)


@planted(SEEN_IN_TARGETS, assignor._Group, "_subscribers")
def member_that_has_not_subscribed(original: Any, self: Any) -> Any:
    """Members get partitions of topics to which only others subscribe."""
    return {topic_id: [*range(len(self.members))] for topic_id in original(self)}


@planted(SEEN_IN_TARGETS, assignor._Pool, "_has_room")
def member_without_room(original: Any, self: Any, index: Any) -> bool:
    """A member gets more than its share."""
    return True


@planted(SEEN_IN_TARGETS, assignor._Pool, "_revoke_overfilled")
def member_keeps_too_much(original: Any, self: Any, iteration: Any) -> None:
    """A member keeps what it had before others joined."""


@planted(SEEN_IN_TARGETS, assignor._Pool, "_revoke_overshared")
def partition_keeps_its_members(original: Any, self: Any, iteration: Any) -> Any:
    """A partition keeps all members that it had, however many there should be."""
    holders: dict[Any, set[int]] = {}
    for index, held in self.held.items():
        for partition in held:
            holders.setdefault(partition, set()).add(index)
    return holders
