"""Readers of what other programs write down of share groups, which are read as operations."""

from sharestate.audit.importers.event_files import EventsReader
from sharestate.audit.importers.librdkafka_chaos import LibrdkafkaChaosReader
from sharestate.audit.importers.log_formats import FORMATS, UNNAMED, LogReader, open_log
from sharestate.audit.importers.verifiable import VerifiableReader

__all__ = [
    "FORMATS",
    "UNNAMED",
    "EventsReader",
    "LibrdkafkaChaosReader",
    "LogReader",
    "VerifiableReader",
    "open_log",
]
