"""The archive of the library for clusters, as far as it goes without Spark."""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from zipfile import ZipFile

import pytest

from sharestate.spark import library_zip


def test_what_is_compiled_stays_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a compiled library the archive has the sources, which lie beside it; an archive could not load the rest."""
    package = tmp_path / "half_compiled"
    package.mkdir()
    for name in ("__init__.py", "core.py", *(f"core{suffix}" for suffix in EXTENSION_SUFFIXES)):
        (package / name).touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(library_zip, "PACKAGES", ("half_compiled",))

    library_zip.write_archive(tmp_path / "archive.zip")

    assert ZipFile(tmp_path / "archive.zip").namelist() == ["half_compiled/__init__.py", "half_compiled/core.py"]
