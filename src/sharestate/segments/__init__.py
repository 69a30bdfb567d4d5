"""
Log segments as brokers keep them on disk, read only (extra ``segments``).

A topic partition is a directory of segment files, each named after its first offset; a segment is record batches.
"""

try:
    from sharestate.segments.batches import LogBatch, LogRecord, TimestampType
    from sharestate.segments.compression import Compression
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in {"aiokafka", "cramjam"}:
        raise
    message = "sharestate.segments needs the extra 'segments': pip install 'sharestate[segments]'"
    raise ModuleNotFoundError(message, name=error.name) from error
from sharestate.errors import (
    SegmentError,
    SegmentTailError,
    UnknownCompressionError,
    UnknownMagicError,
    UnreadableFileError,
)
from sharestate.segments.reader import LogReader, SegmentTail, TailKind, segment_files

__all__ = [
    "Compression",
    "LogBatch",
    "LogReader",
    "LogRecord",
    "SegmentError",
    "SegmentTail",
    "SegmentTailError",
    "TailKind",
    "TimestampType",
    "UnknownCompressionError",
    "UnknownMagicError",
    "UnreadableFileError",
    "segment_files",
]
