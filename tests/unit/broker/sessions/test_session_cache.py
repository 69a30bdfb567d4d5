"""Sessions are opened, advanced and closed by the epochs of requests, connections, and the feature."""

from __future__ import annotations

import pytest

from sharestate import MalformedInputError
from sharestate.broker.sessions import (
    FINAL_EPOCH,
    REQUESTS,
    SESSION_PROFILES,
    SESSIONS_4_2,
    SESSIONS_4_3,
    SESSIONS_4_4,
    ContextKind,
    Rpc,
    SessionProfile,
    SessionQuirk,
    ShareSessionCache,
    ShareSessionKey,
    next_epoch,
)
from sharestate.errors import (
    DuplicatePartitionError,
    InvalidSessionRequestError,
    InvalidShareSessionEpochError,
    ShareSessionLimitReachedError,
    ShareSessionNotFoundError,
    ShareStateError,
)
from tests.support.session_data import opened, order, part

HEALED = SESSIONS_4_4.healed
M1 = ShareSessionKey("g", "m1")


def state(cache: ShareSessionCache) -> object:
    """Return all that a cache knows."""
    sessions = {key: (session.epoch, session.listed()) for key, session in cache.sessions.items()}
    connections = {connection: dict(keys) for connection, keys in cache.connections.items()}
    return sessions, dict(cache.members), connections, cache.partition_count


@pytest.mark.parametrize(
    ("epoch", "following"), [(0, 1), (1, 2), (2**31 - 2, 2**31 - 1), (2**31 - 1, 1), (-1, -1), (-7, -1)]
)
def test_epochs_follow_one_another(epoch: int, following: int) -> None:
    """After the largest one comes 1; negative ones stay -1 (ShareRequestMetadata.nextEpoch)."""
    assert next_epoch(epoch) == following


def test_every_request_has_a_row() -> None:
    """What becomes of a request is decided for both kinds of request and all kinds of epochs."""
    assert REQUESTS.keys() == {(rpc, kind) for rpc in Rpc for kind in ContextKind}


@pytest.mark.parametrize(
    ("rpc", "epoch", "has_session", "error"),
    [
        (Rpc.SHARE_FETCH, -1, False, ShareSessionNotFoundError),
        (Rpc.SHARE_FETCH, -1, True, None),
        (Rpc.SHARE_FETCH, 0, False, None),
        (Rpc.SHARE_FETCH, 0, True, None),
        (Rpc.SHARE_FETCH, 1, False, ShareSessionNotFoundError),
        (Rpc.SHARE_FETCH, 1, True, None),
        (Rpc.SHARE_FETCH, 2, True, InvalidShareSessionEpochError),
        (Rpc.SHARE_FETCH, -2, True, InvalidShareSessionEpochError),
        (Rpc.SHARE_FETCH, -2, False, ShareSessionNotFoundError),
        (Rpc.SHARE_ACKNOWLEDGE, -1, False, ShareSessionNotFoundError),
        (Rpc.SHARE_ACKNOWLEDGE, -1, True, None),
        (Rpc.SHARE_ACKNOWLEDGE, 0, False, InvalidShareSessionEpochError),
        (Rpc.SHARE_ACKNOWLEDGE, 0, True, InvalidShareSessionEpochError),
        (Rpc.SHARE_ACKNOWLEDGE, 1, False, ShareSessionNotFoundError),
        (Rpc.SHARE_ACKNOWLEDGE, 1, True, None),
        (Rpc.SHARE_ACKNOWLEDGE, 7, True, InvalidShareSessionEpochError),
    ],
)
def test_the_epoch_decides(rpc: Rpc, epoch: int, has_session: bool, error: type[ShareStateError] | None) -> None:  # noqa: FBT001 - a column
    """Each epoch is answered as Kafka does; a refused request has changed nothing."""
    cache = ShareSessionCache()
    if has_session:
        opened(cache, 0)
    before = state(cache)

    def ask() -> None:
        if rpc is Rpc.SHARE_FETCH:
            cache.new_context("g", "m1", epoch, [part(1)], connection_id="c1")
        else:
            cache.acknowledge("g", "m1", epoch)

    if error is None:
        ask()
        return
    with pytest.raises(error):
        ask()
    assert state(cache) == before


def test_a_session_expects_one_epoch_after_the_other() -> None:
    """Fetches and acknowledgements advance it; a closing request does not, and neither do refused ones."""
    cache = ShareSessionCache()
    opened(cache, 0)
    cache.new_context("g", "m1", 1, connection_id="c1")
    cache.acknowledge("g", "m1", 2)
    cache.acknowledge("g", "m1", FINAL_EPOCH)
    cache.new_context("g", "m1", FINAL_EPOCH, [part(5)], connection_id="c1")

    assert (cache.sessions[M1].epoch, order(cache)) == (3, [0])


def test_acknowledgements_open_no_session() -> None:
    """An opening request with acknowledgements is refused, and the session stays as it was."""
    cache = ShareSessionCache()
    opened(cache, 0)
    before = state(cache)

    with pytest.raises(InvalidSessionRequestError) as refusal:
        cache.new_context("g", "m1", 0, [part(1)], connection_id="c2", has_acknowledgements=True)

    assert (refusal.value.code, state(cache)) == (42, before)


def test_the_limit_only_refuses() -> None:
    """A full cache closes nothing; its refusal is due after the request's wait, and a member may reopen its own."""
    cache = ShareSessionCache(max_sessions=1)
    opened(cache, 0)
    before = state(cache)

    with pytest.raises(ShareSessionLimitReachedError) as refusal:
        cache.new_context("g", "m2", 0, [part(1)], connection_id="c2", now_ms=1_000, max_wait_ms=500)
    assert (refusal.value.code, refusal.value.due_ms, state(cache)) == (133, 1_500, before)

    opened(cache, 1, 2)
    assert (order(cache), cache.sessions[M1].epoch, cache.partition_count) == ([1, 2], 1, 2)


@pytest.mark.parametrize(
    ("profile", "error", "remaining"),
    [(SESSIONS_4_3, DuplicatePartitionError, []), (HEALED, InvalidSessionRequestError, [M1])],
)
def test_a_partition_that_is_listed_twice(
    profile: SessionProfile, error: type[ShareStateError], remaining: list[ShareSessionKey]
) -> None:
    """In Kafka the session that was there is gone after the error (S1); healed it stays."""
    cache = ShareSessionCache(profile=profile)
    opened(cache, 0)

    with pytest.raises(error):
        opened(cache, 1, 1)

    assert [*cache.sessions] == remaining
    assert cache.partition_count == len(remaining)


def test_listed_partitions_join_and_forgotten_ones_leave() -> None:
    """New ones come last and must be in the next response; what is listed and forgotten is gone in the end."""
    cache = ShareSessionCache()
    opened(cache, 0, 1, 2)

    cache.new_context("g", "m1", 1, map(part, (3, 1, 4)), connection_id="c1", forgotten=map(part, (0, 4, 9)))

    cached = cache.sessions[M1].partitions.values()
    assert order(cache) == [1, 2, 3]
    assert [each.requires_update_in_response for each in cached] == [False, False, True]
    assert cache.partition_count == 3


@pytest.mark.parametrize(("profile", "topic"), [(SESSIONS_4_4, None), (HEALED, "t")])
def test_an_unknown_topic_that_becomes_known(profile: SessionProfile, topic: str | None) -> None:
    """In Kafka a partition keeps the lack of a name while it is in the session (S2)."""
    cache = ShareSessionCache(profile=profile)
    cache.new_context("g", "m1", 0, [part(0, None)], connection_id="c1")

    cache.new_context("g", "m1", 1, [part(0, "t")], connection_id="c1")

    assert cache.sessions[M1].listed() == (part(0, topic),)


def test_a_release_returns_the_partitions() -> None:
    """The session is gone; its group has no member, but stays listed until a connection ends."""
    cache = ShareSessionCache()
    opened(cache, 0, 1)

    assert cache.release("g", "m1") == (part(0), part(1))
    assert state(cache) == ({}, {"g": 0}, {"c1": {M1: True}}, 0)
    with pytest.raises(ShareSessionNotFoundError):
        cache.release("g", "m1")


def test_a_disconnect_closes_the_session() -> None:
    """It releases the partitions, and says that the group is empty on this broker."""
    cache = ShareSessionCache()
    opened(cache, 0, 1)

    assert cache.disconnect("c1") == ({M1: (part(0), part(1))}, ("g",))
    assert state(cache) == ({}, {}, {}, 0)
    assert cache.disconnect("c1") == ({}, ())


def test_a_late_disconnect_spares_a_session_that_was_opened_again() -> None:
    """A session on another connection makes the entry of the first one stale."""
    cache = ShareSessionCache()
    opened(cache, 0)
    opened(cache, 0, connection="c2")

    assert cache.disconnect("c1") == ({}, ())
    assert [*cache.sessions] == [M1]


def test_a_disconnect_after_a_release_finds_the_group_empty() -> None:
    """Closing alone does not say it; the end of the connection does, and once."""
    cache = ShareSessionCache()
    opened(cache, 0)
    cache.release("g", "m1")

    assert cache.disconnect("c1") == ({}, ("g",))
    assert cache.members == {}


@pytest.mark.parametrize(("profile", "left"), [(SESSIONS_4_4, ["m1"]), (HEALED, [])])
def test_a_connection_of_two_sessions(profile: SessionProfile, left: list[str]) -> None:
    """In Kafka a connection knows the session opened last, so the other one outlives it (S3)."""
    cache = ShareSessionCache(profile=profile)
    opened(cache, 0)
    opened(cache, 1, member="m2")

    cache.disconnect("c1")

    assert [member for _, member in cache.sessions] == left


@pytest.mark.parametrize(("profile", "left"), [(SESSIONS_4_4, ["m2"]), (HEALED, [])])
def test_a_session_that_closes_on_a_shared_connection(profile: SessionProfile, left: list[str]) -> None:
    """In Kafka it makes the entry stale that another session has by now, which outlives the connection (S3)."""
    cache = ShareSessionCache(profile=profile)
    opened(cache, 0)
    opened(cache, 1, member="m2")
    cache.release("g", "m1")

    cache.disconnect("c1")

    assert [member for _, member in cache.sessions] == left


@pytest.mark.parametrize(("profile", "left"), [(SESSIONS_4_4, []), (HEALED, [M1])])
def test_connections_from_before_the_feature_was_off(profile: SessionProfile, left: list[ShareSessionKey]) -> None:
    """In Kafka their end closes what was opened since on another connection (S4)."""
    cache = ShareSessionCache(profile=profile)
    opened(cache, 0)
    cache.disable()
    assert (cache.sessions, cache.members, cache.partition_count) == ({}, {}, 0)
    opened(cache, 0, connection="c2")

    cache.disconnect("c1")

    assert [*cache.sessions] == left


def test_profiles_are_those_of_leaders() -> None:
    """Each profile of a leader has one of sessions, with Kafka's bugs only if it is a release."""
    assert SESSION_PROFILES["kafka-4.4"] is SESSIONS_4_4
    assert {name for name, profile in SESSION_PROFILES.items() if profile.quirks} == {
        "kafka-4.2",
        "kafka-4.3",
        "kafka-4.4",
        "kafka-trunk",
    }
    assert SESSIONS_4_2.quirks == SESSIONS_4_3.quirks == frozenset(SessionQuirk)
    assert SESSIONS_4_3.quirks - SESSIONS_4_4.quirks == {SessionQuirk.FAILS_FOR_UNKNOWN_TOPICS}
    assert SESSION_PROFILES["kafka-4.4-healed"] == HEALED
    assert (repr(SESSIONS_4_4), repr(HEALED)) == (
        "SESSIONS_4_4",
        "SessionProfile(name='kafka-4.4-healed', quirks=frozenset())",
    )


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"group_id": None}, "group_id"),
        ({"member_id": b"m"}, "member_id"),
        ({"epoch": 2**31}, "epoch"),
        ({"epoch": True}, "epoch"),
        ({"partitions": [("t", 0, None)]}, "partitions[0]"),
        ({"partitions": part(0)}, "partitions"),
        ({"partitions": [part(0), part(2**31)]}, "partitions[1].partition"),
        ({"partitions": [part(0, topic_id=7)]}, "partitions[0].topic_id"),  # type: ignore[arg-type]
        ({"partitions": [part(0, 7)]}, "partitions[0].topic"),  # type: ignore[arg-type]
        ({"forgotten": None}, "forgotten"),
        ({"connection_id": None}, "connection_id"),
        ({"has_acknowledgements": 1}, "has_acknowledgements"),
        ({"now_ms": -1}, "now_ms"),
        ({"max_wait_ms": -1}, "max_wait_ms"),
    ],
)
def test_arguments_that_are_no_request(arguments: dict[str, object], field: str) -> None:
    """They are refused by name, and nothing is changed."""
    cache = ShareSessionCache()
    opened(cache, 0)
    before = state(cache)
    request = {"group_id": "g", "member_id": "m1", "epoch": 1, "connection_id": "c1", **arguments}

    with pytest.raises(MalformedInputError) as refusal:
        cache.new_context(**request)  # type: ignore[arg-type]

    assert (refusal.value.field, state(cache)) == (field, before)


@pytest.mark.parametrize(("arguments", "field"), [((0,), "max_sessions"), ((1, "kafka-4.4"), "profile")])
def test_arguments_that_make_no_cache(arguments: tuple[object, ...], field: str) -> None:
    """A broker has room for a session at least, and a profile is no name."""
    with pytest.raises(MalformedInputError) as refusal:
        ShareSessionCache(*arguments)  # type: ignore[arg-type]

    assert refusal.value.field == field
