"""The page of what became of each rule at several brokers, from ``tests/data/conformance``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from generate.citations import headings
from generate.data import DATA
from generate.markdown import NOTICE, WIDEST, table

FILES: Final = ("kafka-4.2.1", "kafka-4.2.2", "kafka-4.3.1", "kafka-4.4.0", "test-broker", "kfake", "mock")
"""The reports, in the order of their columns."""

VERSION: Final = 1

INTRODUCTION: Final = """\
What [`sharestate conform --bootstrap`](conformance.md#brokers) has said of brokers in November 2026. Those of Kafka are
compared with what brokers of their own release answered when the scripts were recorded, the others with 4.4.0. `make
conformance-reports` starts the brokers and writes the reports again; `NAMES=kfake` writes one."""

LEGEND: Final = """\
A dash stands where a broker does not support what a script needs, a question mark where it differs before it comes to
what shows the rule. Rules that no client can see stand [below](#not-supported)."""

MARKS: Final = {"passed": "passed", "failed": "**failed**", "not supported": "-", "not judged": "?"}

NOTES: Final = {
    "kfake": """\
Locks last 1.5 s here by its own settings, and are looked at every 100 ms. It takes settings of groups that it does not
follow, such as the delivery limit: where a script begins with settings, the setting may be what fails, and not the
rule. Where a fetch brings nothing its records are null, which Kafka's schema of ShareFetch does not allow; that is
overlooked here.""",
    "mock": """\
It cannot delete records, set groups or describe their offsets, and has the first version of ShareFetch and
ShareAcknowledge only, without record limit and renewals. It makes topics of four partitions, of which each member has
its own, so that scripts of two members are not supported. What follows the end of its answer to Metadata is overlooked
here.""",
}


def page() -> str:
    """Return the page."""
    reports = {name: _report(name) for name in FILES}
    parts = [
        NOTICE,
        "# Conformance of brokers",
        INTRODUCTION,
        table(
            ["broker", "compared with", "rules passed", "failed", "not judged", "not supported"],
            map(_summary, reports.values()),
        ),
        "## Rule by rule",
        LEGEND,
        table(["rule", *FILES], _rules(reports)),
        *_failures(reports),
        "(not-supported)=\n## What no client can see",
        table(["rule", "about", "why"], _unseen(reports)),
    ]
    return "\n\n".join(parts) + "\n"


def _report(name: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((DATA / f"conformance/{name}.json").read_text())
    if report["conformance"] != VERSION:
        message = f"{name}: not version {VERSION} of a report"
        raise ValueError(message)
    return report


def _of(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the rules of a report by their numbers."""
    return {rule["rule"]: rule for rule in report["rules"] if rule["rule"]}


def _summary(report: dict[str, Any]) -> list[str]:
    verdicts = [rule["verdict"] for rule in _of(report).values() if _mark(rule)]
    counts = (str(verdicts.count(verdict)) for verdict in ("passed", "failed", "not judged", "not supported"))
    return [report["broker"], report["release"], *counts]


def _rules(reports: dict[str, dict[str, Any]]) -> Iterator[list[str]]:
    for number in headings():
        rules = [_of(report)[number] for report in reports.values()]
        if {"passed", "failed"} & {rule["verdict"] for rule in rules}:
            yield [f"[{number}](rules.md#rule-{number.replace('.', '-')})", *map(_mark, rules)]


def _mark(rule: dict[str, Any]) -> str:
    """Return what stands for a verdict; nothing if the release has no script for the rule."""
    return MARKS[rule["verdict"]] if rule["reason"] or sum(rule["vectors"].values()) else ""


def _unseen(reports: dict[str, dict[str, Any]]) -> Iterator[list[str]]:
    latest = _of(reports["kafka-4.4.0"])
    for number, heading in headings().items():
        if latest[number]["reason"]:
            yield [f"[{number}](rules.md#rule-{number.replace('.', '-')})", heading, latest[number]["reason"]]


def _failures(reports: dict[str, dict[str, Any]]) -> Iterator[str]:
    for name, report in reports.items():
        scripts: dict[str, tuple[dict[str, Any], list[str]]] = {}
        for number, rule in _of(report).items():
            if rule["shortest"]:
                shortest = rule["shortest"]
                scripts.setdefault(shortest["vector"], (shortest, []))[1].append(number)
        if scripts:
            yield f"## Where {report['broker']} differs"
            yield NOTES[name]
            yield from (_failure(*failure) for failure in scripts.values())


def _failure(shortest: dict[str, Any], numbers: list[str]) -> str:
    """Return the shortest conversation that fails, of some rules."""
    rules = ", ".join(f"[{number}](rules.md#rule-{number.replace('.', '-')})" for number in numbers)
    word = "Rule" if len(numbers) == 1 else "Rules"
    steps = [request for request, _ in shortest["exchanges"]]
    lines = [*(f"> {_cut(request)}" for request in steps), f"< {_cut(shortest['got'])}"]
    expected = f"  {_cut(shortest['exchanges'][-1][1])}  was expected"
    text = "\n".join([*lines, expected])
    return f"{word} {rules}, in `{shortest['vector']}`:\n\n```text\n{text}\n```"


def _cut(value: object) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return text if len(text) <= WIDEST - 2 else f"{text[: WIDEST - 5]}..."
