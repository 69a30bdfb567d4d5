"""Grids of loads: every combination of some values of some settings, each simulated with several seeds."""

from __future__ import annotations

import itertools
import math
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sharestate.errors import MalformedInputError
from sharestate.json_lines import Json, brief
from sharestate.simulate.load import Load, setting_name
from sharestate.simulate.result import SimulationResult
from sharestate.simulate.simulation import simulate
from sharestate.values.checks import refuse
from sharestate.worker_processes import begin_worker

GRID_VERSION: Final = 1
"""The version of the form of grids that is written."""

MOST_SIMULATIONS: Final = 100_000
"""The most simulations of a grid."""


class GridPoint(NamedTuple):
    """
    A point of a grid.

    Attributes:
        changes: What differs from the load that the grid is about, by setting, in words.
        load: The load.
        results: What comes of it, with each of the seeds.
    """

    changes: Mapping[str, str]
    load: Load
    results: tuple[SimulationResult, ...] = ()

    def measure(self, name: str) -> Spread | None:
        """Return the mean and the spread of a measure over the seeds; None if one has none."""
        return spread_of([getattr(result, name) for result in self.results])

    def to_json(self) -> dict[str, Json]:
        """Return the point as JSON."""
        return {"changes": dict(self.changes), "results": [result.to_json() for result in self.results]}


class Spread(NamedTuple):
    """
    A measure over several seeds.

    Attributes:
        mean: Its mean.
        low: The least value.
        high: The greatest one.
    """

    mean: float
    low: float
    high: float


def spread_of(values: Sequence[float | None]) -> Spread | None:
    """
    Return mean and spread of *values*; None if one of them is None.

    >>> from sharestate.simulate import spread_of
    >>> spread_of([1, 2, 6]), spread_of([1, None])
    (Spread(mean=3.0, low=1, high=6), None)
    """
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return None
    return Spread(math.fsum(known) / len(known), min(known), max(known))


def grid_of(load: Load, axes: Iterable[str]) -> list[GridPoint]:
    """
    Return the points of a grid, without results.

    >>> from sharestate.simulate import Load, grid_of
    >>> points = grid_of(Load(), ["lock=15s,30s", "members=2,4"])
    >>> [dict(point.changes) for point in points][:2]
    [{'lock_duration_ms': '15s', 'members': '2'}, {'lock_duration_ms': '15s', 'members': '4'}]

    Args:
        load: What the points differ from.
        axes: For each setting its values, as in ``lock=15s,30s,60s``; a setting is named as ``Load.changed`` takes it.

    Raises:
        MalformedInputError: A setting or a value is not known, a setting comes twice, or there are too many points.
    """
    values: dict[str, list[str]] = {}
    for axis in axes:
        name, equals, texts = axis.partition("=")
        if not equals:
            message = f"expected SETTING=VALUE,VALUE..., got {brief(axis)}"
            raise MalformedInputError(message, "")
        setting = setting_name(name)
        if setting in values:
            message = "comes twice"
            raise MalformedInputError(message, setting)
        values[setting] = list(dict.fromkeys(text.strip() for text in texts.split(",")))
    if math.prod(map(len, values.values())) > MOST_SIMULATIONS:
        message = f"more than {MOST_SIMULATIONS} points"
        raise MalformedInputError(message, "")
    points = []
    for texts_of in itertools.product(*values.values()):
        changes = dict(zip(values, texts_of, strict=True))
        points.append(GridPoint(MappingProxyType(changes), load.changed(*map("=".join, changes.items()))))
    return points


def sweep(
    points: Sequence[GridPoint],
    seeds: Sequence[int] = (0,),
    *,
    processes: int = 1,
    watch: Callable[[Iterable[GridPoint]], Iterable[GridPoint]] = iter,
) -> list[GridPoint]:
    """
    Simulate the points of a grid.

    Args:
        points: The points.
        seeds: The seeds; each point is simulated with each of them.
        processes: In how many processes; 1 for this one.
        watch: Yields the points as they are done; to show progress.

    Returns:
        The points in the same order with their results, which do not depend on the number of processes.

    Raises:
        MalformedInputError: There are too many simulations, or a seed is no integer.
    """
    if len(points) * len(seeds) > MOST_SIMULATIONS:
        refuse(f"more than {MOST_SIMULATIONS} simulations", "points")
    simulated = partial(simulated_point, seeds=tuple(seeds))
    if processes == 1:
        return list(watch(map(simulated, points)))
    pool = ProcessPoolExecutor(processes, get_context("spawn"), begin_worker, (signal.SIG_DFL,))
    try:
        return list(watch(_in_processes(pool, simulated, points)))
    finally:
        pool.shutdown(cancel_futures=True)  # in case of Ctrl-C: a point may take long


def _in_processes(
    pool: ProcessPoolExecutor, simulated: Callable[[GridPoint], GridPoint], points: Sequence[GridPoint]
) -> Iterator[GridPoint]:
    texts = [(dict(point.changes), point.load.to_json()) for point in points]
    futures = [pool.submit(_results, simulated, text) for text in texts]  # map() cancels what a broken pool fails then
    for point, future in zip(points, futures, strict=True):
        yield point._replace(results=future.result())


def _results(
    simulated: Callable[[GridPoint], GridPoint], given: tuple[dict[str, str], Any]
) -> tuple[SimulationResult, ...]:
    changes, load = given
    return simulated(GridPoint(changes, Load.from_json(load))).results


def simulated_point(point: GridPoint, seeds: Iterable[int]) -> GridPoint:
    """Return a point with its results for *seeds*."""
    return point._replace(results=tuple(simulate(point.load, seed) for seed in seeds))


def rows_of(points: Iterable[GridPoint]) -> Iterator[dict[str, Any]]:
    """
    Yield a row for each simulation: the changes in words, then what came of it.

    Names of settings that are names of measures, too, have ``_set`` after them.
    """
    for point in points:
        for result in point.results:
            values = result.to_json()
            del values["result"]
            changes = {f"{name}_set" if name in values else name: text for name, text in point.changes.items()}
            yield {**changes, **values}


def grid_json(load: Load, points: Iterable[GridPoint]) -> dict[str, Json]:
    """Return a grid as JSON, with the version of its form."""
    return {"grid": GRID_VERSION, "load": load.to_json(), "points": [point.to_json() for point in points]}
