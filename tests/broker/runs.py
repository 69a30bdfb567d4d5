"""
Runs of real brokers under random loads, kept whole: ``python -m tests.broker.runs hot OUTDIR --seed 7 --kafka 4.4.0``.

A run is a directory: ``request.log.gz``, ``segments``, ``server.properties`` and ``output.log.gz`` of each broker, and
``clients.jsonl.gz``, what clients saw and did. It has its name once it is complete.
"""

from __future__ import annotations

import gzip
import re
import shutil
import signal
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

from tests.broker.kafka_broker import KafkaBroker
from tests.broker.kafka_cluster import KafkaCluster
from tests.broker.loads import Run
from tests.broker.notes import Notes
from tests.broker.scenarios import BROKER, KINDS

RELEASES: Final = ("4.3.1", "4.4.0")
CLIENTS: Final = "clients.jsonl"

LEFT_OUT: Final = re.compile(r"__consumer_offsets-|__transaction_state-|__cluster_metadata-|.*-delete$")
"""Directories below log.dirs that have nothing to do with share partitions, or belong to deleted topics."""

KEPT: Final = ("*.log", "partition.metadata", "leader-epoch-checkpoint")
"""What is kept of the directory of a partition; its indices are large and say nothing more."""

HIDDEN: Final = re.compile(r"^ssl\.keystore\.location=.*\n", re.MULTILINE)


@frozen
class Made:
    """A run that is complete."""

    place: Path
    lines: int
    """How many lines the request logs have."""
    seconds: float
    run: Run


def make(name: str, outdir: Path, kafka: str, seed: int, seconds: float = 0.0) -> Made:
    """
    Start brokers, do what the kind *name* says, and keep what is left of them in a directory of *outdir*.

    Args:
        name: One of KINDS.
        outdir: Where the run goes, as ``<kafka>-<name>-<seed>``.
        kafka: The release.
        seed: Another one draws other things to do.
        seconds: How long the load takes, if not as long as it usually does. [s]
    """
    kind, place = KINDS[name], outdir / f"{kafka}-{name}-{seed}"
    outdir.mkdir(parents=True, exist_ok=True)
    begin_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="broker-run-") as scratch:
        home = Path(scratch) / "broker"
        home.mkdir()
        notes = Notes(Path(scratch) / CLIENTS)
        make_brokers = KafkaCluster if kind.brokers > 1 else KafkaBroker
        broker = make_brokers(kafka, home, {**BROKER, **kind.settings}, kind.request_level)
        try:
            broker.start()
            with notes:
                run = Run(broker, kind.load(seed, seconds or kind.seconds), notes)
                kind.script(run)
        finally:
            broker.stop()
        brokers = broker.brokers if isinstance(broker, KafkaCluster) else [broker]
        lines = keep(brokers, notes.path, run.texts, place)
    return Made(place, lines, time.monotonic() - begin_s, run)


def keep(brokers: Sequence[KafkaBroker], clients: Path, texts: dict[str, str], place: Path) -> int:
    """Copy what there is of brokers that are stopped to *place*, and return how many lines their request logs have."""
    unfinished = place.with_name(f"unfinished-{place.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    lines = 0
    for number, broker in enumerate(brokers, 1):
        lines += keep_broker(broker, unfinished / f"broker{number}" if len(brokers) > 1 else unfinished)
    pack(clients, unfinished / f"{clients.name}.gz")
    for name, text in texts.items():
        (unfinished / name).write_text(text)
    shutil.rmtree(place, ignore_errors=True)
    unfinished.rename(place)
    return lines


def keep_broker(broker: KafkaBroker, place: Path) -> int:
    """Copy what there is of one broker, and return how many lines its request log has."""
    segments = place / "segments"
    segments.mkdir(parents=True)
    for path in sorted(broker.log_dir.iterdir()):
        if path.is_file():
            if path.name != ".lock":
                shutil.copy(path, segments)
        elif not LEFT_OUT.match(path.name):
            (segments / path.name).mkdir()
            for file in (file for pattern in KEPT for file in path.glob(pattern)):
                shutil.copy(file, segments / path.name)
    properties = HIDDEN.sub("", broker.properties.read_text()).strip()
    (place / "server.properties").write_text(f"{properties}\n".replace(str(broker.log_dir), "/var/lib/kafka/data"))
    pack(broker.output, place / "output.log.gz")
    return pack(broker.request_log, place / "request.log.gz")


def pack(file: Path, packed: Path) -> int:
    """Compress a file, the same way each time, and return how many lines it has."""
    data = file.read_bytes() if file.exists() else b""
    packed.write_bytes(gzip.compress(data, mtime=0))
    return data.count(b"\n")


def main() -> None:
    """Make the runs that are asked for."""
    parser = ArgumentParser(prog="python -m tests.broker.runs", description="Make runs of real Kafka brokers.")
    parser.add_argument("name", choices=[*KINDS, "all"], metavar="NAME", help=f"{', '.join(KINDS)}, or all")
    parser.add_argument("outdir", type=Path, metavar="OUTDIR", help="where runs are placed, and listed in INDEX.md")
    parser.add_argument("--kafka", default=RELEASES[0], choices=RELEASES, metavar="RELEASE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.0, help="how long the load takes")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that brokers are stopped
    for name in KINDS if given.name == "all" else [given.name]:
        made = make(name, given.outdir, given.kafka, given.seed, given.seconds)
        asked = f"--kafka {given.kafka} --seed {given.seed}" + (
            f" --seconds {given.seconds:g}" if given.seconds else ""
        )
        line = f"`runs {name} OUTDIR {asked}` | {made.seconds:.0f} s | {made.lines:,} lines | {KINDS[name].about}"
        with (given.outdir / "INDEX.md").open("a") as index:
            index.write(f"- {made.place.name}: {line}\n")
        sys.stdout.write(f"{made.place}: {made.lines:,} lines in {made.seconds:.0f} s\n")
        for what, times in sorted(made.run.counts.items()):
            sys.stdout.write(f"  {what}: {times}\n")
        for failure in made.run.failures:
            sys.stdout.write(f"  FAILED {failure}\n")


if __name__ == "__main__":
    main()
