"""Files with settings of a client, as the option ``--command-config`` names them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sharestate.errors import UnreadableFileError

_MOST_SETTINGS: Final = 2**20
"""The largest file of a client's settings: certificates and keys may stand in it, of some kilobytes each. [bytes]"""


def client_settings(path: Path) -> dict[str, str]:
    """
    Return the settings in a file of lines such as ``security.protocol=SASL_SSL``; # begins a comment.

    Raises:
        UnreadableFileError: The file cannot be read, or a line is no such setting.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_SETTINGS + 1)
        lines = data.decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        message = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UnreadableFileError(message, str(path)) from error
    if len(data) > _MOST_SETTINGS:
        message = f"more than {_MOST_SETTINGS} bytes are no settings of a client"
        raise UnreadableFileError(message, str(path))
    settings = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if line and not line.startswith("#"):
            name, equals, value = line.partition("=")
            if not (name.strip() and equals):
                message = "expected name=value"
                raise UnreadableFileError(message, str(path), number)
            settings[name.strip()] = value.strip()
    return settings
