"""JSON lines: read within bounds, written in ASCII, and shown to people."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Final, NoReturn, TextIO, TypeAlias

from sharestate.input_errors import MalformedInputError

Json: TypeAlias = Any
"""A value of JSON as the standard library reads it: None, bool, int, float, str, list or dict."""

MAX_LINE: Final = 2**24
"""The largest length of a line: more than any request needs, and small enough for memory. [characters]"""

MAX_VALUES: Final = 2**20
"""The most values in a line, lists and objects counted twice: each takes 8 to 70 bytes of memory, a line has 10 to 20
characters for each."""

_BYTES_OF_LINE: Final = 8
_SOME_LINES: Final = 10_000
"""The most lines of a compressed file are these, and one for so many of its bytes. Those of the state topics of brokers
take 14 bytes and more, compressed as well as gzip can; those of histories 27 and more. Each takes 20 µs to read and 400
bytes of memory, no matter how few bytes it came from."""

MAX_DEPTH: Final = 64
"""The largest depth of nested lists and objects; requests need less than 20."""


def bounded_lines(stream: TextIO, limit: int = MAX_LINE) -> Iterator[str]:
    """Yield the lines of *stream*, and of a line longer than *limit* its first ``limit + 1`` characters."""
    while line := stream.readline(limit + 1):
        yield line
        if len(line) > limit and not line.endswith("\n"):
            _skip_line(stream, limit)


def _skip_line(stream: TextIO, limit: int) -> None:
    while (rest := stream.readline(limit)) and not rest.endswith("\n"):
        pass


def most_lines(compressed: int, bytes_of_line: int = _BYTES_OF_LINE) -> int:
    """Return how many lines there may be in so many *compressed* bytes, if each takes as many as *bytes_of_line*."""
    return _SOME_LINES + compressed // bytes_of_line


def is_blank(line: str) -> bool:
    """Return whether *line* consists of JSON's white space alone."""
    return not line.strip(" \t\r\n")


def read_json(line: str) -> Json:
    """
    Return the JSON value of *line*.

    Raises:
        MalformedInputError: It is not JSON, longer than MAX_LINE, nested deeper than MAX_DEPTH, or has more values than
            MAX_VALUES. NaN and infinities are not JSON.
    """
    if len(line.rstrip("\r\n")) > MAX_LINE:
        _refuse_line(f"longer than {MAX_LINE} characters")
    if has_too_many_values(line):
        _refuse_line(f"more than {MAX_VALUES} values")
    try:
        line.encode()
        value = _DECODER.decode(line)
    except UnicodeEncodeError:
        _refuse_line("not UTF-8")
    except RecursionError:
        _refuse_line("nested too deeply")
    except json.JSONDecodeError as error:
        _refuse_line(f"not JSON: {error.msg} at character {error.pos + 1}")
    except ValueError as error:
        _refuse_line(f"not JSON: {error}")
    if line.count("[") + line.count("{") > MAX_DEPTH:
        _refuse_depth(value)
    return value


def has_too_many_values(text: str) -> bool:
    """Return whether JSON would have more than MAX_VALUES, as far as its commas and brackets say it."""
    return len(text) > MAX_VALUES and text.count(",") + text.count("[") + text.count("{") > MAX_VALUES


def _refuse_line(message: str) -> NoReturn:
    raise MalformedInputError(message, "")


def _refuse_constant(name: str) -> NoReturn:
    message = f"{name} is not a number"
    raise ValueError(message)


def _finite(number: str) -> float:
    value = float(number)
    return value if math.isfinite(value) else _refuse_constant(number)


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)  # values are trees


def _refuse_depth(value: Json) -> None:
    level = _containers([value])
    for _ in range(MAX_DEPTH):
        if not level:
            return
        level = [inner for outer in level for inner in _containers(outer)]
    if level:
        _refuse_line("nested too deeply")


def _containers(outer: list[Json] | dict[str, Json]) -> list[Json]:
    items = outer if isinstance(outer, list) else outer.values()
    return [item for item in items if isinstance(item, (list, dict))]


def write_json(value: Json) -> str:
    """Return *value* in one line of ASCII."""
    return _ENCODER.encode(value)


def brief(value: Json, limit: int = 60) -> str:
    """
    Return *value* as JSON, cut after *limit* characters.

    >>> brief(["a", None]), brief("x" * 9, limit=5)
    ('["a",null]', '"xxxx...')
    """
    try:
        text = write_json(value)
    except (ValueError, TypeError, RecursionError):  # not JSON, or an integer too long for Python to print
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= limit else f"{text[:limit]}..."


def printable(text: str) -> str:
    r"""
    Return *text* with escapes for all that would act on a terminal or cannot be encoded.

    >>> print(printable("a\x1b[2Jb\udc80"))
    a\x1b[2Jb\udc80
    """
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
