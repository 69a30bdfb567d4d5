"""
A history replayed on Spark and without it by turns: ``python -m bench.spark_replay --events 2000000``.

Both read the same Parquet file and write the same kinds of rows as Parquet. CPU time is that of this process for the
plain loop, and that of all processes below it, Java's and Python's, for Spark: from ``/proc``, so this needs Linux. The
first round on Spark, in which Java compiles, is left out of the medians.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bench.spark_rebuild import session, waiting
from bench.tables import table
from sharestate.history import ReplaySettings, replay_files
from sharestate.history.synthetic import SyntheticHistory, generate_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

SHARE_PARTITIONS: Final = 2000
HOT_PERCENT: Final = 10
PARTITIONS: Final = 2 * (os.cpu_count() or 1)
SETTINGS: Final = ReplaySettings()
GOALS: Final = {"cpu": 1.25, "wall": 1.0}
"""The most that Spark may take of what the plain loop takes. [ratio]"""

PEAK_GOAL_MIB: Final = 250
"""The most memory that a worker may ever have had. [MiB]"""

GROWTH_TASKS: Final = (1, 2)
GROWTH_EVENTS: Final = (0.05, 0.5, 5)
"""The numbers of events, as parts of those that were asked for."""

DAY_EVENTS: Final = 10**10
"""The events of a day, in the table of the page on sizing. [events]"""

DAY_S: Final = 86_400
EXECUTORS: Final = (3, 10, 50, 200)
_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """What one replay has cost."""

    wall: float
    """The time that it took. [s]"""

    cpu: float
    """The time that processors have worked. [s]"""

    rows: dict[str, int]
    """The number of rows of each kind."""

    java: float = 0
    """What of it Java has worked; the rest is Python's. [s]"""


# ---- processes


def descendants() -> list[int]:
    """Return the processes below this one."""
    parents: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        if fields := _stat(status):
            parents.setdefault(int(fields[1]), []).append(int(status.parent.name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        waiting = [child for parent in waiting for child in parents.get(parent, [])]
        found += waiting
    return found


def cpu_of_descendants(program: str = "") -> float:
    """Return the time that processors have worked for the processes below this one that run *program*, or all. [s]"""
    stats = (_stat(process) for each in descendants() if program in _name(process := Path(f"/proc/{each}/stat")))
    return sum(sum(map(int, fields[11:15])) for fields in stats if fields) * _TICK_S


def peak_of_workers() -> float:
    """Return the most memory that any of Spark's Python workers has had. [MiB]"""
    peaks = [0.0]
    for process in descendants():
        try:
            command = Path(f"/proc/{process}/cmdline").read_bytes()
            status = Path(f"/proc/{process}/status").read_text()
        except OSError:
            continue
        if b"pyspark.daemon" in command and (found := re.search(r"VmHWM:\s+(\d+) kB", status)):
            peaks.append(int(found[1]) / 1024)
    return max(peaks)


def _name(file: Path) -> str:
    """Return the name of a process."""
    try:
        return file.read_text().partition("(")[2].rpartition(")")[0]
    except OSError:
        return ""


def _stat(file: Path) -> list[str]:
    """Return the fields of a process after its name, which may have blanks; none if it has ended."""
    try:
        return file.read_text().rpartition(")")[2].split()
    except OSError:
        return []


# ---- replays


def without_spark(source: Path, target: Path) -> Cost:
    """Replay in a loop."""
    return _measured(_own_cpu, lambda: dict(replay_files(source, target, SETTINGS).rows))


def on_spark(spark: SparkSession, source: Path, target: Path) -> Cost:
    """Replay on Spark."""
    from sharestate.spark import read_history, replay  # noqa: PLC0415 - an extra

    def run() -> dict[str, int]:
        events = read_history(spark, str(source))
        replay(events, outputs=SETTINGS.outputs, partitions=PARTITIONS).write(str(target))
        return {}

    java = cpu_of_descendants("java")
    cost = _measured(lambda: _own_cpu() + cpu_of_descendants(), run)
    java = cpu_of_descendants("java") - java
    rows = spark.read.parquet(str(target)).groupBy("kind").count().collect()
    return cost._replace(rows={row["kind"]: row["count"] for row in rows}, java=java)


def _own_cpu() -> float:
    times = os.times()
    return times.user + times.system


def _measured(cpu: Callable[[], float], run: Callable[[], dict[str, int]]) -> Cost:
    cpu_before, begin = cpu(), perf_counter()
    rows = run()
    return Cost(perf_counter() - begin, cpu() - cpu_before, rows)


def size_of(directory: Path, pattern: str) -> int:
    """Return the size of the files below *directory* whose names are like *pattern*. [bytes]"""
    return sum(file.stat().st_size for file in directory.rglob(pattern))


def measure(events: int, rounds: int, master: str) -> dict[str, Any]:
    """Return the costs of all rounds, by turns; of Spark one more, the first, which warms Java up."""
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(scratch, "history.parquet"), Path(scratch, "rows")
        history = SyntheticHistory(share_partitions=SHARE_PARTITIONS, events=events, hot_percent=HOT_PERCENT)
        with waiting("a history"):
            generate_file(history, source)
        spark = session(scratch, master)

        def cleared(cost: Cost) -> Cost:
            shutil.rmtree(target)
            return cost

        plain: list[Cost] = []
        with waiting("a first round on Spark"):
            cold = on_spark(spark, source, target)
        sizes = {
            "history": source.stat().st_size,
            "shuffled": size_of(Path(scratch), "shuffle_*.data"),
            "rows": size_of(target, "*.parquet"),
        }
        on = [cleared(cold)]
        for number in range(1, rounds + 1):
            with waiting(f"round {number} of {rounds} without Spark"):
                plain.append(cleared(without_spark(source, target)))
            with waiting(f"round {number} of {rounds} on Spark"):
                on.append(cleared(on_spark(spark, source, target)))
        peak = peak_of_workers()
        spark.stop()
    for cost in on:
        if cost.rows != plain[0].rows:
            message = f"{cost.rows} on Spark, {plain[0].rows} without"
            raise AssertionError(message)
    return {"events": events, "master": master, "plain": plain, "spark": on, "peak": peak, "sizes": sizes}


# ---- tables


def report(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about one measurement."""
    per_event = 1e6 / found["events"]
    plain, on = ([Cost(*each) for each in found[name]] for name in ("plain", "spark"))
    rows = []
    for number, cost in enumerate(on):
        beside = plain[number - 1] if number else None
        rows.append(
            (
                str(number) if number else "cold",
                *((f"{beside.wall:.1f}", f"{beside.cpu * per_event:.1f}") if beside else ("", "")),
                *(f"{cost.wall:.1f}", f"{cost.cpu * per_event:.1f}", f"{cost.java * per_event:.1f}"),
                *((f"{cost.cpu / beside.cpu:.2f}", f"{cost.wall / beside.wall:.2f}") if beside else ("", "")),
            )
        )
    times = ("plain, s", "CPU µs/event", "Spark, s", "CPU µs/event", "of it Java")
    head = ("round", *times, "ratio of CPU", "ratio of time")
    yield f"{found['events']:,} events, {found['master']}, {os.cpu_count()} processors"
    yield ""
    yield from table(head, rows)
    yield ""
    cpu, wall = ratios(found)
    yield f"median ratio of CPU {cpu:.2f}, goal {GOALS['cpu']}; of time {wall:.2f}, goal {GOALS['wall']}"
    yield f"most memory of a worker {found['peak']:.0f} MiB, goal {PEAK_GOAL_MIB}"
    yield ""
    yield from sizing(found)


def sizing(found: dict[str, Any]) -> Iterator[str]:
    """Yield the tables of the page on sizing, docs/spark-history.md, with what was measured."""
    warm, plain = (
        median(Cost(*each).cpu for each in rounds) / found["events"] for rounds in (found["spark"][1:], found["plain"])
    )
    shuffled = found["sizes"]["shuffled"] / found["events"]
    on, without = warm * DAY_EVENTS, plain * DAY_EVENTS
    rows = (
        (
            f"CPU on Spark, Java's and Python's, median of {len(found['plain'])} warm rounds",
            f"{warm * 1e6:.0f} µs/event",
            f"{on:,.0f} s: {on / DAY_S:.1f} processors for a day",
        ),
        (
            "CPU of the plain loop",
            f"{plain * 1e6:.0f} µs/event",
            f"{without:,.0f} s: {without / DAY_S:.1f} processors for a day, if there were that many histories",
        ),
        (
            "bytes shuffled",
            f"{shuffled:.0f} bytes/event",
            f"{shuffled * DAY_EVENTS / 1e12:.1f} TB on the disks of all executors",
        ),
        (
            "most memory of a Python worker",
            f"{found['peak']:.0f} MiB",
            "the same: it does not grow with events, and there is one for each processor",
        ),
    )
    yield from table(("what", "measured", "for 10¹⁰ events"), rows)
    yield ""
    executors = (
        (str(count), _duration(on / count / 4), f"{shuffled * DAY_EVENTS / count / 1e9:.0f} GB") for count in EXECUTORS
    )
    yield from table(("executors of 4 processors", "a day of events takes", "shuffled by each"), list(executors))


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds >= 2 * 3600 else f"{seconds / 60:.0f} minutes"


def ratios(found: dict[str, Any]) -> tuple[float, float]:
    """Return the median ratios of CPU and of wall time."""
    pairs = [(Cost(*one), Cost(*two)) for one, two in zip(found["plain"], found["spark"][1:], strict=True)]
    return median(two.cpu / one.cpu for one, two in pairs), median(two.wall / one.wall for one, two in pairs)


def growth(events: int, rounds: int) -> Iterator[str]:
    """Yield what tasks and events change, each measured by a process of its own."""
    runs = [(int(events * part), f"local[{tasks}]") for part in GROWTH_EVENTS for tasks in GROWTH_TASKS]
    rows = []
    for count, master in runs:
        with waiting(f"{count:,} events, {master}"):
            found = _elsewhere(count, rounds, master)
        on = [Cost(*each) for each in found["spark"][1:]]
        cpu, wall = ratios(found)
        spark_cpu = median(cost.cpu for cost in on) * 1e6 / count
        rows.append(
            (
                f"{count:,} events, {master}",
                f"{median(cost.wall for cost in on):.1f}",
                *(f"{spark_cpu:.1f}", f"{cpu:.2f}", f"{wall:.2f}", f"{found['peak']:.0f}"),
            )
        )
    head = ("size", "Spark, s", "CPU µs/event", "ratio of CPU", "ratio of time", "worker, MiB")
    yield from table(head, rows)


def _elsewhere(events: int, rounds: int, master: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.spark_replay", "--json", f"--events={events}", f"--rounds={rounds}"]
    done = subprocess.run([*command, f"--master={master}"], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[*]")
    parser.add_argument(
        "--growth",
        action="store_true",
        help="measure a twentieth, half and five times as many events, each by 1 and by 2 tasks at a time",
    )
    parser.add_argument("--json", action="store_true", help="print the measurement as JSON")
    chosen = parser.parse_args()
    if chosen.growth:
        lines = "\n".join(growth(chosen.events, chosen.rounds))
    else:
        found = measure(chosen.events, chosen.rounds, chosen.master)
        lines = json.dumps(found) if chosen.json else "\n".join(report(found))
    sys.stdout.write(f"{lines}\n")


if __name__ == "__main__":
    main()
