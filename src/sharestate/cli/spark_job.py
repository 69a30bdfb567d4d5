"""Spark for the commands ``spark ...``: its start and its end, how far it is, and what went wrong in one line."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import frozen
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from sharestate.cli.exits import NoVerdict
from sharestate.errors import ShareStateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_REFRESHED_S: Final = 0.5
"""The time between two looks at how far the job is. [s]"""

SETTINGS: Final[dict[str, bool | float | int | str | None]] = {
    # A bound in bytes makes Spark measure a batch, column by column, after each row of it. The number of rows is that
    # which its reader of Parquet has in memory anyway.
    "spark.sql.execution.arrow.maxBytesPerBatch": 2**31 - 1,
    "spark.sql.execution.arrow.maxRecordsPerBatch": 4096,
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_LOGGING: Final = "rootLogger.level = off\n"
_ERROR: Final = re.compile(r"(?m)^(?:\w+\.)*(\w+(?:Error|Exception)): (.*)$")
"""The last line of a traceback of Python's."""


@frozen
class SparkJob:
    """
    Spark at work for a command.

    Attributes:
        spark: The session.
        bar: Where it shows how far it is; disabled where nobody looks.
    """

    spark: SparkSession
    bar: Progress

    @contextmanager
    def step(self, what: str, unit: str = "rows", total: int | None = None) -> Iterator[None]:
        """
        Show the stages that Spark is at, on a terminal, and nothing elsewhere.

        Args:
            what: What Spark does in the meantime, such as ``replaying``.
            unit: What each of its stages reads.
            total: How many of them there are; None if that is not known.
        """
        if self.bar.disable:
            yield
            return
        is_done = Event()
        watcher = Thread(target=self._watch, args=(what, unit, total, is_done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            is_done.set()
            watcher.join()

    def _watch(self, what: str, unit: str, total: int | None, is_done: Event) -> None:
        (task,) = self.bar.task_ids
        self.bar.reset(task, description=what, total=None, read="")
        of_all = "" if total is None else f" of {total:,}"
        while not is_done.wait(_REFRESHED_S):
            with suppress(Exception):  # a job must not fail because nobody can see how far it is
                for stage in self._active_stages():
                    read = max(stage.inputRecords() + stage.shuffleReadRecords(), stage.shuffleWriteRecords())
                    done, tasks = stage.numCompleteTasks(), stage.numTasks()
                    self.bar.update(
                        task,
                        description=f"{what}, stage {stage.stageId()}",
                        completed=done,
                        total=tasks,
                        read=f"{done} of {tasks} tasks, {read:,}{of_all} {unit} read",
                    )

    def _active_stages(self) -> Iterable[Any]:
        """Return the stages that are running, as Spark's own status has them."""
        stages = self.spark.sparkContext._jsc.sc().statusStore().activeStages()  # noqa: SLF001 - PySpark has no name for it
        return [stages.apply(index) for index in range(stages.size())]


@contextmanager
def spark_job(master: str, partitions: int | None) -> Iterator[SparkJob]:
    """
    Start Spark, and stop it; what goes wrong ends the command with one line.

    Args:
        master: Where Spark runs, as for ``spark-submit``.
        partitions: The tasks of a shuffle; None for twice as many as this machine has cores, or what a cluster says.
    """
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[read]}"))
    with (
        tempfile.TemporaryDirectory(prefix="sharestate-") as directory,
        _one_line(Path(directory)),
        Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal, redirect_stdout=False
        ) as bar,
    ):
        bar.add_task("starting Spark", total=None, read="")
        spark = _start(master, partitions, Path(directory))
        try:
            yield SparkJob(spark, bar)
        finally:
            spark.stop()


def _start(master: str, partitions: int | None, directory: Path) -> SparkSession:
    import sharestate.spark  # noqa: PLC0415 - needs an extra

    _ = sharestate.spark.replay  # which says what is missing, if it is
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        message = "Spark needs a JDK, 17 or 21: there is no java on the path, and JAVA_HOME is not set"
        raise NoVerdict(message)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers would take the first python3 on the path
    is_local = master.startswith("local")
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if "SPARK_CONF_DIR" not in os.environ:
        (directory / "log4j2.properties").write_text(_LOGGING)
        os.environ["SPARK_CONF_DIR"] = str(directory)
    with _stderr_to(directory / "stderr"):
        spark = SparkSession.builder.master(master).appName("sharestate").config(map=SETTINGS).getOrCreate()
    tasks = partitions or (2 * spark.sparkContext.defaultParallelism if is_local else None)
    if tasks is not None:
        spark.conf.set("spark.sql.shuffle.partitions", tasks)
    return spark


@contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """Let processes that are started have *file* as their standard error: Spark writes there what is no news."""
    kept = os.dup(2)
    with file.open("wb") as opened:
        os.dup2(opened.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _one_line(directory: Path) -> Iterator[None]:
    """End the command with the cause of an error, without the tracebacks of two languages around it."""
    try:
        yield
    except click.ClickException:
        raise
    except (ShareStateError, ModuleNotFoundError) as error:
        raise NoVerdict(str(error)) from error
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        raise NoVerdict(_cause(str(error)) or _last_line(directory / "stderr")) from error


def _cause(text: str) -> str:
    r"""
    Return the cause in the message of an error of Spark's.

    >>> _cause("Traceback (most recent call last):\n  File ...\nsharestate.errors.HistoryOrderError: seq: 3 again\n")
    'seq: 3 again'
    >>> _cause("[PATH_ALREADY_EXISTS] Path file:/out already exists. SQLSTATE: 42K04")
    'Path file:/out already exists.'
    """
    causes = _ERROR.findall(text)
    if causes:
        return str(causes[-1][1])
    first = text.strip().partition("\n")[0]
    return re.sub(r"^\[[A-Z_.]+\] | SQLSTATE: \w+$", "", first)


def _last_line(file: Path) -> str:
    with suppress(OSError):
        return file.read_text(errors="replace").strip().rpartition("\n")[2]
    return "Spark did not start"
