"""
Invariants of share coordinators, judged by requests and responses of their line protocol alone.

Each is a generator that is sent the exchanges of one coordinator's life, as those of ``over_time`` are, and raises
AssertionError at the first that contradicts it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sharestate.testing.protocol.always import demand
from sharestate.values.requests import UNINITIALIZED_START_OFFSET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sharestate.testing.protocol.exchange import Exchange

Key: TypeAlias = tuple[str, str, int]
"""Group, topic and partition."""

Records: TypeAlias = dict[int, tuple[int, int]]
"""Delivery count and state of each record."""


def combined_batches_are_in_order(exchange: Exchange) -> None:
    """Combined batches ascend without overlap, and none begins below the start offset."""
    if exchange.op == "combine":
        start = exchange.request.get("start", -1)
        below = [batch for batch in exchange.result if batch[0] < start or batch[1] < batch[0]]
        demand(not below, f"{below} with start offset {start}")
        for before, after in pairwise(exchange.result):
            demand(before[1] < after[0], f"{before} and {after} overlap, or do not ascend")


def combined_batches_say_the_most(exchange: Exchange) -> None:
    """Each record has the highest delivery count and state that was said of it: combining again changes nothing."""
    if exchange.op == "combine":
        start = exchange.request.get("start", -1)
        wanted = _most(_records(exchange.request["existing"]), _records(exchange.request["new"]), start)
        _expect_records(_most(_records(exchange.result), {}, start), wanted, "what is combined")


def a_write_takes_nothing_back(exchange: Exchange) -> None:
    """
    A write raises the start offset and the records of a share partition, and lowers nothing.

    So a write that comes twice changes nothing, and two that overtake each other lead to the same state. By the rules
    of 4.4: before, a write could lower the start offset (F3).
    """
    stored, now = _stored(exchange.before), _stored(exchange.response.get("state"))
    for entry in exchange.request["entries"] if _is_stored(exchange, "write") else ():
        key = (exchange.request["group"], entry["topic"], entry["partition"])
        if key in stored and key in now:
            (start_before, before), (start, after) = stored[key], now[key]
            wanted = max(start_before, entry.get("start_offset", 0))
            demand(start == wanted, f"the start offset of {key} is {start}, expected {wanted}")
            _expect_records(after, _most(before, _records(entry.get("batches", ())), start), f"{key}")


def an_initialization_takes_nothing_back(exchange: Exchange) -> None:
    """
    An initialization that comes again leaves start offset, records and leader epoch as they are.

    It has come before if it has the stored state epoch and no start offset: it is a group coordinator's, which has been
    retried and is carried out after a leader's writes. An administrator names a start offset, with the same epoch up to
    4.4, and starts again. No release keeps this (C2).
    """
    if not _is_stored(exchange, "initialize"):
        return
    (entry,) = exchange.request["entries"]
    place = (exchange.request["group"], entry["topic"], entry["partition"])
    said = entry.get("state_epoch", 0), entry.get("start_offset", 0)
    stored, now = _kept(exchange.before), _kept(exchange.response.get("state"))
    for key in stored.keys() & now.keys():
        if key[1:] == place and said == (stored[key]["state_epoch"], UNINITIALIZED_START_OFFSET):
            for name in ("start_offset", "leader_epoch", "batches"):
                before, after = stored[key][name], now[key][name]
                demand(after == before, f"the {name} of {place} is {after}, expected {before}")


def the_log_is_the_state(exchange: Exchange) -> None:
    """A coordinator that reads its log from the beginning finds what it had: snapshot and updates are the state."""
    is_reread = exchange.op == "restart" and exchange.request.get("keep", "written") == "written"
    if not is_reread or exchange.before is None:
        return
    open_batches = {shard["shard"] for shard in _shards(exchange.before) if shard["log"][3]}
    before, after = _kept(exchange.before), _kept(exchange.response["state"])
    for (shard, *key), data in before.items():
        if shard in {each["shard"] for each in _shards(exchange.response["state"])} - open_batches:
            found = after.get((shard, *key))
            demand(found == data, f"{key} was {data}, and is {found}")


COORDINATOR: Final[tuple[Callable[[Exchange], None], ...]] = (
    combined_batches_are_in_order,
    combined_batches_say_the_most,
    the_log_is_the_state,
)
"""Invariants of share coordinators of every release."""

COORDINATOR_4_4: Final[tuple[Callable[[Exchange], None], ...]] = (*COORDINATOR, a_write_takes_nothing_back)
"""Those of the newest rules."""

COORDINATOR_HEALED: Final[tuple[Callable[[Exchange], None], ...]] = (
    *COORDINATOR_4_4,
    an_initialization_takes_nothing_back,
)
"""Those that bugs of Kafka break among them: what a share coordinator without these bugs keeps."""


def _is_stored(exchange: Exchange, op: str) -> bool:
    """Return whether it is a request *op* about one share partition that was carried out, and logged, at once."""
    if exchange.op != op or exchange.request.get("append", "ok") != "ok" or len(exchange.result) != 1:
        return False
    return bool(exchange.result[0].get("error") == "NONE") and exchange.before is not None


def _shards(state: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - JSON
    """Return the shards of a state, which is a list of them for most requests, but for those that have failed."""
    shards = state["shards"] if isinstance(state, dict) else state or []
    return [shard for shard in shards if "keys" in shard]


def _kept(state: Any) -> dict[tuple[Any, ...], dict[str, Any]]:  # noqa: ANN401 - JSON
    """Return what is stored, by shard, group, topic and partition."""
    return {
        (shard["shard"], key["group"], key["topic"], key["partition"]): key["data"]
        for shard in _shards(state)
        for key in shard["keys"]
    }


def _stored(state: Any) -> dict[Key, tuple[int, Records]]:  # noqa: ANN401 - JSON
    """Return start offset and records of each share partition."""
    return {key[1:]: (data["start_offset"], _records(data["batches"])) for key, data in _kept(state).items()}


def _records(batches: Iterable[Sequence[int]]) -> Records:
    records: Records = {}
    for first, last, state, count in batches:
        for offset in range(first, last + 1):
            records[offset] = max((count, state), records.get(offset, (count, state)))
    return records


def _most(stored: Records, written: Records, start: int) -> Records:
    """Return the higher of what is said of each record from *start* on."""
    both = stored.keys() | written.keys()
    return {
        offset: max(said[offset] for said in (stored, written) if offset in said) for offset in both if offset >= start
    }


def _expect_records(found: Records, wanted: Records, what: str) -> None:
    differ = sorted(o for o in found.keys() | wanted.keys() if found.get(o) != wanted.get(o))
    demand(not differ, f"{what}: {[(o, found.get(o), wanted.get(o)) for o in differ[:3]]} (offset, found, expected)")
