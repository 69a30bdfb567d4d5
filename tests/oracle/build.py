"""
Kafka's own SharePartition as a program that speaks the line protocol: ``python -m tests.oracle.build [--kafka 4.2.2]``.

Maven fetches the published jars of one release, and a driver of ours is compiled against them. Both are kept below
``~/.cache/sharestate`` (or ``$XDG_CACHE_HOME/sharestate``), under a name that changes with what they were made from.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, TextIO

from attrs import frozen

HERE: Final = Path(__file__).parent
POM: Final = HERE / "pom.xml"
JAVA: Final = HERE / "java"
DRIVER: Final = "kafka.server.share.Driver"

RELEASES: Final = ("4.4.0", "4.3.1", "4.2.2")
"""The latest releases of Kafka whose rules the library has; the first is meant where none is named."""

LINES: Final = ("4.4", "4.3")
"""
The releases from which on Kafka's classes are called as they are, the latest first.

A profile of the POM is named after the latest one up to a release, or after the first one of all; so are the folders of
sources that a release needs, which may begin earlier (``folder_of``).
"""

COPY: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
"""The plugin of Maven's that copies jars, in the version that the POM has."""

LEAST_JAVA: Final = 17
"""Kafka's servers need it, from 4.0 on."""

HINT: Final = "on Debian or Ubuntu: apt-get install openjdk-17-jdk-headless maven"

TESTED: Final = ("4.3.1", "4.2.1")
"""
The last releases of 4.3 and 4.2 of which Kafka has published its tests, and with them its test clock and timer.

What has come later takes those of the last one of its line, as 4.2.2 those of 4.2.1, or those of 4.3.1.
"""

OLD_NAMES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {"4.2": (".common.record.internal.", ".common.record.")}
)
"""What is called otherwise in a release than in the latest one."""

FLAGS: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
"""A search has a core for each JVM, and most of its JVMs do not live for a minute."""


class OracleError(Exception):
    """The oracle could not be built."""


class OracleUnavailableError(OracleError):
    """This machine lacks what the oracle is built with: a JDK, Maven, or the way to a repository."""


@frozen
class Oracle:
    """Kafka's SharePartition, built."""

    kafka: str
    """The release of Kafka."""

    jars: Path
    """The directory with Kafka's jars."""

    classes: Path
    """The directory with our classes."""

    def command(self, main: str = DRIVER, flags: Iterable[str] = FLAGS, jars: Iterable[Path] = ()) -> list[str]:
        """Return the command that runs the class *main*, with further *jars* if it needs them."""
        path = os.pathsep.join(map(str, [self.classes, *jars, self.jars / "*"]))
        return ["java", *flags, "-cp", path, main]


def build(kafka: str = RELEASES[0], *, sources: str = "driver", say: Callable[[str], None] = lambda _: None) -> Oracle:
    """
    Return the oracle of release *kafka*, built unless it was.

    Args:
        kafka: The release, as Maven has it.
        sources: The directory below ``java`` to compile; what is not the driver is compiled together with it.
        say: Is told what takes a while.

    Raises:
        OracleUnavailableError: A JDK, Maven or the jars are not to be had.
        OracleError: Our sources do not compile.
    """
    names = dict.fromkeys(("driver", folder_of("release", kafka), sources, folder_of(sources, kafka)))
    files = sorted(file for name in names for file in (JAVA / name).rglob("*.java"))
    return compile_files(kafka, sources, files, say=say)


def compile_files(
    kafka: str, name: str, files: Sequence[Path], *, pom: Path = POM, say: Callable[[str], None] = lambda _: None
) -> Oracle:
    """
    Return what *files* are compiled to, against the jars of release *kafka* that *pom* asks for, unless they were.

    Args:
        kafka: The release, as Maven has it.
        name: What the files are, to keep their classes by and to tell of.
        files: The sources; no two have the same name.
        pom: The POM that names the jars.
        say: Is told what takes a while.

    Raises:
        OracleUnavailableError: A JDK, Maven or the jars are not to be had.
        OracleError: The sources do not compile.
    """
    jars = fetch_jars(kafka, say, pom)
    classes = jars.parent / f"{name}-{_digest([pom, *files])}"
    if not classes.is_dir():
        say(f"compiling the {name} against Kafka {kafka}")
        with _whole(classes) as place:
            _compile(kafka, files, jars, place)
    return Oracle(kafka, jars, classes)


def fetch_jars(kafka: str, say: Callable[[str], None] = lambda _: None, pom: Path = POM) -> Path:
    """
    Return the directory with the jars of release *kafka* that *pom* asks for, fetched unless they were.

    Raises:
        OracleUnavailableError: A JDK, Maven or the jars are not to be had.
    """
    require_tools()
    jars = cache() / kafka / f"jars-{_digest([pom])}"
    if not jars.is_dir():
        say(f"fetching the jars of Kafka {kafka}")
        with _whole(jars) as place:
            _fetch(kafka, place, pom)
    return jars


def compile_classes(kafka: str, sources: Path, pom: Path) -> list[str]:
    """
    Return the class path of the sources in a directory, compiled against what *pom* asks for unless they were.

    Raises:
        OracleUnavailableError: A JDK, Maven or the jars are not to be had.
        OracleError: The sources do not compile.
    """
    compiled = compile_files(kafka, sources.parent.name, sorted(sources.glob("*.java")), pom=pom)
    return [str(compiled.classes), f"{compiled.jars}/*"]


def fetch_jar(artifact: str) -> Path:
    """
    Return one jar (Maven's ``group:artifact:version``), without what it depends on, fetched unless it was.

    Raises:
        OracleUnavailableError: A JDK, Maven or the jar are not to be had.
    """
    require_tools()
    _, name, version = artifact.split(":")
    directory = cache() / f"{name}-{version}"
    if not directory.is_dir():
        with _whole(directory) as place:
            command = ["mvn", "-B", "-q", "-f", str(POM), f"{COPY}:copy", f"-Dartifact={artifact}"]
            _run([*command, f"-DoutputDirectory={place}"], OracleUnavailableError, f"Maven has not got {artifact}")
    return directory / f"{name}-{version}.jar"


def folder_of(sources: str, kafka: str, java: Path = JAVA) -> str:
    """
    Return the folder below *java* with what the release *kafka* builds otherwise of *sources*.

    It is named after the latest line up to the release, or after the first one that has a folder.
    """
    lines = sorted((folder.name.rpartition("-")[2] for folder in java.glob(f"{sources}-*")), key=_numbers)
    line = [*lines[:1], *(line for line in lines if _numbers(line) <= _numbers(kafka))][-1:]
    return "-".join([sources, *line])


def line_of(kafka: str) -> str:
    """Return the one of LINES that the release *kafka* belongs to."""
    return next((line for line in LINES if _numbers(line) <= _numbers(kafka)), LINES[-1])


def last_tested(kafka: str) -> str:
    """Return the release whose published tests go with the release *kafka*: itself, or the last one before it."""
    last = next((last for last in TESTED if _numbers(last)[:2] <= _numbers(kafka)[:2]), kafka)
    return min(kafka, last, key=_numbers)


def _numbers(release: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", release)]


def cache() -> Path:
    """Return the directory in which everything is kept."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "sharestate" / "oracle"


def require_tools() -> None:
    """
    See to it that there are a JDK and Maven.

    Raises:
        OracleUnavailableError: One is missing, or too old.
    """
    if wanting := _wanting():
        message = f"the oracle needs a JDK {LEAST_JAVA} or later and Maven, but {wanting}; {HINT}"
        raise OracleUnavailableError(message)


def _wanting() -> str:
    """Return what is wrong with this machine's tools; nothing if they will do."""
    missing = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    if missing:
        return f"there is no {' and no '.join(missing)}"
    found = re.search(r'version "(\d+)', _output("java", "-version"))
    return f"this is Java {found[1]}" if found and int(found[1]) < LEAST_JAVA else ""


def _output(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout


def _fetch(kafka: str, place: Path, pom: Path) -> None:
    where = f"-DoutputDirectory={place}"
    command = [
        "mvn",
        "-B",
        "-q",
        "-Dstyle.color=never",
        "-f",
        str(pom),
        "-P",
        line_of(kafka),
        f"-Dkafka={kafka}",
        f"-Dtests={last_tested(kafka)}",
        "dependency:copy-dependencies",
        where,
    ]
    _run(command, OracleUnavailableError, f"Maven has not got the jars of Kafka {kafka}")


def _compile(kafka: str, files: Iterable[Path], jars: Path, place: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        copies = [_copy(file, Path(scratch), kafka) for file in files]
        command = ["javac", "-nowarn", "-proc:none", "-encoding", "UTF-8", "-d", str(place), "-cp", f"{jars}/*"]
        _run([*command, *map(str, copies)], OracleError, f"the sources do not compile against Kafka {kafka}")


def _copy(file: Path, scratch: Path, kafka: str) -> Path:
    copy = scratch / file.name
    new, old = OLD_NAMES.get(kafka.rpartition(".")[0], ("", ""))
    copy.write_text(file.read_text("utf-8").replace(new, old) if new else file.read_text("utf-8"), "utf-8")
    return copy


def _run(command: list[str], error: type[OracleError], what: str) -> None:
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if ended.returncode:
        lines = [line for line in ended.stdout.splitlines() if "error" in line.lower()] or ["nothing was said why"]
        raise error("\n  ".join([f"{what}:", *lines[:3]]))


@contextmanager
def _whole(place: Path) -> Iterator[Path]:
    """Yield an empty directory that becomes *place* only if all goes well."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="unfinished-") as scratch:
        made = Path(scratch) / place.name
        made.mkdir()
        yield made
        if not place.is_dir():
            made.rename(place)


def _digest(files: Iterable[Path]) -> str:
    content = b"\0".join(file.read_bytes() for file in files)
    return hashlib.sha256(content).hexdigest()[:12]


def main() -> None:
    """Build the oracle, and print the command that runs it."""
    parser = ArgumentParser(prog="python -m tests.oracle.build", description="Build Kafka's SharePartition as a peer.")
    parser.add_argument("--kafka", default=RELEASES[0], metavar="RELEASE", help=f"{' or '.join(RELEASES)}")
    try:
        oracle = build(parser.parse_args().kafka, say=lambda text: _say(sys.stderr, f"== {text}"))
    except OracleError as error:
        sys.exit(f"{parser.prog}: {error}")
    _say(sys.stdout, shlex.join(oracle.command()))


def _say(stream: TextIO, line: str) -> None:
    stream.write(f"{line}\n")


if __name__ == "__main__":
    main()
