"""
Vectors: recorded conversations with Kafka, and the rules that each shows; their files, and the index of each.

Those of Kafka's own class are requests of the line protocol. Those of brokers, *scripts*, are what members and
administrators do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final, TypeAlias

from attrs import evolve, field, frozen

from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.json_checks import Check, Field, T, an_object, integer, list_of, nullable, record, row, text, version
from sharestate.json_line_files import NumberedLines
from sharestate.json_lines import Json, read_json

VECTORS_VERSION: Final = 1
"""The version of the format of vectors that is read."""

SCRIPTS_VERSION: Final = 1
"""The version of the format of scripts that is read."""

_Pairs: TypeAlias = Iterable[tuple[str, str]]


@frozen(kw_only=True)
class Vector:
    """One recorded conversation."""

    name: str
    """Its name, which no other has."""

    source: str
    """What was recorded."""

    releases: tuple[str, ...]
    """The releases of Kafka that answer so."""

    rules: tuple[str, ...]
    """The numbers of the rules that it shows; none if that is not known."""

    accident: str | None
    """Why nobody has to answer so: Kafka has thrown, or kept half of a change (rule 24.2); None for all others."""

    exchanges: tuple[tuple[Json, Json], ...]
    """The requests, each with Kafka's response."""

    shows: int = 0
    """Of a script: the index of the first exchange that shows the rules; those before it prepare."""


@frozen(kw_only=True)
class Vectors:
    """Vectors with their index."""

    license: str
    """Their license, as SPDX has it."""

    releases: tuple[str, ...]
    """The releases of Kafka that were recorded, the oldest first."""

    rules: Mapping[str, str]
    """The headings of all rules by their numbers, in their order."""

    vectors: tuple[Vector, ...]
    """The vectors."""

    unasked: Mapping[str, str] = field(factory=dict)
    """Why a rule is not asked, by the rule's number."""

    are_scripts: bool = False
    """True for scripts, which brokers are asked."""

    def of(self, release: str) -> tuple[Vector, ...]:
        """Return the vectors that *release* answers so."""
        return tuple(vector for vector in self.vectors if release in vector.releases)


def _header(*, license: str, releases: tuple[str, ...], rules: _Pairs, unasked: _Pairs) -> Vectors:  # noqa: A002 - a member
    return Vectors(license=license, releases=releases, rules=dict(rules), vectors=(), unasked=dict(unasked))


_texts: Final = list_of(text)
_pairs: Final = list_of(row(text, text, make=lambda number, said: (number, said)))

_index: Final = {
    "license": Field(text),
    "releases": Field(_texts),
    "rules": Field(_pairs),
    "unasked": Field(_pairs, ()),
}

_vectors_header: Final = record(
    {"vectors": Field(version(VECTORS_VERSION)), **_index},
    lambda vectors, **index: _header(**index),  # noqa: ARG005 - a member; the version has been checked
)

_scripts_header: Final = record(
    {"scripts": Field(version(SCRIPTS_VERSION)), **_index},
    lambda scripts, **index: evolve(_header(**index), are_scripts=True),  # noqa: ARG005 - as above
)

_fields: Final = {
    "name": Field(text),
    "source": Field(text),
    "releases": Field(_texts),
    "rules": Field(_texts),
    "accident": Field(nullable(text)),
    "exchanges": Field(
        list_of(row(an_object, nullable(an_object), make=lambda request, response: (request, response)))
    ),
}

_vector: Final = record(_fields, Vector)

_script: Final = record({**_fields, "shows": Field(integer(0))}, Vector)


def read_vectors(path: Path | None = None) -> Vectors:
    """
    Read the vectors at *path*, JSON Lines that may be compressed (``.gz``), or those that come with the library.

    Raises:
        UnreadableFileError: It is not such a file, or not of VECTORS_VERSION; the error has file, line and field.
    """
    return _read(path, "vectors.jsonl.gz", _vectors_header, _vector)


def read_scripts(path: Path | None = None) -> Vectors:
    """
    Read the scripts at *path*, JSON Lines that may be compressed (``.gz``), or those that come with the library.

    Raises:
        UnreadableFileError: It is not such a file, or not of SCRIPTS_VERSION; the error has file, line and field.
    """
    return _read(path, "scripts.jsonl.gz", _scripts_header, _script)


def _read(path: Path | None, shipped: str, header: Check[Vectors], vector: Check[Vector]) -> Vectors:
    if path is not None:
        return _read_file(path, header, vector)
    with as_file(files("sharestate.conformance") / shipped) as file:
        return _read_file(file, header, vector)


def _read_file(path: Path, header: Check[Vectors], vector: Check[Vector]) -> Vectors:
    lines = NumberedLines(path, UnreadableFileError)
    try:
        number, line = next(iter(lines), (1, "null"))
        index = _checked(header, line, path, number)
        if not index.releases:
            message = "there is none"
            raise UnreadableFileError(message, str(path), number, "releases")
        vectors = tuple(_vectors(lines, path, index, vector))
    finally:
        lines.close()
    return evolve(index, vectors=vectors)


def _vectors(lines: NumberedLines, path: Path, index: Vectors, check: Check[Vector]) -> Iterator[Vector]:
    names = set()
    for number, line in lines:
        vector = _checked(check, line, path, number)
        if unknown := [rule for rule in vector.rules if rule not in index.rules]:
            message = f"the header has no rule {unknown[0]}"
            raise UnreadableFileError(message, str(path), number, "rules")
        if vector.name in names:
            message = "there is another vector with this name"
            raise UnreadableFileError(message, str(path), number, "name")
        names.add(vector.name)
        yield vector


def _checked(check: Check[T], line: str, path: Path, number: int) -> T:
    try:
        return check(read_json(line), "")
    except MalformedInputError as error:
        raise UnreadableFileError(error.message, str(path), number, error.field or "") from error
