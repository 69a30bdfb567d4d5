"""The pages about the API of the core, of persisters and of the share coordinator."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import get_args

import sharestate
from sharestate import (
    audit,
    broker,
    broker_log,
    coordinator,
    dead_letter_topic,
    dead_letters,
    explain,
    history,
    leader,
    log_check,
    persister,
    report,
    segments,
    simulate,
    spark,
    state_topic,
)
from sharestate.audit import importers, recorder
from sharestate.audit.operations import OPERATION_FIELDS
from sharestate.broker import groups, node, server, sessions
from sharestate.broker.groups import metadata_hash, records
from sharestate.leader import observed
from sharestate.persister import kafka
from sharestate.spark.analysis_columns import ANALYSIS
from sharestate.state_topic import cluster

DOCS = Path(__file__).parents[2] / "docs"


def documented(page: str) -> list[str]:
    """Return the names that have a directive on a page, in order."""
    return sorted(re.findall(r"^\.\. (?:auto\w+|data):: (\w+)", (DOCS / page).read_text(), re.MULTILINE))


def test_every_public_name_is_documented_once() -> None:
    """Each name that `sharestate` exports has one directive on the page, and nothing else has."""
    assert documented("api.md") == sorted(sharestate.__all__)


def test_every_name_of_persisters_is_documented_once() -> None:
    """What only `sharestate.persister` and its `kafka` export has its directive on the page of persisters."""
    elsewhere = {*sharestate.__all__, *coordinator.__all__}

    assert documented("persister.md") == sorted((set(persister.__all__) - elsewhere) | set(kafka.__all__))


def test_every_name_of_the_coordinator_is_documented_once() -> None:
    """What `sharestate.coordinator` exports and `sharestate` does not has its directive on its page."""
    assert documented("coordinator.md") == sorted(set(coordinator.__all__) - set(sharestate.__all__))


def test_every_name_of_share_sessions_is_documented_once() -> None:
    """What `sharestate.broker.sessions` exports has its directive on its page."""
    assert documented("sessions.md") == sorted(sessions.__all__)


def test_every_name_of_the_test_broker_is_documented_once() -> None:
    """What `sharestate.broker.server` exports has its directive on its page; `sharestate.broker` has nothing else."""
    assert documented("test-broker.md") == sorted(server.__all__)
    assert set(broker.__all__) < set(server.__all__)


def test_every_name_of_the_audit_is_documented_once() -> None:
    """What `sharestate.audit` exports has its directive on the page of the audit or on that of operations."""
    pages = [documented(page) for page in ("audit.md", "operations.md")]

    assert sorted(itertools.chain(*pages)) == sorted(audit.__all__)


def test_the_page_of_operations_has_every_field() -> None:
    """In the row of its operation, or where fields are explained that all of them have."""
    text = (DOCS / "operations.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE))
    in_all = {"begin_ms", "end_ms", "client", "code"}

    assert OPERATION_FIELDS.keys() <= rows.keys()
    missing = {
        op: [name for name in names if name not in in_all and f"`{name}`" not in rows[op]]
        for op, names in OPERATION_FIELDS.items()
    }
    assert {op: names for op, names in missing.items() if names} == {}


def test_every_name_of_groups_is_documented_once() -> None:
    """What `sharestate.broker.groups` exports has its directive on one of its three pages."""
    pages = [documented(page) for page in ("assignment.md", "groups.md", "offsets.md")]

    assert sorted(itertools.chain(*pages)) == sorted(groups.__all__)


def test_every_name_of_groups_records_is_documented_once() -> None:
    """Classes, functions and names of types of the two modules about records have their directives on their page."""
    defined = [
        name
        for module in (records, metadata_hash)
        for name, value in vars(module).items()
        if name[0] != "_" and getattr(value, "__module__", None) == module.__name__
    ]

    assert documented("group-records.md") == sorted([*defined, "GroupRecordValue", "TaggedFields"])


def test_every_name_of_nodes_is_documented_once() -> None:
    """What `sharestate.broker.node` exports has its directive on one of its two pages."""
    assert sorted(documented("node.md") + documented("node-logs.md")) == sorted(node.__all__)


def test_every_name_of_leaders_is_documented_once() -> None:
    """What only `sharestate.leader` exports has its directive on its page, and so has each event of an observer."""
    events = [event.__name__ for event in get_args(observed.LeaderEvent)]

    assert documented("leader.md") == sorted([*set(leader.__all__) - set(sharestate.__all__), *events])


def test_every_name_of_dead_letter_queues_is_documented_once() -> None:
    """What `sharestate.dead_letters` exports and `sharestate` does not has its directive on their page."""
    assert documented("dead-letters.md") == sorted(set(dead_letters.__all__) - set(sharestate.__all__))


def test_every_name_of_dead_letter_topics_is_documented_once() -> None:
    """What `sharestate.dead_letter_topic` exports has its directive on its page."""
    assert documented("dead-letter-topics.md") == sorted(dead_letter_topic.__all__)


def test_every_name_of_segments_is_documented_once() -> None:
    """What `sharestate.segments` exports has its directive on its page."""
    assert documented("segments.md") == sorted(segments.__all__)


def test_every_name_of_the_state_topic_is_documented_once() -> None:
    """What `sharestate.state_topic` and its `cluster` export has its directive on its page."""
    assert documented("state-topic.md") == sorted([*state_topic.__all__, *cluster.__all__])


def test_every_name_of_the_recorder_is_documented_once() -> None:
    """What `sharestate.audit.recorder` and `sharestate.audit.importers` export has its directive on one page."""
    assert documented("recorder.md") == sorted([*recorder.__all__, *importers.__all__])


def test_every_name_of_histories_is_documented_once() -> None:
    """What `sharestate.history` exports has its directive on its page."""
    assert documented("history.md") == sorted(history.__all__)


def test_every_name_of_brokers_logs_is_documented_once() -> None:
    """What `sharestate.broker_log` and `sharestate.log_check` export has its directive on their page."""
    assert documented("broker-log.md") == sorted([*broker_log.__all__, *log_check.__all__])


def test_every_name_of_explanations_is_documented_once() -> None:
    """What `sharestate.explain` exports has its directive on its page."""
    assert documented("why.md") == sorted(explain.__all__)


def test_every_name_of_simulations_is_documented_once() -> None:
    """What `sharestate.simulate` exports has its directive on its page."""
    assert documented("simulate.md") == sorted(simulate.__all__)


def test_every_name_of_reports_is_documented_once() -> None:
    """What `sharestate.report` exports has its directive on its page."""
    assert documented("report.md") == sorted(report.__all__)


def test_every_name_for_spark_is_documented_once() -> None:
    """What `sharestate.spark` exports has its directive on one of its pages."""
    assert sorted([*documented("spark.md"), *documented("spark-history.md")]) == sorted(spark.__all__)


def test_every_table_of_the_analysis_is_documented_once() -> None:
    """What makes a table of the analysis on Spark has its directive on the page."""
    assert documented("spark-analysis.md") == sorted([*ANALYSIS, "write_tables"])
