"""Snapshots of earlier versions: they are read as they were meant, and written as version 5."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharestate import Quirk, Snapshot
from tests.support.stored_snapshots import (
    JSON_KINDS,
    OF_VERSION_1,
    OF_VERSION_2,
    OF_VERSION_3,
    OF_VERSION_4,
    OLDER,
    SNAPSHOTS,
    SnapshotPlace,
    path_of,
    refused_at,
    restored,
    stored,
)

each_before_3 = pytest.mark.parametrize("file", OF_VERSION_1 + OF_VERSION_2, ids=lambda file: file.stem)
each_older = pytest.mark.parametrize("file", OLDER, ids=lambda file: file.stem)

BEFORE_4_4 = frozenset(Quirk) - {Quirk.ARCHIVES_UNCOUNTED}


@each_older
def test_a_snapshot_of_an_older_version_is_written_as_version_5(file: Path) -> None:
    """Restored and taken again it is what version 5 writes of the same share partition."""
    partition = restored(stored(file)["snapshot"])

    assert partition.snapshot().to_json() == stored(SNAPSHOTS / f"v5-{file.name[3:]}")["snapshot"]


@pytest.mark.parametrize("file", OF_VERSION_1, ids=lambda file: file.stem)
def test_a_snapshot_of_version_1_says_nothing_of_write_policies(file: Path) -> None:
    """What version 1 did not know is refused in it by its path."""
    for way, value in ((("kip_memory",), None), (("profile", "write_policy"), 7), (("profile", "expires_per_call"), 0)):
        assert refused_at(SnapshotPlace(file, way).replaced(value)) == path_of(way)


@pytest.mark.parametrize(
    ("quirks", "read"),
    [
        (["B6", "B9b", "B10", "B15", "B22"], BEFORE_4_4),
        (["B6", "B9b", "B10", "B15"], frozenset(map(Quirk, ["B6", "B9b", "B10", "B15"]))),
        ([], frozenset()),
    ],
)
@each_before_3
def test_a_profile_with_every_quirk_of_version_2_has_every_quirk(
    file: Path, quirks: list[str], read: frozenset[Quirk]
) -> None:
    """Version 2 knew no B17: a release of Kafka shows it, and what is healed of something is healed of it too."""
    line = SnapshotPlace(file, ("profile", "quirks")).replaced(quirks)

    assert Snapshot.from_json(line).profile.quirks == read


@pytest.mark.parametrize("file", OF_VERSION_3, ids=lambda file: file.stem)
def test_a_snapshot_of_version_3_says_nothing_of_dead_letters(file: Path) -> None:
    """What version 3 did not know is refused in it by its path."""
    for way, value in (
        (("next_dead_letter",), 0),
        (("dead_letters",), []),
        (("profile", "has_dead_letter_queue"), False),
        (("config", "dead_letter_queue"), False),
    ):
        assert refused_at(SnapshotPlace(file, way).replaced(value)) == path_of(way)
    assert refused_at(SnapshotPlace(file, ("profile", "quirks")).replaced(["B6", "B23"])) == "profile.quirks[1]"
    assert refused_at(SnapshotPlace(file, ("writes",)).replaced({})) == "writes"
    assert refused_at(SnapshotPlace(file, ("writes",)).replaced([7])) == "writes[0]"


@each_before_3
def test_a_quirk_that_version_2_did_not_know_is_refused_in_it(file: Path) -> None:
    """The error names its place."""
    assert refused_at(SnapshotPlace(file, ("profile", "quirks")).replaced(["B6", "B17"])) == "profile.quirks[1]"
    for nonsense in JSON_KINDS.values():
        if not isinstance(nonsense, list):
            assert refused_at(SnapshotPlace(file, ("profile", "quirks")).replaced(nonsense)) == "profile.quirks"


@pytest.mark.parametrize(
    ("quirks", "more"),
    [
        (["B6", "B9b", "B10", "B15", "B17", "B22"], ["F4", "F5", "F6", "F7"]),
        (["B6", "B9b", "B10", "B15", "B17", "B22", "B23"], ["F4", "F5", "F6", "F7"]),
        (["B6", "B9b", "B10", "B15", "B17"], []),
        ([], []),
    ],
)
@pytest.mark.parametrize("file", OF_VERSION_4, ids=lambda file: file.stem)
def test_a_profile_with_every_quirk_of_version_4_stalls_as_its_release_does(
    file: Path, quirks: list[str], more: list[str]
) -> None:
    """Version 4 knew no F4 to F7: a release of Kafka shows them, and what is healed of something is healed of them."""
    line = SnapshotPlace(file, ("profile", "quirks")).replaced(quirks)

    assert Snapshot.from_json(line).profile.quirks == frozenset(map(Quirk, [*quirks, *more]))


@pytest.mark.parametrize("quirk", ["F4", "F5", "F6", "F7"])
@pytest.mark.parametrize("file", OF_VERSION_4, ids=lambda file: file.stem)
def test_a_quirk_that_version_4_did_not_know_is_refused_in_it(file: Path, quirk: str) -> None:
    """The error names its place."""
    assert refused_at(SnapshotPlace(file, ("profile", "quirks")).replaced(["B6", quirk])) == "profile.quirks[1]"
