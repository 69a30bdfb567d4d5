"""What a leader does in the KIP's tables."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from sharestate import KAFKA_4_3, MalformedInputError, RecordState
from sharestate.kip932 import (
    TABLES,
    Printed,
    Row,
    RowRun,
    Scenario,
    TableRun,
    read_scenario,
    read_table,
    run_table,
    scenario_from_json,
)
from sharestate.kip932.states import RecordsState
from sharestate.values.profiles import KIP_932, KipWritePolicy, Profile

AVAILABLE, ACKNOWLEDGED = 0, 2

KIP_932_LONG = evolve(KIP_932, write_policy=KipWritePolicy(has_short_form=False))
"""The KIP's rules, but that a new SPSO is never written alone."""


def run(name: str, profile: Profile | None = None) -> TableRun:
    """Run a table."""
    return run_table(read_table(name), profile)


def requests(rows: tuple[RowRun, ...]) -> list[list[tuple[int, list[tuple[int, ...]]]]]:
    """Return start offset and state batches of what was written in each row."""
    return [
        [(each["StartOffset"], [tuple(b.values()) for b in each["StateBatches"]]) for each in row.written]
        for row in rows
    ]


@pytest.mark.parametrize("name", TABLES)
def test_the_leader_does_what_the_kip_says(name: str) -> None:
    """Every text of every row agrees with what the leader changes, shows and writes."""
    assert [(row.state_changes_agree, row.cumulative_state_agrees, row.written_agrees) for row in run(name).rows] == [
        (True, True, True) for _ in read_table(name).rows
    ]


def test_the_leader_writes_the_eight_requests() -> None:
    """These are the start offsets and ranges of the KIP's requests; four rows write nothing."""
    assert requests(run("write").rows) == [
        [(100, [])],
        [],
        [(110, [])],
        [],
        [(-1, [(110, 110, AVAILABLE, 1)])],
        [(-1, [(111, 118, AVAILABLE, 0), (119, 119, ACKNOWLEDGED, 1)])],
        [],
        [(-1, [(111, 112, AVAILABLE, 1)])],
        [(-1, [(113, 118, ACKNOWLEDGED, 1)])],
        [],
        [(-1, [(110, 110, ACKNOWLEDGED, 2)])],
        [(120, [])],
    ]


def test_a_broker_writes_something_else() -> None:
    """Kafka 4.3.1 writes what has changed, with the SPSO of before, record by record where a batch is split."""
    table = run("write", KAFKA_4_3)

    assert requests(table.rows) == [
        [],
        [],
        [(100, [(100, 109, ACKNOWLEDGED, 1)])],
        [],
        [(110, [(110, 110, AVAILABLE, 1)])],
        [(110, [(119, 119, ACKNOWLEDGED, 1)])],
        [],
        [(110, [(111, 111, AVAILABLE, 1)]), (110, [(112, 112, AVAILABLE, 1)])],
        [(110, [(113, 118, ACKNOWLEDGED, 1)])],
        [],
        [(110, [(110, 110, ACKNOWLEDGED, 2)])],
        [(111, [(111, 111, ACKNOWLEDGED, 2), (112, 112, ACKNOWLEDGED, 2)])],
    ]
    assert not table.agrees
    assert table.verdict == "4 of 12 rows, 0 of 8 requests as the KIP prints them; 5 corrections"


def test_a_broker_is_in_the_same_states() -> None:
    """Only what is written differs: the rows change the same records in the same way."""
    rows = run("write", KAFKA_4_3).rows

    assert all(row.state_changes_agree and row.cumulative_state_agrees for row in rows)


def disagreeing(table: TableRun) -> list[int]:
    """Return the numbers of the rows that do not agree."""
    return [number for number, row in enumerate(table.rows, 1) if not row.agrees]


@pytest.mark.parametrize(
    ("name", "profile", "rows"),
    [
        ("write", KIP_932_LONG, [3, 12]),
        ("write", evolve(KIP_932, expires_per_call=False), [8]),
        ("control", KIP_932, [3, 5, 6, 8, 9, 11, 12]),  # a checkpoint in row 3 changes all later epochs
        ("checkpoint", KAFKA_4_3, [8]),
        ("keys", KIP_932_LONG, [2, 3, 4, 5, 6]),  # as does a delta in row 2
    ],
)
def test_a_wrong_rule_disagrees(name: str, profile: Profile, rows: list[int]) -> None:
    """One rule that is not the KIP's, and the rows that need it no longer agree."""
    table = run(name, profile)

    assert disagreeing(table) == rows
    assert not table.agrees


@pytest.mark.parametrize("policy", [KipWritePolicy(amendments=()), KipWritePolicy(bound=3)])
def test_amendments_of_the_kip_change_no_row(policy: KipWritePolicy) -> None:
    """The amendments, and a bound on how far the SPSO gets ahead, are not seen in the KIP's table."""
    assert disagreeing(run("write", evolve(KIP_932, write_policy=policy))) == []


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("write", "12 of 12 rows, 8 of 8 requests as the KIP prints them; 5 corrections"),
        ("control", "12 of 12 rows, 9 of 9 records as the KIP prints them; 5 corrections"),
        ("checkpoint", "12 of 12 rows, 2 of 2 records as the KIP prints them; 4 corrections"),
        ("keys", "6 of 6 rows, 6 of 6 records as the KIP prints them; 1 correction"),
    ],
)
def test_the_verdict_counts(name: str, verdict: str) -> None:
    """Rows, what is written in them, and what the KIP got wrong."""
    assert run(name).verdict == verdict


def test_without_the_corrections_the_slips_disagree() -> None:
    """What the KIP prints where it slips is not what a leader does, plurals aside."""
    for name, numbers in (("write", [6]), ("control", [1, 6]), ("checkpoint", [6, 8])):
        table = read_table(name)
        assert disagreeing(run_table(evolve(table, rows=tuple(map(uncorrected, table.rows))))) == numbers


def uncorrected(row: Row) -> Row:
    """Return *row* as it is printed."""
    return evolve(
        row,
        state_changes=as_printed(row.state_changes),
        cumulative_state=as_printed(row.cumulative_state),
        written=tuple(evolve(each, text_corrected=each.text) for each in row.written),
    )


def as_printed(cell: Printed | None) -> Printed | None:
    """Return *cell* without its correction."""
    return None if cell is None else evolve(cell, text_corrected=cell.text)


@pytest.mark.parametrize("number", [1, 2])
def test_an_additional_request_disagrees(number: int) -> None:
    """A second request is one too many, and so is one where the KIP has none."""
    row = run("write").rows[number]
    request = run("write").rows[2].written[0]

    assert row.agrees
    assert not evolve(row, written=(*row.written, request)).agrees


# ---- scenarios of one's own


def scenario(*steps: list[dict[str, Any]]) -> Scenario:
    """Return a scenario from requests of the line protocol."""
    return scenario_from_json({"kip932_scenario": 1, "name": "own", "notes": [], "steps": list(steps)})


def test_a_changed_scenario_runs() -> None:
    """Consumer 1 accepts record 110 in row 5 where the KIP has it release the record; row 6 and later differ too."""
    table = read_table("write")
    given = read_scenario(table)
    accepted = scenario([{"op": "acknowledge", "member": "c1", "batches": [[110, 110, [1]]]}]).steps

    rows = run_table(
        evolve(table, rows=table.rows[:6]), scenario=evolve(given, steps=given.steps[:4] + accepted + given.steps[5:6])
    ).rows

    assert requests(rows[4:]) == [[(111, [])], [(-1, [(111, 118, AVAILABLE, 0), (119, 119, ACKNOWLEDGED, 1)])]]


def test_a_table_of_ones_own_runs() -> None:
    """A session is closed and the log start offset moves, which the KIP's scenarios do not have."""
    table = read_table("write")
    own = scenario(
        [
            {"op": "initialize", "lookup": {"latest": 100}},
            {"op": "acquire", "member": "c1", "fetch_offset": 100, "batches": [[100, 109]], "max_records": 500}
            | {"batch_size": 500},
        ],
        [{"op": "release", "member": "c1"}],
        [{"op": "log_start", "offset": 105}],
    )

    run = run_table(evolve(table, rows=table.rows[:3]), scenario=own)

    assert run.rows[1].step.state.records == (RecordsState(100, 109, RecordState.AVAILABLE, 1),)
    assert run.rows[2].step.state.start_offset == 105


@pytest.mark.parametrize(
    ("arguments", "field", "message"),
    [
        ({"scenario": scenario([])}, "scenario.steps", "expected 12 steps, one for each row, got 1"),
        (
            {"scenario": scenario(*[[{"op": "fence"}]] * 12)},
            "scenario.steps[0]",
            "expected one of Initialize, Acquire, Acknowledge, Release, LogStart, Advance, got Fence",
        ),
        ({"scenario": "examples"}, "scenario", "expected Scenario, such as "),
        ({"profile": "kafka-4.3"}, "profile", "expected Profile, such as KAFKA_4_3"),
        ({"table": "write"}, "table", "expected Table, such as "),
        ({"table": evolve(read_table("write"), name="mine")}, "table.name", "expected one of write, control"),
    ],
)
def test_a_wrong_argument_of_a_run_is_refused(arguments: dict[str, Any], field: str, message: str) -> None:
    """A wrong argument is named, before the leader runs a command."""
    with pytest.raises(MalformedInputError, match=message) as caught:
        run_table(**{"table": read_table("write"), **arguments})

    assert caught.value.field == field


# ---- as JSON


def test_a_row_of_the_write_table_as_json() -> None:
    """The KIP's texts, and the request with the KIP's names."""
    assert run("write").rows[5].to_json() == {
        "operation": "Acknowledge 119 (consumer 3)",
        "state_changes": {
            "text": "record 110 (available, delivery count 1), records 111-118 acquired, record 119 acknowledged",
            "text_corrected": "record 119 acknowledged",
        },
        "cumulative_state": {
            "text": "SPSO=110, SPEO=120, record 110 (available, delivery count 1), records 111-118 (acquired, "
            "delivery count 1), record 119 acknowledged",
            "text_corrected": "SPSO=110, SPEO=120, record 110 (available, delivery count 1), records 111-118 "
            "(acquired, delivery count 1), record 119 acknowledged",
        },
        "request": {
            "GroupId": "G1",
            "TopicId": "topic_uuid",
            "Partition": 0,
            "StartOffset": -1,
            "StateBatches": [
                {"BaseOffset": 111, "LastOffset": 118, "State": 0, "DeliveryCount": 0},
                {"BaseOffset": 119, "LastOffset": 119, "State": 2, "DeliveryCount": 1},
            ],
        },
    }


def test_rows_as_json_have_their_section() -> None:
    """Each row says which section of the KIP has it, and on demand which lines of which text."""
    assert run("write").to_json()[5]["source"] == {
        "section": 'KIP-932, "Examples with share-group state"',
        "url": "https://cwiki.apache.org/confluence/display/KAFKA/KIP-932%3A+Queues+for+Kafka"
        "#KIP932:QueuesforKafka-Exampleswithshare-groupstate",
        "row": 6,
    }
    assert (
        run("write").to_json(has_lines=True)[5]["source"].items()
        >= {
            "file": "001_291c6f4088378437.txt",
            "lines": [228, 255],
            "copies": [{"file": "002_655594441532aea3.txt", "lines": [105, 122]}],
        }.items()
    )


def test_a_row_without_a_request_has_null() -> None:
    """A row without a request has null in its place; an operation in two lines keeps both."""
    row = run("write").rows[3].to_json()

    assert row["request"] is None
    assert row["operation"] == (
        "Fetch records 110-119\nConsumer 1 get 110-112, consumer 2 gets 113-118, consumer 3 gets 119"
    )


def test_two_records_of_a_row_are_a_list() -> None:
    """The last row of the control records has a delta, and a checkpoint in place of it."""
    assert [list(each) for each in run("control").rows[11].to_json()["request"]] == [
        ["SHARE_DELTA"],
        ["SHARE_CHECKPOINT"],
    ]


def test_a_list_of_records_has_no_operations() -> None:
    """The list of record keys says nothing of states."""
    row = run("keys").rows[2].to_json()

    assert (row["operation"], row["state_changes"], row["cumulative_state"]) == (None, None, None)
    assert row["request"] == {
        "ShareDelta": {"key": "groupId:topicId:partition:deltaIndex=0", "value": "checkpointEpoch=1"}
    }
