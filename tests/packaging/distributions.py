"""What the sdist and the wheel in `dist` hold. Named on the command line by `make package`, which builds them first."""

from __future__ import annotations

import re
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path, PurePosixPath

DIST = Path(__file__).parents[2] / "dist"

SDIST = {
    ".gitignore",  # hatchling takes it along: it says what is not part of the sdist
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "PKG-INFO",
    "README.md",
    "SECURITY.md",
    "bench",
    "docs",
    "examples",
    "hatch_build.py",
    "newsfragments",
    "pyproject.toml",
    "spec",
    "src",
    "tests",
}

LEFT_BEHIND = re.compile(r"__pycache__|\.pyc$|\.egg-info|_cache/|\.hypothesis")


def built(pattern: str) -> Path:
    """Return the one distribution whose name matches *pattern*."""
    (file,) = DIST.glob(pattern)
    return file


def in_sdist() -> list[PurePosixPath]:
    """Return the files of the sdist, below its one directory."""
    with tarfile.open(built("sharestate-*.tar.gz")) as sdist:
        paths = [PurePosixPath(member.name) for member in sdist if member.isfile()]
    (top,) = {path.parts[0] for path in paths}
    assert f"{top}.tar.gz" == built("sharestate-*.tar.gz").name
    return [path.relative_to(top) for path in paths]


def in_wheel() -> list[str]:
    """Return the names of the wheel's files."""
    with zipfile.ZipFile(built("sharestate-*.whl")) as wheel:
        return wheel.namelist()


def metadata() -> Message:
    """Return what the wheel says of itself."""
    with zipfile.ZipFile(built("sharestate-*.whl")) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(wheel.read(name).decode())


def test_the_sdist_holds_what_it_should() -> None:
    """The package, its tests, benchmarks, docs, examples and texts, and nothing else."""
    assert {path.parts[0] for path in in_sdist()} == SDIST


def test_the_sdist_holds_nothing_that_was_left_behind() -> None:
    """No bytecode, no cache, no build output."""
    assert [path for path in in_sdist() if LEFT_BEHIND.search(str(path))] == []


def test_the_wheel_holds_only_the_package() -> None:
    """One package and its metadata; the package is that of the sdist, file by file."""
    names = in_wheel()
    package = {name for name in names if name.startswith("sharestate/")}
    source = {str(path.relative_to("src")) for path in in_sdist() if path.parts[0] == "src"}

    assert package == source
    assert all(re.match(r"sharestate-[^/]+\.dist-info/", name) for name in set(names) - package)


def test_the_wheel_is_typed() -> None:
    """Type checkers look into the package because it has py.typed."""
    assert "sharestate/py.typed" in in_wheel()


def test_the_wheel_carries_the_license() -> None:
    """LICENSE is in the wheel, and the metadata name it."""
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in in_wheel())
    assert metadata()["License-Expression"] == "Apache-2.0"


def test_the_wheel_needs_two_libraries() -> None:
    """Without an extra, attrs and sortedcontainers are all that is installed with it."""
    needed = [need for need in metadata().get_all("Requires-Dist", []) if "extra ==" not in need]

    assert sorted(re.split(r"[<>=]", need)[0] for need in needed) == ["attrs", "sortedcontainers"]
