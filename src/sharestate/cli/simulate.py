"""The command ``simulate``: what comes of a load under which settings, and which would have been better."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import click
from attrs import frozen

from sharestate.cli.progress import no_verdicts, progress, tables, watched
from sharestate.cli.tables import print_rows
from sharestate.json_lines import Json, printable
from sharestate.simulate import (
    MEASURES,
    Advised,
    Fit,
    GridPoint,
    Load,
    Spread,
    advise,
    fit,
    fit_lines,
    grid_json,
    grid_of,
    measure_text,
    parts_line,
    settings_text,
    sweep,
)
from sharestate.simulate.load import setting_name

_SWEPT: Final = (
    "throughput",
    "latency_p95_ms",
    "duplicates",
    "expired",
    "archived_at_limit",
    "wasted_ms",
    "utilization",
)
"""The measures that tables of grids have; with --json all are printed."""

_NOT_SHOWN: Final = frozenset({"seed", "ended"})
_MOST_ROWS: Final = 1_000
SIMULATED_VERSION: Final = 1
"""The version of the form of what is printed with --json."""


@frozen
class _Shown:
    """What the command has found out."""

    load: Load
    points: Sequence[GridPoint]
    fitted: Fit | None
    advised: Advised | None
    axes: tuple[str, ...]


@click.command("simulate")
@click.option("--set", "changes", multiple=True, metavar="SETTING=VALUE", help="Change a setting; may come often.")
@click.option(
    "--like",
    "history",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="HISTORY",
    help="Take the load that a history in causal order shows, and show what --set changes beside it.",
)
@click.option("--group", "group_id", help="The share group of the history; the only one without it.")
@click.option(
    "--sweep", "axes", multiple=True, metavar="SETTING=VALUE,...", help="Try each of these values; several make a grid."
)
@click.option("--advise", "is_advised", is_flag=True, help="Say which settings would have been better.")
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    metavar="NUMBER",
    help="With how many seeds to simulate; means are shown, and the least and the greatest value.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The first seed; the others follow.")
@click.option(
    "--processes", type=click.IntRange(1, 256), default=1, show_default=True, help="In how many processes to sweep."
)
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the load, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page for a browser, too; it needs the extra 'plots'.",
)
@click.argument(
    "load_file", metavar="[LOAD]", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
def simulate_command(  # noqa: PLR0913 - one parameter for each option
    *,
    load_file: Path | None,
    changes: tuple[str, ...],
    history: Path | None,
    group_id: str | None,
    axes: tuple[str, ...],
    is_advised: bool,
    seeds: int,
    seed: int,
    processes: int,
    save: Path | None,
    as_json: bool,
    page: Path | None,
) -> None:
    """
    Say what comes of a load of a share group: throughput, latency, duplicates, expired locks.

    LOAD is a JSON file with settings that differ from the defaults. Without one, --like takes the load from a history,
    or --set says all of it. A setting is named as in the file, as Kafka names it, or by the beginning of its name;
    values have units: --set lock=60s --set processing=lognormal:20ms:0.8 --set arrival=poisson:100/s.

    \b
    An example of LOAD:
      {"load": 1, "members": 4, "records": 20000, "processing": {"kind": "exponential", "mean": 20},
       "arrival": {"kind": "poisson", "per_second": 150}, "lock_duration_ms": 15000}

    Exit code: 0, or 2 if something cannot be read, or a setting makes no sense.
    """  # noqa: D301 - the control character is for click: it keeps the example's lines as they are
    _expect_sense(load_file, history, group_id, axes, seeds, is_advised=is_advised)
    with no_verdicts():
        write_page = None if page is None else _page_writer(page)  # an extra may be missing, and the rest take hours
        fitted = None if history is None else _fitted(history, group_id)
        given = fitted.load if fitted else Load.read(load_file) if load_file else Load()
        load = given.changed(*changes)
        if save is not None:
            load.write(save)
        points = grid_of(load, axes)
        if fitted and changes and not axes:
            points = [GridPoint({}, given), GridPoint(_words(changes), load)]
        numbers = range(seed, seed + seeds)
        with progress("simulating", len(points)) as bar:
            points = sweep(points, numbers, processes=processes, watch=lambda done: bar.track(done, len(points)))
        advised = _advised(load, numbers) if is_advised else None
    shown = _Shown(load, points, fitted, advised, axes)
    if as_json:
        click.echo(json.dumps(_document(shown), indent=1))
    else:
        _print(shown)
    if write_page is not None:
        write_page(shown)


def _expect_sense(  # noqa: PLR0913 - the options that belong together
    load_file: Path | None,
    history: Path | None,
    group_id: str | None,
    axes: Sequence[str],
    seeds: int,
    *,
    is_advised: bool,
) -> None:
    if load_file is not None and history is not None:
        message = "a load comes from a file or from a history (--like), not from both"
        raise click.UsageError(message)
    if group_id is not None and history is None:
        message = "--group is the group of a history: --like names one"
        raise click.UsageError(message)
    if is_advised and axes:
        message = "--advise is about one load, and --sweep about many"
        raise click.UsageError(message)
    if is_advised and seeds == 1:
        message = "--advise needs two seeds or more, or chance cannot be told from a difference"
        raise click.UsageError(message)


def _fitted(history: Path, group_id: str | None) -> Fit:
    with progress("reading") as bar:
        return fit(history, group=group_id, watch=lambda reader: watched(reader, bar))


def _advised(load: Load, seeds: Sequence[int]) -> Advised:
    with progress("trying") as bar:
        return advise(load, seeds, watch=lambda loads: bar.track(loads, task_id=bar.task_ids[0]))


def _words(changes: Iterable[str]) -> dict[str, str]:
    return {setting_name(name): text for name, _, text in (change.partition("=") for change in changes)}


# ---- what is printed


def _document(shown: _Shown) -> Json:
    return {
        "simulated": SIMULATED_VERSION,
        **grid_json(shown.load, shown.points),
        "fit": None if shown.fitted is None else shown.fitted.to_json(),
        "advice": None if shown.advised is None else shown.advised.to_json(),
    }


def _print(shown: _Shown) -> None:
    if shown.fitted is not None:
        _print_lines([*fit_lines(shown.fitted), ""])
    if shown.axes:
        _print_grid(shown)
    else:
        _print_measures(shown)
    if shown.advised is not None:
        _print_lines(_advice_lines(shown.advised, shown.fitted))


def _print_grid(shown: _Shown) -> None:
    names = list(shown.points[0].changes)
    rows = [
        [*point.changes.values(), *(_cell(name, point.measure(name)) for name in _SWEPT), _ended(point)]
        for point in shown.points[:_MOST_ROWS]
    ]
    heads = [*names, *(f"{MEASURES[name]}." for name in _SWEPT), "ended"]
    print_rows(tables(), heads, rows, named=len(names))
    if len(shown.points) > _MOST_ROWS:
        _print_lines([f"The first {_MOST_ROWS:,} of {len(shown.points):,} points; --json prints all."])


def _print_measures(shown: _Shown) -> None:
    """Print a row for each measure, with what the history shows of it, and one column for each load."""
    observed: Mapping[str, float] = {} if shown.fitted is None else shown.fitted.observed
    heads = ["measure", *(["history."] if shown.fitted else []), "simulated."]
    if len(shown.points) > 1:
        heads.append(" ".join(f"{name}={text}" for name, text in shown.points[1].changes.items()) + ".")
    rows = []
    for name, words in MEASURES.items():
        if name in _NOT_SHOWN:
            continue
        seen = [_observed(name, observed)] if shown.fitted else []
        rows.append([words, *seen, *(_cell(name, point.measure(name)) for point in shown.points)])
    rows.append(["ended", *([""] if shown.fitted else []), *map(_ended, shown.points)])
    print_rows(tables(), heads, rows)


def _observed(name: str, observed: Mapping[str, float]) -> str:
    return measure_text(name, observed[name]) if name in observed else ""


def _cell(name: str, spread: Spread | None) -> str:
    if spread is None:
        return "-"
    text = measure_text(name, spread.mean)
    low, high = measure_text(name, spread.low), measure_text(name, spread.high)
    return text if low == high else f"{text} ({low}..{high})"


def _ended(point: GridPoint) -> str:
    return ", ".join(dict.fromkeys(result.ended for result in point.results))


def _advice_lines(advised: Advised, fitted: Fit | None) -> Iterator[str]:
    yield ""
    if fitted is not None:
        yield parts_line(fitted)
    if not advised.advice:
        yield "No setting that was tried would have been better with every seed."
    yield from (each.sentence for each in advised.advice)
    yield from advised.notes


def _print_lines(lines: Iterable[str]) -> None:
    if sys.stdout is not None:
        sys.stdout.writelines(f"{printable(line)}\n" for line in lines)


def _page_writer(page: Path) -> Callable[[_Shown], None]:
    from sharestate.report import simulation_page  # noqa: PLC0415 - needs an extra

    def write(shown: _Shown) -> None:
        title = settings_text(shown.load)
        text = simulation_page(shown.points, title=title, fitted=shown.fitted, advised=shown.advised)
        page.write_text(text, encoding="utf-8", newline="\n")

    return write
