"""Readers of what other programs write down of share groups, which are read as operations."""

from sharestate.audit.importers.event_files import EventReader
from sharestate.audit.importers.librdkafka_chaos import LibrdkafkaChaosReader
from sharestate.audit.importers.verifiable import VerifiableReader

__all__ = ["EventReader", "LibrdkafkaChaosReader", "VerifiableReader"]
