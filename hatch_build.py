"""
Compile the state machine of a wheel with mypyc where ``SHARESTATE_COMPILE=1`` asks for it; hatchling runs this.

hatch-mypyc 0.16 would do for most, but it moves ``pyproject.toml`` away while it works, and leaves what it has built
beside the sources, where the next `import` of an editable installation takes it for the library. Here all of that
happens in a directory of its own.
"""

from __future__ import annotations

import os
import sys
from contextlib import chdir
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INTERPRETED: Final = {
    "__init__.py": "a package has to be found before anything of it is loaded",
    "outlook.py": "mypyc keeps no docstrings of named tuples, and users see these",
    "share_partition.py": "users derive classes from it, and pass what it has to refuse with an error of its own",
    "snapshots.py": "it judges what users pass, whose annotations mypyc would believe",
    "views.py": "as outlook.py",
}
"""The modules of ``partition`` that stay as they are, and why."""

FUNCTIONS: Final = ("batch_checks.py", "named_tuples.py")
"""The modules of ``values`` that are compiled: those of functions. Classes are for users, who look into them."""

REQUIRED: Final = ["attrs", "mypy>=2.4,<3", "setuptools", "sortedcontainers-stubs>=2.4,<3"]
"""What compiling takes; without it, nothing but hatchling is needed."""


class CompilingHook(BuildHookInterface):
    """What hatchling asks before it builds a wheel."""

    def dependencies(self) -> list[str]:
        """Return what has to be installed for the build."""
        return REQUIRED if _is_asked_for() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and have the results put beside the sources, which stay in the wheel."""
        if not _is_asked_for() or version == "editable":
            return
        self._scratch = TemporaryDirectory(prefix="sharestate-")
        built = compiled(Path(self.root) / "src/sharestate", Path(self._scratch.name))
        files = sorted(built.rglob(f"*{'.pyd' if sys.platform == 'win32' else '.so'}"))
        build_data["force_include"] |= {str(file): file.relative_to(built).as_posix() for file in files}
        build_data["infer_tag"], build_data["pure_python"] = True, False

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - of hatchling
        """Remove what was built, which the wheel has now."""
        if _is_asked_for() and version != "editable":
            self._scratch.cleanup()


def _is_asked_for() -> bool:
    return os.environ.get("SHARESTATE_COMPILE") == "1"


def compiled(package: Path, scratch: Path) -> Path:
    """Compile the modules of *package* that are compiled, in *scratch*, and return where they are; as in a wheel."""
    from mypyc.build import mypycify  # noqa: PLC0415 - there is none where nothing is to be compiled
    from setuptools import Distribution  # noqa: PLC0415 - as above

    copytree(package, scratch / package.name)
    built = scratch / "built"
    with chdir(scratch):  # tracebacks have these names, and Python looks for their lines where it imports from
        partition = sorted(Path(package.name, "partition").glob("*.py"))
        modules = [file for file in partition if file.name not in INTERPRETED]
        modules += [Path(package.name, "values", name) for name in FUNCTIONS]
        extensions = mypycify(
            ["--strict", "--config-file=", *map(str, modules)],
            opt_level=os.environ.get("SHARESTATE_OPTIMIZE", "3"),
            debug_level="0",
            group_name=package.name,
        )
        building = Distribution({"name": package.name, "ext_modules": extensions}).get_command_obj("build_ext")
        building.build_lib, building.build_temp = str(built), "objects"
        building.ensure_finalized()
        building.run()
    return built
