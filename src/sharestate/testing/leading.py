"""A leader's life: it takes over with what was persisted, time passes, settings change, another leader follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sharestate.testing import persister
from sharestate.values.records import RecordState

if TYPE_CHECKING:
    from sharestate.testing.choices import Choices
    from sharestate.testing.world import Steps, World

RECORD_LOCKS: Final = (200, 20, 10, 5, 100)
"""Values of ``max_record_locks``: small enough to be reached. [records]"""

DELIVERY_LIMITS: Final = (5, 2, 3, 4, 10)
"""Values of ``delivery_count_limit``. [deliveries]"""

LOCK_DURATIONS_MS: Final = (1000, 100, 30_000)
"""Values of ``record_lock_duration_ms``. [ms]"""

OFFSET_RESETS: Final = ("latest", "earliest", "by_duration:PT1H")
"""Values of ``auto_offset_reset``."""

MOST_TRIES: Final = 3
"""How often an initialisation that fails is tried again."""


def config(choices: Choices) -> dict[str, int]:
    """Return the config with which a share partition is opened."""
    return {
        "max_record_locks": choices.one_of(RECORD_LOCKS),
        "delivery_count_limit": choices.one_of(DELIVERY_LIMITS),
        "record_lock_duration_ms": choices.one_of(LOCK_DURATIONS_MS),
    }


def take_over(world: World) -> Steps[None]:
    """A new leader opens the share partition, and again if it could not be initialised."""
    for _ in range(MOST_TRIES):
        yield from open_new(world)
        yield from initialize(world)
        if world.is_active:
            return


def open_new(world: World, **fields: Any) -> Steps[None]:  # noqa: ANN401 - the fields of a request are JSON
    """Open the share partition with the next leader epoch."""
    world.reset()
    world.leader_epoch += 1
    world.opened_with = config(world.choices)
    world.lock_duration_ms = world.opened_with["record_lock_duration_ms"]
    yield from world.ask("open", leader_epoch=world.leader_epoch, config=world.opened_with, timer="fifo", **fields)


def initialize(world: World) -> Steps[None]:
    """Read what was persisted; a persister that takes its time is answered for at the end."""
    choices = world.choices
    fields = persister.read_answer(world)
    if "lookup" in fields and choices.chance(60):
        reset = choices.one_of(OFFSET_RESETS)
        yield from world.ask("configure", config={"auto_offset_reset": reset})
    yield from world.ask("initialize", **fields)
    if world.is_read_held:
        if choices.chance(30):
            yield from pass_time(world)
        if choices.chance(10):
            yield from world.ask("fence")
        yield from persister.complete_read(world)


def fence(world: World) -> Steps[None]:
    """The leader is told that it no longer leads; what was under way goes on for a while."""
    yield from world.ask("fence")
    world.is_active = False


def pass_time(world: World) -> Steps[None]:
    """Let time pass: a little, up to the next deadline, just past it, or past all of them."""
    choices = world.choices
    deadlines = [holding.deadline_ms - world.now_ms for holding in world.holdings]
    due = min((ms for ms in deadlines if ms >= 0), default=world.lock_duration_ms)
    kind = choices.weighted({"little": 40, "past": 30, "to": 15, "far": 15})
    ms = {
        "little": choices.between(1, max(1, world.lock_duration_ms // 4)),
        "past": due + 1,
        "to": due,
        "far": world.lock_duration_ms + 1,
    }[kind]
    yield from advance(world, ms)


def advance(world: World, ms: int) -> Steps[None]:
    """Let *ms* milliseconds pass."""
    world.now_ms += ms
    yield from world.ask("advance", ms=ms, **persister.troubled(world))
    world.lapse()


def configure(world: World) -> Steps[None]:
    """The group's administrator changes some settings, or removes them all."""
    choices = world.choices
    settings: dict[str, Any] = {**config(choices), "renew_acknowledge_enable": choices.chance(60)}
    if choices.chance(30):
        settings["auto_offset_reset"] = choices.one_of(OFFSET_RESETS)
    chosen = {name: value for name, value in settings.items() if choices.chance(50)}
    yield from use_config(world, None if choices.chance(10) else chosen)


def use_config(world: World, chosen: dict[str, Any] | None) -> Steps[None]:
    """Hand on a group's config; what it leaves out is as it was when the share partition was opened."""
    opened_with = world.opened_with["record_lock_duration_ms"]
    world.lock_duration_ms = (chosen or {}).get("record_lock_duration_ms", opened_with)
    yield from world.ask("configure", config=chosen)


def change_log(world: World) -> Steps[None]:
    """The log grows, is compacted, or loses its beginning; the last a fetch may be the first to notice."""
    choices, log = world.choices, world.log
    kind = choices.weighted({"append": 30, "compact": 30, "move_start": 40})
    if kind == "append":
        log.append()
    elif kind == "compact":
        log.compact()
    else:
        log.move_start(new_log_start(world))
        if choices.chance(60):
            yield from world.ask("log_start", offset=log.start)


def new_log_start(world: World) -> int:
    """Return where the log may begin next: not far from where it does, or within what is being released or held."""
    choices, log = world.choices, world.log
    near = [(holding.first_offset, holding.last_offset) for holding in world.holdings]
    near = released(world) or near if choices.chance(70) else near
    if near and choices.chance(80):
        first, last = choices.one_of(near)
        return max(log.start, choices.between(first + 1, last + 1))
    return choices.between(log.start, min(log.end, log.start + choices.one_of((10, 40))))


def released(world: World) -> list[tuple[int, int]]:
    """Return the ranges whose release is being written."""
    return [
        (first, last)
        for write in world.held_writes.values()
        for first, last, state, _ in write["state_batches"]
        if state == RecordState.AVAILABLE and first < last
    ]
