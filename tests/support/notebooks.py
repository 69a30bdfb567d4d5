"""What notebooks show."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any


def shown(notebook: Path) -> list[tuple[str, list[Any]]]:
    """Return each cell of *notebook* with what it shows; of a picture, the words in it."""
    cells = json.loads(notebook.read_text())["cells"]
    return [("".join(cell["source"]), [_shown(output) for output in cell.get("outputs", ())]) for cell in cells]


def _shown(output: dict[str, Any]) -> dict[str, str | list[str]]:
    """Return what an output shows, by its type. Where text ends in a picture may depend on the fonts of a machine."""
    data = {kind: "".join(content) for kind, content in output.get("data", {"text": output.get("text", "")}).items()}
    return {
        kind: re.findall(r">([^<]+)</(?:text|tspan)>", text) if "svg" in kind else text for kind, text in data.items()
    }
