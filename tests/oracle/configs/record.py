"""
Record what Kafka's own classes say of settings: ``python -m tests.oracle.configs.record``.

``tests/data/configs`` has the table of each release, some settings with the verdict on each, no two refused for the
same reason, and some files with the properties that Java reads in them.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

from tests.oracle.configs.search import answers, case, properties, read_by_java

PLACE: Final = Path(__file__).parents[2] / "data" / "configs"

RECORDED: Final = ("4.2.1", "4.2.2", "4.3.1", "4.4.0")
"""The releases whose rules the library has."""

JUDGED: Final = ("4.2.1", "4.3.1", "4.4.0")
"""One release of each line, whose verdicts are kept."""

TAKEN: Final = 40
"""How many settings that Kafka takes are kept of a release."""

TRIED: Final = 6_000
"""How many are tried for reasons to refuse them."""

FILES: Final = 300


def keys(release: str) -> list[dict[str, Any]]:
    """Return the table of a release, as Kafka's classes have it."""
    (answer,) = answers(release, [{"op": "keys"}])
    rows: list[dict[str, Any]] = answer["result"]
    return rows


def verdicts(release: str) -> list[dict[str, Any]]:
    """Return settings with what Kafka says of each."""
    kept: dict[str, dict[str, Any]] = {}
    requests = [case(seed, release).request() for seed in range(TRIED)]
    taken = 0
    for request, answer in zip(requests, answers(release, requests), strict=True):
        if raised := answer.get("raised"):
            why = re.sub(r"value .* for|`.*`|-?\d+$|: \".*", "", raised["message"])
            kept.setdefault(f"{request['loaded']} {why}", {"request": request, **answer})
        elif taken < TAKEN:
            taken += 1
            kept[f"taken {taken}"] = {"request": request, "result": _about(request, answer["result"])}
    return list(kept.values())


def _about(request: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return those values that the settings of a request bear upon."""
    given = {**request["broker"], **request["group"]}
    names = {*given, *(name.removeprefix("group.") for name in given), "group.share.initialize.retry.interval.ms"}
    return {name: value for name, value in values.items() if name in names}


def files() -> list[list[Any]]:
    """Return small files, in base 64, each with what Java reads in it."""
    data = [properties(seed) for seed in range(FILES)]
    return [[b64encode(each).decode(), found] for each, found in zip(data, read_by_java(data), strict=True)]


def lines(rows: list[Any]) -> str:
    """Return the text of a file with a line for each row."""
    return "[\n" + ",\n".join(json.dumps(row, sort_keys=True) for row in rows) + "\n]\n"


def main() -> None:
    """Write the files."""
    PLACE.mkdir(exist_ok=True)
    for release in RECORDED:
        (PLACE / f"keys-{release}.json").write_text(lines(keys(release)))
        if release in JUDGED:
            (PLACE / f"verdicts-{release}.json").write_text(lines(verdicts(release)))
    (PLACE / "properties.json").write_text(lines(files()))


if __name__ == "__main__":
    main()
