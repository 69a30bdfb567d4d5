"""
The files of a broker's settings: the syntax of ``java.util.Properties``, and what is wrong with those of share groups.

Own code, as the packages that read this syntax say neither the line of a property nor stop at a size; Java's own class
judges it in the tests.

Source:
    java.util.Properties.load (Java 17); Utils.loadProps (Kafka 4.4.0).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from sharestate.errors import InvalidConfigurationError, RequestLogError
from sharestate.values.config_keys import RELEASES
from sharestate.values.effective_configs import effective_configs

MAX_FILE: Final = 2**22
"""The largest size of a file of settings; Kafka's own has 7,000. A line of two bytes takes 2 µs. [bytes]"""

_SPACE: Final = " \t\f"
_END_OF_LINE: Final = re.compile(r"\r\n|\r|\n")
_KEY: Final = re.compile(r"((?:[^\\=: \t\f]++|\\.)*+)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS: Final = {"t": "\t", "r": "\r", "n": "\n", "f": "\f"}


class Property(NamedTuple):
    """
    A property, as a file has it.

    Attributes:
        name: Its name.
        value: Its value.
        line: The number of the line in which it begins, from 1 on.
    """

    name: str
    value: str
    line: int


def read_bytes(path: Path | str, most: int = MAX_FILE) -> bytes:
    """
    Return what is in a file of settings, which may have so many bytes.

    Raises:
        RequestLogError: It cannot be read, or is too large for such a file.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        message = f"cannot be read: {error}"
        raise RequestLogError(message, str(path)) from error
    if len(data) > most:
        message = f"more than {most} bytes are no settings"
        raise RequestLogError(message, str(path))
    return data


def read_server_properties(path: Path | str) -> dict[str, str]:
    """
    Return the properties in a broker's ``server.properties``, by name; of one that is there twice, the last value.

    It need not be said of which release the broker is: what a release from 4.2 to 4.4 starts with is taken.

    Raises:
        RequestLogError: The file cannot be read, is too large, or is no such file; or a setting of share groups is
            misspelt, or one that a broker does not start with. With the line and the setting.

    Complexity:
        Linear in the size of the file, which is at most 4 MiB.
    """
    properties = {each.name: each for each in parse_properties(read_bytes(path), str(path))}
    settings = {name: each.value for name, each in properties.items()}
    try:
        _refuse_what_none_starts_with(settings)
    except InvalidConfigurationError as error:
        # Of two settings that do not go together, the file may have but one.
        named = [error.key, *str(error).split()]
        found = next((properties[name] for name in named if name in properties), None)
        line, name = (None, error.key or "") if found is None else (found.line, found.name)
        raise RequestLogError(str(error), str(path), line, name) from error
    return settings


def _refuse_what_none_starts_with(settings: dict[str, str]) -> None:
    latest, *others = reversed(RELEASES)
    try:
        effective_configs(settings, release=latest)
    except InvalidConfigurationError:
        for release in others:
            try:
                effective_configs(settings, release=release)
            except InvalidConfigurationError:
                continue
            return
        raise


def parse_properties(data: bytes, source: str) -> Iterator[Property]:
    r"""
    Go through the properties in the bytes of a file.

    Args:
        data: The bytes, one for each character (ISO 8859-1), as Java takes them.
        source: The file, for errors.

    Raises:
        RequestLogError: A ``\u`` is not followed by four hexadecimal digits.
    """
    for number, line in _logical_lines(data.decode("latin-1")):
        key = _KEY.match(line)
        name, value = (key[1], line[key.end() :]) if key else ("", "")
        try:
            yield Property(_unescaped(name), _unescaped(value), number)
        except ValueError as error:
            raise RequestLogError(str(error), source, number) from error


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    r"""Go through lines with the number of the first of each: those that end with \ go on in the next one."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(_END_OF_LINE.split(text), 1):
        content = line.lstrip(_SPACE)
        if not any(parts):
            # A line with nothing but a \ begins nothing: Java looks for a comment again.
            if not content or content[0] in "#!":
                continue
            parts, first = [], number
        goes_on = (len(content) - len(content.rstrip("\\"))) % 2 == 1
        parts.append(content[:-1] if goes_on else content)
        if not goes_on:
            yield first, "".join(parts)
            parts = []
    if any(parts):
        yield first, "".join(parts)


def _unescaped(text: str) -> str:
    r"""
    Return a name or a value without its escapes.

    Raises:
        ValueError: A ``\u`` is not followed by four hexadecimal digits.
    """
    if "\\" not in text:
        return text
    # Two halves of a character beyond 16 bits come as two escapes.
    return _ESCAPE.sub(_character, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(escape: re.Match[str]) -> str:
    if escape[1] is not None:
        return chr(int(escape[1], 16))
    if escape[2] == "u":
        message = r"expected four hexadecimal digits after \u"
        raise ValueError(message)
    return _CONTROLS.get(escape[2], escape[2])
