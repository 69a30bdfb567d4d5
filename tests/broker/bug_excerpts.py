"""
Kafka's bugs on its own brokers, as their request logs show them: ``python -m tests.broker.bug_excerpts [BUG ...]``.

Scenes lead brokers there (bug_scenes.py). What a broker has logged of one, shortened, goes into
``tests/data/kafka-bug-excerpts.json``, and from there onto the page of bugs that are ready to report.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import Any, Final

from tests.broker.bug_scenes import ACTS, LOGGED_S
from tests.broker.conftest import running
from tests.broker.kafka_broker import KafkaBroker
from tests.broker.members import configure
from tests.broker.told_members import Place

Json = Any

EXCERPTS: Final = Path(__file__).parents[1] / "data" / "kafka-bug-excerpts.json"
VERSION: Final = 1

# ---- lines


APIS: Final = (
    *("SHARE_FETCH", "SHARE_ACKNOWLEDGE", "DELETE_RECORDS", "END_TXN"),
    *("INITIALIZE_SHARE_GROUP_STATE", "READ_SHARE_GROUP_STATE", "WRITE_SHARE_GROUP_STATE"),
    *("READ_SHARE_GROUP_STATE_SUMMARY", "DESCRIBE_SHARE_GROUP_OFFSETS"),
)
"""What an excerpt has."""

FIELDS: Final = frozenset(
    {
        *("stateEpoch", "leaderEpoch", "startOffset", "deliveryCompleteCount", "stateBatches", "acquiredRecords"),
        *("acknowledgementBatches", "errorCode", "errorMessage", "acknowledgeErrorCode", "offset", "committed", "lag"),
    }
)
"""The fields that are shown; those that they are in are not."""

WIDTH: Final = 84
"""What a line has at most. [characters]"""


def excerpt(scene: Iterable[str], log: Path, name: str) -> list[str]:
    """Play a *scene*, and return what a broker logs of it; what the scene says is a comment."""
    at = log.stat().st_size
    lines: list[str] = []
    for comment in scene:
        at = _take(log, at, name, lines)
        lines += wrap(f"# {comment}", WIDTH, subsequent_indent="# ")
    _take(log, at, name, lines)
    return lines


def _take(log: Path, at: int, name: str, lines: list[str]) -> int:
    """Add what was logged from a byte on, and return where it ends."""
    time.sleep(LOGGED_S)
    with log.open("rb") as file:
        file.seek(at)
        logged = file.read()
    whole = logged[: logged.rfind(b"\n") + 1]
    lines += shortened(whole.decode().splitlines(), name)
    return at + len(whole)


def shortened(logged: Iterable[str], name: str) -> list[str]:
    """Return what *logged* lines say of the group or topic *name*; lines that say the same are one."""
    said = [line for line in (_shortened(each, name) for each in logged) if line is not None]
    lines: list[str] = []
    for _, same in groupby(said, key=lambda line: line[1]):
        (at, text), *others = same
        again = f" ({len(others)} more like it)" if others else ""
        lines += wrap(f"{at} {text}{again}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _shortened(line: str, name: str) -> tuple[str, str] | None:
    stamp, _, text = line.partition(" Completed request:")
    logged = json.loads(text) if text else {}
    api = logged.get("requestHeader", {}).get("requestApiKeyName")
    if api not in APIS or name not in _names(logged["request"]):
        return None
    request, response = ([*_fields(logged[each])] for each in ("request", "response"))
    return stamp.partition("T")[2][:12], " ".join([api, *request, "->", *(response or ["errorCode=0"])])


def _names(request: Mapping[str, Json]) -> set[str | None]:
    """Return the groups and the topics of a request, as far as it names them."""
    topics = {topic.get("name") for topic in request.get("topics") or () if isinstance(topic, dict)}
    groups = {group.get("groupId") for group in request.get("groups", ())}
    return {request.get("groupId"), request.get("transactionalId"), *topics, *groups}


def _fields(value: Json) -> Iterator[str]:
    """Yield the fields that are shown, no matter how deep they are; error codes only if there is an error."""
    if isinstance(value, list):
        for each in value:
            yield from _fields(each)
    if not isinstance(value, dict):
        return
    for name, each in value.items():
        if name == "currentLeader":
            continue
        if name not in FIELDS:
            yield from _fields(each)
        elif isinstance(each, list):
            yield f"{name}=[{', '.join(_ranges(each))}]"
        elif each is not None and not (name.endswith("rrorCode") and each == 0):
            yield f"{name}={each}"


def _ranges(rows: list[Json]) -> Iterator[str]:
    """Yield ranges of offsets and what is said of them; those that follow each other and say the same are one."""
    runs: list[tuple[int, int, str, int]] = []
    for row in rows:
        said = " ".join(f"{name}={json.dumps(value)}" for name, value in row.items() if "Offset" not in name)
        first, last = row["firstOffset"], row["lastOffset"]
        if runs and (runs[-1][1] + 1, runs[-1][2]) == (first, said):
            runs[-1] = (runs[-1][0], last, said, runs[-1][3] + 1)
        else:
            runs.append((first, last, said, 1))
    for first, last, said, count in runs:
        yield f"{first}-{last} {said}" + (f" in {count} batches" if count > 1 else "")


# ---- the command


def play(bug: str, broker: KafkaBroker) -> list[str]:
    """Play the scene of a *bug*, and return the excerpt."""
    act = ACTS[bug]
    name = f"bug-{bug.lower()}"
    broker.create_topic(name, 1, act.topic_config)
    configure(broker, name, act.config)
    return excerpt(act.scene(Place(broker, name, (name,))), broker.request_log, name)


def write(excerpts: Mapping[str, tuple[str, list[str]]], path: Path = EXCERPTS) -> None:
    """Write the *excerpts*, by bug the release and the lines; those of other bugs stay."""
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    kept = {row["id"]: row for row in rows}
    kept |= {bug: {"id": bug, "kafka": kafka, "lines": lines} for bug, (kafka, lines) in excerpts.items()}
    document = {"kafka_bug_excerpts": VERSION, "rows": [kept[bug] for bug in ACTS if bug in kept]}
    path.write_text(json.dumps(document, indent=2) + "\n")


def main() -> None:
    """Play the scenes that are named, each release's on a broker of its own."""
    parser = ArgumentParser(prog="python -m tests.broker.bug_excerpts", description="Show Kafka's bugs on its brokers.")
    parser.add_argument("bugs", nargs="*", metavar="BUG", help=f"some of {', '.join(ACTS)}; all unless given")
    parser.add_argument("--kafka", metavar="RELEASE", help="a release, of which nothing is kept; else the page's")
    given = parser.parse_args()
    wanted = [bug for bug in ACTS if not given.bugs or bug in given.bugs]
    excerpts: dict[str, tuple[str, list[str]]] = {}
    for (kafka, config), bugs in _by_broker(wanted, given.kafka).items():
        with TemporaryDirectory() as home, running(kafka, Path(home), dict(config)) as broker:
            for bug in bugs:
                excerpts[bug] = kafka, play(bug, broker)
                sys.stdout.write("\n".join([f"{bug}, Kafka {kafka}", *excerpts[bug][1], "", ""]))
    if not given.kafka:
        write(excerpts)


def _by_broker(bugs: Iterable[str], kafka: str | None) -> dict[tuple[str, tuple[tuple[str, str], ...]], list[str]]:
    """Return bugs by the release and the settings of the broker that they need; those only that *kafka* has, if any."""
    brokers: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for bug in bugs:
        act = ACTS[bug]
        if kafka is None or kafka in act.releases:
            brokers.setdefault((kafka or act.kafka, tuple(act.broker_config.items())), []).append(bug)
    return brokers


if __name__ == "__main__":
    main()
