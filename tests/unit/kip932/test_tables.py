"""The KIP's tables as data, held against excerpts of the KIP itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from sharestate import MalformedInputError
from sharestate.kip932 import (
    TABLES,
    Caption,
    Printed,
    Row,
    Source,
    Table,
    read_scenario,
    read_table,
    scenario_from_json,
    table_from_json,
)

EXCERPTS = Path(__file__).parents[2] / "data/kip"
NO_BREAK_SPACE = "\u00a0"
BULLET = "  \u2022 "

FURNITURE = {"...", "Code Block", "Operation", "State changes", "Cumulative state", "Control records"} | {
    "WriteShareGroupState request"
}
"""What stands between the texts of a table: heads of columns, and what an export of the KIP leaves of its layout."""


def excerpt(source: Source) -> dict[int, str]:
    """Return the lines of *source* that are not blank, by their numbers."""
    rows = (EXCERPTS / source.file).with_suffix(".tsv").read_text(encoding="utf-8").split("\n")
    numbered = (row.split("\t", 1) for row in rows if row)
    lines = {int(number): line.replace(NO_BREAK_SPACE, " ").rstrip() for number, line in numbered}
    first, last = source.lines
    return {number: lines[number] for number in range(first, last + 1) if lines[number]}


def source_of(printed: Printed, table: Table) -> Source:
    """Return where *printed* stands."""
    return Source(file=table.source.file, lines=printed.lines)


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest) -> Table:
    """Each of the tables."""
    return read_table(request.param)


def test_every_text_is_printed_where_it_says(table: Table) -> None:
    """Each text stands in the KIP, letter for letter, at its lines; blank lines and bullets aside."""
    for printed in table.printed:
        lines = excerpt(source_of(printed, table)).values()
        assert printed.text == "\n".join(line.removeprefix(BULLET) for line in lines), printed.lines


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [("write", 126, 363), ("control", 632, 939), ("checkpoint", 377, 543), ("checkpoint", 567, 622)],
)
def test_every_line_of_a_table_belongs_to_one_text(name: str, first: int, last: int) -> None:
    """Each line of a table that is no furniture belongs to exactly one text."""
    table = read_table(name)
    lines = excerpt(Source(file=table.source.file, lines=(first, last)))
    texts = {number for number, line in lines.items() if line not in FURNITURE}

    told = [number for printed in table.printed for number in excerpt(source_of(printed, table))]

    assert sorted(number for number in told if first <= number <= last) == sorted(texts)


def test_rows_stand_where_they_say(table: Table) -> None:
    """The texts of a row lie within its lines, but for checkpoints that are printed below their table."""
    for row in table.rows:
        first, last = row.source.lines
        cells = [cell for cell in row.printed if table.name != "checkpoint" or cell not in row.written]
        assert [cell.lines[0] for cell in cells] == sorted(cell.lines[0] for cell in cells)
        assert (cells[0].lines[0], cells[-1].lines[1]) == (first, last)


def test_the_heads_of_the_columns_are_printed() -> None:
    """The columns have the KIP's heads, in its order."""
    for name, lines in (("write", (127, 139)), ("control", (636, 653))):
        table = read_table(name)
        heads = [line for line in excerpt(Source(file=table.source.file, lines=lines)).values() if line in FURNITURE]
        assert [head for head in heads if head != "..."] == list(table.columns)


# ---- the second copy of the write table

PUNCTUATION = re.compile(r"[\s{}\[\],]")


def bare(*texts: str) -> str:
    """Return *texts* in one, without white space, commas and brackets, which the copy has lost here and there."""
    return "".join(PUNCTUATION.sub("", text) for text in texts if text != "Code Block")


def kept(row: Row, copy: Source) -> list[str]:
    """Return the texts of *row* that *copy* has not lost."""
    cells = {"operation": row.operation, "state_changes": row.state_changes, "cumulative_state": row.cumulative_state}
    texts = [cell.text for name, cell in cells.items() if cell is not None and name not in copy.lost]
    return texts + [cell.text for cell in row.written]


def test_the_copy_of_the_write_table_says_the_same() -> None:
    """The other document has every row, less what is listed as lost."""
    for row in read_table("write").rows:
        (copy,) = row.copies
        assert bare(*excerpt(copy).values()) == bare(*kept(row, copy))


def test_the_copies_of_captions_say_the_same() -> None:
    """The other document has these captions too."""
    captions = [caption for caption in read_table("write").captions if caption.copies]

    assert len(captions) == 3
    for caption in captions:
        assert [list(excerpt(copy).values()) for copy in caption.copies] == [[caption.printed.text]]


def test_the_copy_has_lost_two_operations_and_three_state_changes() -> None:
    """This is what is missing there."""
    lost = [(number, *copy.lost) for number, row in enumerate(read_table("write").rows, 1) for copy in row.copies]

    assert [each for each in lost if each[1:]] == [
        (3, "state_changes"),
        (6, "operation"),
        (11, "state_changes"),
        (12, "operation", "state_changes"),
    ]


# ---- the tables as they are


@pytest.mark.parametrize(
    ("name", "rows", "written"), [("write", 12, 8), ("control", 12, 9), ("checkpoint", 12, 2), ("keys", 6, 6)]
)
def test_the_tables_have_all_their_rows(name: str, rows: int, written: int) -> None:
    """The last row of the control records has two, one in place of the other."""
    table = read_table(name)

    assert (len(table.rows), sum(len(row.written) for row in table.rows)) == (rows, written)


CORRECTIONS = {
    ("write", 191): "Fetch records 110-119\nConsumer 1 gets 110-112, consumer 2 gets 113-118, consumer 3 gets 119",
    ("write", 225): "Note that what is persisted ends before 111 at this point. All records after this are in their "
    "first delivery attempt so this is an acceptable situation.",
    ("write", 230): "record 119 acknowledged",
    ("write", 319): "SPSO=110, SPEO=121, records 110-112 (acquired, delivery count 2), records 113-119 acknowledged, "
    "record 120 (acquired, delivery count 1)",
    ("write", 326): "SPSO=111, SPEO=121, records 111-112 (acquired, delivery count 2), records 113-119 acknowledged, "
    "record 120 (acquired, delivery count 1)",
    ("control", 665): 'SHARE_CHECKPOINT:\n{\n  "GroupId": "G1",\n  "CheckpointEpoch": 1,\n  "StartOffset": 100,\n'
    '  "EndOffset": 100,\n  "States": []\n}',
    ("control", 768): "record 119 acknowledged",
    ("checkpoint", 467): "record 119 acknowledged",
    ("keys", 97): "Version: 1\nGroupId: string\nTopicId: uuid\nPartition: int32\n"
    "DeltaIndex: uint8 (not included when choosing partition)",
}
SAME_AS = {("control", 871): 319, ("control", 883): 326, ("checkpoint", 519): 319, ("checkpoint", 531): 326}


def test_only_the_slips_of_the_kip_are_corrected() -> None:
    """Each slip of the KIP has its correction beside it."""
    expected = CORRECTIONS | {where: CORRECTIONS["write", line] for where, line in SAME_AS.items()}
    corrected = {
        (name, printed.lines[0]): printed.text_corrected
        for name in TABLES
        for printed in read_table(name).printed
        if printed.reasons
    }
    checkpoint = corrected.pop(("checkpoint", 583))

    assert corrected == expected
    assert '"CheckpointEpoch": 2,' in checkpoint


def test_a_text_without_a_correction_is_the_printed_one() -> None:
    """Without a reason the corrected text is the printed one."""
    for name in TABLES:
        assert all((each.text == each.text_corrected) == (not each.reasons) for each in read_table(name).printed)


def test_captions_stand_before_rows_that_are_there(table: Table) -> None:
    """A caption is printed after the row above it and before the row below it."""

    def ends_before(caption: Caption, row: Row) -> bool:
        return caption.printed.lines[1] < row.source.lines[0]

    for caption in table.captions:
        below = table.rows[caption.before - 1 : caption.before]
        above = table.rows[caption.before - 2 : caption.before - 1] if caption.before > 1 else ()
        assert caption.before <= len(table.rows) + 1
        assert all(ends_before(caption, row) for row in below)
        assert not any(ends_before(caption, row) for row in above)


def test_scenarios_have_a_step_for_each_row(table: Table) -> None:
    """Every row has commands of its own."""
    steps = read_scenario(table).steps

    assert len(steps) == len(table.rows)
    assert all(steps)


def test_other_tables_are_refused() -> None:
    """A table that the KIP does not have cannot be read."""
    with pytest.raises(MalformedInputError, match="expected one of write, control, checkpoint, keys") as caught:
        read_table("read")

    assert caught.value.field == "name"


@pytest.mark.parametrize(
    ("table", "field", "message"),
    [
        ("write", "table", "expected Table, such as read_table"),
        (evolve(read_table("write"), scenario="mine"), "table.scenario", "expected one of examples, keys"),
    ],
)
def test_a_scenario_is_read_for_a_table(table: Table, field: str, message: str) -> None:
    """A table's name is no table, and a scenario of one's own is not in the package."""
    with pytest.raises(MalformedInputError, match=message) as caught:
        read_scenario(table)

    assert caught.value.field == field


# ---- malformed tables and scenarios

PRINTED = {"lines": [3, 3], "text": "Fetch records 100-109"}
TABLE = {
    "kip932_table": 1,
    "name": "write",
    "title": PRINTED,
    "file": "a file",
    "lines": [1, 9],
    "scenario": "examples",
    "columns": [],
    "notes": [],
    "captions": [],
    "rows": [],
}
ROW = {"lines": [3, 3], "operation": PRINTED, "written": []}
CORRECTED = {**PRINTED, "text_corrected": "Fetch 100-109", "reasons": ["Shorter."]}


def test_a_correction_has_reasons_and_differs() -> None:
    """The corrected text is taken if it differs and says why."""
    assert table_from_json({**TABLE, "title": CORRECTED}).title.text_corrected == "Fetch 100-109"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kip932_table": 2}, "kip932_table"),
        ({"name": "read"}, "name"),
        ({"file": None}, "file"),
        ({"lines": [1]}, "lines"),
        ({"rows": [ROW, {**ROW, "written": [{**PRINTED, "text": 1}]}]}, "rows[1].written[0].text"),
        ({"captions": [{**PRINTED, "before": 0}]}, "captions[0].before"),
        ({"captions": [{**CORRECTED, "before": 1, "reasons": []}]}, "captions[0].text_corrected"),
        ({"title": {**CORRECTED, "reasons": []}}, "title.text_corrected"),
        ({"title": {**PRINTED, "reasons": ["None."]}}, "title.text_corrected"),
        ({"title": {**CORRECTED, "text_corrected": PRINTED["text"]}}, "title.text_corrected"),
    ],
)
def test_a_malformed_table_is_refused(change: dict[str, Any], field: str) -> None:
    """The part that is wrong is named by its path."""
    with pytest.raises(MalformedInputError) as caught:
        table_from_json({**TABLE, **change})

    assert caught.value.field == field


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ([], ""),
        ({"kip932_scenario": 2, "name": "a", "notes": [], "steps": []}, "kip932_scenario"),
        ({"kip932_scenario": 1, "name": "a", "notes": [], "steps": [[{"op": "wait"}]]}, "steps[0][0].op"),
        ({"kip932_scenario": 1, "name": "a", "notes": [], "steps": [[], [{"op": "advance"}]]}, "steps[1][0].ms"),
    ],
)
def test_a_malformed_scenario_is_refused(value: object, field: str) -> None:
    """The command that is wrong is named by its path."""
    with pytest.raises(MalformedInputError) as caught:
        scenario_from_json(value)

    assert caught.value.field == field
