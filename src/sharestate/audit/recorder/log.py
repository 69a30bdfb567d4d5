"""The file that recorded clients write their operations to: its clock, its size, and when it is flushed."""

from __future__ import annotations

import atexit
import importlib
import os
import socket
import threading
import time
import warnings
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from sharestate.audit.operations import LoggedOperation, OperationsHeader, View
from sharestate.json_lines import write_json

MAX_BYTES: Final = 2**30
"""The default of the largest size of a file: a day of some 3,000 operations a minute. [bytes]"""

FLUSH_MS: Final = 1000
"""How long operations stay in memory, where a process that is killed loses them, while more of them come. [ms]"""

_ASKS_ONCE: Final = frozenset({0x020F, 0x0210})
"""The releases of librdkafka whose share consumers ask for records only when they have none: 2.15 and 2.16."""

_INCOMPLETE: Final = b'"complete":false}\n'
_COMPLETE: Final = b'"complete":true }\n'
"""The end of a header, before and after a file was closed in order: as long as the other, so that it fits its place."""


class ClientRecording(Protocol):
    """What one client has done."""

    def abandoned(self) -> None:
        """Write down that the client goes, or the process, and that it was not closed."""


class Recorder:
    """
    A file of operations that recorded clients write; it may be shared by all clients and threads of a process.

    Times are wall-clock times that never step back: the machine's monotonic clock, and when that began, to the second.
    So all files that are recorded on a machine have the same clock, and its name says so.

    What goes wrong with the file never reaches the application: recording ends with a warning, and the header keeps
    saying that the file is not complete.

    Args:
        path: The file, which must not exist yet.
        max_bytes: The largest size of the file; what would make it larger is not written, nor is anything after it.
        client: The client that the header names; lines of others name themselves.
        closes_itself: Whether the file is closed with its last client.

    Raises:
        OSError: The file cannot be made, or is there already.
    """

    def __init__(
        self, path: Path | str, *, max_bytes: int = MAX_BYTES, client: str | None = None, closes_itself: bool = False
    ) -> None:
        """Make the file, and write its header."""
        began_s = round(time.time() - time.monotonic())
        self._began_ms = began_s * 1000
        self._client = client
        self._closes_itself = closes_itself
        self._lock = threading.RLock()  # a client may be collected, and written of, while another one is written of
        self._open: dict[int, weakref.finalize[[ClientRecording], object]] = {}
        self._left = max_bytes
        self._flushed_ms = self.now_ms()
        self._is_complete = True
        header = OperationsHeader(
            client=client,
            clock=f"{socket.gethostname()}/{began_s}",
            view=_view(),
            source="sharestate.audit.recorder",
            complete=False,
        )
        self._file = Path(path).open("xb", buffering=2**16)  # noqa: SIM115 - it is closed when its clients are
        self._append(f"{write_json(header.to_json())}\n".encode())
        self._header_size = self._file.tell()
        self._file.flush()
        atexit.register(self._end)

    def now_ms(self) -> float:
        """Return the time. [ms]"""
        return self._began_ms + time.monotonic_ns() // 1000 / 1000

    def write(self, operation: LoggedOperation) -> None:
        """Append an operation, such as a fault that a test makes, or settings that are known."""
        line = f"{write_json(operation.to_json())}\n".encode()
        with self._lock:
            if self._file.closed:
                return
            self._append(line)

    def incomplete(self) -> None:
        """Let the header say that something was not written down."""
        self._is_complete = False

    def named(self, client: str) -> str | None:
        """Return what lines of a client have as its name."""
        return None if client == self._client else client

    def opened(self, client: object, recording: ClientRecording) -> None:
        """Learn of a client, which is to be closed before the file is."""
        self._open[id(recording)] = weakref.finalize(client, self._abandon, recording)

    def _abandon(self, recording: ClientRecording) -> None:
        recording.abandoned()
        self.left(recording)

    def left(self, recording: ClientRecording) -> None:
        """Learn that a client is no more."""
        finalizer = self._open.pop(id(recording), None)
        if finalizer is not None:
            finalizer.detach()
        if self._closes_itself and not self._open:
            self.close()

    def close(self) -> None:
        """Close the file; its header says then that it is complete, if it is."""
        atexit.unregister(self._end)
        with self._lock:
            if self._file.closed:
                return
            try:
                self._file.flush()
                if self._is_complete:
                    self._file.seek(self._header_size - len(_INCOMPLETE))
                    self._file.write(_COMPLETE)
                self._file.close()
            except OSError as error:
                self._stop(str(error))

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the file."""
        self.close()

    def _append(self, line: bytes) -> None:
        self._left -= len(line)
        if self._left < 0:
            self._stop("it has its largest size")
            return
        try:
            self._file.write(line)
            now_ms = self.now_ms()
            if now_ms - self._flushed_ms >= FLUSH_MS:
                self._flushed_ms = now_ms
                self._file.flush()
        except OSError as error:
            self._stop(str(error))

    def _stop(self, reason: str) -> None:
        """Write nothing more. What is in the buffer is tried once: a full disk is no affair of the application."""
        warnings.warn(f"{self._file.name} is recorded no further: {reason}", RuntimeWarning, stacklevel=4)
        with suppress(OSError):
            self._file.close()

    def _end(self) -> None:
        """End with the process."""
        for finalizer in list(self._open.values()):
            finalizer()
        self.close()


def _view() -> View:
    """
    Return what fetches say: when records were acquired, if the client library is known to ask for none in advance.

    librdkafka sends one ShareFetch at a time that asks for records, after a poll that has found none waiting, and
    the next one after a poll has taken what has come: rd_kafka_share_poll, rd_kafka_share_fetch_fanout_op and
    rd_kafka_q_serve_share_rkmessages of 2.15.1. tests/clients sees that it is so of the release that is installed.
    """
    try:
        _, number = importlib.import_module("confluent_kafka").libversion()
    except ImportError:
        return View.APPLICATION
    return View.POLLED if number >> 16 in _ASKS_ONCE else View.APPLICATION


def client_name(configured: object, number: int) -> str:
    """Return a name for a client that no other client has, on any machine, as long as host names differ."""
    return f"{configured or 'client'}@{socket.gethostname()}:{os.getpid()}/{number}"
