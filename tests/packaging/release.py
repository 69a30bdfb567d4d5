"""
Make a release of what is committed: ``python -m tests.packaging.release X.Y.Z``, which is what ``make release`` runs.

The version is set, the news fragments become a section of the changelog, the sdist and the wheel are built, and each is
installed into an environment of its own and tried. Nothing is committed and nothing is published: what is left to do is
printed at the end.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sharestate import __version__
from tests.packaging.against_wheel import DIST, output, run, say

ROOT: Final = DIST.parent
PACKAGE: Final = ROOT / "src/sharestate/__init__.py"
CHANGELOG: Final = ROOT / "CHANGELOG.md"
FRAGMENTS: Final = ROOT / "newsfragments"

TRIED: Final = """
from sharestate import *
key = SharePartitionKey(group_id="g", topic_id="dGhlIHRvcGljJ3MgaWQhIQ", partition=0)
partition = SharePartition(key)
partition.initialize()
partition.read_succeeded(PersistedState(start_offset=0))
partition.acquire("m", FetchedRecords(fetch_offset=0, batches=[RecordBatch(0, 9)]), now_ms=0)
accepted = AcknowledgementBatch(0, 9, [AcknowledgeType.ACCEPT])
(write,) = partition.acknowledge("m", [accepted], now_ms=0).writes
partition.write_succeeded(write.number)
assert partition.start_offset == 10
import sharestate
print(sharestate.__version__)
"""
"""What an installation without extras has to do: ten records on their way. It prints the version."""

LEFT: Final = """\
Release {version} is in dist/. What is left to do:
  1. Edit the new section of CHANGELOG.md for its readers, as CONTRIBUTING.md says; `make package` builds both again.
  2. git commit --all --message 'Release {version}' && git tag --annotate --message 'Release {version}' {version}
  3. git push --follow-tags, and publish the two files in dist/.
  4. Set __version__ in src/sharestate/__init__.py to '{following}.dev0', and commit.
To take everything back instead: git restore --staged --worktree .
"""


class ReleaseError(Exception):
    """There is nothing to release, or not under this version."""


def check(version: str, current: str, changelog: str, fragments: Sequence[str]) -> None:
    """
    See to it that *version* can follow.

    Args:
        version: The version to release.
        current: The version of the working tree.
        changelog: The text of the changelog.
        fragments: The names of the news fragments.

    Raises:
        ReleaseError: It is no X.Y.Z, comes before *current*, has a section already, or there is no news.
    """
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", version):
        message = f"{version!r} is no version: three numbers are, as in 1.2.3"
    elif _numbers(version) < _numbers(current):
        message = f"{version} comes before {current}, which is the version of this tree"
    elif f"## [{version}]" in changelog:
        message = f"CHANGELOG.md has a section for {version} already"
    elif not fragments:
        message = "there is no news in newsfragments/, so there is nothing to release"
    else:
        return
    raise ReleaseError(message)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")[:3]]


def with_version(source: str, version: str) -> str:
    """Return the *source* of the package with *version* in the place of its own."""
    changed, count = re.subn(r'^__version__ = ".*"$', f'__version__ = "{version}"', source, flags=re.MULTILINE)
    if count != 1:
        message = f"{PACKAGE.name} sets __version__ {count} times"
        raise ReleaseError(message)
    return changed


def following(version: str) -> str:
    """
    Return the version after *version* that is not for fixes alone.

    >>> following("0.1.2")
    '0.2.0'
    """
    major, minor, _ = _numbers(version)
    return f"{major}.{minor + 1}.0"


def check_tree(version: str) -> None:
    """
    See to it that everything is committed, and that there is no tag for *version*.

    Raises:
        ReleaseError: This is not so.
    """
    if changed := output("git", "-C", str(ROOT), "status", "--porcelain"):
        message = f"not everything is committed:\n{changed}"
        raise ReleaseError(message)
    if output("git", "-C", str(ROOT), "tag", "--list", version):
        message = f"there is a tag {version} already"
        raise ReleaseError(message)


def build(version: str) -> list[Path]:
    """Set *version*, write the changelog, and return the sdist and the wheel."""
    say(f"setting the version to {version}, and collecting the news")
    PACKAGE.write_text(with_version(PACKAGE.read_text("utf-8"), version), "utf-8")
    run(sys.executable, "-m", "towncrier", "build", "--yes", "--version", version, cwd=ROOT)
    say("building the sdist and the wheel")
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--quiet", cwd=ROOT)
    return [DIST / f"sharestate-{version}.tar.gz", DIST / f"sharestate-{version}-py3-none-any.whl"]


def try_out(file: Path, version: str) -> None:
    """Install *file* into a new environment, first without and then with the command line, and use it."""
    say(f"trying {file.name}")
    with tempfile.TemporaryDirectory() as scratch:
        run(sys.executable, "-m", "venv", scratch)
        bin_ = Path(scratch) / "bin"
        pip = (bin_ / "python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install")
        run(*pip, file)
        says = {"import sharestate": output(bin_ / "python", "-c", TRIED)}
        run(*pip, f"{file}[cli]")
        says["sharestate --version"] = output(bin_ / "sharestate", "--version")
        says["python -m sharestate --version"] = output(bin_ / "python", "-m", "sharestate", "--version")
        says["sharestate kip"] = output(bin_ / "sharestate", "kip", "--table", "write") and version
    if wrong := {what: said for what, said in says.items() if version not in said.split()}:
        message = f"{file.name} does not work as {version}: {wrong}"
        raise ReleaseError(message)


def main() -> None:
    """Make the release, or say why not."""
    parser = ArgumentParser(prog="python -m tests.packaging.release", description="Make a release, but for publishing.")
    parser.add_argument("version", help="X.Y.Z")
    version: str = parser.parse_args().version
    fragments = [file.name for file in FRAGMENTS.glob("*.md") if file.name != "README.md"]
    try:
        check(version, __version__, CHANGELOG.read_text("utf-8"), fragments)
        check_tree(version)
        for file in build(version):
            try_out(file, version)
    except ReleaseError as error:
        sys.exit(f"{parser.prog}: {error}")
    sys.stdout.write(LEFT.format(version=version, following=following(version)))


if __name__ == "__main__":
    main()
