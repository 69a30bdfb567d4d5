"""Pictures of what a share partition holds: what is in them, and that they can be written down."""

from __future__ import annotations

import builtins
import importlib
import io
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any

import altair as alt
import pytest

from sharestate import (
    AcknowledgementBatch,
    FetchedRecords,
    MalformedInputError,
    PersistedState,
    RecordBatch,
    RecordState,
    SharePartition,
    SharePartitionKey,
    StateBatch,
)
from sharestate.persister import StoredState
from sharestate.plots import COLORS, PlotStep, offset_line, offset_lines

Spec = dict[str, Any]


def started(start_offset: int = 100) -> SharePartition:
    """Return a share partition that begins at *start_offset*."""
    partition = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0))
    partition.initialize()
    partition.read_succeeded(PersistedState(start_offset=start_offset))
    return partition


def acquire(partition: SharePartition, member: str, first: int, last: int) -> None:
    """Let *member* acquire one batch of the log."""
    fetched = FetchedRecords(fetch_offset=first, batches=[RecordBatch(first, last)])
    assert partition.acquire(member, fetched, now_ms=0).acquired


def acknowledge(partition: SharePartition, member: str, first: int, last: int, kind: int) -> int:
    """Acknowledge a range, and return the number of the write."""
    (write,) = partition.acknowledge(member, [AcknowledgementBatch(first, last, (kind,))], now_ms=0).writes
    return write.number


def busy() -> SharePartition:
    """Return one with a record of each state, a gap at 110-114 and a pending write for 118-119."""
    partition = started()
    acquire(partition, "m1", 100, 109)
    acquire(partition, "m2", 115, 119)
    partition.write_succeeded(acknowledge(partition, "m1", 102, 103, 1))
    partition.write_succeeded(acknowledge(partition, "m1", 104, 105, 2))
    partition.write_succeeded(acknowledge(partition, "m1", 106, 107, 3))
    acknowledge(partition, "m2", 118, 119, 1)
    return partition


def layers(spec: Spec, line: int = 0) -> Iterator[tuple[Spec, list[Spec]]]:
    """Yield each layer of a line with its data."""
    for layer in spec["vconcat"][line]["layer"]:
        data = layer["data"]
        yield layer, data["values"] if "values" in data else spec["datasets"][data["name"]]


def filled(spec: Spec, line: int = 0) -> list[Spec]:
    """Return the data of the runs of a line: those of the layer that is filled."""
    (data,) = [data for layer, data in layers(spec, line) if "fill" in layer["encoding"]]
    return data


def runs(spec: Spec, line: int = 0) -> list[str]:
    """Return the runs of a line in words."""
    return [run["text"] for run in filled(spec, line)]


def places(spec: Spec, line: int = 0) -> list[tuple[float, float]]:
    """Return where the runs of a line begin and end."""
    return [(run["x"], run["x2"]) for run in filled(spec, line)]


def names(spec: Spec, line: int = 0) -> dict[str, float]:
    """Return the names that stand at a place, and the place: the SPSO and the SPEO."""
    texts = (found for found in layers(spec, line) if found[0]["mark"]["type"] == "text")
    return {item["label"]: item["x"] for _, data in texts for item in data if "name" in item}


def labels(spec: Spec, line: int = 0) -> list[str]:
    """Return what is written into the runs of a line."""
    texts = (found for found in layers(spec, line) if found[0]["mark"]["type"] == "text")
    return [item["label"] for _, data in texts for item in data if "ink" in item]


def written(spec: Spec, line: int = 0) -> list[tuple[float, float]]:
    """Return the runs with pending writes."""
    return [(item["x"], item["x2"]) for _, data in layers(spec, line) for item in data if "write" in item]


def lightness(color: str) -> float:
    """Return how light *color* looks, 0 to 100: L* of CIE 1976."""
    red, green, blue = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return 116 * luminance ** (1 / 3) - 16 if luminance > 216 / 24389 else luminance * 24389 / 27


def test_every_run_is_drawn_with_its_state_count_and_owner() -> None:
    """What is in flight is there, run by run, and what is in no batch is left out."""
    assert runs(offset_line(busy()).to_dict()) == [
        "100-101 Acquired ×1, held by m1",
        "102-103 Acknowledged ×1",
        "104-105 Available ×1",
        "106-107 Archived ×1",
        "108-109 Acquired ×1, held by m1",
        "115-117 Acquired ×1, held by m2",
        "118-119 Acknowledged ×1, pending write",
    ]


def test_a_record_reaches_half_way_to_its_neighbors() -> None:
    """The blocks of neighboring records touch, and each tick of the axis is in the middle of its record."""
    assert places(offset_line(busy()).to_dict())[:2] == [(99.5, 101.5), (101.5, 103.5)]


def test_counts_and_owners_are_written_into_the_runs() -> None:
    """First the delivery counts from left to right, then the members who hold something."""
    assert labels(offset_line(busy()).to_dict()) == [*["×1"] * 7, "m1", "m1", "m2"]


def test_a_write_in_flight_is_marked() -> None:
    """There is a bar over its records, and none once it was answered."""
    partition = busy()
    assert written(offset_line(partition).to_dict()) == [(117.5, 119.5)]

    partition.write_succeeded(3)
    assert written(offset_line(partition).to_dict()) == []


def test_the_spso_stands_before_its_record_and_the_speo_after_its_record() -> None:
    """Between them is what is in flight."""
    assert names(offset_line(busy()).to_dict()) == {"SPSO 100": 99.5, "SPEO 119": 119.5}


def test_both_offsets_stand_before_the_next_record_if_nothing_is_in_flight() -> None:
    """SPSO and SPEO are then the offset that is fetched next."""
    assert names(offset_line(started()).to_dict()) == {"SPSO 100": 99.5, "SPEO 100": 99.5}


@pytest.mark.parametrize("start", [104, 109])
def test_records_below_the_spso_are_pale(start: int) -> None:
    """A batch of which the log has lost a part is drawn in two."""
    partition = started()
    acquire(partition, "m1", 100, 109)
    partition.advance_log_start(start)

    assert [(run["x"], run["x2"], run["opacity"] < 1) for run in filled(offset_line(partition).to_dict())] == [
        (99.5, start - 0.5, True),
        (start - 0.5, 109.5, False),
    ]


def test_text_in_runs_can_be_read() -> None:
    """It is much lighter or darker than its run, pale ones included, and count and owner stand below each other."""
    partition = busy()
    partition.advance_log_start(107)
    data = filled(offset_line(partition).to_dict())
    colors = {state.name.title(): lightness(COLORS[state]) for state in RecordState}

    assert {(run["state"], run["opacity"] < 1) for run in data} >= {("Acknowledged", True), ("Acknowledged", False)}
    for run in data:
        behind = 100 + (colors[run["state"]] - 100) * run["opacity"]
        assert abs(lightness(run["ink"]) - behind) >= 40
        assert not run["member"] or run["member_y"] - run["count_y"] >= 11


def test_each_state_has_its_color() -> None:
    """The legend names the states in the order of the colors."""
    (layer,) = [found for found, _ in layers(offset_line(busy()).to_dict()) if "fill" in found["encoding"]]

    assert layer["encoding"]["fill"]["scale"] == {
        "domain": ["Available", "Acquired", "Acknowledged", "Archiving", "Archived"],
        "range": [COLORS[state] for state in RecordState],
    }


def test_the_colors_differ_in_print() -> None:
    """Each is darker than the one before by a fifth of the way from white to black."""
    shades = [lightness(COLORS[state]) for state in RecordState]

    assert all(lighter - darker >= 20 for lighter, darker in pairwise(shades))


def test_labels_are_left_out_where_there_is_no_room() -> None:
    """Of 500 records that alternate, the two long runs at the ends keep their labels."""
    partition = started(0)
    acquire(partition, "m1", 0, 499)
    for offset in range(100, 400, 2):
        partition.write_succeeded(acknowledge(partition, "m1", offset, offset, 2))
    spec = offset_line(partition).to_dict()

    assert len(runs(spec)) == 301
    assert labels(spec) == ["×1", "×1", "m1", "m1"]


def test_narrow_runs_have_no_edges() -> None:
    """At a pixel a record the edges would hide the colors."""
    partition = started(0)
    acquire(partition, "m1", 0, 499)
    acknowledge(partition, "m1", 250, 250, 2)

    assert [run["edge"] for run in filled(offset_line(partition).to_dict())] == [1, 0, 1]


def test_records_that_are_alike_are_one_mark() -> None:
    """A picture of half a million records is as large as one of five."""
    large, small = started(), started()
    acquire(large, "m1", 100, 500_099)
    acquire(small, "m1", 100, 104)

    assert len(runs(offset_line(large).to_dict())) == len(runs(offset_line(small).to_dict())) == 1


def test_a_snapshot_is_drawn_as_its_share_partition_is() -> None:
    """The two pictures are the same."""
    partition = busy()

    assert offset_line(partition.snapshot()).to_dict() == offset_line(partition).to_dict()


def test_a_stored_state_is_drawn_without_an_speo() -> None:
    """Neither what a leader reads nor what a coordinator stores has one."""
    batches = (StateBatch(110, 112, 0, 1), StateBatch(113, 119, 2, 1))
    read = offset_line(PersistedState(start_offset=110, state_batches=batches)).to_dict()
    stored = StoredState(state_epoch=0, start_offset=110, highest_state_epoch=0, state_batches=batches)

    assert runs(read) == ["110-112 Available ×1", "113-119 Acknowledged ×1"]
    assert names(read) == {"SPSO 110": 109.5}
    assert offset_line(stored).to_dict() == read


def test_a_stored_state_without_a_start_offset_has_no_spso() -> None:
    """A start offset of -1 says that there is none, and nothing else is there."""
    spec = offset_line(PersistedState(start_offset=-1)).to_dict()

    assert (runs(spec), names(spec)) == ([], {})


def test_a_share_partition_that_is_not_loaded_shows_nothing() -> None:
    """Its offsets say nothing yet, and do not stretch the scale of other pictures."""
    fresh = SharePartition(SharePartitionKey(group_id="g", topic_id="t", partition=0))
    spec = offset_lines([PlotStep("fresh", fresh), PlotStep("started", started())]).to_dict()
    (alone,) = offset_lines([PlotStep("started", started())]).to_dict()["vconcat"]

    assert (runs(spec), names(spec)) == ([], {})
    assert spec["vconcat"][1]["layer"][0]["encoding"]["x"] == alone["layer"][0]["encoding"]["x"]


def test_steps_have_one_scale_their_titles_and_their_notes() -> None:
    """They stand below each other, and what is at one offset is at one place."""
    first, second = started(), busy()
    spec = offset_lines([PlotStep("first", first), PlotStep("second\nand more", second, "note\nfor it")]).to_dict()
    domains = {
        repr(layer["encoding"]["x"]["scale"])
        for line in (0, 1)
        for layer, _ in layers(spec, line)
        if "x" in layer["encoding"]
    }
    notes = [
        [item["label"] for _, data in layers(spec, line) for item in data if set(item) == {"label"}] for line in (0, 1)
    ]

    assert [line["title"]["text"] for line in spec["vconcat"]] == [["first"], ["second", "and more"]]
    assert [len(runs(spec, line)) for line in (0, 1)] == [0, 7]
    assert len(domains) == 1
    assert notes == [[], ["note\nfor it"]]


def drawn(chart: alt.VConcatChart) -> str:
    """Return *chart* as an SVG."""
    file = io.StringIO()
    chart.save(file, format="svg")
    return file.getvalue()


def test_each_offset_stands_on_the_axis_once() -> None:
    """However wide one record is drawn, there are no ticks between offsets, nor below the first one that there is."""
    ticks = re.findall(r">(\S\d*)</text>", drawn(offset_line(started(0))))

    assert ticks == ["0", "1"]


def test_a_picture_becomes_an_svg() -> None:
    """All that is written in it is in the text of the SVG, and the lines of a note are lines."""
    svg = drawn(offset_line(busy(), title="A busy one", note="and a note\nof two lines"))

    assert svg.startswith("<svg")
    for text in (
        "A busy one",
        "and a note",
        "of two lines",
        "SPSO 100",
        "SPEO 119",
        "×1",
        "m2",
        "Archived",
        "pending write",
    ):
        assert f">{text}<" in svg


@pytest.mark.parametrize(
    ("field", "draw"),
    [
        ("shown", lambda: offset_line(7)),  # type: ignore[arg-type]
        ("steps", lambda: offset_lines([])),
        ("width", lambda: offset_line(started(), width=199)),
    ],
)
def test_arguments_that_cannot_be_drawn_are_refused(field: str, draw: Any) -> None:  # noqa: ANN401 - a function
    """The error names the argument."""
    with pytest.raises(MalformedInputError) as refused:
        draw()
    assert refused.value.field == field


def without(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the import of *name* fail, and forget that the plots were imported."""
    for module in [each for each in sys.modules if each.startswith("sharestate.plots")]:
        monkeypatch.delitem(sys.modules, module)
    real = builtins.__import__

    def importing(module: str, *rest: Any) -> ModuleType:  # noqa: ANN401 - what Python gives it
        if module == name:
            raise ModuleNotFoundError(name=name)
        return real(module, *rest)

    monkeypatch.setattr(builtins, "__import__", importing)


def test_without_altair_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing the plots says what to install."""
    without("altair", monkeypatch)

    with pytest.raises(ModuleNotFoundError, match=r"pip install 'sharestate\[plots\]'"):
        importlib.import_module("sharestate.plots")


def test_another_missing_module_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is named, and not taken for the extra."""
    without("sharestate.persister", monkeypatch)

    with pytest.raises(ModuleNotFoundError) as missing:
        importlib.import_module("sharestate.plots")
    assert missing.value.name == "sharestate.persister"
    assert "plots" not in str(missing.value)


def test_a_chart_is_one_of_altairs() -> None:
    """So everything that Altair does with charts can be done with it."""
    assert isinstance(offset_line(started()), alt.VConcatChart)
