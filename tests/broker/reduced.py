"""
What of a run goes into ``tests/data/broker-log``: ``python -m tests.broker.reduced RUN tests/data/broker-log/NAME``.

Request logs, settings, notes of clients, and of the segments those of the topics that members read.
"""

from __future__ import annotations

import shutil
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Final

FILES: Final = ("request.log.gz", "server.properties", "clients.jsonl.gz", "group-config.txt")
SEGMENTS: Final = ("*.log", "partition.metadata")


def reduce_run(run: Path, place: Path) -> None:
    """Copy what tests need of the run in *run* to *place*."""
    for part in (run, *sorted(run.glob("broker*"))):
        here = place / part.relative_to(run)
        here.mkdir(parents=True)
        for name in FILES:
            if (part / name).exists():
                shutil.copy(part / name, here)
        for directory in sorted(part.glob("segments/*-*/")):
            if not directory.name.startswith("__"):
                kept = here / "segments" / directory.name
                kept.mkdir(parents=True)
                for file in (file for pattern in SEGMENTS for file in directory.glob(pattern)):
                    shutil.copy(file, kept)


def main() -> None:
    """Copy what tests need of a run."""
    parser = ArgumentParser(prog="python -m tests.broker.reduced", description="Copy what tests need of a run.")
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("place", type=Path, metavar="PLACE", help="a directory that is not there yet")
    given = parser.parse_args()
    reduce_run(given.run, given.place)
    size = sum(file.stat().st_size for file in given.place.rglob("*") if file.is_file())
    sys.stdout.write(f"{given.place}: {size:,} bytes\n")


if __name__ == "__main__":
    main()
