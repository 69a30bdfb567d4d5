"""
Record what Kafka's own classes say of settings: ``python -m tests.oracle.configs.record``.

``tests/data/configs`` has the table of each release, some settings with the verdict on each, no two refused for the
same reason, and some files with the properties that Java reads in them; and the table of what groups have that are not
share groups, with verdicts on settings of theirs.
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


OTHERS: Final[tuple[dict[str, str], ...]] = (
    {"consumer.heartbeat.interval.ms": "1"},
    {"consumer.heartbeat.interval.ms": "x"},
    {"consumer.heartbeat.interval.ms": "0"},
    {"consumer.session.timeout.ms": "60001"},
    {"consumer.session.timeout.ms": "50000"},
    {"consumer.assignment.interval.ms": "15001"},
    {"consumer.assignor.offload.enable": "maybe"},
    {"consumer.session.timeout.ms": "45000", "consumer.heartbeat.interval.ms": "15000"},
    {"streams.session.timeout.ms": "1"},
    {"streams.heartbeat.interval.ms": "15001"},
    {"streams.num.standby.replicas": "3"},
    {"streams.num.standby.replicas": "-1"},
    {"streams.initial.rebalance.delay.ms": "-1"},
    {"streams.initial.rebalance.delay.ms": "99999999"},
    {"streams.assignment.interval.ms": "20000"},
    {"streams.task.offset.interval.ms": "14999"},
    {"streams.num.warmup.replicas": "21"},
    {"streams.rack.aware.assignment.tags": "a,a"},
    {"streams.rack.aware.assignment.tags": "a,,b"},
    {"streams.rack.aware.assignment.tags": ""},
    {"streams.rack.aware.assignment.tags": "a , b"},
    {"streams.acceptable.recovery.lag": "x"},
    {"streams.acceptable.recovery.lag": "-1"},
    {"streams.acceptable.recovery.lag": "9999999999999"},
    {"streams.assignor.name": "nope"},
    {"streams.assignor.name": "sticky"},
)
"""Settings of groups that share groups do not look at: some right, and one for each way to be wrong."""

FAR: Final = {
    "group.consumer.heartbeat.interval.ms": "7000",
    "group.consumer.max.heartbeat.interval.ms": "60000",
    "group.consumer.min.session.timeout.ms": "6000",
}
"""A broker with bounds so far apart that a group's session may end before a heartbeat."""

LATE: Final = {"group.streams.heartbeat.interval.ms": "7000", "group.streams.min.heartbeat.interval.ms": "6000"}
"""A broker that does not take Kafka's own default, which counts in 4.2 for a streams group that is given none."""

OF_BROKERS: Final[tuple[tuple[dict[str, str], dict[str, str]], ...]] = (
    (FAR, {"consumer.session.timeout.ms": "6000"}),
    (FAR, {"consumer.heartbeat.interval.ms": "50000"}),
    (LATE, {"streams.num.standby.replicas": "1"}),
    ({"group.consumer.session.timeout.ms": "60001"}, {}),
    ({"group.streams.num.standby.replicas": "3"}, {}),
    ({"group.streams.initial.rebalance.delay.ms": "-1"}, {}),
)
"""What a broker is given, and a group: what is wrong only there, or of the broker."""


def other_keys(release: str) -> list[dict[str, Any]]:
    """Return the table of what groups have that are not share groups, and of what brokers have for that."""
    (answer,) = answers(release, [{"op": "other_keys"}])
    rows: list[dict[str, Any]] = answer["result"]
    return [{name: row[name] for name in row if name not in {"documentation", "importance"}} for row in rows]


def other_verdicts(release: str) -> list[dict[str, Any]]:
    """Return settings of such groups with what Kafka says of each: an empty text if it takes them."""
    cases = [*(({}, group) for group in OTHERS), *OF_BROKERS]
    requests = [{"op": "settings", "broker": broker, "group": group, "loaded": False} for broker, group in cases]
    return [
        {"broker": broker, "group": group, "refusal": answer.get("raised", {}).get("message", "")}
        for (broker, group), answer in zip(cases, answers(release, requests), strict=True)
    ]


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
            (PLACE / f"other-keys-{release}.json").write_text(lines(other_keys(release)))
            (PLACE / f"other-verdicts-{release}.json").write_text(lines(other_verdicts(release)))
    (PLACE / "properties.json").write_text(lines(files()))


if __name__ == "__main__":
    main()
