"""Steps of a broker's life: leadership, config, time, log, fetches, acknowledgements and the persister's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sharestate.testing.generator import dead_letters
from sharestate.testing.generator.surroundings import batch_to_json
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.fetched_records import IsolationLevel
from sharestate.values.records import AcquireMode, RecordState

if TYPE_CHECKING:
    from sharestate.testing.generator.randomness import Choices
    from sharestate.testing.generator.surroundings import Holding, Response, Steps, Surroundings
    from sharestate.values.records import RecordBatch

RECORD_LOCKS: Final = (200, 20, 10, 5, 100)
"""Values of ``max_record_locks``: small enough to be reached. [records]"""

DELIVERY_LIMITS: Final = (5, 2, 3, 4, 10)
"""Values of ``delivery_count_limit``. [deliveries]"""

LOCK_DURATIONS_MS: Final = (1000, 100, 30_000)
"""Values of ``record_lock_duration_ms``. [ms]"""

OFFSET_RESETS: Final = ("latest", "earliest", "by_duration:PT1H")
"""Values of ``auto_offset_reset``."""

FARTHEST: Final = 1_000
"""How far beyond the end of the log a peer's next fetch offset makes it grow: one that is wrong may be anything."""

MOST_TRIES: Final = 3
"""The most attempts at an initialization."""

LIMITS: Final = (500, 1, 2, 3, 5, 8, 13, 30)
"""Values of ``max_records`` and ``batch_size``. [records]"""

TYPES: Final = {
    AcknowledgeType.ACCEPT: 45,
    AcknowledgeType.RELEASE: 28,
    AcknowledgeType.REJECT: 9,
    AcknowledgeType.RENEW: 12,
    AcknowledgeType.GAP: 6,
}
"""The frequency of each acknowledgement type. [weight]"""

MOST_ENTRIES: Final = 4
"""The most ranges that one request acknowledges."""

ERRORS: Final = (
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "GROUP_ID_NOT_FOUND",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "FENCED_STATE_EPOCH",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_SERVER_ERROR",
    "SASL_AUTHENTICATION_FAILED",
    "REQUEST_TIMED_OUT",
    "NETWORK_EXCEPTION",
)
"""Error codes of a share coordinator, or of the way to it."""

EXCEPTIONS: Final = (
    "java.lang.IllegalStateException",
    "org.apache.kafka.common.errors.CoordinatorNotAvailableException",
    "org.apache.kafka.common.errors.TimeoutException",
)
"""Exceptions of a persister's future."""

PERSISTED_STATES: Final = (2, 0, 4)
"""The record states that a coordinator stores: acknowledged, available, archived."""

MOST_PERSISTED: Final = 6
"""The most state batches of a made-up state."""


# ---- leadership and config


def take_over(surroundings: Surroundings) -> Steps[None]:
    """Open the share partition as a new leader, again if its initialization failed."""
    for _ in range(MOST_TRIES):
        yield from open_new(surroundings)
        yield from initialize(surroundings)
        if surroundings.is_active:
            return


def open_new(surroundings: Surroundings, **fields: Any) -> Steps[None]:  # noqa: ANN401 - the fields of a request are JSON
    """Open the share partition with the next leader epoch."""
    surroundings.reset()
    surroundings.leader_epoch += 1
    surroundings.opened_with = config(surroundings)
    surroundings.lock_duration_ms = surroundings.opened_with["record_lock_duration_ms"]
    yield from surroundings.ask(
        "open", leader_epoch=surroundings.leader_epoch, config=surroundings.opened_with, timer="fifo", **fields
    )


def initialize(surroundings: Surroundings) -> Steps[None]:
    """Read the persisted state; a read that is held is answered at the end."""
    choices = surroundings.choices
    fields = read_answer(surroundings)
    if "lookup" in fields and choices.chance(60):
        reset = choices.one_of(OFFSET_RESETS)
        yield from surroundings.ask("configure", config={"auto_offset_reset": reset})
    yield from surroundings.ask("initialize", **fields, **answers_to_resumed(surroundings))
    if surroundings.is_read_held:
        if choices.chance(30):
            yield from pass_time(surroundings)
        if choices.chance(10):
            yield from surroundings.ask("fence")
        yield from complete_read(surroundings)


def fence(surroundings: Surroundings) -> Steps[None]:
    """Fence the share partition; its pending writes may still be answered."""
    yield from surroundings.ask("fence")
    surroundings.is_active = False


def config(surroundings: Surroundings) -> dict[str, Any]:
    """Return the config with which a share partition is opened."""
    choices = surroundings.choices
    return {
        "max_record_locks": choices.one_of(RECORD_LOCKS),
        "delivery_count_limit": choices.one_of(
            dead_letters.DELIVERY_LIMITS if surroundings.has_queue else DELIVERY_LIMITS
        ),
        "record_lock_duration_ms": choices.one_of(LOCK_DURATIONS_MS),
        **(dead_letters.settings(choices) if surroundings.has_queue else {}),
    }


def configure(surroundings: Surroundings) -> Steps[None]:
    """Change some of the group's settings, or remove them all."""
    choices = surroundings.choices
    settings: dict[str, Any] = {**config(surroundings), "renew_acknowledge_enable": choices.chance(60)}
    if choices.chance(30):
        settings["auto_offset_reset"] = choices.one_of(OFFSET_RESETS)
    chosen = {name: value for name, value in settings.items() if choices.chance(50)}
    yield from use_config(surroundings, None if choices.chance(10) else chosen)


def use_config(surroundings: Surroundings, chosen: dict[str, Any] | None) -> Steps[None]:
    """Set a group's config; a setting that it leaves out is as it was when the share partition was opened."""
    opened_with = surroundings.opened_with["record_lock_duration_ms"]
    surroundings.lock_duration_ms = (chosen or {}).get("record_lock_duration_ms", opened_with)
    yield from surroundings.ask("configure", config=chosen)


# ---- time


def pass_time(surroundings: Surroundings) -> Steps[None]:
    """Advance the clock: a little, up to the next deadline, just past it, or past all of them."""
    choices = surroundings.choices
    deadlines = [holding.deadline_ms - surroundings.now_ms for holding in surroundings.holdings]
    due = min((ms for ms in deadlines if ms >= 0), default=surroundings.lock_duration_ms)
    kind = choices.weighted({"little": 40, "past": 30, "to": 15, "far": 15})
    ms = {
        "little": choices.between(1, max(1, surroundings.lock_duration_ms // 4)),
        "past": due + 1,
        "to": due,
        "far": surroundings.lock_duration_ms + 1,
    }[kind]
    yield from advance(surroundings, ms)


def advance(surroundings: Surroundings, ms: int) -> Steps[None]:
    """Advance the clock by *ms* [ms]."""
    surroundings.now_ms += ms
    yield from surroundings.ask("advance", ms=ms, **write_answers(surroundings))
    surroundings.expire()


# ---- the log


def change_log(surroundings: Surroundings) -> Steps[None]:
    """Append to the log, compact it, or delete its beginning, which the share partition does not always learn."""
    choices, log = surroundings.choices, surroundings.log
    kind = choices.weighted({"append": 30, "compact": 30 if surroundings.mix.compaction else 0, "move_start": 40})
    if kind == "append":
        log.append()
    elif kind == "compact":
        log.compact()
    else:
        log.move_start(new_log_start(surroundings))
        if choices.chance(60):
            yield from surroundings.ask("log_start", offset=log.start)


def new_log_start(surroundings: Surroundings) -> int:
    """Return a new log start offset: near the old one, or within a range that is being released or held."""
    choices, log = surroundings.choices, surroundings.log
    near = [(holding.first_offset, holding.last_offset) for holding in surroundings.holdings]
    near = being_released(surroundings) or near if choices.chance(70) else near
    if near and choices.chance(80):
        first, last = choices.one_of(near)
        return max(log.start, choices.between(first + 1, last + 1))
    return choices.between(log.start, min(log.end, log.start + choices.one_of((10, 40))))


def being_released(surroundings: Surroundings) -> list[tuple[int, int]]:
    """Return the ranges whose release, or way to the dead-letter queue, is pending."""
    return [
        (first, last)
        for write in surroundings.held_writes.values()
        for first, last, state, _ in write["state_batches"]
        if state in {RecordState.AVAILABLE, RecordState.ARCHIVING} and first < last
    ]


# ---- fetches


def where_to_fetch(surroundings: Surroundings) -> Steps[int | None]:
    """Ask for the next fetch offset; None if the share partition takes no fetch now."""
    if surroundings.choices.chance(25):
        response = yield from surroundings.ask("can_acquire")
        if response.get("result") is False and surroundings.choices.chance(70):
            return None
    response = yield from surroundings.ask("next_fetch_offset")
    offset = response.get("result")
    return offset if isinstance(offset, int) else None


def acquire_at(surroundings: Surroundings, fetch_offset: int) -> Steps[None]:
    """Read the log at *fetch_offset* and acquire; out of range, send the log start offset instead."""
    log, choices = surroundings.log, surroundings.choices
    if choices.chance(80):
        log.grow_to(min(fetch_offset, log.end + FARTHEST) + choices.between(0, 20))
    if surroundings.committed and choices.chance(80):
        log.decide_below(fetch_offset + 1)
    if not log.start <= fetch_offset <= log.end:
        yield from surroundings.ask("log_start", offset=log.start)
        return
    batches = log.read(fetch_offset, most=choices.between(1, 5), committed=surroundings.committed)
    yield from acquire(surroundings, choices.one_of(surroundings.members), fetch_offset, batches)


def acquire(surroundings: Surroundings, member: str, fetch_offset: int, batches: list[RecordBatch]) -> Steps[None]:
    """Acquire from *batches* for *member*."""
    choices = surroundings.choices
    response = yield from surroundings.ask(
        "acquire",
        member=member,
        mode=mode(choices).value,
        batch_size=choices.one_of(LIMITS),
        max_records=choices.one_of(LIMITS),
        fetch_offset=fetch_offset,
        batches=[batch_to_json(batch) for batch in batches],
        **isolation(surroundings, batches),
    )
    note_acquired(surroundings, member, response)


def mode(choices: Choices) -> AcquireMode:
    """Return an acquire mode."""
    return AcquireMode.RECORD_LIMIT if choices.chance(30) else AcquireMode.BATCH_OPTIMIZED


def isolation(surroundings: Surroundings, batches: list[RecordBatch]) -> dict[str, Any]:
    """Return the fields ``aborted`` and ``isolation`` of a fetch that found *batches*."""
    if not surroundings.committed:
        return {"aborted": None, "isolation": IsolationLevel.READ_UNCOMMITTED.value}
    found = surroundings.log.aborted_in(batches[0].first_offset, batches[-1].last_offset) if batches else []
    aborted = [[entry.producer_id, entry.first_offset] for entry in found]
    return {"aborted": aborted, "isolation": IsolationLevel.READ_COMMITTED.value}


def note_acquired(surroundings: Surroundings, member: str, response: Response) -> None:
    """Note the ranges that *member* has acquired by *response*."""
    result = response.get("result")
    if isinstance(result, dict) and "acquired" in result:
        surroundings.hold(member, [(first, last) for first, last, _ in result["acquired"]])


# ---- acknowledgements and releases


def acknowledge_held(surroundings: Surroundings) -> Steps[None]:
    """Acknowledge some of the ranges that a member holds."""
    choices = surroundings.choices
    owners = sorted({holding.member for holding in surroundings.holdings})
    if not owners:
        return
    member = choices.one_of(owners)
    held = sorted(
        (holding for holding in surroundings.holdings if holding.member == member),
        key=lambda holding: holding.first_offset,
    )
    begin = choices.between(0, len(held) - 1)
    chosen = held[begin : begin + choices.between(1, MOST_ENTRIES)]
    batches = entries(surroundings, chosen)
    response = yield from acknowledge(surroundings, member, batches)
    note_acknowledged(surroundings, chosen, batches, response)


def acknowledge_late(surroundings: Surroundings) -> Steps[None]:
    """Acknowledge a range that is no longer held: a repeated request, or one after the lock has expired."""
    if surroundings.recently_held:
        choices = surroundings.choices
        late = choices.one_of(surroundings.recently_held)
        member = choices.one_of(surroundings.members) if choices.chance(20) else late.member
        yield from acknowledge(surroundings, member, entries(surroundings, [late]))


def acknowledge(surroundings: Surroundings, member: str, batches: list[list[Any]]) -> Steps[Response]:
    """Send an acknowledgement."""
    return (yield from surroundings.ask("acknowledge", member=member, batches=batches, **write_answers(surroundings)))


def entries(surroundings: Surroundings, held: list[Holding]) -> list[list[Any]]:
    """Return the entries of a request for *held*, which ascend: whole ranges, parts of them, or one across all."""
    choices = surroundings.choices
    ranges = [(holding.first_offset, holding.last_offset) for holding in held]
    if len(ranges) > 1 and choices.chance(30):
        ranges = [(ranges[0][0], max(last for _, last in ranges))]
    batches: list[list[Any]] = []
    for first, last in ranges:
        begin, end = choices.part_of(first, last) if choices.chance(35) else (first, last)
        if not batches or begin > batches[-1][1]:
            batches.append([begin, end, types(surroundings, end - begin + 1)])
    return batches


def types(surroundings: Surroundings, size: int) -> list[int]:
    """Return one acknowledgement type for a range of *size* records, or one for each."""
    choices, weights = surroundings.choices, dead_letters.TYPES if surroundings.has_queue else TYPES
    if choices.chance(30):
        few = [choices.weighted(weights) for _ in range(choices.between(1, 4))]
        return [int(choices.one_of(few)) for _ in range(size)]
    return [int(choices.weighted(weights))]


def note_acknowledged(
    surroundings: Surroundings, held: list[Holding], batches: list[list[Any]], response: Response
) -> None:
    """Note what was acknowledged; now and then a member forgets to, and later sends the same again."""
    if surroundings.choices.chance(10):
        return
    renewed = [(first, last) for first, last, kinds in batches if kinds[0] == AcknowledgeType.RENEW]
    member = held[0].member
    rest = [piece for holding in held for piece in parts_not_in(holding, batches)]
    surroundings.drop(held)
    surroundings.holdings += rest
    result = response.get("result")
    if isinstance(result, dict) and result.get("status") == "ok":
        surroundings.hold(member, renewed)


def parts_not_in(holding: Holding, batches: list[list[Any]]) -> list[Holding]:
    """Return the parts of *holding* that no entry of *batches*, which ascend, covers."""
    pieces, first = [], holding.first_offset
    for begin, end, _ in batches:
        if begin > first and first <= holding.last_offset:
            pieces.append(holding._replace(first_offset=first, last_offset=min(begin - 1, holding.last_offset)))
        first = max(first, end + 1)
    if first <= holding.last_offset:
        pieces.append(holding._replace(first_offset=first))
    return pieces


def release(surroundings: Surroundings) -> Steps[None]:
    """Close a member's session."""
    members = [holding.member for holding in surroundings.holdings] or surroundings.members
    member = surroundings.choices.one_of(members)
    yield from surroundings.ask("release", member=member, **write_answers(surroundings))
    surroundings.drop([holding for holding in surroundings.holdings if holding.member == member])


# ---- the persister


def failure(choices: Choices) -> dict[str, Any]:
    """Return an answer other than success."""
    if choices.chance(15):
        return {"exception": choices.one_of(EXCEPTIONS), "message": "the persister failed"}
    return {"error": choices.one_of(ERRORS), "message": choices.one_of((None, "no"))}


def write_answer(choices: Choices) -> str | dict[str, Any]:
    """Return an answer to a write: a late one, a failure, or success."""
    kind = choices.weighted({"ok": 15, "hold": 60, "failure": 25})
    return failure(choices) if kind == "failure" else kind


def write_answers(surroundings: Surroundings) -> dict[str, Any]:
    """Return the fields ``answers`` and ``dlq_answers`` of a request that may write; none if the default answers do."""
    choices = surroundings.choices
    fields: dict[str, Any] = {}
    if choices.chance(surroundings.mix.trouble):
        fields["answers"] = [write_answer(choices) for _ in range(choices.between(1, 3))]
    return fields | dead_letters.answers(surroundings)


def complete(surroundings: Surroundings) -> Steps[None]:
    """Answer the held read, one of the held writes, or what the dead-letter queue holds, not always the oldest."""
    choices = surroundings.choices
    held: list[tuple[str, int | str]] = [("write", number) for number in surroundings.held_writes]
    if surroundings.is_read_held:
        held.append(("write", "read"))
    held += [("dlq", number) for number in surroundings.held_dead_letters]
    if not held:
        return
    what, number = choices.one_of(held)
    if number == "read":
        yield from complete_read(surroundings)
    elif what == "dlq":
        answer = dead_letters.late_answer(choices)
        yield from surroundings.ask("complete", dlq=number, answer=answer, **write_answers(surroundings))
    else:
        answer = failure(choices) if choices.chance(40) else "ok"
        yield from surroundings.ask("complete", write=number, answer=answer, **write_answers(surroundings))


def complete_read(surroundings: Surroundings) -> Steps[None]:
    """Answer the read of the initialization."""
    fields = read_answer(surroundings)
    if fields["answer"] == "hold":
        fields["answer"] = "ok"
    yield from surroundings.ask("complete", write="read", **fields, **answers_to_resumed(surroundings))


def answers_to_resumed(surroundings: Surroundings) -> dict[str, Any]:
    """Return the answers to what an initialization causes: it hands over what the leader before had not finished."""
    return write_answers(surroundings) if surroundings.has_queue else {}


def change_default(surroundings: Surroundings) -> Steps[None]:
    """Change the default answer of the persister to writes, or that of the dead-letter queue."""
    choices = surroundings.choices
    if surroundings.has_queue and choices.chance(50):
        yield from surroundings.ask("default_dlq_answer", answer=dead_letters.answer(choices))
        return
    answer = write_answer(choices) if choices.chance(50) else "ok"
    yield from surroundings.ask("default_answer", answer=answer)


def read_answer(surroundings: Surroundings) -> dict[str, Any]:
    """Return the fields ``answer`` and ``lookup`` for the read of the persisted state."""
    choices, held = surroundings.choices, 20 if surroundings.has_queue else 7
    kind = choices.weighted({"stored": 35, "made_up": 35, "ok": 10, "fresh": 10, "hold": held, "failure": 3})
    if kind == "failure":
        return {"answer": failure(choices)}
    if kind in {"ok", "hold"}:
        return {"answer": kind}
    if kind == "made_up":
        return {"answer": made_up_state(surroundings)}
    answer = surroundings.stored.as_answer()
    if kind == "fresh":
        answer = {"state_epoch": 0, "start_offset": -1, "state_batches": []}
    return {"answer": answer, "lookup": lookup(surroundings)} if answer["start_offset"] < 0 else {"answer": answer}


def lookup(surroundings: Surroundings) -> dict[str, Any]:
    """Return the log's answers to a look-up of the start offset."""
    log, choices = surroundings.log, surroundings.choices
    table: dict[str, Any] = {
        "earliest": log.start,
        "latest": log.end,
        "timestamp": choices.between(log.start, log.end),
    }
    if choices.chance(5):
        table[choices.one_of(sorted(table))] = None
    return table


def made_up_state(surroundings: Surroundings) -> dict[str, Any]:
    """Return a state as a coordinator could have stored it: sorted, disjoint, with gaps, within the log."""
    choices, log = surroundings.choices, surroundings.log
    if choices.chance(70):
        log.grow_to(log.end + choices.between(0, 30))
    start = choices.between(log.start, log.end)
    return {
        "state_epoch": choices.between(0, 3),
        "start_offset": start,
        "state_batches": state_batches(surroundings, start, log.end - 1),
    }


def state_batches(surroundings: Surroundings, first_offset: int, last_offset: int) -> list[list[int]]:
    """Return state batches within *first_offset* .. *last_offset*."""
    choices, batches = surroundings.choices, []
    states = PERSISTED_STATES + (dead_letters.PERSISTED_STATES if surroundings.has_queue else ())
    most_deliveries = surroundings.opened_with.get("delivery_count_limit", 5)
    for _ in range(choices.between(0, MOST_PERSISTED)):
        first = first_offset + (choices.between(1, 6) if choices.chance(40) else 0)
        last = first + choices.between(0, 7)
        if last > last_offset:
            break
        state = choices.one_of(states)
        batches.append([first, last, state, choices.between(1 if state else 0, most_deliveries)])
        first_offset = last + 1
    return batches
