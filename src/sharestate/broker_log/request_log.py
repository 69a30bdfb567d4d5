"""The request logs of one or several brokers, merged by time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from heapq import heappop, heappush, heapreplace
from itertools import islice
from pathlib import Path
from typing import Final

from sharestate.broker_log.clocks import ClockChange
from sharestate.broker_log.envelopes import Envelopes
from sharestate.broker_log.lines import COMPLETED, STAMP, LoggedRequest, instant_us, last_stamp, read_request
from sharestate.broker_log.log_files import COMPRESSION_ERRORS, LogFile
from sharestate.broker_log.request_order import RequestOrder
from sharestate.errors import RequestLogError
from sharestate.json_lines import brief

_MOST_OPEN: Final = 200
"""How many files may overlap in time, and so be open at once: those of as many brokers. [files]"""

_LOOKED_AT: Final = 1000
"""In how many of its first lines a file's first time is looked for. [lines]"""

_FRONT: Final = 100
"""Where lines of other loggers have their stamps. [bytes]"""

_SHOWN: Final = 60
"""How much is shown of a line that does not belong in a request log. [characters]"""


class RequestLog:
    """
    The requests of request logs that say something of share partitions, roughly in the order in which they began.

    Args:
        paths: The files of one or several brokers, rotated ones too, in any order, plain or compressed with gzip.
        on_broken: What is done with the error of a line that is broken or cut off; it is raised if None.
        field: Where JSON has the line, as in ``_source.message``; it is looked for in the usual fields, too.
        utc_offset_us: The offset from UTC of stamps that do not say their own. [µs]

    Raises:
        RequestLogError: A file cannot be read, a line is broken, or there is no request in any file.

    Attributes:
        size: The size of the files. [bytes]
        lines: How many lines were read.
        requests: How many requests were read.
        lacks_offset: Whether a file begins with a stamp that does not say its offset from UTC.

    Complexity:
        Memory for the requests of ten seconds, and one open file for each broker.
    """

    def __init__(
        self,
        paths: Sequence[Path | str],
        on_broken: Callable[[RequestLogError], None] | None = None,
        *,
        field: str | None = None,
        utc_offset_us: int = 0,
    ) -> None:
        """Look at the first lines of the files, by which they are ordered."""
        self._on_broken = on_broken
        self._field = field
        self._utc_offset_us = utc_offset_us
        self._files = [LogFile(path) for path in dict.fromkeys(map(Path, paths))]
        self.size = sum(file.size for file in self._files)
        self.lacks_offset = False
        self._begins = sorted((self._first_us(file), number) for number, file in enumerate(self._files))
        self._order = RequestOrder(is_one_file=len(self._files) == 1)
        self.lines = self.requests = 0
        self._completed = self._broken = 0
        self._first_line = b""
        self._first_broken: RequestLogError | None = None

    @property
    def late(self) -> int:
        """How many requests have a line more than ten seconds after one whose request was later."""
        return self._order.late

    @property
    def repeated(self) -> int:
        """How many requests were left out because two files have them."""
        return self._order.repeated

    @property
    def clock_change(self) -> ClockChange | None:
        """Where a broker's clock was put back or forward by an hour; None if nowhere."""
        return self._order.clock_change

    @property
    def position(self) -> int:
        """How much of the files was read. [bytes]"""
        return sum(file.position for file in self._files)

    def __iter__(self) -> Iterator[LoggedRequest]:
        """Yield the requests by the time at which a handler took them, in the order of each connection."""
        yield from self._order.ordered(self._merged())
        if not self.requests:
            raise self._no_request()

    def broken(self, error: RequestLogError) -> None:
        """
        Report a line that makes no sense.

        Raises:
            RequestLogError: *error*, unless such lines are skipped.
        """
        if self._on_broken is None:
            raise error
        self._broken += 1
        self._first_broken = self._first_broken or error
        self._on_broken(error)

    # ---- the files, merged

    def _merged(self) -> Iterator[LoggedRequest]:
        """Yield the requests of all files by when they ended; a file is opened when its time has come."""
        closed = self._begins[::-1]
        opened: list[tuple[int, int, LoggedRequest, Iterator[LoggedRequest]]] = []
        while closed or opened:
            while closed and (not opened or closed[-1][0] <= opened[0][0]):
                _, number = closed.pop()
                requests = self._requests(self._files[number])
                first = next(requests, None)
                if first is not None:
                    heappush(opened, (first.end_us, number, first, requests))
                if len(opened) > _MOST_OPEN:
                    message = f"more than {_MOST_OPEN} files overlap in time with this one"
                    raise RequestLogError(message, str(self._files[number].path))
            if opened:
                _, number, request, requests = opened[0]
                yield request
                following = next(requests, None)
                if following is None:
                    heappop(opened)
                else:
                    heapreplace(opened, (following.end_us, number, following, requests))

    def _requests(self, file: LogFile) -> Iterator[LoggedRequest]:
        """Yield the requests of a file, in the order of its lines."""
        name = str(file.path)
        for number, line in self._opened(file, name):
            self._completed += 1
            try:
                request = read_request(line, name, number, self._utc_offset_us)
            except RequestLogError as error:
                self.broken(error)
                continue
            if request is not None:
                self.requests += 1
                yield request

    def _opened(self, file: LogFile, name: str) -> Iterator[tuple[int, bytes]]:
        """Yield the lines of a file that have a request, with their numbers, without what wraps them."""
        envelopes, number = Envelopes(self._field), 0
        try:
            with file.lines() as lines:
                for number, line in enumerate(lines, 1):
                    try:
                        opened = envelopes.opened(line, number)
                    except ValueError as error:
                        self.broken(RequestLogError(str(error), name, number))
                        continue
                    if opened:
                        yield from opened
                    elif not self._first_line:
                        self._first_line = line.strip()
        except COMPRESSION_ERRORS as error:
            message = f"cannot be read: {error}"
            self.broken(RequestLogError(message, name, number + 1))
        except (OSError, UnicodeError) as error:
            message = f"cannot be read: {error}"
            raise RequestLogError(message, name, number + 1) from error
        self.lines += number
        yield from envelopes.rest()

    # ---- what is in files

    def _first_us(self, file: LogFile) -> int:
        """Return a time before which a file has no request; 0 if its first lines do not say."""
        envelopes = Envelopes(self._field)
        with suppress(OSError, UnicodeError, *COMPRESSION_ERRORS), file.lines() as lines:  # reported later
            for number, line in enumerate(islice(lines, _LOOKED_AT), 1):
                with suppress(ValueError):  # likewise
                    opened = [text for _, text in envelopes.opened(line, number)]
                    for text in opened or [line] * (line[:1] != b"{"):
                        begin = text.find(COMPLETED)
                        match = last_stamp(text, begin if begin >= 0 else _FRONT)
                        if match is not None:
                            self.lacks_offset |= match[4] is None
                            return instant_us(match, self._utc_offset_us)
        return 0

    def _no_request(self) -> RequestLogError:
        """Return the error for files without a request, which says what they have instead."""
        shown = brief(self._first_line.decode(errors="replace"), _SHOWN)
        if self._first_broken is not None:
            what = f"all of {self._broken:,} requests are broken, the first one so: {self._first_broken}"
        elif self._completed:
            what = f"none of {self._completed:,} requests says anything of share groups"
        elif not self._first_line:
            what = "it is empty"
        elif b"\0" in self._first_line:
            what = f"no text: it begins with {shown}"
        elif STAMP.search(self._first_line, 0, _FRONT):
            what = f"{self.lines:,} lines of another logger, the first of them {shown}"
        else:
            what = f"{self.lines:,} lines without 'Completed request:', the first of them {shown}"
        names = [str(file.path) for file in self._files]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        message = f"{what}: is this a request log, of the logger kafka.request.logger at DEBUG?"
        return RequestLogError(message, f"{names[0]}{more}" if names else "")
