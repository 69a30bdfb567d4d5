"""What `import sharestate` loads, and what its names do."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import sharestate
import sharestate.conversation
import sharestate.conversation.groups

PACKAGE = Path(sharestate.__file__).parent
MODULES = {
    ".".join((PACKAGE.name, *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): file
    for file in PACKAGE.rglob("*.py")
}

CORE_DEPENDENCIES = {"attr", "attrs", "sortedcontainers"}

LIST_NEW_MODULES = """
import sys
before = set(sys.modules)
import sharestate
{use}
print(*{{name for name in sys.modules.keys() - before}})
"""


@cache
def new_modules(use: str) -> frozenset[str]:
    """Return the modules that `import sharestate` and *use* load into a fresh interpreter."""
    command = [sys.executable, "-c", LIST_NEW_MODULES.format(use=use)]
    return frozenset(subprocess.run(command, capture_output=True, check=True, text=True).stdout.split())


def test_nothing_is_loaded_before_a_name_is_used() -> None:
    """A command that is interrupted at its beginning, or needs one module, does not wait for all of them."""
    loaded = new_modules("")

    assert {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names} == {"sharestate"}


def what_may_import(text: str) -> Iterator[ast.AST]:
    """Yield the statements of a module, and its expressions too where one imports a module by its name."""
    kinds = ast.AST if "import_module" in text else ast.stmt | ast.excepthandler | ast.match_case
    nodes: list[ast.AST] = [ast.parse(text)]
    for node in nodes:
        yield node
        nodes += (child for child in ast.iter_child_nodes(node) if isinstance(child, kinds))


def imports_of(file: Path) -> Iterator[str]:
    """Yield the modules of the package that *file* imports: for annotations, in functions or by a name too."""
    for node in what_may_import(file.read_text()):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(str(module), names):
                wholes = [f"{module}.{alias.name}" for alias in names]
                yield from (whole if whole in MODULES else module for whole in wholes)
            case ast.Call(ast.Name("import_module"), [ast.Constant(str(name))]):
                yield name
            case _:
                pass


def test_no_import_goes_round_in_a_circle() -> None:
    """Not even by a module's name, which the linter does not see, and in no package."""
    graph = {name: set(imports_of(file)) & MODULES.keys() for name, file in MODULES.items()}

    order = [*TopologicalSorter(graph).static_order()]

    assert order.index("sharestate.history.parquet_files") < order.index("sharestate.history.files")


def test_the_names_load_only_the_core_dependencies() -> None:
    """They take attrs, sortedcontainers and the standard library, and nothing else."""
    loaded = {name.partition(".")[0] for name in new_modules("from sharestate import Leader")}

    assert "sharestate" in loaded
    assert loaded - sys.stdlib_module_names - {"sharestate"} <= CORE_DEPENDENCIES


def test_the_names_do_not_load_asyncio() -> None:
    """Only who uses AsyncLeader pays for asyncio, which takes longer to load than everything else."""
    loaded = new_modules("from sharestate import Leader")

    assert "sharestate.leader.leader" in loaded
    assert loaded.isdisjoint({"asyncio", "sharestate.leader.async_leader"})


def test_the_names_do_not_load_sqlite() -> None:
    """Not every Python has SQLite, and only who uses SqlitePersister needs it."""
    loaded = new_modules("from sharestate import InMemoryPersister, Leader, ThreadedPersister")

    assert "sharestate.persister.threaded" in loaded
    assert loaded.isdisjoint({"sqlite3", "_sqlite3", "sharestate.persister.sqlite_persister"})


def test_conversations_of_groups_are_loaded_by_their_first_use() -> None:
    """`sharestate serve` waits for the group coordinator only if it is asked for one."""
    loaded = new_modules("import sharestate.cli.serve, sharestate.cli.compare, sharestate.cli.replay")

    assert "sharestate.conversation.server" in loaded
    assert not {name for name in loaded if name.startswith("sharestate.broker.groups")}


def test_commands_are_listed_without_being_loaded() -> None:
    """In the help of all, and to a shell that completes the name of one."""
    use = """
from sharestate.cli.commands import sharestate
context = sharestate.make_context("sharestate", [], resilient_parsing=True)
assert [item.value for item in sharestate.shell_complete(context, "st")] == ["state"]
assert "__share_group_state" in sharestate.get_help(context)
"""
    loaded = new_modules(use)

    assert {name for name in loaded if name.startswith("sharestate.cli.")} == {
        "sharestate.cli.commands",
        "sharestate.cli.exits",
        "sharestate.cli.signals",
    }


def test_names_are_found_in_every_way() -> None:
    """By a star, by `dir`, and modules of the package too, as if all had been loaded at once."""
    command = """
import sharestate
assert sharestate.leader.Leader is sharestate.Leader
assert {*sharestate.__all__} <= {*dir(sharestate)}
names = {}
exec("from sharestate import *", names)
assert names["Leader"] is sharestate.Leader
assert {*sharestate.__all__} <= {*names}
assert not hasattr(sharestate, "Follower")
"""
    subprocess.run([sys.executable, "-c", command], check=True)


def test_each_package_can_be_the_first() -> None:
    """No package counts on others having been loaded before it."""
    command = """
import importlib, sys
for name in ("errors", "values", "coordinator", "partition", "segments", "persister", "state_topic", "leader"):
    for loaded in [each for each in sys.modules if each.startswith("sharestate")]:
        del sys.modules[loaded]
    importlib.import_module(f"sharestate.{name}")
"""
    subprocess.run([sys.executable, "-c", command], check=True)


def test_a_name_that_is_loaded_on_first_use_is_there() -> None:
    """AsyncLeader, SqlitePersister and GroupConversation can be imported like any name; what is not there cannot."""
    assert sharestate.AsyncLeader is sharestate.leader.async_leader.AsyncLeader
    assert sharestate.SqlitePersister is sharestate.persister.SqlitePersister
    assert sharestate.conversation.GroupConversation is sharestate.conversation.groups.GroupConversation
    assert not hasattr(sharestate, "AsyncFollower")
    assert not hasattr(sharestate.conversation, "Monologue")


@pytest.mark.parametrize(
    ("library", "module", "extra"),
    [
        ("hypothesis", "sharestate.testing.groups", "testing"),
        ("hypothesis", "sharestate.testing.partitions", "testing"),
        ("hypothesis", "sharestate.testing.protocol.strategies", "testing"),
        ("xxhash", "sharestate.broker.groups.metadata_hash", "broker"),
        ("kio", "sharestate.persister.kafka", "kafka"),
        ("prometheus_client", "sharestate.monitor.exposition", "monitor"),
        ("kio", "sharestate.testing.servers", "kafka"),
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


def test_contracts_need_no_library_of_an_extra() -> None:
    """Beside them stands the machine for persisters, which says what to install when it is used."""
    command = """
import sys
sys.modules["hypothesis"] = None
from sharestate.testing.persisters import PersisterContract
from sharestate.testing.persisters import PersisterMachine
"""
    run = subprocess.run([sys.executable, "-c", command], capture_output=True, check=False, text=True)

    assert '"<string>", line 5,' in run.stderr
    assert run.stderr.endswith(
        "sharestate.testing.persisters needs the extra 'testing': pip install 'sharestate[testing]'\n"
    )


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
