"""Runs of a search that are kept: the page "How we know" tells of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from tests.oracle.build import OracleError

if TYPE_CHECKING:
    from pathlib import Path

    from sharestate.testing.search import SearchProgress

VERSION: Final = 1
"""The version of the format; another one is refused."""


class KeepError(OracleError):
    """The file is not one of kept runs."""


def keep(progress: SearchProgress, *, kafka: str, profile: str, file: Path) -> None:
    """
    Append what a search has come to.

    Raises:
        KeepError: *file* holds something else, or another version; it is left as it was.
    """
    try:
        kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"comparisons": VERSION, "rows": []}
    except ValueError as error:
        message = f"{file}: {error}"
        raise KeepError(message) from error
    if not isinstance(kept, dict) or kept.get("comparisons") != VERSION:
        message = f"{file}: expected version {VERSION} of comparisons"
        raise KeepError(message)
    tally = progress.tally
    row = {
        "date": datetime.now(tz=UTC).date().isoformat(),
        "kafka": kafka,
        "profile": profile,
        "sequences": tally.sequences.total(),
        "operations": tally.total,
        "known": tally.met,
        "differences": len(progress.findings),
    }
    rows = ",\n".join(f"    {json.dumps(each)}" for each in [*kept["rows"], row])
    file.write_text(f'{{\n  "comparisons": {VERSION},\n  "rows": [\n{rows}\n  ]\n}}\n', encoding="utf-8")
