"""What `import sharestate` loads."""

import subprocess
import sys

CORE_DEPENDENCIES = {"attr", "attrs"}

LIST_NEW_MODULES = """
import sys
before = set(sys.modules)
import sharestate
print(*{name.partition(".")[0] for name in sys.modules.keys() - before})
"""


def test_the_import_loads_only_the_core_dependencies() -> None:
    """`import sharestate` loads attrs and the standard library, and nothing else."""
    command = [sys.executable, "-c", LIST_NEW_MODULES]
    loaded = set(subprocess.run(command, capture_output=True, check=True, text=True).stdout.split())

    assert "sharestate" in loaded
    assert loaded - sys.stdlib_module_names - {"sharestate"} <= CORE_DEPENDENCIES
