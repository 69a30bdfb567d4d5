"""What `import sharestate` loads."""

import subprocess
import sys

import pytest

import sharestate

CORE_DEPENDENCIES = {"attr", "attrs", "sortedcontainers"}

LIST_NEW_MODULES = """
import sys
before = set(sys.modules)
import sharestate
print(*{name for name in sys.modules.keys() - before})
"""


def new_modules() -> set[str]:
    """Return the modules that `import sharestate` loads into a fresh interpreter."""
    command = [sys.executable, "-c", LIST_NEW_MODULES]
    return set(subprocess.run(command, capture_output=True, check=True, text=True).stdout.split())


def test_the_import_loads_only_the_core_dependencies() -> None:
    """`import sharestate` loads attrs, sortedcontainers and the standard library, and nothing else."""
    loaded = {name.partition(".")[0] for name in new_modules()}

    assert "sharestate" in loaded
    assert loaded - sys.stdlib_module_names - {"sharestate"} <= CORE_DEPENDENCIES


def test_the_import_does_not_load_asyncio() -> None:
    """Only who uses AsyncLeader pays for asyncio, which takes longer to load than everything else."""
    loaded = new_modules()

    assert "sharestate.leader.leader" in loaded
    assert loaded.isdisjoint({"asyncio", "sharestate.leader.async_leader"})


def test_a_name_that_is_loaded_on_first_use_is_there() -> None:
    """AsyncLeader can be imported like any other name; what does not exist cannot."""
    assert sharestate.AsyncLeader is sharestate.leader.async_leader.AsyncLeader
    assert not hasattr(sharestate, "AsyncFollower")


@pytest.mark.parametrize(
    ("library", "module", "extra"),
    [
        ("hypothesis", "sharestate.testing.strategies", "testing"),
        ("kio", "sharestate.persister.kafka", "kafka"),
    ],
)
def test_without_a_library_the_error_names_the_extra(library: str, module: str, extra: str) -> None:
    """The package around a module needs no library of an extra; the module says what to install."""
    command = f"""
import sys
sys.modules["{library}"] = None
import {module.rpartition(".")[0]}
import {module}
"""
    run = subprocess.run([sys.executable, "-c", command], capture_output=True, check=False, text=True)

    *_, message = run.stderr.splitlines()
    assert message.endswith(f"{module} needs the extra '{extra}': pip install 'sharestate[{extra}]'")


def test_spark_is_loaded_by_the_first_name_that_needs_it() -> None:
    """The package for Spark can be imported without Spark; its names say what to install."""
    command = """
import sys
sys.modules["pyspark"] = None
import sharestate.spark
assert not hasattr(sharestate.spark, "no_such_name")
sharestate.spark.rebuild_state
"""
    run = subprocess.run([sys.executable, "-c", command], capture_output=True, check=False, text=True)

    *_, message = run.stderr.splitlines()
    assert message.endswith("sharestate.spark needs the extra 'spark': pip install 'sharestate[spark]'")
