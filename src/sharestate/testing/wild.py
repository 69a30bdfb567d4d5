"""What no broker sends: requests that are valid lines of the protocol and fit nothing that happened before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sharestate.testing import acknowledging, fetching, leading, persister
from sharestate.testing.log import PRODUCERS, batch_on_the_line
from sharestate.values.records import ControlType, IsolationLevel, RecordBatch

if TYPE_CHECKING:
    from sharestate.testing.choices import Choices
    from sharestate.testing.world import Steps, World

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
"""How often each wild step is taken, in relation to the others. [weight]"""

FAR: Final = 25
"""How far beyond the log's end wild offsets reach. [offsets]"""

TYPES: Final = (1, 2, 3, 0, 4, 5, 7, 127, -1)
"""Acknowledgement types, also such as do not exist."""

STRANGERS: Final = ("stranger", "")
"""Members that never joined; the last stands for nobody."""

LIFECYCLES: Final = {"EMPTY": 70, "ACTIVE": 15, "INITIALIZING": 5, "FAILED": 5, "FENCED": 5}
"""What a share partition may be opened as. [weight]"""

PERSISTED_STATES: Final = (0, 2, 4, 1, 3, 9)
"""Persisted numbers of record states: three that a coordinator stores, and three that it never does."""

NULL_ANSWERS: Final[tuple[str | dict[str, Any], ...]] = (
    "null",
    {"topics": None},
    {"topics": []},
    {"topics": [{"same_topic_id": True, "partitions": []}]},
    {"topics": [{"same_topic_id": False, "partitions": [{"partition": 0, "answer": "ok"}]}]},
    {"topics": [{"same_topic_id": True, "partitions": [{"partition": 1, "answer": "ok"}]}]},
    {"topics": [{"same_topic_id": True, "partitions": [{"partition": 0, "answer": "ok"}]}]},
)
"""Answers of the persister in the wrong form; the last is in the right one, spelled out."""


def step(world: World) -> Steps[None]:
    """Take one wild step."""
    yield from WILD_STEPS[world.choices.weighted(STEPS)](world)


def offset(world: World) -> int:
    """Return any offset."""
    return world.choices.between(0, world.log.end + FAR)


def member(world: World) -> str:
    """Return a member, now and then one that never joined."""
    choices = world.choices
    return choices.one_of(STRANGERS) if choices.chance(15) else choices.one_of(world.members)


def acknowledge(world: World) -> Steps[None]:
    """Acknowledge anything in any order with any types."""
    choices = world.choices
    batches = [entry(world) for _ in range(choices.weighted({1: 50, 2: 30, 3: 15, 0: 5}))]
    yield from acknowledging.acknowledge(world, member(world), batches)


def entry(world: World) -> list[Any]:
    """Return an entry of an acknowledgement; most are about what somebody holds, in part."""
    choices = world.choices
    first = offset(world)
    last = first + choices.between(0, 12)
    if world.holdings and choices.chance(60):
        near = choices.one_of(world.holdings)
        first = max(0, near.first_offset + choices.between(-3, 3))
        last = max(first, near.last_offset + choices.between(-3, 3))
    if choices.chance(4):
        first, last = last, first
    size = choices.weighted({1: 60, last - first + 1: 30, last - first: 4, last - first + 2: 3, 0: 3})
    return [first, last, types(choices, max(0, size))]


def types(choices: Choices, size: int) -> list[int]:
    """Return *size* types; few lists have one that does not exist."""
    known = TYPES if choices.chance(15) else TYPES[:5]
    return [choices.one_of(known) for _ in range(size)]


def acquire(world: World) -> Steps[None]:
    """Acquire from data that need not be what the log holds, nor begin where the next fetch should."""
    choices, log = world.choices, world.log
    fetch_offset = offset(world)
    made_up = choices.chance(60)
    batches = record_batches(world) if made_up else log.read(fetch_offset, most=choices.between(1, 5))
    if batches and choices.chance(60):
        fetch_offset = max(0, batches[0].first_offset + choices.between(-4, 4))
    who = member(world)
    response = yield from world.ask(
        "acquire",
        member=who,
        mode=fetching.mode(choices).value,
        batch_size=choices.one_of(fetching.LIMITS),
        max_records=choices.one_of((*fetching.LIMITS, 0)),
        fetch_offset=fetch_offset,
        batches=[batch_on_the_line(batch) for batch in batches],
        aborted=aborted(world),
        isolation=choices.one_of(tuple(IsolationLevel)).value,
    )
    fetching.remember(world, who, response)


def record_batches(world: World) -> list[RecordBatch]:
    """Return record batches that ascend and do not overlap, and have nothing else in common with the log."""
    choices, batches = world.choices, []
    first = offset(world)
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


def aborted(world: World) -> list[list[int]] | None:
    """Return any list of aborted transactions."""
    choices = world.choices
    if choices.chance(40):
        return None
    return [[choices.one_of(PRODUCERS[1:]), offset(world)] for _ in range(choices.between(0, 3))]


def log_start(world: World) -> Steps[None]:
    """The log starts anywhere, further back too; half of the time the log is really cut off there."""
    at = offset(world)
    if world.choices.chance(50):
        world.log.move_start(at)
    yield from world.ask("log_start", offset=at)


def open_as(world: World) -> Steps[None]:
    """Open the share partition in some stage of its life; often it is not even initialised."""
    choices = world.choices
    lifecycle = choices.weighted(LIFECYCLES)
    yield from leading.open_new(world, lifecycle=lifecycle)
    world.is_active = lifecycle == "ACTIVE"
    if choices.chance(15):
        values = {"max_record_locks": (0, 1), "delivery_count_limit": (0, 1), "record_lock_duration_ms": (0, 1)}
        yield from leading.use_config(world, {name: choices.one_of(value) for name, value in values.items()})
    if choices.chance(70):
        yield from initialize(world)


def initialize(world: World) -> Steps[None]:
    """Initialise, needed or not, with what no coordinator stores."""
    yield from world.ask("initialize", **read_answer(world))


def read_answer(world: World) -> dict[str, Any]:
    """Return the fields of an initialisation whose read may end in any way."""
    choices = world.choices
    kind = choices.weighted({"state": 60, "plain": 25, "null": 10, "throws": 5})
    if kind == "plain":
        return persister.read_answer(world)
    if kind == "null":
        return {"answer": choices.one_of(NULL_ANSWERS)}
    if kind == "throws":
        return {"answer": {"throws": choices.one_of(persister.EXCEPTIONS), "message": "no"}}
    return {"answer": persisted_state(world), "lookup": lookup(world)}


def lookup(world: World) -> dict[str, Any]:
    """Return any answers of the log."""
    values = (offset(world), None, {"exception": world.choices.one_of(persister.EXCEPTIONS), "message": "no"})
    return {kind: world.choices.one_of(values) for kind in ("earliest", "latest", "timestamp")}


def persisted_state(world: World) -> dict[str, Any]:
    """Return a persisted state in which something may be wrong: order, overlap, states, counts, the start offset."""
    choices = world.choices
    start = offset(world)
    batches = persister.state_batches(world, start, start + 60)
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


def complete(world: World) -> Steps[None]:
    """Answer something that is owed in the wrong form."""
    choices = world.choices
    if world.held_writes:
        write = choices.one_of(list(world.held_writes))
        yield from world.ask("complete", write=write, answer=choices.one_of(NULL_ANSWERS))
    elif world.is_read_held:
        fields = read_answer(world)
        if fields["answer"] == "hold" or "throws" in fields["answer"]:
            fields["answer"] = "null"
        yield from world.ask("complete", write="read", **fields)


def release(world: World) -> Steps[None]:
    """Anyone's session is closed."""
    yield from world.ask("release", member=member(world), **persister.troubled(world))


def pass_time(world: World) -> Steps[None]:
    """No time passes, or a lot."""
    yield from leading.advance(world, world.choices.one_of((0, 100_000)))


def query(world: World) -> Steps[None]:
    """Ask something at a time when no broker would."""
    yield from world.ask(world.choices.one_of(("next_fetch_offset", "can_acquire")))


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
    "configure": leading.configure,
    "fence": leading.fence,
}
"""The wild steps by name."""
