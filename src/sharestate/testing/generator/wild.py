"""Steps that no broker takes: their requests are valid lines of the protocol, and need not fit the state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sharestate.testing.generator import dead_letters, ordinary
from sharestate.testing.generator.surroundings import PRODUCERS, batch_to_json
from sharestate.values.fetched_records import IsolationLevel
from sharestate.values.records import ControlType, RecordBatch

if TYPE_CHECKING:
    from sharestate.testing.generator.randomness import Choices
    from sharestate.testing.generator.surroundings import Steps, Surroundings

STEPS: Final = {
    "acknowledge": 30,
    "acquire": 26,
    "log_start": 10,
    "initialize": 8,
    "complete": 6,
    "release": 5,
    "open": 8,
    "time": 4,
    "query": 4,
    "configure": 4,
    "fence": 2,
}
"""The frequency of each wild step, relative to the others. [weight]"""

FAR: Final = 25
"""The reach of wild offsets beyond the log end offset. [offsets]"""

TYPES: Final = (1, 2, 3, 0, 4, 5, 7, 127, -1)
"""Acknowledgement types, unknown ones included."""

STRANGERS: Final = ("stranger", "")
"""Members that never joined; the last is no member at all."""

LIFECYCLES: Final = {"EMPTY": 70, "ACTIVE": 15, "INITIALIZING": 5, "FAILED": 5, "FENCED": 5}
"""The lifecycle states in which a share partition is opened. [weight]"""

PERSISTED_STATES: Final = (0, 2, 4, 1, 3, 9)
"""Record states in a persisted state: three that a coordinator stores, one that it never does, ARCHIVING, and none."""

NULL_ANSWERS: Final[tuple[str | dict[str, Any], ...]] = (
    "null",
    {"topics": None},
    {"topics": []},
    {"topics": [{"same_topic_id": True, "partitions": []}]},
    {"topics": [{"same_topic_id": False, "partitions": [{"partition": 0, "answer": "ok"}]}]},
    {"topics": [{"same_topic_id": True, "partitions": [{"partition": 1, "answer": "ok"}]}]},
    {"topics": [{"same_topic_id": True, "partitions": [{"partition": 0, "answer": "ok"}]}]},
)
"""Answers of the persister in the wrong form; the last is a right one, written out."""


def step(surroundings: Surroundings) -> Steps[None]:
    """Take one wild step."""
    yield from WILD_STEPS[surroundings.choices.weighted(STEPS)](surroundings)


def offset(surroundings: Surroundings) -> int:
    """Return any offset up to FAR beyond the log end."""
    return surroundings.choices.between(0, surroundings.log.end + FAR)


def member(surroundings: Surroundings) -> str:
    """Return a member, or now and then one that never joined."""
    choices = surroundings.choices
    return choices.one_of(STRANGERS) if choices.chance(15) else choices.one_of(surroundings.members)


def acknowledge(surroundings: Surroundings) -> Steps[None]:
    """Acknowledge anything in any order with any types."""
    choices = surroundings.choices
    batches = [entry(surroundings) for _ in range(choices.weighted({1: 50, 2: 30, 3: 15, 0: 5}))]
    yield from ordinary.acknowledge(surroundings, member(surroundings), batches)


def entry(surroundings: Surroundings) -> list[Any]:
    """Return an entry of an acknowledgement; most overlap a range that some member holds."""
    choices = surroundings.choices
    first = offset(surroundings)
    last = first + choices.between(0, 12)
    if surroundings.holdings and choices.chance(60):
        near = choices.one_of(surroundings.holdings)
        first = max(0, near.first_offset + choices.between(-3, 3))
        last = max(first, near.last_offset + choices.between(-3, 3))
    if choices.chance(4):
        first, last = last, first
    size = choices.weighted({1: 60, last - first + 1: 30, last - first: 4, last - first + 2: 3, 0: 3})
    return [first, last, types(choices, max(0, size))]


def types(choices: Choices, size: int) -> list[int]:
    """Return *size* types; few lists have an unknown one."""
    known = TYPES if choices.chance(15) else TYPES[:5]
    return [choices.one_of(known) for _ in range(size)]


def acquire(surroundings: Surroundings) -> Steps[None]:
    """Acquire from record batches that the log need not hold, at an offset that was not asked for."""
    choices, log = surroundings.choices, surroundings.log
    fetch_offset = offset(surroundings)
    made_up = choices.chance(60)
    batches = record_batches(surroundings) if made_up else log.read(fetch_offset, most=choices.between(1, 5))
    if batches and choices.chance(60):
        fetch_offset = max(0, batches[0].first_offset + choices.between(-4, 4))
    who = member(surroundings)
    response = yield from surroundings.ask(
        "acquire",
        member=who,
        mode=ordinary.mode(choices).value,
        batch_size=choices.one_of(ordinary.LIMITS),
        max_records=choices.one_of((*ordinary.LIMITS, 0)),
        fetch_offset=fetch_offset,
        batches=[batch_to_json(batch) for batch in batches],
        aborted=aborted(surroundings),
        isolation=choices.one_of(tuple(IsolationLevel)).value,
    )
    ordinary.note_acquired(surroundings, who, response)


def record_batches(surroundings: Surroundings) -> list[RecordBatch]:
    """Return record batches that ascend without overlap, and are otherwise unlike the log."""
    choices, batches = surroundings.choices, []
    first = offset(surroundings)
    for _ in range(choices.between(0, 5)):
        first += choices.between(1, 6) if choices.chance(30) else 0
        batches.append(record_batch(choices, first))
        first = batches[-1].last_offset + 1
    return batches


def record_batch(choices: Choices, first: int) -> RecordBatch:
    """Return a record batch at *first*."""
    producer_id = choices.one_of(PRODUCERS)
    if producer_id in PRODUCERS[1:] and choices.chance(25):
        return RecordBatch(first, first, producer_id, True, choices.one_of(tuple(ControlType)))  # noqa: FBT003 - a marker
    return RecordBatch(
        first, first + choices.between(0, 9), producer_id, producer_id in PRODUCERS[1:] and choices.chance(70)
    )


def aborted(surroundings: Surroundings) -> list[list[int]] | None:
    """Return any list of aborted transactions."""
    choices = surroundings.choices
    if choices.chance(40):
        return None
    return [[choices.one_of(PRODUCERS[1:]), offset(surroundings)] for _ in range(choices.between(0, 3))]


def log_start(surroundings: Surroundings) -> Steps[None]:
    """Send any log start offset, lower ones too; half of the time the log is really deleted up to it."""
    at = offset(surroundings)
    if surroundings.choices.chance(50):
        surroundings.log.move_start(at)
    yield from surroundings.ask("log_start", offset=at)


def open_as(surroundings: Surroundings) -> Steps[None]:
    """Open the share partition in any lifecycle state, often without initializing it."""
    choices = surroundings.choices
    lifecycle = choices.weighted(LIFECYCLES)
    yield from ordinary.open_new(surroundings, lifecycle=lifecycle)
    surroundings.is_active = lifecycle == "ACTIVE"
    if choices.chance(15):
        values = {"max_record_locks": (0, 1), "delivery_count_limit": (0, 1), "record_lock_duration_ms": (0, 1)}
        yield from ordinary.use_config(surroundings, {name: choices.one_of(value) for name, value in values.items()})
    if choices.chance(70):
        yield from initialize(surroundings)


def initialize(surroundings: Surroundings) -> Steps[None]:
    """Initialize in any lifecycle state, from a state that no coordinator stores."""
    yield from surroundings.ask("initialize", **read_answer(surroundings))


def read_answer(surroundings: Surroundings) -> dict[str, Any]:
    """Return the fields of an initialization whose read is answered in any way."""
    choices = surroundings.choices
    kind = choices.weighted({"state": 60, "plain": 25, "null": 10, "throws": 5})
    if kind == "plain":
        return ordinary.read_answer(surroundings)
    if kind == "null":
        return {"answer": choices.one_of(null_answers(surroundings))}
    if kind == "throws":
        return {"answer": {"throws": choices.one_of(ordinary.EXCEPTIONS), "message": "no"}}
    return {"answer": persisted_state(surroundings), "lookup": lookup(surroundings)}


def null_answers(surroundings: Surroundings) -> tuple[str | dict[str, Any], ...]:
    """Return the answers of the persister in the wrong form, and such as only look wrong."""
    return (*NULL_ANSWERS, dead_letters.EQUAL) if surroundings.has_queue else NULL_ANSWERS


def lookup(surroundings: Surroundings) -> dict[str, Any]:
    """Return any answers of the log to a look-up of the start offset."""
    values = (
        offset(surroundings),
        None,
        {"exception": surroundings.choices.one_of(ordinary.EXCEPTIONS), "message": "no"},
    )
    return {kind: surroundings.choices.one_of(values) for kind in ("earliest", "latest", "timestamp")}


def persisted_state(surroundings: Surroundings) -> dict[str, Any]:
    """Return a persisted state with possible faults in order, overlap, states, counts and start offset."""
    choices = surroundings.choices
    start = offset(surroundings)
    batches = ordinary.state_batches(surroundings, start, start + 60)
    for batch in batches:
        if choices.chance(10):
            end = choices.between(0, 1)
            batch[end] = max(0, batch[end] + choices.between(-4, 4))
        if choices.chance(6):
            batch[2] = choices.one_of(PERSISTED_STATES)
        if choices.chance(10):
            batch[3] = choices.between(0, 12)
    if choices.chance(10):
        batches.reverse()
    if choices.chance(10):
        start = choices.one_of((-1, max(0, start - choices.between(0, 8)), start + choices.between(0, 8)))
    return {"state_epoch": choices.between(0, 3), "start_offset": start, "state_batches": batches}


def complete(surroundings: Surroundings) -> Steps[None]:
    """Answer a held write or read in the wrong form."""
    choices = surroundings.choices
    if surroundings.held_writes:
        write = choices.one_of(list(surroundings.held_writes))
        yield from surroundings.ask("complete", write=write, answer=choices.one_of(null_answers(surroundings)))
    elif surroundings.is_read_held:
        fields = read_answer(surroundings)
        if fields["answer"] == "hold" or "throws" in fields["answer"]:
            fields["answer"] = "null"
        yield from surroundings.ask("complete", write="read", **fields)


def release(surroundings: Surroundings) -> Steps[None]:
    """Close the session of any member."""
    yield from surroundings.ask("release", member=member(surroundings), **ordinary.write_answers(surroundings))


def pass_time(surroundings: Surroundings) -> Steps[None]:
    """Advance the clock by nothing, or beyond every deadline."""
    yield from ordinary.advance(surroundings, surroundings.choices.one_of((0, 100_000)))


def query(surroundings: Surroundings) -> Steps[None]:
    """Send a query in any lifecycle state."""
    yield from surroundings.ask(surroundings.choices.one_of(("next_fetch_offset", "can_acquire")))


WILD_STEPS: Final = {
    "acknowledge": acknowledge,
    "acquire": acquire,
    "log_start": log_start,
    "initialize": initialize,
    "complete": complete,
    "release": release,
    "open": open_as,
    "time": pass_time,
    "query": query,
    "configure": ordinary.configure,
    "fence": ordinary.fence,
}
"""The wild steps by name."""
