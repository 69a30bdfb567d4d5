"""
Simulated share groups: what comes of a load under which settings, without a broker.

Members fetch from the library's own share partitions, process and acknowledge, in simulated time. So the answers to
"which lock duration, how many records a poll, how many members" are computed, and repeatable.
"""

from sharestate.simulate.advice import ADVICE_VERSION, Advice, Advised, advise
from sharestate.simulate.distributions import (
    Arrival,
    Backlog,
    Bursts,
    Constant,
    ConstantRate,
    Empirical,
    Exponential,
    LogNormal,
    Poisson,
    RecordedArrival,
    Times,
)
from sharestate.simulate.finding_advice import SETTINGS_OF_RULES, advise_findings
from sharestate.simulate.fitting import Fit, Fitted, fit, fit_lines, parts_line
from sharestate.simulate.grid import GRID_VERSION, GridPoint, Spread, grid_json, grid_of, rows_of, spread_of, sweep
from sharestate.simulate.load import LOAD_VERSION, Acknowledging, Load, settings_text
from sharestate.simulate.result import ENDS, MEASURES, RESULT_VERSION, SimulationResult, measure_text
from sharestate.simulate.simulation import simulate

__all__ = [
    "ADVICE_VERSION",
    "ENDS",
    "GRID_VERSION",
    "LOAD_VERSION",
    "MEASURES",
    "RESULT_VERSION",
    "SETTINGS_OF_RULES",
    "Acknowledging",
    "Advice",
    "Advised",
    "Arrival",
    "Backlog",
    "Bursts",
    "Constant",
    "ConstantRate",
    "Empirical",
    "Exponential",
    "Fit",
    "Fitted",
    "GridPoint",
    "Load",
    "LogNormal",
    "Poisson",
    "RecordedArrival",
    "SimulationResult",
    "Spread",
    "Times",
    "advise",
    "advise_findings",
    "fit",
    "fit_lines",
    "grid_json",
    "grid_of",
    "measure_text",
    "parts_line",
    "rows_of",
    "settings_text",
    "simulate",
    "spread_of",
    "sweep",
]
