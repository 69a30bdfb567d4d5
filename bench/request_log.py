"""What the import of a large request log costs: a given run's log repeated, an hour after the one before each time."""

from __future__ import annotations

import argparse
import gzip
import json
import re
import resource
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from sharestate.broker_log import LogImport, RequestLog, TopicLogs, read_properties
from sharestate.history import Header, Order, create_history

RUN: Final = Path(__file__).parents[1] / "tests" / "data" / "broker-log" / "k431-seq"
_STAMP: Final = "%Y-%m-%dT%H:%M:%S.%f"
_STAMP_SIZE: Final = len("2026-11-22T04:35:43.518906")
_MEBI: Final = 2**20


def repeated(lines: list[str], size: int) -> Iterator[str]:
    """Yield *lines* again and again, each time as other groups and an hour later, until they are *size*. [bytes]"""
    stamps = [datetime.strptime(line[:_STAMP_SIZE], _STAMP).replace(tzinfo=UTC) for line in lines]
    written = turn = 0
    while written < size:
        later = timedelta(hours=turn)
        for line, stamp in zip(lines, stamps, strict=True):
            rest = re.sub(r'"groupId":"', f'"groupId":"{turn}-', line[_STAMP_SIZE:])
            rest = rest.replace('"connection":"', f'"connection":"{turn}-')
            text = f"{(stamp + later).strftime(_STAMP)}{rest}"
            written += len(text)
            yield text
        turn += 1


def main() -> None:
    """Make a log, import it, and print what that has cost as a line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.request_log", description=__doc__)
    parser.add_argument("--run", type=Path, default=RUN, help="a run: its log, segments and properties")
    parser.add_argument("--megabytes", type=int, default=100, help="the size of the log")
    parser.add_argument("--suffix", default=".jsonl", help="of the history: .jsonl, .jsonl.gz or .parquet")
    options = parser.parse_args()
    with TemporaryDirectory() as directory:
        log = Path(directory, "request.log")
        lines = gzip.decompress((options.run / "request.log.gz").read_bytes()).decode().splitlines(keepends=True)
        with log.open("w") as file:
            file.writelines(repeated(lines, options.megabytes * 10**6))
        del lines
        begin = time.process_time()
        source = RequestLog([log])
        topics, properties = TopicLogs(options.run / "segments"), read_properties(options.run / "server.properties")
        events = LogImport(source, topics, broker=properties)
        with create_history(Path(directory, f"history{options.suffix}"), Header(order=Order.ARRIVAL)) as history:
            history.write(events)
        seconds = time.process_time() - begin
        found = {
            "bytes": source.size,
            "lines": source.lines,
            "events": sum(events.counts.values()),
            "cpu_s": round(seconds, 1),
            "megabytes_per_s": round(source.size / seconds / 10**6, 1),
            "peak_mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (_MEBI // 1024),
        }
        sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main()
