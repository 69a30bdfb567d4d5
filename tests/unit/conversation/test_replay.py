"""Replay of traces, and known differences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sharestate import KAFKA_4_2, KAFKA_4_3, Profile
from sharestate.conversation import Level, ReplayVerdict, TraceOutcome, UnreadableFileError, replay
from sharestate.conversation.replay import judged, read_known_differences

DATA = Path(__file__).parents[2] / "data"
VECTOR = DATA / "vectors/section22/ex-10-a.jsonl"


def lines_of(file: Path) -> list[Any]:
    """Return the lines of a recorded trace."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def trace(path: Path, *lines: Any, **header: Any) -> Path:  # noqa: ANN401 - JSON
    """Write a trace of *lines* below *path*, with what *header* says of it."""
    first = {"trace": 1, "name": "t", "source": "", "status": "", "partitions": 1, "calls": 1, "flags": [], **header}
    path.joinpath("t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (first, *lines)))
    return path / "t.jsonl"


def replayed(file: Path, level: Level = Level.OBSERVABLE, profile: Profile = KAFKA_4_3) -> TraceOutcome:
    """Replay *file*."""
    return replay(file, profile, level)


@pytest.mark.parametrize("level", Level)
def test_a_recorded_vector_passes(level: Level) -> None:
    """The responses to a recording's requests are equal to Kafka's."""
    outcome = replayed(VECTOR, level)

    assert (outcome.name, outcome.verdict, outcome.deviation) == ("ex-10-a", ReplayVerdict.PASSED, None)


def test_the_first_difference_is_reported(tmp_path: Path) -> None:
    """The outcome has the line, its request and the place in the response; the replay stops there."""
    _, opened, acquired, *_ = lines_of(VECTOR)
    acquired["response"]["state"]["batches"][0][2][1] = 7

    outcome = replayed(trace(tmp_path, opened, acquired, "never read"))

    assert (outcome.verdict, outcome.file) == (ReplayVerdict.FAILED, str(tmp_path / "t.jsonl"))
    assert outcome.deviation is not None
    assert (outcome.deviation.line, outcome.deviation.request) == (3, acquired["request"])
    assert list(map(str, outcome.deviation.differences)) == ["state.batches[0].cell.delivery_count: expected 7, got 1"]


def test_internals_differ_at_level_full_only(tmp_path: Path) -> None:
    """A difference in internals counts at level full, and not at level observable."""
    _, opened, acquired, *_ = lines_of(VECTOR)
    acquired["response"]["state"]["internal"]["find_next"] = True
    file = trace(tmp_path, opened, acquired)

    assert replayed(file).verdict is ReplayVerdict.PASSED
    assert replayed(file, Level.FULL).verdict is ReplayVerdict.FAILED


def test_the_profile_decides_the_responses(tmp_path: Path) -> None:
    """Kafka 4.2 keeps the delivery limit that it was opened with; 4.3 takes over the new one (KIP-1240)."""
    fetch = {"member": "m1", "batch_size": 9, "max_records": 9, "fetch_offset": 0, "batches": [[0, 4]]}
    expired = {"start_offset": 0, "delivery_complete_count": 5, "state_epoch": 0, "leader_epoch": 0}
    batches = [[0, 4, 4, 1]]
    file = trace(
        tmp_path,
        {
            "request": {"op": "open", "lifecycle": "ACTIVE", "quiet": True},
            "response": {"result": None, "events": [], "state": None},
        },
        {
            "request": {"op": "configure", "config": {"delivery_count_limit": 1}, "quiet": True},
            "response": {"result": None, "events": [], "state": None},
        },
        {
            "request": {"op": "acquire", **fetch, "quiet": True},
            "response": {"result": {"count": 5, "acquired": [[0, 4, 1]]}, "events": [], "state": None},
        },
        {
            "request": {"op": "advance", "ms": 30_001, "quiet": True},
            "response": {
                "result": None,
                "events": [["write", {"write": 0, **expired, "state_batches": batches}, "ok"], ["wake"]],
                "state": None,
            },
        },
    )

    assert replayed(file).verdict is ReplayVerdict.PASSED
    assert replayed(file, profile=KAFKA_4_2).verdict is ReplayVerdict.FAILED


def test_notes_of_the_recorder_are_not_sent(tmp_path: Path) -> None:
    """White-box calls and changes from outside are left out."""
    header, *steps = lines_of(VECTOR)
    beside = [
        {"request": {"op": "internal", "method": "canMoveStartOffset"}, "response": {"result": None}},
        {"request": {"op": "external"}, "response": {"state": {}}},
    ]

    assert replayed(trace(tmp_path, steps[0], *beside, *steps[1:], **header)).verdict is ReplayVerdict.PASSED


@pytest.mark.parametrize(
    "flag",
    ["spy", "internal-call", "stale-timer-run", "external-change", "concurrent", "real-timer", "nested-completion"],
)
def test_a_trace_that_cannot_be_replayed_is_skipped(tmp_path: Path, flag: str) -> None:
    """The flag that forbids a replay is the reason; other flags do not."""
    outcome = replayed(trace(tmp_path, *lines_of(VECTOR)[1:], flags=["helper-call", flag]))

    assert (outcome.verdict, outcome.reason) == (ReplayVerdict.SKIPPED, flag)


def test_a_trace_without_calls_is_skipped(tmp_path: Path) -> None:
    """A trace that calls no public method compares nothing, whatever its responses are."""
    opened = {"request": {"op": "open"}, "response": {"result": "nonsense"}}

    assert replayed(trace(tmp_path, opened)).reason == "no public call"


def test_a_bad_request_is_compared_too(tmp_path: Path) -> None:
    """The answer to a bad request is a response like any other."""
    bad = {"line": 2, "field": "key", "message": "no share partition is open with this key"}
    file = trace(tmp_path, {"request": {"op": "state"}, "response": {"bad_request": bad}})

    assert replayed(file).verdict is ReplayVerdict.PASSED


def known(path: Path, **members: Any) -> Path:  # noqa: ANN401 - JSON
    """Write a list of known differences with one row below *path*."""
    row = {"name": "t", "row": "B0", "reason": "Because."}
    content = {"known_differences": 2, "profiles": ["kafka-4.3"], "level": "observable", "rows": [row], **members}
    path.joinpath("known.json").write_text(json.dumps(content, indent=1))
    return path / "known.json"


def outcome(verdict: ReplayVerdict) -> TraceOutcome:
    """Return an outcome of the trace ``t``."""
    return TraceOutcome(file="t.jsonl", name="t", verdict=verdict)


def test_a_known_difference_must_be_there(tmp_path: Path) -> None:
    """A known difference is no failure, its absence is one, and a trace that was skipped stays skipped."""
    rows = read_known_differences(known(tmp_path)).by_name(KAFKA_4_3, Level.OBSERVABLE)

    differs, agrees, skipped = (
        judged(outcome(verdict), rows)
        for verdict in (ReplayVerdict.FAILED, ReplayVerdict.PASSED, ReplayVerdict.SKIPPED)
    )

    assert (differs.verdict, differs.row, differs.reason) == (ReplayVerdict.KNOWN, "B0", "Because.")
    assert (agrees.verdict, agrees.reason) == (ReplayVerdict.FAILED, "no longer differs: B0")
    assert skipped.verdict is ReplayVerdict.SKIPPED


def test_traces_that_are_not_in_the_list_keep_their_verdict(tmp_path: Path) -> None:
    """A list of known differences changes nothing for other traces."""
    rows = read_known_differences(known(tmp_path, rows=[])).by_name(KAFKA_4_3, Level.OBSERVABLE)

    assert [judged(outcome(verdict), rows).verdict for verdict in ReplayVerdict] == list(ReplayVerdict)


@pytest.mark.parametrize(
    ("level_of_list", "profile", "level", "holds"),
    [
        ("observable", KAFKA_4_3, Level.OBSERVABLE, True),
        ("observable", KAFKA_4_3, Level.FULL, True),
        ("full", KAFKA_4_3, Level.FULL, True),
        ("full", KAFKA_4_3, Level.OBSERVABLE, False),
        ("observable", KAFKA_4_3.healed, Level.OBSERVABLE, False),
    ],
)
def test_a_list_holds_for_its_profile_and_level(
    tmp_path: Path,
    level_of_list: str,
    profile: Profile,
    level: Level,
    holds: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """A difference at level observable is one at level full too, and not the other way round."""
    differences = read_known_differences(known(tmp_path, level=level_of_list))

    assert bool(differences.by_name(profile, level)) is holds


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"known_differences": 1}, "known_differences"),
        ({"level": "vague"}, "level"),
        ({"profiles": None}, "profiles"),
        ({"profiles": [4]}, "profiles[0]"),
        ({"rows": [{"name": "t", "row": "B0"}]}, "rows[0].reason"),
    ],
)
def test_a_bad_list_is_refused_with_its_place(tmp_path: Path, members: dict[str, Any], field: str) -> None:
    """The error has the file and the field."""
    file = known(tmp_path, **members)

    with pytest.raises(UnreadableFileError) as refusal:
        read_known_differences(file)

    assert (refusal.value.file, refusal.value.field) == (str(file), field)


def test_a_missing_list_is_reported(tmp_path: Path) -> None:
    """The error has the file and the operating system's message."""
    with pytest.raises(UnreadableFileError, match=r"none\.json: No such file"):
        read_known_differences(tmp_path / "none.json")


def test_share_sessions_are_replayed_by_their_rules(tmp_path: Path) -> None:
    """By those of the profile's name; a profile of one's own has none, and healed ones answer otherwise (S1)."""
    fetch = {"op": "fetch", "partitions": [["AAECAwQFBgcICQoLDA0ODw", 0, "t"]] * 2}
    empty = {"sessions": [], "partitions": 0, "members": {}, "connections": {}}
    exchanges = [
        {"request": {"op": "open"}, "response": {"result": None, "events": [], "state": empty}},
        {
            "request": fetch,
            "response": {"result": {"raised": {"error": "UNKNOWN_SERVER_ERROR"}}, "events": [], "state": empty},
        },
    ]
    file = trace(tmp_path, *exchanges, source="Kafka 4.3.1 SharePartitionManager, ShareSessionCache")

    verdicts = [
        replay(file, profile, Level.OBSERVABLE).verdict
        for profile in (KAFKA_4_3, KAFKA_4_3.healed, Profile(name="own"))
    ]

    assert verdicts == [ReplayVerdict.PASSED, ReplayVerdict.FAILED, ReplayVerdict.SKIPPED]
