"""The persister's side: what it answers, when, and what a share partition finds stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sharestate.testing.choices import Choices
    from sharestate.testing.world import Steps, World

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
"""What a share coordinator, or the way to it, answers when it fails."""

EXCEPTIONS: Final = (
    "java.lang.IllegalStateException",
    "org.apache.kafka.common.errors.CoordinatorNotAvailableException",
    "org.apache.kafka.common.errors.TimeoutException",
)
"""What a persister's future fails with."""

PERSISTED_STATES: Final = (2, 0, 4)
"""The record states that a coordinator stores: acknowledged, available, archived."""

MOST_PERSISTED: Final = 6
"""How many state batches are made up at most."""


def failure(choices: Choices) -> dict[str, Any]:
    """Return an answer that is no success."""
    if choices.chance(15):
        return {"exception": choices.one_of(EXCEPTIONS), "message": "the persister failed"}
    return {"error": choices.one_of(ERRORS), "message": choices.one_of((None, "no"))}


def write_answer(choices: Choices) -> str | dict[str, Any]:
    """Return an answer to a write: a late one, a failure, or success."""
    kind = choices.weighted({"ok": 15, "hold": 60, "failure": 25})
    return failure(choices) if kind == "failure" else kind


def troubled(world: World) -> dict[str, Any]:
    """Return the field ``answers`` for a request that may write, or nothing if the persister is as it always is."""
    choices = world.choices
    if not choices.chance(world.mix.trouble):
        return {}
    return {"answers": [write_answer(choices) for _ in range(choices.between(1, 3))]}


def complete(world: World) -> Steps[None]:
    """Let the persister answer one of the things that it still owes, not always the oldest."""
    choices = world.choices
    owed: list[int | str] = [*world.held_writes]
    if world.is_read_held:
        owed.append("read")
    if not owed:
        return
    number = choices.one_of(owed)
    if number == "read":
        yield from complete_read(world)
        return
    answer = failure(choices) if choices.chance(40) else "ok"
    yield from world.ask("complete", write=number, answer=answer, **troubled(world))


def complete_read(world: World) -> Steps[None]:
    """Answer the read of the initialisation."""
    fields = read_answer(world)
    if fields["answer"] == "hold":
        fields["answer"] = "ok"
    yield from world.ask("complete", write="read", **fields)


def change_default(world: World) -> Steps[None]:
    """From now on the persister answers otherwise to writes for which nothing else was said."""
    answer = write_answer(world.choices) if world.choices.chance(50) else "ok"
    yield from world.ask("default_answer", answer=answer)


def read_answer(world: World) -> dict[str, Any]:
    """Return the fields ``answer`` and ``lookup`` for the read of the persisted state."""
    choices = world.choices
    kind = choices.weighted({"stored": 35, "made_up": 35, "ok": 10, "fresh": 10, "hold": 7, "failure": 3})
    if kind == "failure":
        return {"answer": failure(choices)}
    if kind in {"ok", "hold"}:
        return {"answer": kind}
    if kind == "made_up":
        return {"answer": made_up_state(world)}
    answer = world.stored.as_answer()
    if kind == "fresh":
        answer = {"state_epoch": 0, "start_offset": -1, "state_batches": []}
    return {"answer": answer, "lookup": lookup(world)} if answer["start_offset"] < 0 else {"answer": answer}


def lookup(world: World) -> dict[str, Any]:
    """Return what the log answers when the start offset has to be looked up."""
    log, choices = world.log, world.choices
    table: dict[str, Any] = {
        "earliest": log.start,
        "latest": log.end,
        "timestamp": choices.between(log.start, log.end),
    }
    if choices.chance(5):
        table[choices.one_of(sorted(table))] = None
    return table


def made_up_state(world: World) -> dict[str, Any]:
    """Return a state as a coordinator could have stored it: sorted, disjoint, with gaps, within the log."""
    choices, log = world.choices, world.log
    if choices.chance(70):
        log.grow_to(log.end + choices.between(0, 30))
    start = choices.between(log.start, log.end)
    return {
        "state_epoch": choices.between(0, 3),
        "start_offset": start,
        "state_batches": state_batches(world, start, log.end - 1),
    }


def state_batches(world: World, first_offset: int, last_offset: int) -> list[list[int]]:
    """Return state batches within *first_offset* .. *last_offset*."""
    choices, batches = world.choices, []
    most_deliveries = world.opened_with.get("delivery_count_limit", 5)
    for _ in range(choices.between(0, MOST_PERSISTED)):
        first = first_offset + (choices.between(1, 6) if choices.chance(40) else 0)
        last = first + choices.between(0, 7)
        if last > last_offset:
            break
        state = choices.one_of(PERSISTED_STATES)
        batches.append([first, last, state, choices.between(1 if state else 0, most_deliveries)])
        first_offset = last + 1
    return batches
