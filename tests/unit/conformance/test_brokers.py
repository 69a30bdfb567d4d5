"""Conformance of brokers: the test broker follows each release, and what a broker does not take is not supported."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Thread
from typing import Final

import pytest
from attrs import evolve
from click.testing import CliRunner, Result
from confluent_kafka.admin import AdminClient

from sharestate import KAFKA_4_2, KAFKA_4_4, ErrorCode, Profile, conformance
from sharestate.broker import QUICK_SETTINGS, Fail, Fault, TestBroker
from sharestate.cli.commands import sharestate
from sharestate.conformance import Conformance, ConformanceVerdict, Vectors, read_scripts, read_vectors
from sharestate.conformance.brokers import conform_cluster
from sharestate.errors import UnreadableFileError
from tests.conformance.authored import SCRIPTS, UNASKED
from tests.conformance.reporting import DATA, kept
from tests.conformance.targets import ours

ALL: Final = read_scripts()

OTHER_LIMIT: Final = {**QUICK_SETTINGS, "group.share.delivery.count.limit": "10"}
"""Settings of a broker that delivers records more often than Kafka's does."""


def only(*names: str) -> Vectors:
    """Return the index with some scripts."""
    return evolve(ALL, vectors=tuple(each for each in ALL.vectors if each.name in names))


def judged(profile: Profile, release: str, scripts: Vectors = ALL) -> Conformance:
    """Return what becomes of scripts at the test broker."""
    with ours(profile) as (address, lets_pass):
        return conform_cluster(address, scripts, release, sleep=lets_pass)


def verdicts(found: Conformance) -> dict[str, str]:
    """Return what became of each script."""
    return {each.vector.name: each.verdict.value for each in found.outcomes}


# ---- the test broker


def test_the_test_broker_is_as_its_report_says() -> None:
    """A run of all scripts gives the report that is kept: all that can be asked passes."""
    found = judged(KAFKA_4_4, "4.4.0")

    assert kept("test-broker", found) == json.loads((DATA / "test-broker.json").read_text())
    assert {*verdicts(found).values()} == {"passed"}


def test_the_test_broker_follows_an_earlier_release() -> None:
    """With the rules of 4.2 every script of 4.2.2 passes."""
    assert {*verdicts(judged(KAFKA_4_2, "4.2.2")).values()} == {"passed"}


def test_earlier_rules_differ_before_they_are_asked_of_later_ones() -> None:
    """Groups of 4.2 have no delivery limit of their own, and no dead-letter queue; no rule is blamed for that."""
    scripts = only("setting-changes", "rejected-letters", "terminal-states", "lock-duration-changes")

    assert verdicts(judged(KAFKA_4_2, "4.4.0", scripts)) == {
        "setting-changes": "not judged",
        "lock-duration-changes": "passed",
        "terminal-states": "passed",
        "rejected-letters": "not supported",
    }


def test_a_failure_shows_what_came() -> None:
    """The conversation ends where the answers part, with the answer that was given, and what was recorded."""
    with TestBroker(config=OTHER_LIMIT) as broker:
        found = conform_cluster(broker.bootstrap_servers, only("default-limit"), "4.4.0")

    shortest = next(rule.shortest for rule in found.rules if rule.number == "1.2")
    assert shortest is not None
    assert shortest.source == "brokers of Kafka 4.2.1, 4.2.2, 4.3.1, 4.4.0"
    assert (shortest.exchanges[-1][1], shortest.got) == ({"acquired": []}, {"acquired": [[0, 0, 6]]})


def test_nothing_is_left_behind() -> None:
    """Topics and groups of a run are deleted, those of scripts that fail too."""
    with TestBroker(config=QUICK_SETTINGS) as other:
        conform_cluster(other.bootstrap_servers, only("default-limit", "rejected-letters"), "4.4.0")
        with other.fault(Fault(on="ShareAcknowledge", action=Fail(ErrorCode.UNKNOWN_SERVER_ERROR))):
            found = conform_cluster(other.bootstrap_servers, only("terminal-states"), "4.4.0")
        left = other.run(lambda node: [topic.name for topic in node.topics])
        groups = AdminClient({"bootstrap.servers": other.bootstrap_servers}).list_consumer_groups().result(10)

    assert verdicts(found) == {"terminal-states": "failed"}
    assert (left, groups.valid) == ([], [])


# ---- what a broker does not take


def faulty(on: str, code: ErrorCode, scripts: Vectors) -> Conformance:
    """Return what becomes of scripts at a broker that refuses some requests."""
    with TestBroker(config=QUICK_SETTINGS) as broker, broker.fault(Fault(on=on, action=Fail(code))):
        return conform_cluster(broker.bootstrap_servers, scripts, "4.4.0")


def test_a_broker_without_settings_of_groups_is_asked_what_needs_none() -> None:
    """What needs a setting is not supported, with the reason, and the group begins with what is written next."""
    found = faulty("IncrementalAlterConfigs", ErrorCode.INVALID_REQUEST, only("default-limit", "limit-of-2"))

    assert verdicts(found) == {"default-limit": "passed", "limit-of-2": "not supported"}
    (reason,) = {each.reason for each in found.outcomes} - {None}
    assert str(reason).startswith("the broker does not take the settings of the group: IncrementalAlterConfigs")


def test_a_broker_without_share_groups_is_not_judged() -> None:
    """Heartbeats are refused at once, so every script is not supported."""
    found = faulty("ShareGroupHeartbeat", ErrorCode.UNSUPPORTED_VERSION, only("default-limit", "new-records"))

    assert found.verdict is ConformanceVerdict.UNJUDGED
    assert {each.reason for each in found.outcomes} == {"ShareGroupHeartbeat is answered with UNSUPPORTED_VERSION"}


def test_what_there_was_no_time_for_is_not_judged() -> None:
    """Without a failure the verdict on all is that it is not judged."""
    with TestBroker(config=QUICK_SETTINGS) as broker:
        found = conform_cluster(broker.bootstrap_servers, only("new-records"), "4.4.0", limit_s=0.0)

    assert (found.verdict, found.limit) == (ConformanceVerdict.UNJUDGED, "0 s have passed")


def test_a_release_without_scripts_is_refused() -> None:
    """The error names those there are."""
    with pytest.raises(ValueError, match=r"scripts of 4\.2\.1, 4\.2\.2, 4\.3\.1, 4\.4\.0, and not of 3\.0"):
        conform_cluster("127.0.0.1:9", ALL, "3.0")


# ---- the scripts


def test_the_scripts_are_those_that_were_recorded() -> None:
    """Steps and rules are as they were written, and every rule has a script or the reason why it has none."""
    authored = {script.name: ([*script.rules], [*script.steps]) for script in SCRIPTS}

    for each in ALL.vectors:
        name = each.name.removesuffix(f"-{each.releases[-1]}")
        assert ([*each.rules], [step for step, _ in each.exchanges]) == authored[name]
    assert authored.keys() == {each.name for each in ALL.of("4.4.0")}
    shown = {number for script in SCRIPTS for number in script.rules}
    assert not shown & UNASKED.keys()
    assert shown | UNASKED.keys() == {*ALL.rules} == {*read_vectors().rules}
    assert ALL.unasked == UNASKED


def test_vectors_are_no_scripts() -> None:
    """Each reader refuses the other's file."""
    shipped = Path(conformance.__file__).parent
    with pytest.raises(UnreadableFileError, match="scripts"):
        read_scripts(shipped / "vectors.jsonl.gz")
    with pytest.raises(UnreadableFileError, match="vectors"):
        read_vectors(shipped / "scripts.jsonl.gz")


# ---- the command


def run(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(sharestate, ["conform", *arguments])


def written(scripts: Vectors) -> Iterable[str]:
    """Yield the lines of a file of scripts."""
    rules, unasked = ([list(pair) for pair in pairs.items()] for pairs in (scripts.rules, scripts.unasked))
    header = {"scripts": 1, "license": scripts.license, "releases": [*scripts.releases], "rules": rules}
    yield json.dumps({**header, "unasked": unasked})
    for each in scripts.vectors:
        names = ("name", "source", "releases", "rules", "accident", "exchanges", "shows")
        yield json.dumps({name: getattr(each, name) for name in names})


@pytest.mark.parametrize(
    ("settings", "code", "last"),
    [({}, 0, "passed: 3 of 3 rules of 4.4.0"), (OTHER_LIMIT, 1, "failed: 2 of 3 rules of 4.4.0")],
)
def test_the_command_says_what_failed_and_why_rules_are_left_out(
    settings: Mapping[str, str], code: int, last: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The table, what was sent and came, the reasons, and the exit code."""
    file = tmp_path_factory.mktemp("scripts") / "scripts.jsonl"
    file.write_text("".join(f"{line}\n" for line in written(only("terminal-states", "default-limit"))))
    page = file.with_suffix(".html")
    with TestBroker(config={**QUICK_SETTINGS, **settings}) as broker:
        result = run("--bootstrap", broker.bootstrap_servers, "--vectors", str(file), "--html", str(page))

    lines = result.stdout.splitlines()
    assert (result.exit_code, lines[-1]) == (code, last)
    assert f"Rule 1.5 is not supported: {UNASKED['1.5']}." in lines
    assert f"Rule 1.5 is not supported: {UNASKED['1.5']}." in page.read_text()
    came = '  < {"acquired":[[0,0,6]]}, where brokers of Kafka 4.2.1, 4.2.2, 4.3.1, 4.4.0 answered'
    assert (came in lines, "To the last request came" in page.read_text()) == (bool(code), bool(code))


def test_what_cannot_be_judged_ends_with_2() -> None:
    """No broker, no address, no such release, a broker and a command or neither, and options of the other one."""
    results = [
        run("--bootstrap", "127.0.0.1:1"),
        run("--bootstrap", "nowhere"),
        run("--bootstrap", "127.0.0.1:1", "--release", "3.0"),
        run("--bootstrap", "127.0.0.1:1", "--", "program"),
        run(),
        run("--bootstrap", "127.0.0.1:1", "--level", "full"),
        run("--command-config", __file__, "--", "program"),
    ]

    assert [result.exit_code for result in results] == [2] * 7
    assert "Connection refused" in results[0].stderr


def test_who_is_no_broker_is_told_so() -> None:
    """A server that speaks another protocol, whose answer is no answer of a broker."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(2**16)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        Thread(target=serve, daemon=True).start()
        result = run("--bootstrap", f"127.0.0.1:{server.getsockname()[1]}")

    assert (result.exit_code, result.stdout) == (2, "")
    assert "is no answer of a broker" in result.stderr


# ---- the reports


def test_brokers_of_kafka_pass() -> None:
    """Each release passes all that it can be asked."""
    for release in ALL.releases:
        report = json.loads((DATA / f"kafka-{release}.json").read_text())
        assert (report["release"], report["verdict"]) == (release, "passed")


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("kfake", {"7.1", "7.8", "7.9", "15", "18", "20.1", "20.3"}),
        ("mock", {"6", "7.1", "7.2", "7.5", "7.8", "7.9", "8.2", "18", "20.3"}),
    ],
)
def test_other_brokers_fail_what_was_measured_of_them(name: str, rules: set[str]) -> None:
    """Limits that do not end with a batch of the log, ranges cut elsewhere, no throttling, and room of their own."""
    report = json.loads((DATA / f"{name}.json").read_text())

    assert rules <= {rule["rule"] for rule in report["rules"] if rule["verdict"] == "failed"}
