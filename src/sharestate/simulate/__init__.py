"""
Simulated share groups: what comes of a load under which settings, without a broker.

Members fetch from the library's own share partitions, process and acknowledge, in simulated time. So the answers to
"which lock duration, how many records a poll, how many members" are computed, and repeatable.
"""

from sharestate.simulate.distributions import (
    Backlog,
    Bursts,
    Constant,
    ConstantRate,
    Empirical,
    Exponential,
    LogNormal,
    Poisson,
    Recorded,
)
from sharestate.simulate.load import LOAD_VERSION, Acknowledging, Load
from sharestate.simulate.result import ENDS, RESULT_VERSION, Result
from sharestate.simulate.simulation import simulate

__all__ = [
    "ENDS",
    "LOAD_VERSION",
    "RESULT_VERSION",
    "Acknowledging",
    "Backlog",
    "Bursts",
    "Constant",
    "ConstantRate",
    "Empirical",
    "Exponential",
    "Load",
    "LogNormal",
    "Poisson",
    "Recorded",
    "Result",
    "simulate",
]
