"""What ``make release`` checks and changes before it builds anything."""

from __future__ import annotations

import pytest

from tests.packaging.release import PACKAGE, ReleaseError, check, with_version

NEWS = ["+restore.fixed.md"]
CHANGELOG = "# Changelog\n\n## [0.1.0] - 2026-11-22\n"


@pytest.mark.parametrize("version", ["0.2.0", "0.2.1", "1.0.0", "0.10.0"])
def test_a_later_version_can_be_released(version: str) -> None:
    """The one that is under way, and any later one; numbers are compared, not text."""
    check(version, "0.2.0.dev0", CHANGELOG, NEWS)


@pytest.mark.parametrize(
    ("version", "current", "news", "complaint"),
    [
        ("1.0", "0.2.0.dev0", NEWS, "'1.0' is no version"),
        ("v1.0.0", "0.2.0.dev0", NEWS, "'v1.0.0' is no version"),
        ("01.0.0", "0.2.0.dev0", NEWS, "'01.0.0' is no version"),
        ("", "0.2.0.dev0", NEWS, "'' is no version"),
        ("0.9.0", "0.10.0.dev0", NEWS, r"0\.9\.0 comes before 0\.10\.0\.dev0"),
        ("0.1.0", "0.1.0", NEWS, r"has a section for 0\.1\.0 already"),
        ("0.2.0", "0.2.0.dev0", [], "nothing to release"),
    ],
)
def test_any_other_is_refused(version: str, current: str, news: list[str], complaint: str) -> None:
    """What is no version, comes too late, or would say nothing."""
    with pytest.raises(ReleaseError, match=complaint):
        check(version, current, CHANGELOG, news)


def test_the_version_is_set_in_one_line() -> None:
    """Everything else in the package's source stays as it is."""
    source = "import a\n\n__version__ = \"0.1.0.dev0\"\n\nb = '__version__'\n"

    assert with_version(source, "0.1.0") == source.replace("0.1.0.dev0", "0.1.0")


def test_a_source_without_a_version_is_refused() -> None:
    """Nothing is released under a version that it does not know of."""
    with pytest.raises(ReleaseError, match="sets __version__ 0 times"):
        with_version("version = 1\n", "0.1.0")


@pytest.mark.skipif(not PACKAGE.exists(), reason="the tests run against an installed package")
def test_the_package_has_the_one_line_that_is_changed() -> None:
    """What is released is what `sharestate.__version__` says."""
    assert '\n__version__ = "1.2.3"\n' in with_version(PACKAGE.read_text("utf-8"), "1.2.3")
