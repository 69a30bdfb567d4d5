"""The table of metrics: what is exposed, printed, documented, drawn and alerted on is the same."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from generate.monitor import PANELS
from sharestate import SharePartitionKey
from sharestate.monitor.exposition import ReadingCollector, serve
from sharestate.monitor.metrics import BUCKETS, METRICS, SHARE_PARTITION, MetricKind, document
from sharestate.monitor.readings import Reading
from sharestate.monitor.watch import Watch
from tests.support.scrapes import Scrape, parsed
from tests.support.watched_cluster import KEY, ORDERS, WatchedCluster, snapshot, update

ROOT: Final = Path(__file__).parents[3]
EXAMPLES: Final = ROOT / "examples" / "monitor"
PLACE: Final = {"group": "g", "topic": "orders", "partition": "0"}


@pytest.fixture(scope="module")
def reading() -> Reading:
    """Two groups, of which one is new, one has a wrong count, and something keeps the topic from being pruned."""
    cluster = WatchedCluster()
    cluster.write(
        snapshot(10, (11, 13, 2, 1), (14, 14, 4, 5), (15, 18, 0, 2), (19, 19, 0, 4), delivery_complete_count=95)
    )
    cluster.write(update(10, complete=95, leader_epoch=-1))
    cluster.write(snapshot(-1), SharePartitionKey(group_id='new "one"\n', topic_id=ORDERS, partition=1), 1)
    return Watch(cluster, lambda: 5_000, say=print).round()


def exposed(reading: Reading | None) -> str:
    """Return what Prometheus gets."""
    collector = ReadingCollector()
    collector.reading, collector.is_up = reading, reading is not None
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry).decode()


@pytest.fixture(scope="module")
def scrape(reading: Reading) -> Scrape:
    """What Prometheus gets, as it reads it."""
    return parsed(exposed(reading))


def test_a_share_partition_is_exposed(scrape: Scrape) -> None:
    """With the name of its topic, and numbers that can be counted by hand in the scene."""
    expected = {
        "lag_records": 100 - 10 - 95,
        "corrected_lag_records": 100 - 10 - 4,
        "complete_records": 95,
        "stored_done_records": 4,
        "start_offset": 10,
        "log_start_offset": 0,
        "log_end_offset": 100,
        "oldest_unfinished_offset": 10,
        "oldest_unfinished_deliveries": 0,
        "in_flight_records": 10,
        "near_limit_records": 1,
        "acknowledged_records_total": 3,
        "archived_records_total": 1,
        "passed_records_total": 0,
        "state_epoch": 1,
        "leader_epoch": 0,
        "fencings_total": 0,
        "initializations_total": 1,
        "needed_state_offset": 0,
    }
    assert {name: scrape.value(f"sharestate_{name}", **PLACE) for name in expected} == expected
    assert scrape.value("sharestate_complete_records_wrong", **PLACE, reason="beyond_log") == 1
    assert scrape.value("sharestate_start_offset_moved_timestamp_seconds", **PLACE, exact="true") == 0
    assert scrape.value("sharestate_state_records_total", **PLACE, type="update") == 1


def test_delivery_counts_are_a_histogram(scrape: Scrape) -> None:
    """Of four records that came twice and one that came four times, the buckets add up."""
    group = {"group": "g", "topic": "orders"}
    buckets = {le: scrape.value("sharestate_delivery_count_bucket", **group, le=le) for le in map(str, BUCKETS)}

    assert buckets == {"1": 0, "2": 4, "3": 4, "4": 5, "5": 5, "7": 5, "10": 5}
    assert scrape.value("sharestate_delivery_count_bucket", **group, le="+Inf") == 5
    assert scrape.value("sharestate_delivery_count_gsum", **group) == 4 * 2 + 4


def test_what_is_not_known_is_not_there(scrape: Scrape) -> None:
    """A lag of -1 is no number that could be added up, but a series with its reason; any group's name is one label."""
    place = {"group": 'new "one"\n', "partition": "1"}

    assert scrape.find("sharestate_lag_records", **place) == []
    assert scrape.value("sharestate_lag_unknown", **place, reason="no_start_offset") == 1
    assert scrape.find("sharestate_corrected_lag_records", **place) == []
    assert scrape.value("sharestate_max_record_locks", group='new "one"\n', assumed="true") == 2000


def test_before_the_first_reading_there_is_nothing() -> None:
    """But that it is not up."""
    assert parsed(exposed(None)).values == {
        ("sharestate_up", frozenset()): 0,
        ("sharestate_failed_rounds_total", frozenset()): 0,
    }


def test_every_metric_has_a_value_in_some_scene(scrape: Scrape) -> None:
    """None is a name only, and each has the labels that the table says."""
    suffix = {MetricKind.HISTOGRAM: "_bucket"}
    for metric in METRICS:
        name = metric.full_name + suffix.get(metric.kind, "")
        labels = {frozenset(dict(found)) for each, found in scrape.values if each == name}
        le = {"le"} if metric.kind is MetricKind.HISTOGRAM else set()
        assert labels == {frozenset({*metric.all_labels, *le})}, name


def test_counters_are_named_as_prometheus_wants_it() -> None:
    """They end with _total, and nothing else does; no name comes twice."""
    assert {metric.name.endswith("_total") == (metric.kind is MetricKind.COUNTER) for metric in METRICS} == {True}
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_the_document_has_the_names_of_the_metrics(reading: Reading) -> None:
    """Each metric of a share partition is a field, also one that is not known."""
    documents = [document(each) for each in reading.share_partitions]

    names = {metric.name for metric in METRICS if metric.subject is SHARE_PARTITION}
    for each in documents:
        assert each.keys() == names | {"group", "topic", "topic_id", "partition", "delivery_count"}
    assert documents[0]["topic_id"] == KEY.topic_id
    assert documents[0]["delivery_count"] == {"2": 4, "4": 1}
    assert documents[1]["lag_records"] is None
    assert documents[1]["lag_unknown"] == {"no_start_offset": 1}


def test_it_is_served(reading: Reading) -> None:
    """On the loopback, whole, while the next reading may come."""
    collector = ReadingCollector()
    server, thread = serve(collector, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.server_port}/metrics"
    try:
        with urlopen(address) as response:
            assert parsed(response.read().decode()).value("sharestate_up") == 0
        collector.reading, collector.is_up = reading, True
        with urlopen(address) as response:
            assert parsed(response.read().decode()).value("sharestate_lag_records", **PLACE) == -5
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# ---- what stands beside it


def names_in(text: str) -> set[str]:
    """Return the names of metrics that a text has."""
    return set(re.findall(r"\bsharestate_[a-z_]+\b", text))


@pytest.mark.parametrize("file", ["alerts.yml", "keda.yaml", "dashboard.json"])
def test_examples_name_metrics_that_there_are(scrape: Scrape, file: str) -> None:
    """Rules, dashboard and scaled object ask for nothing that the monitor does not serve."""
    names = names_in((EXAMPLES / file).read_text())

    assert names
    assert names <= {name for name, _ in scrape.values}


def test_the_page_names_metrics_that_there_are(scrape: Scrape) -> None:
    """And each alert of the rules, with a reason."""
    page = (ROOT / "docs" / "monitor.md").read_text()
    alerts = re.findall(r"- alert: (\w+)", (EXAMPLES / "alerts.yml").read_text())

    assert names_in(page) <= {name for name, _ in scrape.values}
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == alerts


def test_the_dashboard_can_be_imported() -> None:
    """It is JSON with a panel for each of the table, none over another, each with a query for the chosen groups."""
    dashboard = json.loads((EXAMPLES / "dashboard.json").read_text())

    panels = dashboard["panels"]
    assert [panel["title"] for panel in panels] == [panel.title for panel in PANELS]
    squares = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(squares) == len(set(squares))
    assert max(x for x, _ in squares) == 23
    assert {"source", "group", "topic"} == {variable["name"] for variable in dashboard["templating"]["list"]}


PROMTOOL: Final = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")


def promtool(*arguments: str | Path, given: str = "") -> str:
    """Return what promtool says of files, or of what it is *given*."""
    command = [str(PROMTOOL), *map(str, arguments)]
    return subprocess.run(
        command, check=False, input=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ).stdout


@needs_promtool
def test_prometheus_takes_the_rules() -> None:
    """Its own tool finds no fault with rules and configuration."""
    assert "11 rules found" in promtool("check", "rules", EXAMPLES / "alerts.yml")
    assert "FAILED" not in promtool("check", "config", EXAMPLES / "prometheus.yml")


@needs_promtool
def test_alerts_come_when_they_should() -> None:
    """Each in its planted situation, and none in a healthy one."""
    said = promtool("test", "rules", ROOT / "tests" / "data" / "monitor" / "alerts-test.yml")

    assert "SUCCESS" in said, said


@needs_promtool
def test_prometheus_takes_the_metrics(reading: Reading) -> None:
    """Its own linter has nothing to say of the exposition but of how client libraries write histograms of gauges."""
    said = promtool("check", "metrics", given=exposed(reading))

    assert [line for line in said.splitlines() if "delivery_count_g" not in line] == []


@needs_promtool
def test_prometheus_takes_the_queries_of_the_dashboard() -> None:
    """Each is an expression to it, once Grafana has put in the variables."""
    rules = ["groups:", "- name: panels", "  rules:"]
    for panel in PANELS:
        for query in panel.queries:
            expression = json.dumps(query.replace("$__rate_interval", "5m"))
            rules += [f"  - record: panel{len(rules)}", f"    expr: {expression}"]

    said = promtool("check", "rules", "/dev/stdin", given="\n".join(rules))
    assert "SUCCESS" in said, said
