"""Scenes of members: heartbeats, share sessions, fetches of every kind, and acknowledgements that may be wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from sharestate.testing.servers import ACCEPT, GAP, REJECT, RELEASE, RENEW
from tests.lockstep import producing
from tests.lockstep.drawing import Draw
from tests.lockstep.steps import How, Step
from tests.lockstep.wire import Fields
from tests.lockstep.world import FINAL_EPOCH, KnownMember, Part

Acknowledgement: TypeAlias = tuple[int, int, tuple[int, ...]]
"""First offset, last offset, and a type for all of them or one for each."""

Acknowledged: TypeAlias = Mapping[Part, Sequence[Acknowledgement]]

JOIN: Final = 0
LEAVE: Final = -1

FIRST_WAIT_MS: Final = 300
"""How long the first fetch of a share partition waits, whose state has to be read before. [ms]"""

LONG_WAIT_MS: Final = 1200
"""How long a fetch waits that something else ends: as long as steps are taken in a round. [ms]"""

ASYNC_MS: Final = 150
"""What a broker may take for what it does behind its answer: releasing, assigning. [ms]"""

ALL_BYTES: Final = 2**31 - 1
"""No limit. Of several partitions it is open which comes first, so that there is something left for it. [bytes]"""

ALL_RECORDS: Final = 10_000
"""No limit: more records than a script writes. [records]"""

LONGEST_RANGE: Final = 20
"""How many offsets wrong acknowledgements are about at most."""


def heartbeat(  # noqa: PLR0913 - the fields of the request
    draw: Draw,
    member: KnownMember,
    epoch: int,
    topics: Iterable[str] | None = None,
    *,
    until: str = "",
    settle_ms: int = 0,
) -> Step:
    """Return a heartbeat of a member."""
    request = {
        "group_id": member.group,
        "member_id": member.member_id,
        "member_epoch": epoch,
        "rack_id": None,
        "subscribed_topic_names": None if topics is None else list(topics),
    }
    return draw.step(member.member_id, "share_group_heartbeat", 1, request, until=until, settle_ms=settle_ms)


def beat(draw: Draw) -> Iterator[Step]:
    """
    Yield a heartbeat of a member that has joined, rarely with an epoch that it does not have.

    The first one after a topic has grown has the state of its new partitions initialized behind the answer, and the
    next one assigns them if that is done by then.
    """
    member = draw.member()
    if member.epoch:
        wrong = draw.happens(0.12)
        epoch = draw.one((member.epoch - 1, member.epoch - 2, member.epoch + 1, 999)) if wrong else member.epoch
        yield heartbeat(draw, member, max(1, epoch), settle_ms=ASYNC_MS)


def beat_all(draw: Draw) -> Iterator[Step]:
    """Yield a heartbeat of each member."""
    for member in draw.world.members.values():
        yield heartbeat(draw, member, member.epoch)


def join_or_leave(draw: Draw) -> Iterator[Step]:
    """Yield what changes the members of a group: one joins, leaves, or subscribes to something else."""
    topics = sorted(topic.name for topic in draw.topics())
    member = draw.member()
    if not member.epoch:
        yield heartbeat(draw, member, JOIN, topics, settle_ms=ASYNC_MS)
    elif draw.happens(0.4):
        yield heartbeat(draw, member, LEAVE, settle_ms=ASYNC_MS)
    elif draw.happens(0.5):
        chosen = sorted(draw.rnd.sample(topics, draw.rnd.randint(1, len(topics))))
        yield heartbeat(draw, member, member.epoch, chosen, settle_ms=ASYNC_MS)
    else:
        number = draw.next_number()
        new = KnownMember(member.group, f"{member.group}-{number}")
        if sum(each.group == member.group for each in draw.world.members.values()) < 4:
            draw.world.members[new.member_id] = new
            yield heartbeat(draw, new, JOIN, topics, settle_ms=ASYNC_MS)


def hang_up(draw: Draw) -> Iterator[Step]:
    """Yield the end of a member's connection, which releases what it holds."""
    yield draw.step(draw.member().member_id, "", 0, {}, how=How.HANG_UP, settle_ms=ASYNC_MS)


def forget_some(draw: Draw) -> None:
    """Let some members forget what they hold, as a round has begun and locks may have ended."""
    for member in draw.world.members.values():
        if draw.happens(0.5):
            member.held.clear()


# ---- fetches


def fetch(draw: Draw) -> Iterator[Step]:
    """Yield a ShareFetch: mostly what a client would send, with limits of every size and what it acknowledges."""
    member = draw.member()
    if member.session and draw.happens(0.06):
        yield from _renewing_fetch(draw, member)
        return
    listed, wait_ms = _to_list(draw, member)
    begins = any(is_cold(draw, member, part) for part in listed)
    max_wait_ms = wait_ms or draw.one((0, 0, 10, 30))
    given = _some(draw, member) if not begins and draw.happens(0.4) else {}
    if not max_wait_ms or len(given) > 1:
        given = _without_releases(given)
    forgotten = [
        part
        for part in member.listed
        if part not in given and part not in listed and (begins or draw.happens(0.06) or is_cold(draw, member, part))
    ]
    alone = len({*member.listed, *listed} - {*forgotten}) == 1
    limits = {
        "max_wait": max_wait_ms,
        "min_bytes": draw.one((0, 1, 1, 1, 1, 2000)),
        "max_bytes": draw.one((300, 3000, 100_000, ALL_BYTES, ALL_BYTES)) if alone else ALL_BYTES,
        "max_records": draw.one((1, 3, 7, 10, 25, 60, 500)) if alone else ALL_RECORDS,
        "batch_size": draw.one((1, 5, 10, 50, 500)),
    }
    yield _fetch(draw, member, _epoch(draw, member), listed, given, limits, forgotten=forgotten)


def begin(draw: Draw, member: KnownMember) -> Iterator[Step]:
    """Yield a session that is closed as soon as it has acquired something, so that its partition has a start offset."""
    limits = {"max_wait": FIRST_WAIT_MS, "min_bytes": 1, "max_bytes": 300, "max_records": 1, "batch_size": 1}
    nothing = {"max_wait": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0, "batch_size": 1}
    yield _fetch(draw, member, 0, draw.parts()[:1], {}, limits)
    yield _fetch(draw, member, FINAL_EPOCH, [], {}, nothing)


def wait_for_records(draw: Draw) -> Iterator[Step]:
    """Yield a fetch that waits for what others do, unless there is something for it at once."""
    member = draw.member()
    if not member.session or any(is_cold(draw, member, part) for part in member.listed):
        return
    if member.listed and not any(each.waits for each in draw.world.members.values()):
        limits = {
            "max_wait": LONG_WAIT_MS,
            "min_bytes": 1,
            "max_bytes": 2**31 - 1,
            "max_records": 500,
            "batch_size": 500,
        }
        yield _fetch(draw, member, member.session, [], {}, limits, how=How.SEND)


def wake(draw: Draw) -> Iterator[Step]:
    """Yield records for the partitions of those whose fetches wait."""
    for member in draw.world.members.values():
        if member.waits:
            for part in member.listed[:3]:
                if part in draw.parts():
                    yield producing.one_batch(draw, part)


def receive(draw: Draw) -> Iterator[Step]:
    """Yield the steps in which the answers come to fetches that wait."""
    for member in draw.world.members.values():
        if member.waits:
            sent = {"share_session_epoch": member.session, "topics": [], "forgotten_topics_data": []}
            yield draw.step(member.member_id, "share_fetch", 2, sent, how=How.RECEIVE)


def _renewing_fetch(draw: Draw, member: KnownMember) -> Iterator[Step]:
    """Yield a fetch that renews locks, which may ask for no records; some do nevertheless."""
    nothing = {"max_wait": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0, "batch_size": 500}
    limits = nothing if draw.happens(0.85) else nothing | {"max_records": 5}
    yield _fetch(draw, member, member.session, [], _renewed(draw, member), limits, renews=True)


def _to_list(draw: Draw, member: KnownMember) -> tuple[list[Part], int]:
    """Return partitions to add to the session, and how long to wait, if that matters; 0 if it does not."""
    known = [part for part in draw.parts() if part not in member.listed]
    cold = [part for part in known if is_cold(draw, member, part)]
    if cold and (not member.session or draw.happens(0.25)):
        return [draw.one(cold)], FIRST_WAIT_MS
    warm = [part for part in known if part not in cold]
    if warm and (not member.session or draw.happens(0.15)):
        return draw.rnd.sample(warm, draw.rnd.randint(1, min(3, len(warm)))), 0
    if draw.happens(0.02):
        return [Part("nowhere-7", 0)], 0
    return [], 0


def is_cold(draw: Draw, member: KnownMember, part: Part) -> bool:
    """
    Return whether a group has got nothing of a partition yet.

    A broker reads the state of such a partition meanwhile: whether it is in the answer is open, unless it is alone.
    """
    return (member.group, part) not in draw.world.warm


def _without_releases(given: Acknowledged) -> Acknowledged:
    """
    Leave out what is released: whether a fetch that waits for nothing gets it again is open, if nothing else is free.

    A broker fetches while it writes acknowledgements, and looks again at the end of the wait; or when those of one
    partition are written, and whether those of the others are by then is open as well.
    """
    kept = {part: [each for each in batches if RELEASE not in each[2]] for part, batches in given.items()}
    return {part: batches for part, batches in kept.items() if batches}


def _epoch(draw: Draw, member: KnownMember) -> int:
    """Return the epoch that the session expects, rarely another one."""
    if draw.happens(0.05):
        return draw.one((0, FINAL_EPOCH, member.session + 1, max(1, member.session - 1), 99))
    return member.session


def _fetch(  # noqa: PLR0913 - the fields of the request
    draw: Draw,
    member: KnownMember,
    epoch: int,
    listed: Iterable[Part],
    given: Acknowledged,
    limits: Fields,
    *,
    forgotten: Iterable[Part] = (),
    renews: bool = False,
    how: How = How.ASK,
) -> Step:
    asked = {part: given.get(part, ()) for part in dict.fromkeys([*listed, *given])}
    request = {
        "group_id": member.group,
        "member_id": member.member_id,
        "share_session_epoch": epoch,
        **limits,
        "topics": _topics(asked),
        "forgotten_topics_data": [
            {"topic_id": topic, "partitions": indices} for topic, indices in _by_topic(forgotten).items()
        ],
    }
    version = 2 if renews or how is not How.ASK or draw.happens(0.9) else 1
    if version > 1:
        request |= {"share_acquire_mode": draw.one((0, 0, 1)), "is_renew_ack": renews}
    return draw.step(member.member_id, "share_fetch", version, request, how=how)


# ---- acknowledgements


def acknowledge(draw: Draw) -> Iterator[Step]:
    """Yield a ShareAcknowledge of something that a member holds."""
    member = draw.member()
    if not member.session:
        return
    if draw.happens(0.12):
        yield _acknowledge(draw, member, member.session, _renewed(draw, member), renews=draw.happens(0.9))
    elif given := _some(draw, member):
        yield _acknowledge(draw, member, _epoch(draw, member), given)


def acknowledge_anything(draw: Draw) -> Iterator[Step]:
    """Yield a ShareAcknowledge of what a member may not hold, in a way that may be wrong."""
    member = draw.member()
    if not member.listed:
        return
    part = draw.one(member.listed)
    end = draw.world.topics[part.topic].ends.get(part.number, 0) if part.topic in draw.world.topics else 0
    first = draw.rnd.randrange(end + 5)
    if (held := member.held.get(part)) and draw.happens(0.6):
        first = max(0, draw.one(held)[0] + draw.rnd.randint(-6, 6))
    last = first + draw.one((-1, 0, 0, 1, 3, LONGEST_RANGE))
    types = draw.one(((ACCEPT,), (RELEASE,), (REJECT,), (GAP,), (RENEW,), (ACCEPT, RELEASE), (7,), (-1,), ()))
    given: list[Acknowledgement] = [(first, max(last, 0), types)]
    if draw.happens(0.2):
        given.append((first, first, (ACCEPT,)))
    yield _acknowledge(draw, member, member.session, {part: given}, renews=draw.happens(0.2))


def close_session(draw: Draw) -> Iterator[Step]:
    """Yield the end of a session, by a ShareAcknowledge or a ShareFetch, with or without acknowledgements."""
    member = draw.member()
    given = _some(draw, member) if draw.happens(0.5) else {}
    if draw.happens(0.5):
        yield _acknowledge(draw, member, FINAL_EPOCH, given)
        return
    nothing = {"max_wait": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0, "batch_size": 500}
    yield _fetch(draw, member, FINAL_EPOCH, [], given, nothing)


def _acknowledge(draw: Draw, member: KnownMember, epoch: int, given: Acknowledged, *, renews: bool = False) -> Step:
    request = {
        "group_id": member.group,
        "member_id": member.member_id,
        "share_session_epoch": epoch,
        "topics": _topics(given),
    }
    version = 2 if renews or draw.happens(0.9) else 1
    if version > 1:
        request["is_renew_ack"] = renews
    return draw.step(member.member_id, "share_acknowledge", version, request)


def _renewed(draw: Draw, member: KnownMember) -> Acknowledged:
    """Return acknowledgements that renew what a member holds."""
    return {
        part: [(first, last, (RENEW,)) for first, last in sorted(held)]
        for part, held in member.held.items()
        if held and draw.happens(0.8)
    }


def _some(draw: Draw, member: KnownMember) -> Acknowledged:
    """Take some of what a member holds, and decide what becomes of it."""
    given: dict[Part, list[Acknowledgement]] = {}
    for part, held in member.held.items():
        keep: list[tuple[int, int]] = []
        if batches := [batch for span in sorted(held) for batch in _decide(draw, *span, keep)]:
            given[part] = batches
        member.held[part] = keep
    return given


def _decide(draw: Draw, first: int, last: int, keep: list[tuple[int, int]]) -> list[Acknowledgement]:
    """Return what becomes of a range, and *keep* what is left of it."""
    how = draw.rnd.random()
    if how < 0.2:
        keep.append((first, last))
        return []
    if how < 0.5:
        return [(first, last, (draw.one((ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT)),))]
    if how < 0.75:
        types = draw.rnd.choices((ACCEPT, RELEASE, REJECT, GAP), (6, 4, 2, 1), k=last - first + 1)
        return [(first, last, tuple(types))]
    cut = draw.rnd.randint(first, last)
    batches: list[Acknowledgement] = [(first, cut, (draw.one((ACCEPT, RELEASE)),))]
    if cut < last and draw.happens(0.5):
        batches.append((cut + 1, last, (draw.one((ACCEPT, RELEASE)),)))
    elif cut < last:
        keep.append((cut + 1, last))
    return batches


def _by_topic(parts: Iterable[Part]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in parts:
        topics.setdefault(topic, []).append(index)
    return topics


def _topics(given: Acknowledged) -> list[Fields]:
    """Return partitions and what of them is acknowledged, as both requests have them."""
    return [
        {
            "topic_id": topic,
            "partitions": [
                {
                    "partition_index": index,
                    "acknowledgement_batches": [
                        {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}
                        for first, last, types in given[Part(topic, index)]
                    ],
                }
                for index in indices
            ],
        }
        for topic, indices in _by_topic(given).items()
    ]
