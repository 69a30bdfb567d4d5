"""
Random settings of brokers and groups, judged by Kafka's own classes: ``python -m tests.oracle.configs.search``.

Verdicts are compared: what is refused in which words, and every value of what is not.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from random import Random
from subprocess import PIPE, Popen
from typing import Any, Final

from attrs import frozen

from sharestate.broker_log import RequestLogError
from sharestate.broker_log.server_properties import parse_properties
from sharestate.values.config_keys import ConfigKey, ConfigType, config_keys
from tests.oracle.build import RELEASES, build
from tests.support.config_verdicts import difference

DRIVER: Final = "kafka.server.ConfigsDriver"

ODD: Final = (
    "",
    " ",
    "x",
    "1.5",
    "0x10",
    "1_0",
    "+7",
    "-0",
    "007",
    "\u0665",
    "99999999999",
    "2147483648",
    "nan",
    "5 ",
    "\t5",
)
"""Texts that are a number, or nearly."""

BOOLEANS: Final = ("true", "false", "TRUE", " False ", "yes", "1", "", "fal\u017fe")
RESETS: Final = (
    *(
        "latest",
        "earliest",
        "none",
        "Latest",
        " earliest ",
        "by_duration",
        "by_duration:",
        "by_duration:P",
        "by_duration:PT",
    ),
    *("by_duration:PT5S", "by_duration:-PT-5S", "by_duration:PT-5S", "by_duration:P1DT-1H", "by_duration:PT1.S"),
    *(
        "by_duration:pt1,5s",
        "by_duration:PT0.1234567891S",
        "by_duration: PT5S",
        "by_duration:+PT+5S",
        "by_duration:P1W",
    ),
)
SIMPLE: Final = "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"
TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    "group.share.assignors": (
        SIMPLE,
        f"simple,{SIMPLE}",
        "simple",
        " simple ",
        "simple,simple",
        "simple , simple",
        "",
        ",",
        "simple,",
        " ",
    ),
    "share.auto.offset.reset": RESETS,
    "share.isolation.level": ("read_committed", "read_uncommitted", " read_committed ", "READ_COMMITTED", "", "x"),
    "errors.deadletterqueue.topic.name": ("", "dlq.a", "__a", " __a", "_a", " a b "),
    "errors.deadletterqueue.topic.name.prefix": ("", "dlq.", " x "),
}


@frozen
class Case:
    """Settings of a broker, and of a group."""

    broker: Mapping[str, str]
    group: Mapping[str, str]
    is_loaded: bool

    def request(self) -> dict[str, Any]:
        """Return it as the driver takes it."""
        return {"op": "settings", "broker": self.broker, "group": self.group, "loaded": self.is_loaded}


def case(seed: int, release: str) -> Case:
    """Return the case of a number, with settings of another release among them now and then."""
    random = Random(f"{release}-{seed}")  # noqa: S311 - what is drawn is to be the same again
    keys = list(config_keys(release).values())
    broker = [key for key in keys if key.scope == "broker" and "class.name" not in key.name]
    group = [key for key in config_keys("4.4" if random.random() < 0.1 else release).values() if key.scope == "group"]
    if random.random() < 0.05:
        # Bounds that overlap: only so can a heartbeat interval be longer than a session timeout.
        given = {"group.share.min.session.timeout.ms": "1000", "group.share.max.heartbeat.interval.ms": "60000"}
        names = random.sample(("share.session.timeout.ms", "share.heartbeat.interval.ms"), random.choice((1, 2)))
        return Case(given, {name: str(random.randrange(5, 61) * 1000) for name in names}, random.random() < 0.4)
    is_wild = random.random() < 0.3
    given = {key.name: _value(key, random, is_wild) for key in random.sample(broker, random.choice((0, 1, 2, 3, 6)))}
    made = {key.name: _value(key, random, is_wild) for key in random.sample(group, random.choice((0, 1, 1, 2, 4)))}
    return Case(given, made, random.random() < 0.4)


def _value(key: ConfigKey, random: Random, is_wild: bool) -> str:  # noqa: FBT001 - a test's own
    if key.name in TEXTS:
        return random.choice(TEXTS[key.name])
    if key.type is ConfigType.BOOLEAN:
        return random.choice(BOOLEANS if is_wild else BOOLEANS[:3])
    if key.type is ConfigType.STRING:
        return random.choice(("a", " b "))
    if is_wild and random.random() < 0.4:
        return random.choice(ODD)
    if "codec" in key.name:
        return str(random.randrange(-1, 6))
    # Near the default, where settings meet each other's bounds, or at the bounds of the setting itself.
    default = key.default if isinstance(key.default, int) else 0
    near = [default, default + 1, default - 1, default * 2, default // 2, default // 3, default * 9 // 8]
    bounds = [int(bound) for bound in str(key.valid or "").strip("[]").split(",") if bound.lstrip("-").isdecimal()]
    return str(
        random.choice(
            near if random.random() < 0.8 or not bounds else [each + random.randint(-1, 1) for each in bounds]
        )
    )


def answers(release: str, requests: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what Kafka's classes answer to each request."""
    command = build(release, sources="configs").command(DRIVER)
    with Popen(command, stdin=PIPE, stdout=PIPE, stderr=sys.stderr, text=True) as process:
        assert process.stdin
        assert process.stdout
        for request in requests:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            yield json.loads(process.stdout.readline())
        process.stdin.close()


def search(release: str, seeds: Iterable[int]) -> tuple[Counter[str], list[tuple[int, Case, str]]]:
    """Return how many cases Kafka has taken and refused, by the exception, and those that are answered otherwise."""
    cases = [(seed, case(seed, release)) for seed in seeds]
    tally: Counter[str] = Counter()
    found = []
    for (seed, each), answer in zip(cases, answers(release, (each.request() for _, each in cases)), strict=True):
        tally[answer["raised"]["exception"] if "raised" in answer else "taken"] += 1
        if said := difference(each.request(), answer, release):
            found.append((seed, each, said))
    return tally, found


PARTS: Final = (
    *(b"a", b"b", b"=", b":", b" ", b"\t", b"\f", b"\n", b"\r", b"\r\n", b"\\", b"\\", b"#", b"!", b"u", b"0", b"\xe9"),
    *(b"\x85", b"\x1c", b"\x0b", b"\x00", b"\\u0041", b"\\ud83d\\ude00", b"\\u00zz", b"\\n", b"\\t"),
)
"""What files of properties are made of."""


def properties(seed: int) -> bytes:
    """Return the bytes of a small file of properties, or of one that is none."""
    random = Random(seed)  # noqa: S311 - as above
    return b"".join(random.choices(PARTS, k=random.randrange(1, 16)))


def read(data: bytes) -> dict[str, str] | None:
    """Return what the library reads of a file; None if it refuses it."""
    try:
        return {each.name: each.value for each in parse_properties(data, "") if each.name}
    except RequestLogError:
        return None


def read_by_java(data: Iterable[bytes]) -> Iterator[dict[str, str] | None]:
    """Yield what ``java.util.Properties`` reads of each file; None if it refuses it."""
    requests = ({"op": "properties", "bytes": b64encode(each).decode()} for each in data)
    for answer in answers(RELEASES[0], requests):
        found: dict[str, str] | None = answer.get("result")
        # A backslash at the very end is a property without a name to Java, and it writes half a character as ?.
        read = {name.replace("?", "\ufffd"): value.replace("?", "\ufffd") for name, value in (found or {}).items()}
        yield None if found is None else {name: value for name, value in read.items() if name}


def main() -> None:
    """Search, and say what was found."""
    parser = ArgumentParser(prog="python -m tests.oracle.configs.search", description=__doc__)
    parser.add_argument("--kafka", default=RELEASES[0], metavar="RELEASE")
    parser.add_argument("--cases", type=int, default=20_000, metavar="NUMBER")
    options = parser.parse_args()
    tally, found = search(options.kafka, range(options.cases))
    for seed, each, said in found[:10]:
        sys.stdout.write(f"{seed}: {each}: {said}\n")
    sys.stdout.write(f"{options.kafka}: {options.cases:,} cases, {len(found)} differences: {dict(tally)}\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
