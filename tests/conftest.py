"""
What holds for all tests: what is skipped, what garbage is looked for, what is in memory, and that Ctrl-C works.

Directories are skipped whose modules cannot be imported everywhere; ``SHARESTATE_REQUIRE=spark`` makes it an error.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from tests.fuzz.in_memory import DIRECTORY

SPARK: Final = Path(__file__).parent / "spark"


class SkippedDirectory(pytest.Directory):
    """A directory with tests that need Spark, where there is none."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Skip it, and say why."""
        reason = f"needs {' and '.join(missing())}: make test-spark"
        if "spark" in os.environ.get("SHARESTATE_REQUIRE", "").split(","):
            raise pytest.Collector.CollectError(reason)
        pytest.skip(reason, allow_module_level=True)


def missing() -> list[str]:
    """Return what of the things that Spark takes is not here."""
    here = {"PySpark": find_spec("pyspark"), "Java": shutil.which("java")}
    return [name for name, found in here.items() if found is None]


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Take the place of a directory whose modules cannot be imported here."""
    return SkippedDirectory.from_parent(parent, path=path) if path == SPARK and missing() else None


class WhereExamplesAre:
    """What has doctest look for examples only in files that have some; a plugin, as a conftest has no say in `src`."""

    @staticmethod
    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        """Leave out the others, of which doctest would import each and walk over all that it defines."""
        collectors = yield
        if file_path.suffix != ".py" or b">>> " in file_path.read_bytes():
            return collectors
        return [each for each in collectors if type(each) is pytest.Module]


def pytest_configure(config: pytest.Config) -> None:
    """Have commands that tests start interrupted by Ctrl-C, also where a shell has started pytest in the background."""
    config.pluginmanager.register(WhereExamplesAre())
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # which commands would inherit
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """
    Spare the garbage collector what lives as long as the run, modules and thousands of tests.

    While they are made, next to nothing is garbage, and to look for it takes a quarter of the CPU; later a tenth.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000)
        gc.enable()


@pytest.fixture
def quick_collections() -> None:
    """
    Have `gc.collect()` look only at what the test itself makes.

    Late in a run it would walk over millions of objects, for half a second, that earlier tests and imports have left.
    """
    gc.collect(1)
    gc.freeze()


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """Return a directory in memory, if there is one: on a disk, what files of SQLite take is mostly the file system."""
    with TemporaryDirectory(dir=DIRECTORY) as directory:
        yield Path(directory)
