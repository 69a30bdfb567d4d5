"""Trace files."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from sharestate.conversation import TraceHeader, UnreadableFileError, open_trace, write_trace

HEADER = {
    "trace": 1,
    "source": "by hand",
    "name": "t",
    "status": "SUCCESSFUL",
    "partitions": 1,
    "calls": 0,
    "flags": [],
}
STEP = {"request": {"op": "open"}, "response": {"result": None}}


def written(path: Path, *lines: Any) -> Path:  # noqa: ANN401 - JSON
    """Write *lines* to a file in *path* and return it; text as it is, anything else as JSON."""
    file = path / "t.jsonl"
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return file


def test_a_written_trace_can_be_read(tmp_path: Path) -> None:
    """A trace that was written is read as it was."""
    stream = io.StringIO()
    header = TraceHeader(name="t", source="by hand", status="SUCCESSFUL", partitions=1, calls=2, flags=("mock-time",))
    steps: list[tuple[Any, Any]] = [({"op": "open"}, {"result": None}), ({"op": "timers"}, {"result": 0})]
    write_trace(stream, header, steps)
    file = tmp_path / "t.jsonl"
    file.write_text(stream.getvalue())

    with open_trace(file) as trace:
        assert (trace.file, trace.header) == (str(file), header)
        assert [(step.line, step.request, step.response) for step in trace.steps] == [
            (2, *steps[0]),
            (3, *steps[1]),
        ]


def test_kafkas_header_is_written_back_as_it_was() -> None:
    """Header and steps of a recorded trace are written as they were recorded."""
    file = Path(__file__).parents[2] / "data/vectors/section19/ex-19.B15.jsonl"
    stream = io.StringIO()

    with open_trace(file) as trace:
        write_trace(stream, trace.header, ((step.request, step.response) for step in trace.steps))

    assert stream.getvalue() == file.read_text()


@pytest.mark.parametrize(
    ("lines", "line", "field"),
    [
        ([{**HEADER, "trace": 2}], 1, "trace"),
        ([{**HEADER, "trace": True}], 1, "trace"),
        ([{name: value for name, value in HEADER.items() if name != "trace"}], 1, "trace"),
        ([STEP], 1, "trace"),
        ([{**HEADER, "name": None}], 1, "name"),
        ([{**HEADER, "flags": "spy"}], 1, "flags"),
        ([{**HEADER, "flags": [1]}], 1, "flags[0]"),
        ([{**HEADER, "calls": -1}], 1, "calls"),
        (["not JSON"], 1, ""),
        ([], 1, ""),
        ([HEADER, STEP, "{"], 3, ""),
        ([HEADER, "", STEP, []], 4, ""),
        ([HEADER, {"request": {"op": "state"}}], 2, "response"),
        ([HEADER, {**STEP, "request": "open"}], 2, "request"),
    ],
)
def test_a_bad_trace_is_refused_with_its_place(tmp_path: Path, lines: list[Any], line: int, field: str) -> None:
    """The error has file, line and field; an unknown version is refused."""
    file = written(tmp_path, *lines)

    with pytest.raises(UnreadableFileError) as refusal, open_trace(file) as trace:
        list(trace.steps)

    assert (refusal.value.file, refusal.value.line, refusal.value.field) == (str(file), line, field)
    assert str(refusal.value).startswith(f"{file}:{line}: {field}")


def test_a_missing_trace_is_reported(tmp_path: Path) -> None:
    """The error has the file and the operating system's message."""
    with pytest.raises(UnreadableFileError, match="No such file") as refusal, open_trace(tmp_path / "none.jsonl"):
        pass

    assert refusal.value.line is None


def test_bytes_that_are_not_text_are_refused_with_their_line(tmp_path: Path) -> None:
    """A line that is not UTF-8 is refused like one that is not JSON."""
    file = tmp_path / "t.jsonl"
    file.write_bytes(json.dumps(HEADER).encode() + b"\n\xff\n")

    with pytest.raises(UnreadableFileError, match="not UTF-8") as refusal, open_trace(file) as trace:
        list(trace.steps)

    assert refusal.value.line == 2


def test_steps_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    """A trace is not held in memory: an error further down is met only there."""
    with open_trace(written(tmp_path, HEADER, STEP, "not JSON")) as trace:
        assert next(trace.steps).op == "open"
        with pytest.raises(UnreadableFileError):
            next(trace.steps)
