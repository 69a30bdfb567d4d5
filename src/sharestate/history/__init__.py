"""
Histories: what happened to share partitions, in a format of its own, and its replay.

A history records what was observed, over many share partitions, with absolute times. It is what a broker's log is
imported to, and what a program that embeds the library can write.
"""

from sharestate.errors import HistoryError, HistoryOrderError
from sharestate.history.columns import EVENT_COLUMNS, KINDS, AppendedBatch
from sharestate.history.events import Event
from sharestate.history.files import HistoryFile, HistoryReader, create_history, open_history
from sharestate.history.header import HISTORY_VERSION, Header, Order
from sharestate.history.history_writer import HistoryWriter
from sharestate.history.outputs import OUTPUT_COLUMNS, OUTPUTS
from sharestate.history.replay import Replay
from sharestate.history.replay_budget import ReplayBudget
from sharestate.history.rows import DEFAULT_OUTPUTS, OutputRow
from sharestate.history.runner import ReplaySettings, ReplaySummary, replay_events, replay_files

__all__ = [
    "DEFAULT_OUTPUTS",
    "EVENT_COLUMNS",
    "HISTORY_VERSION",
    "KINDS",
    "OUTPUTS",
    "OUTPUT_COLUMNS",
    "AppendedBatch",
    "Event",
    "Header",
    "HistoryError",
    "HistoryFile",
    "HistoryOrderError",
    "HistoryReader",
    "HistoryWriter",
    "Order",
    "OutputRow",
    "Replay",
    "ReplayBudget",
    "ReplaySettings",
    "ReplaySummary",
    "create_history",
    "open_history",
    "replay_events",
    "replay_files",
]
