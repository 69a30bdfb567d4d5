"""Stored snapshots: they stay readable, and whatever is broken in one is refused by its path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest

from sharestate import (
    KAFKA_4_2,
    PROFILES,
    ErrorCode,
    FetchedRecords,
    Profile,
    RecordBatch,
    SharePartition,
    Snapshot,
    SnapshotError,
    SplitLimitError,
)
from sharestate.conversation.grammar import read_request
from sharestate.conversation.requests import Open
from sharestate.conversation.served_partition import ServedPartition
from tests.support.stored_snapshots import (
    JSON_KINDS,
    LISTS,
    OLDER,
    STORED,
    SnapshotPlace,
    Step,
    kind_of,
    reach,
    refused_at,
    restored,
    snapshot_in,
    stored,
)

each_stored = pytest.mark.parametrize("file", STORED, ids=lambda file: file.stem)
# ---- they stay readable


def session(held: dict[str, Any]) -> ServedPartition:
    """Return the session that goes on where the snapshot was taken: its persister still owes the same answers."""
    partition = restored(held["snapshot"])
    opening = read_request({"op": "open"}).command
    assert isinstance(opening, Open)
    fresh = ServedPartition(opening, partition.profile)
    going_on: ServedPartition = deepcopy(fresh, {id(fresh._partition): partition})  # noqa: SLF001 - sessions are not restored
    going_on._now_ms = partition.snapshot().now_ms  # noqa: SLF001
    going_on._futures = held["next_future"]  # noqa: SLF001
    going_on._answers._held_writes.update({int(number): future for number, future in held["held_writes"].items()})  # noqa: SLF001
    going_on._answers.held_read = held["held_read"]  # noqa: SLF001
    return going_on


@pytest.mark.parametrize("file", OLDER + STORED, ids=lambda file: file.stem)
def test_a_stored_snapshot_goes_on_as_it_did(file: Path) -> None:
    """What was stored by any version is restored, and answers as the rules say."""
    held = stored(file)
    going_on = session(held)

    for exchange in held["conversation"]:
        assert going_on.run(read_request(exchange["request"])) == exchange["response"], exchange["request"]


@each_stored
def test_a_stored_snapshot_is_written_the_same_again(file: Path) -> None:
    """Restored and taken again it is the same, in JSON to the letter, on one line with the version."""
    line = stored(file)["snapshot"]
    partition = restored(line)

    partition.check()
    assert partition.snapshot() == Snapshot.from_json(line)
    assert partition.snapshot().to_json() == line
    assert "\n" not in line
    assert json.loads(line)["sharestate_snapshot"] == 5


def test_stored_snapshots_are_of_all_kinds() -> None:
    """All profiles are there, split batches, expired locks, dead letters, a gap window, leftovers."""
    snapshots = [Snapshot.from_json(stored(file)["snapshot"]) for file in STORED]
    cells = [cell for snapshot in snapshots for cell in snapshot.cells]

    assert {snapshot.profile for snapshot in snapshots} == set(PROFILES.values())
    assert any(batch.is_split for snapshot in snapshots for batch in snapshot.batches)
    assert any(snapshot.dead_letters for snapshot in snapshots)
    assert any(snapshot.gap_window for snapshot in snapshots)
    assert any(write.delivery_count_limit is None for snapshot in snapshots for write in snapshot.writes)
    assert any(cell.lock_expired for cell in cells)
    assert any(cell.write is not None and cell.rollback is None for cell in cells)
    assert any(cell.delivery_count == 0 for cell in cells)


@each_stored
@pytest.mark.parametrize("profile", [*PROFILES.values(), Profile(name="kafka-4.3", quirks=frozenset())])
def test_another_profile_is_refused(file: Path, profile: Profile) -> None:
    """The rules are part of the state; a profile of the same name with other rules is another one too."""
    snapshot = Snapshot.from_json(stored(file)["snapshot"])
    if snapshot.profile == profile:
        return

    with pytest.raises(SnapshotError) as refused:
        SharePartition.restore(snapshot, profile=profile)
    assert refused.value.field == "profile"


# ---- whatever is broken is refused


def places(file: Path) -> Iterator[SnapshotPlace]:
    """Yield every place of the snapshot in *file*."""

    def inside(value: Any, way: tuple[Step, ...]) -> Iterator[SnapshotPlace]:  # noqa: ANN401 - JSON
        steps: Any = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        for step in steps:
            yield SnapshotPlace(file, (*way, step))
            yield from inside(value[step], (*way, step))

    yield from inside(snapshot_in(file), ())


PLACES: Final = [place for file in STORED for place in places(file)]
NULLABLE: Final = {
    "gap_window": {"list"},
    "config.auto_offset_reset.duration_us": {"number"},
    "cells[*][3]": {"number"},
    "cells[*][4]": {"number"},
    "cells[*][5]": {"number"},
    "writes[*][1]": {"number"},
    "profile.write_policy": {"object"},
    "profile.write_policy.bound": {"number"},
    "kip_memory": {"list"},
}
"""What may stand where there may be nothing."""

FREE_TEXT: Final = {"profile.name", "key.group_id", "key.topic_id", "cells[*][2]"}
"""Where any text may stand."""

COUNTS: Final = {
    "key.partition",
    "config.max_record_locks",
    "config.delivery_count_limit",
    "config.record_lock_duration_ms",
    "split_limit",
    "now_ms",
    "start_offset",
    "end_offset",
    "next_write",
    "next_lock",
    "locks[*][0]",
    "writes[*][0]",
    "writes[*][1]",
    "cells[*][3]",
    "cells[*][4]",
    "cells[*][5]",
    "batches[*][3][*][0]",
    "batches[*][3][*][1]",
    "kip_memory[2][*][0]",
    "kip_memory[2][*][2]",
    "kip_memory[2][*][3][*][0]",
    "kip_memory[2][*][3][*][1]",
}
"""Numbers that are never negative."""


def allowed(place: SnapshotPlace) -> set[str]:
    """Return the kinds of JSON that may stand at *place*."""
    kinds = {kind_of(place.value())}
    if place.pattern in NULLABLE:
        kinds = {"nothing"} | NULLABLE[place.pattern]
    return kinds - ({"text"} if place.pattern not in FREE_TEXT else set()) - ({"list"} if is_row(place) else set())


def is_row(place: SnapshotPlace) -> bool:
    """Return whether the list at *place* has a fixed number of items."""
    return isinstance(place.value(), list) and place.pattern not in LISTS


@each_stored
def test_a_value_of_another_kind_is_refused_by_its_path(file: Path) -> None:
    """Each value in turn is replaced by every other kind of JSON, each word by one that is unknown, each row by []."""
    broken = [
        (place.path, refused_at(place.replaced(value)))
        for place in places(file)
        for kind, value in JSON_KINDS.items()
        if kind not in allowed(place)
    ]

    assert [path for path, refused in broken] == [refused for path, refused in broken]


@each_stored
def test_a_missing_value_is_refused_by_its_path(file: Path) -> None:
    """Each member of an object in turn is left out, and each item of a row: the path is the member's, or the row's."""
    for place in places(file):
        parent = SnapshotPlace(file, place.way[:-1])
        if isinstance(place.way[-1], str):
            assert refused_at(place.without()) == place.path
        elif is_row(parent):
            assert refused_at(place.without()) == parent.path


@each_stored
def test_an_unknown_member_is_refused_by_its_path(file: Path) -> None:
    """An object has the members that it has, and no others: they would be lost."""
    for place in [
        SnapshotPlace(file, ("nonsense",)),
        *(SnapshotPlace(file, (*p.way, "nonsense")) for p in places(file)),
    ]:
        if isinstance(reach(snapshot_in(file), place.way[:-1]), dict):
            assert refused_at(place.replaced(1)) == place.path


@each_stored
def test_a_number_that_is_out_of_range_is_refused_by_its_path(file: Path) -> None:
    """Numbers fit into 64 bits, and some of them are never negative."""
    for place in places(file):
        if kind_of(place.value()) == "number" and place.way != ("sharestate_snapshot",):
            assert refused_at(place.replaced(2**63)) == place.path
            assert refused_at(place.replaced(-(2**63) - 1)) == place.path
            if place.pattern in COUNTS:
                assert refused_at(place.replaced(-1)) == place.path


@each_stored
@pytest.mark.parametrize("version", [0, 6, -1, 10**20])
def test_another_version_is_refused(file: Path, version: int) -> None:
    """A snapshot of a version that is not known is not guessed at."""
    assert refused_at(SnapshotPlace(file, ("sharestate_snapshot",)).replaced(version)) == "sharestate_snapshot"


@pytest.mark.parametrize("text", ["", " ", "{", "[]", "7", "null", '"text"', "NaN", "[" * 9999, "\x00", "{}{}"])
def test_a_text_that_is_not_a_snapshot_is_refused(text: str) -> None:
    """Any other text is refused with a typed error whose field is the whole."""
    with pytest.raises(SnapshotError) as refused:
        Snapshot.from_json(text)
    assert refused.value.field == ""


EXPIRED: Final = STORED[0].with_name("v3-fired-locks.json")
"""
Its cells: 0 archived; 1 held with lock 3, 2 with lock 2; 3 going back to 2, by write 0; 4 available; 5 held with
lock 1; 6 going back to 5, by write 0; 7 available. Writes 1 and 2 are final.
"""

LIMIT: Final = STORED[0].with_name("v3-record-limit.json")
PENDING: Final = STORED[0].with_name("v3-read-pending.json")

Edit = tuple[tuple[Step, ...], object]

CONTRADICTIONS: Final[list[tuple[str, Path, list[Edit], set[str]]]] = [
    ("a cell that is not there", EXPIRED, [(("batches", 1, 3), [[1, 8]])], {"batches[1][3]"}),
    ("a cell that is used by none", EXPIRED, [(("batches", 2, 3), [[1, 4]])], {"cells", "cells[7]"}),
    ("the same cell twice", EXPIRED, [(("cells", 7), [0, 2, "", None, None, None, False])], {"cells", "cells[7]"}),
    ("a cell that goes back to itself", EXPIRED, [(("cells", 3, 5), 3)], {"cells[3][5]"}),
    ("a cell that goes back to a later one", EXPIRED, [(("cells", 3, 5), 5)], {"cells[3][5]"}),
    ("going back to what nobody holds", EXPIRED, [(("cells", 3, 5), 0)], {"cells[3][5]", "batches"}),
    ("going back without a write", EXPIRED, [(("cells", 3, 4), None)], {"cells[3]", "cells[3][5]", "batches"}),
    (
        "going back to what has no lock",
        EXPIRED,
        [(("cells", 5, 3), None)],
        {"cells[5]", "cells[5][3]", "cells[6][5]", "batches"},
    ),
    ("going back to another lock", EXPIRED, [(("cells", 3, 5), 1)], {"cells[3][5]", "batches"}),
    (
        "going back to what is in flight",
        EXPIRED,
        [(("cells", 5, 4), 0)],
        {"cells[5]", "cells[5][4]", "cells[6][5]", "batches"},
    ),
    (
        "going back to a lock that has expired",
        EXPIRED,
        [(("cells", 5, 6), True)],
        {"cells[5]", "cells[5][6]", "cells[6][5]", "batches"},
    ),
    (
        "nothing held, and a lock that has expired",
        EXPIRED,
        [(("cells", 7, 6), True)],
        {"cells[7]", "cells[7][6]", "batches"},
    ),
    (
        "nothing held, and something to go back to",
        EXPIRED,
        [(("cells", 7, 5), 2)],
        {"cells[7]", "cells[7][5]", "batches"},
    ),
    ("an owner of what is available", EXPIRED, [(("cells", 7, 2), "m1")], {"cells[7]", "cells[7][2]", "batches"}),
    ("a lock that is not there", EXPIRED, [(("cells", 1, 3), 0)], {"cells[1][3]"}),
    ("a lock of another batch", EXPIRED, [(("cells", 1, 3), 1)], {"cells[1][3]", "batches"}),
    ("a lock to come", EXPIRED, [(("next_lock",), 3)], {"next_lock", "cells[1][3]", "locks[2][0]"}),
    (
        "a lock that is used by none",
        EXPIRED,
        [(("locks",), [[0, 5], [1, 10_000], [2, 10_000], [3, 10_500]])],
        {"locks", "locks[0]"},
    ),
    (
        "the same lock twice",
        EXPIRED,
        [(("locks",), [[1, 10_000], [2, 10_000], [3, 10_500], [3, 5]])],
        {"locks", "locks[3]", "locks[3][0]"},
    ),
    (
        "a lock that does not ascend",
        EXPIRED,
        [(("locks",), [[2, 10_000], [1, 10_000], [3, 10_500]])],
        {"locks", "locks[1]", "locks[1][0]"},
    ),
    ("a write that is not there", EXPIRED, [(("cells", 3, 4), 7)], {"cells[3][4]"}),
    ("a write that is final", EXPIRED, [(("cells", 3, 4), 1)], {"cells[3][4]"}),
    ("a write to come", EXPIRED, [(("next_write",), 2)], {"next_write", "writes[2][0]"}),
    ("the same write twice", EXPIRED, [(("writes", 2, 0), 1)], {"writes", "writes[2]", "writes[2][0]"}),
    (
        "a write that does not ascend",
        EXPIRED,
        [(("writes", 1, 0), 2), (("writes", 2, 0), 1)],
        {"writes", "writes[2]", "writes[2][0]"},
    ),
    ("a final write with records", EXPIRED, [(("writes", 1, 2), [[0, 1]])], {"writes", "writes[1]", "writes[1][2]"}),
    (
        "a write of what is not cached",
        EXPIRED,
        [(("writes", 0, 2), [[5, 9], [2, 3], [30, 31]])],
        {"writes[0][2]", "writes[0][2][2]"},
    ),
    (
        "a write across two batches",
        EXPIRED,
        [(("writes", 0, 2), [[5, 9], [2, 5]])],
        {"writes[0][2]", "writes[0][2][1]"},
    ),
    (
        "a write of a reversed range",
        EXPIRED,
        [(("writes", 0, 2), [[5, 9], [2, 3], [4, 3]])],
        {"writes[0][2]", "writes[0][2][2]"},
    ),
    (
        "a write that misses a record",
        EXPIRED,
        [(("writes", 0, 2), [[5, 9], [2, 2]])],
        {"writes[0][2]", "writes[0]", "cells[3][4]"},
    ),
    (
        "a write that misses a batch",
        EXPIRED,
        [(("writes", 0, 2), [[2, 3]])],
        {"writes[0][2]", "writes[0]", "cells[6][4]"},
    ),
    ("runs that are too short", EXPIRED, [(("batches", 0, 3), [[1, 0], [1, 1], [2, 3]])], {"batches[0][3]"}),
    ("runs that are too long", EXPIRED, [(("batches", 0, 3, 3, 0), 2)], {"batches[0][3]"}),
    (
        "runs that are not merged",
        EXPIRED,
        [(("batches", 0, 3), [[1, 0], [1, 1], [1, 3], [1, 3], [1, 4]])],
        {"batches", "batches[0][3]"},
    ),
    ("a whole batch with two cells", EXPIRED, [(("batches", 1, 3), [[1, 6], [1, 6]])], {"batches[1][3]"}),
    (
        "a reversed batch",
        EXPIRED,
        [(("batches", 2, 0), 25)],
        {"batches", "batches[2]", "batches[2][0]", "batches[2][1]"},
    ),
    (
        "an empty batch",
        LIMIT,
        [(("batches", 1), [10, 9, True, []])],
        {"batches", "batches[1]", "batches[1][3]", "batches[1][1]"},
    ),
    ("batches that overlap", EXPIRED, [(("batches", 2, 0), 9)], {"batches", "batches[2]", "batches[2][0]"}),
    ("a batch twice", EXPIRED, [(("batches",), "twice")], {"batches", "batches[3]", "batches[3][0]"}),
    ("batches that do not ascend", EXPIRED, [(("batches",), "reversed")], {"batches", "batches[1]", "batches[1][0]"}),
    (
        "a batch larger than is ever split",
        EXPIRED,
        [(("split_limit",), 4)],
        {"split_limit", "batches", "batches[0]", "batches[0][2]", "batches[0][3]"},
    ),
    ("no batch to be split at all", PENDING, [(("split_limit",), 0)], {"split_limit"}),
    ("a batch beyond the end", EXPIRED, [(("end_offset",), 23)], {"end_offset", "batches"}),
    ("a start beyond the end", EXPIRED, [(("start_offset",), 25)], {"start_offset", "end_offset", "batches"}),
    ("a start that is no end where nothing is cached", PENDING, [(("end_offset",), 1)], {"end_offset", "batches"}),
    ("nothing to look for, and something available", EXPIRED, [(("find_next",), False)], {"find_next", "batches"}),
    ("records before they were read", EXPIRED, [(("lifecycle",), "EMPTY")], {"lifecycle", "batches"}),
    ("records that could not be read", EXPIRED, [(("lifecycle",), "FAILED")], {"lifecycle", "batches"}),
    ("a read pending while active", EXPIRED, [(("is_read_pending",), True)], {"is_read_pending", "lifecycle"}),
    ("initializing, and no read pending", PENDING, [(("is_read_pending",), False)], {"is_read_pending", "lifecycle"}),
    ("a read pending before initializing", PENDING, [(("lifecycle",), "EMPTY")], {"is_read_pending", "lifecycle"}),
]
"""What contradicts itself, and the fields that may be named for it."""


def edited(file: Path, edits: list[Edit]) -> str:
    """Return the snapshot of *file* with *edits*."""
    snapshot = json.loads(stored(file)["snapshot"])
    for way, value in edits:
        old = reach(snapshot, way)
        rows = {"twice": [*old, old[-1]], "reversed": old[::-1]} if old and isinstance(old, list) else {}
        reach(snapshot, way[:-1])[way[-1]] = rows.get(value, value) if isinstance(value, str) else value
    return json.dumps(snapshot)


@pytest.mark.parametrize(
    ("file", "edits", "fields"), [row[1:] for row in CONTRADICTIONS], ids=[row[0] for row in CONTRADICTIONS]
)
def test_a_snapshot_that_contradicts_itself_is_refused(file: Path, edits: list[Edit], fields: set[str]) -> None:
    """Rows that refer to nothing, or in a circle, batches that overlap, numbers to come: nothing is made."""
    assert refused_at(edited(file, edits)) in fields


def test_the_healed_count_has_to_be_right() -> None:
    """Without quirk B22 the complete count is that of the terminal records, or the snapshot is refused."""
    healed = EXPIRED.with_name("v3-archived-in-flight.json")

    assert refused_at(edited(healed, [(("delivery_complete_count",), 1)])) in {"delivery_complete_count", "batches"}


def test_a_batch_of_countless_records_is_refused_in_little_memory() -> None:
    """A split batch has as many records as may be split at most, so that a short line does not ask for much."""
    size = 2**40
    line = edited(LIMIT, [(("end_offset",), size), (("batches", 1), [5, size, True, [[1, 3], [size - 5, 4]]])])

    assert refused_at(line) in {"batches[1]", "batches[1][1]", "batches[1][2]", "batches[1][3]", "batches[1][3][1][0]"}


# ---- what is taken can be gone on with


def variants(value: Any) -> list[Any]:  # noqa: ANN401 - JSON
    """Return what could stand in the place of *value* as far as its kind goes."""
    match value:
        case bool():
            return [not value]
        case int():
            return [value + 1, value - 1, 0, value + 100]
        case None:
            return [0, 1]
        case list():
            shorter = [value[:index] + value[index + 1 :] for index in range(len(value))]
            return [*shorter, [*value, *value[-1:]], value[::-1]]
        case _:
            return []


def shake(partition: SharePartition) -> None:
    """Do all sorts of things to *partition*, and check it after each."""
    now_ms = partition.snapshot().now_ms + 1
    log = [RecordBatch(first, first + 4) for first in range(0, 40, 5)]

    def acquire() -> None:
        fetched = FetchedRecords(fetch_offset=max(0, partition.next_fetch_offset()), batches=log)
        with suppress(SplitLimitError):
            partition.acquire("m9", fetched, now_ms=now_ms, max_records=50)

    def answer() -> None:
        for index, write in enumerate(partition.snapshot().writes[:3]):
            if index:
                partition.write_succeeded(write.number)
            else:
                partition.write_failed(write.number, ErrorCode.NOT_COORDINATOR)

    def expire() -> None:
        for _ in range(20):
            partition.expire_next(now_ms=now_ms)

    def lose() -> None:
        partition.advance_log_start(22)
        partition.release("m1", now_ms=now_ms)

    for action in (acquire, answer, expire, answer, acquire, lose, answer):
        action()
        now_ms += 30_000
        partition.check()


@each_stored
def test_a_changed_snapshot_is_refused_or_taken_whole(file: Path) -> None:
    """Each value but version and profile is changed a little: refused, or all is taken and can be gone on with."""
    for place in places(file):
        for value in variants(place.value()) if place.way[0] not in {"sharestate_snapshot", "profile"} else ():
            line = place.replaced(value)
            if refused_at(line) is not None:
                continue
            partition = restored(line)
            assert json.loads(partition.snapshot().to_json()) == json.loads(line), (place.path, value)
            shake(partition)


def test_a_refused_snapshot_leaves_the_profiles_alone() -> None:
    """Refusing is no state of anything: the same snapshot is refused again, and a good one taken in between."""
    snapshot = Snapshot.from_json(stored(EXPIRED)["snapshot"])

    for _ in range(2):
        with pytest.raises(SnapshotError):
            SharePartition.restore(snapshot, profile=KAFKA_4_2)
        assert SharePartition.restore(snapshot, profile=snapshot.profile).snapshot() == snapshot
