"""Jobs on Spark Connect, and on a cluster whose machines do not have the library."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from sysconfig import get_path
from typing import Any, Final
from zipfile import ZipFile

import pyspark
import pytest
from pyspark.sql import SparkSession

from sharestate.coordinator import COORDINATOR_4_3
from sharestate.history import ReplaySettings, create_history, replay_events
from sharestate.history.arrow import encode_rows
from sharestate.history.synthetic import SyntheticHistory
from sharestate.spark import REPLAY_TABLES, write_archive
from sharestate.spark.library_zip import PACKAGES
from sharestate.state_topic import StateTopic, state_topic_files
from tests.broker.kafka_broker import free_ports
from tests.spark.conftest import HERE, QUICK
from tests.spark.histories import frame, history, plain

pytestmark = pytest.mark.spark

SPARK_HOME: Final = Path(pyspark.__file__).parent
JOB: Final = HERE / "rebuild_job.py"
SEGMENTS: Final = HERE.parent / "data" / "segments"
JAVA: Final = QUICK["spark.driver.extraJavaOptions"]
PATIENCE_S: Final = 300
NEEDED: Final = ("dateutil", "numpy", "numpy.libs", "pandas", "py4j", "pyarrow", "pyspark", "pytz", "six.py", "tzdata")
"""What PySpark and its needs put into an environment."""
COMPILED: Final = HERE.parents[1] / "build/compiled/lib"
"""The compiled library, which `make test-spark` has made."""


@pytest.fixture(scope="module")
def records(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """Random histories in Parquet, and the states in which they end, as the loop without Spark has them."""
    path = tmp_path_factory.mktemp("records") / "records.parquet"
    histories = [record for number in range(4) for record in history(COORDINATOR_4_3, number, Random(number))]
    frame(spark, histories, Random(9)).write.parquet(str(path))
    return path, [each.to_json() for each in plain(histories, COORDINATOR_4_3).share_partitions()]


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A history in Parquet, and the writes of its replay without Spark."""
    path = tmp_path_factory.mktemp("history") / "history.parquet"
    synthetic = list(SyntheticHistory(share_partitions=4, events=1000))
    with create_history(path) as file:
        file.write(synthetic)
    rows = replay_events(synthetic, ReplaySettings(outputs=frozenset({"write"})))
    (batch,) = encode_rows(list(rows))
    return path, comparable(batch.to_pylist())


def environment(**more: str) -> dict[str, str]:
    """Return variables for Spark's programs, without those that this session has set for itself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_", "PYTHON"))}
    return {**kept, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(HERE / "conf"), **more}


def options(settings: Mapping[str, str]) -> list[str]:
    """Return *settings* as options of ``spark-submit``."""
    return [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]


def like_json(states: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows as the loop without Spark writes them, in its order."""
    names = ("group_id", "topic_id", "partition", "state_epoch", "leader_epoch", "snapshot_epoch", "start_offset")
    rows = [
        {
            **{name: row[name] for name in (*names, "delivery_complete_count")},
            "state_batches": [list(batch.values()) for batch in row["state_batches"]],
        }
        for row in states
    ]
    return in_order(rows)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return *rows* in one order."""
    return sorted(rows, key=json.dumps)


def comparable(writes: list[dict[str, Any]]) -> list[str]:
    """Return writes in one order, with the columns that Spark's table of them has."""
    return sorted(json.dumps({name: row[name] for name in REPLAY_TABLES["write"].names}) for row in writes)


def run(command: Sequence[str | Path], directory: Path, variables: dict[str, str]) -> None:
    """Run a program in *directory*."""
    done = subprocess.run(
        command, cwd=directory, env=variables, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_spark_connect_gives_the_same(
    records: tuple[Path, list[dict[str, Any]]], events: tuple[Path, list[str]], tmp_path: Path
) -> None:
    """Without a SparkContext, states, health, the data source and replays work as they do with one."""
    path, expected = records
    history_path, writes = events
    result = tmp_path / "states.json"
    variables = environment(
        PYSPARK_PYTHON=sys.executable,
        PYSPARK_SUBMIT_ARGS=shlex.join([*options(QUICK), "pyspark-shell"]),  # for the server
        SPARK_REMOTE="local[2]",
        SPARK_TESTING="1",  # PySpark's switch for any free port: the server's usual one may be taken
    )
    topic = StateTopic()
    topic.read(state_topic_files(SEGMENTS))

    run([sys.executable, JOB, path, history_path, result, SEGMENTS], tmp_path, variables)

    found = json.loads(result.read_text())
    assert found["session"].startswith("pyspark.sql.connect.")
    assert like_json(found["states"]) == in_order(expected)
    assert found["health"] == len(expected)
    assert comparable(found["writes"]) == writes
    assert found["segments"] == sorted(each.state.start_offset for each in topic.share_partitions())


def test_the_archive_is_the_same_every_time(tmp_path: Path) -> None:
    """It holds the library and what that needs, and nothing compiled."""
    for name in ("one.zip", "two.zip"):
        write_archive(tmp_path / name)

    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    names = ZipFile(tmp_path / "one.zip").namelist()
    assert {name.partition("/")[0] for name in names} == set(PACKAGES)
    assert not [name for name in names if name.endswith((".so", ".pyc"))]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables for programs whose Python has no sharestate."""
    python = bare_python(tmp_path_factory.mktemp("bare") / "env")
    return environment(
        PYSPARK_PYTHON=str(python), SPARK_DAEMON_MEMORY="256m", SPARK_HOME=str(SPARK_HOME), SPARK_DAEMON_JAVA_OPTS=JAVA
    )


@pytest.fixture(scope="module")
def submit(bare: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str | Path]]:
    """The beginning of a command that submits a job to a cluster with such a Python."""
    settings = {**QUICK, "spark.driver.host": "127.0.0.1", "spark.executor.extraJavaOptions": JAVA}
    with cluster(tmp_path_factory.mktemp("cluster"), bare) as master:
        memory = ["--driver-memory", "512m", "--executor-memory", "512m"]
        yield [SPARK_HOME / "bin/spark-submit", "--master", master, *memory, *options(settings)]


def test_a_cluster_needs_the_archive_only(
    records: tuple[Path, list[dict[str, Any]]],
    events: tuple[Path, list[str]],
    submit: list[str | Path],
    bare: dict[str, str],
    tmp_path: Path,
) -> None:
    """A job that is submitted from another directory runs on workers whose Python has no sharestate."""
    path, expected = records
    history_path, writes = events
    archive, result, elsewhere = tmp_path / "sharestate-spark.zip", tmp_path / "states.json", tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_archive(archive)

    run([*submit, "--py-files", archive, JOB, path, history_path, result], elsewhere, bare)

    found = json.loads(result.read_text())
    assert ".zip/sharestate/" in found["library"]
    assert found["is_compiled"] == [False]
    assert like_json(found["states"]) == in_order(expected)
    assert comparable(found["writes"]) == writes


def test_a_cluster_runs_the_compiled_library_of_an_archive(
    records: tuple[Path, list[dict[str, Any]]],
    events: tuple[Path, list[str]],
    submit: list[str | Path],
    bare: dict[str, str],
    tmp_path: Path,
) -> None:
    """Workers without sharestate load what is compiled from where Spark unpacks it, and the results are the same."""
    path, expected = records
    history_path, writes = events
    archive, result, unpacked = tmp_path / "compiled.zip", tmp_path / "states.json", tmp_path / "unpacked"
    library = environment(PYTHONPATH=str(COMPILED))
    run([sys.executable, "-m", "sharestate.spark.library_zip", "--compiled", archive], tmp_path, library)
    with ZipFile(archive) as zipped:
        zipped.extractall(unpacked)  # for the driver, which has none either
    on_workers = ["--archives", f"{archive}#sharestate", *options({"spark.executorEnv.PYTHONPATH": "./sharestate"})]

    run([*submit, *on_workers, JOB, path, history_path, result], tmp_path, {**bare, "PYTHONPATH": str(unpacked)})

    found = json.loads(result.read_text())
    assert found["library"] == str(unpacked / "sharestate/__init__.py")
    assert found["is_compiled"] == [True]
    assert like_json(found["states"]) == in_order(expected)
    assert comparable(found["writes"]) == writes


def bare_python(directory: Path) -> Path:
    """Return the Python of a new environment that has PySpark, pandas and pyarrow, and no sharestate."""
    venv.create(directory, with_pip=False, symlinks=True)
    python = directory / "bin" / "python"
    where = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        check=True,
        text=True,
    )
    for name in NEEDED:
        if (found := Path(get_path("purelib"), name)).exists():
            Path(where.stdout.strip(), name).symlink_to(found)
    tried = subprocess.run(
        [python, "-c", "import pyspark, pandas, pyarrow, sharestate"], capture_output=True, check=False
    )
    assert tried.stderr.splitlines()[-1] == b"ModuleNotFoundError: No module named 'sharestate'"
    return python


@contextmanager
def cluster(directory: Path, variables: dict[str, str]) -> Iterator[str]:
    """Run a master and a worker on loopback, and yield the master's address."""
    port, *others = free_ports(4)
    address = f"spark://127.0.0.1:{port}"
    place = ["--host", "127.0.0.1", "--port"]
    worker = ["--cores", "1", "--memory", "600m", "--work-dir", str(directory / "work")]
    commands = (
        ["master.Master", *place, str(port), "--webui-port", str(others[0])],
        ["worker.Worker", *place, str(others[1]), "--webui-port", str(others[2]), *worker, address],
    )
    started = []
    with (directory / "cluster.log").open("wb") as log:
        try:
            for name, *arguments in commands:
                command: list[str | Path] = [
                    SPARK_HOME / "bin/spark-class",
                    f"org.apache.spark.deploy.{name}",
                    *arguments,
                ]
                started.append(subprocess.Popen(command, cwd=directory, env=variables, stdout=log, stderr=log))
                wait_for(port)
            yield address
        finally:
            for process in reversed(started):  # spark-class has become the daemon itself
                process.terminate()
                process.wait(PATIENCE_S)


def wait_for(port: int) -> None:
    """Wait until somebody listens at *port*."""
    give_up_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < give_up_s
            time.sleep(0.1)
        else:
            return
