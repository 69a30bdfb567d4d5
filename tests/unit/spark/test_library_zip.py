"""The archive of the library for clusters, as far as it goes without Spark."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from sharestate.spark import library_zip

SUFFIX: Final = EXTENSION_SUFFIXES[0]


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shared library of a package that is half compiled."""
    package, shared = tmp_path / "half_compiled", tmp_path / f"half_compiled__mypyc{SUFFIX}"
    package.mkdir()
    for file in (shared, *(package / name for name in ("__init__.py", "core.py", f"core{SUFFIX}"))):
        file.touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(library_zip, "PACKAGES", ("half_compiled",))
    monkeypatch.setattr(library_zip, "SHARED_LIBRARY", "half_compiled__mypyc")
    return shared


def test_what_is_compiled_stays_outside(shared: Path, tmp_path: Path) -> None:
    """Of a compiled library the archive has the sources, which lie beside it; an archive could not load the rest."""
    assert shared.exists()
    library_zip.write_archive(tmp_path / "archive.zip")

    assert ZipFile(tmp_path / "archive.zip").namelist() == ["half_compiled/__init__.py", "half_compiled/core.py"]


def test_what_is_compiled_is_in_the_archive_that_is_unpacked(shared: Path, tmp_path: Path) -> None:
    """With it comes the library that compiled modules share, and their sources for another Python."""
    library_zip.write_archive(tmp_path / "archive.zip", compiled=True)

    names = ZipFile(tmp_path / "archive.zip").namelist()
    assert names == [
        shared.name,
        "half_compiled/__init__.py",
        f"half_compiled/core{SUFFIX}",
        "half_compiled/core.py",
    ]


def test_a_library_in_python_is_not_taken_for_a_compiled_one(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor if a compiled one is installed behind it: the command says so, and writes nothing."""
    shared.with_name("half_compiled").joinpath(f"core{SUFFIX}").unlink()
    monkeypatch.setattr("sys.argv", ["library_zip", "--compiled", str(tmp_path / "archive.zip")])

    with pytest.raises(SystemExit) as ended:
        library_zip.main()

    assert ended.value.code == 2
    assert "error: --compiled: the library that is imported is Python alone" in capsys.readouterr().err
    assert not (tmp_path / "archive.zip").exists()
