"""``sharestate assign``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sharestate.cli.commands import sharestate

JOINED = {
    "assignment": 1,
    "topics": {"orders": 5},
    "members": [
        {"id": "A", "topics": ["orders"], "target": {"orders": [0, 1, 2]}},
        {"id": "B", "topics": ["orders"], "target": {"orders": [3, 4]}},
        {"id": "C\x1b[2J", "topics": ["orders"]},
    ],
}


def assign(directory: Path, document: Any, *options: str) -> Result:  # noqa: ANN401 - JSON, or text that is not
    """Run the command with a file that has *document*."""
    file = directory / "group.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return CliRunner().invoke(sharestate, ["assign", *options, str(file)])


def test_a_table_shows_who_gets_what(tmp_path: Path) -> None:
    """A gives up a partition, and C, whose id cannot harm a terminal, gets it."""
    result = assign(tmp_path, JOINED)

    assert (result.exit_code, result.stderr) == (0, "")
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in result.stdout.splitlines() if "│" in line]
    assert rows == [
        ["A", "2", "2", "orders 1-2", "", "orders 0"],
        ["B", "2", "2", "orders 3-4", "", ""],
        [r"C\x1b[2J", "1", "1", "orders 0", "orders 0", ""],
    ]
    assert result.stdout.splitlines()[-1] == (
        "homogeneous: 3 members, 1 gained, 1 lost; 0 partitions under-shared, 0 members unfilled"
    )


def test_a_second_table_shows_what_is_under_shared(tmp_path: Path) -> None:
    """Partition 1 has one member, and should have two."""
    targets = {"A": [1], "B": [0], "D": [0]}
    members = [{"id": name, "topics": ["t"], "target": {"t": had}} for name, had in targets.items()]
    result = assign(tmp_path, {"assignment": 1, "topics": {"t": 2}, "members": members})

    assert any(line.strip() == "under-shared" for line in result.stdout.splitlines())
    assert "│ t     │         1 │       1 │     2 │" in result.stdout
    assert "1 partitions under-shared, 1 members unfilled" in result.stdout


def test_tables_have_as_many_rows_as_a_group_has_members(tmp_path: Path) -> None:
    """Of 1,500 members a thousand are shown, and of 120 single partitions 50; the last line counts all."""
    members = [{"id": f"m{number:04}", "topics": ["t"]} for number in range(1_500)]
    document = {"assignment": 1, "topics": {"t": 1}, "members": members}

    lines = assign(tmp_path, document).stdout.splitlines()

    assert sum("m0" in line for line in lines) == 1_000
    assert lines[-2] == "The first 1000 rows of each table; --json prints all."
    assert "1500 members" in lines[-1]
    members = [{"id": name, "topics": ["t"]} for name in "AB"]
    cells = assign(tmp_path, {"assignment": 1, "topics": {"t": 240}, "members": members}).stdout
    assert (" 98 " in cells, "..." in cells, " 100 " in cells, "240 gained" in cells) == (True, True, False, True)


def test_json_has_the_same(tmp_path: Path) -> None:
    """One document, with the version of its form."""
    report = json.loads(assign(tmp_path, JOINED, "--json").stdout)

    assert report.keys() == {"assignment", "type", "members", "under_shared"}
    assert [member["gained"] for member in report["members"]] == [{}, {}, {"orders": [0]}]


def test_javas_order_takes_ids(tmp_path: Path) -> None:
    """With ids the answer is that of Kafka 4.3.1's class; a topic by its name is refused."""
    topic = "Cz4dxsj3S3cfhVKMd-Cq2w"
    members = [{"id": name, "topics": [topic]} for name in ("m4", "m13", "m29", "m27", "m7")]
    group = {"assignment": 1, "topics": {topic: 2}, "members": members}
    found = assign(tmp_path, group, "--order", "java", "--json").stdout

    assert {member["id"]: member["partitions"][topic] for member in json.loads(found)["members"]} == {
        "m27": [0, 1],
        "m29": [1],
        "m4": [1],
        "m7": [0],
        "m13": [0],
    }
    assert assign(tmp_path, JOINED, "--order", "java").exit_code == 2


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "group.json: not JSON"),
        ('{"assignment": 1, "topics": {}}', "group.json: members: missing"),
        ('{"assignment": 2, "topics": {}, "members": []}', "group.json: assignment: expected version 1, got 2"),
        ({**JOINED, "topics": {}}, "the assignor fails: PartitionAssignorException: Members are subscribed to topic"),
        (
            {
                "assignment": 1,
                "topics": {"t": 1},
                "members": [{"id": "A", "topics": ["t"], "target": {"t": [5]}}, {"id": "B", "topics": ["t"]}],
            },
            "group.json: the assignor fails: NoSuchElementException",
        ),
    ],
)
def test_what_cannot_be_assigned_is_an_error(tmp_path: Path, document: Any, message: str) -> None:  # noqa: ANN401 - JSON
    """With file and field, or with what Kafka's assignor would throw; the exit code is 2."""
    result = assign(tmp_path, document)

    assert result.exit_code == 2
    assert message in result.stderr.replace("\n", " ")
