"""The page of the monitor's metrics, and the dashboard for Grafana, both made from the table of metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generate.markdown import NOTICE, table
from sharestate.monitor.following import COUNT_REASONS
from sharestate.monitor.metrics import (
    BY_NAME,
    GROUP,
    METRICS,
    MONITOR,
    PREFIX,
    SHARE_PARTITION,
    STATE_PARTITION,
    TOPIC,
    Metric,
    MetricKind,
    Subject,
)
from sharestate.monitor.readings import LAG_REASONS

INTRODUCTION: Final = """\
What [`sharestate monitor`](monitor.md) serves. A share partition has the labels `group`, `topic` and `partition`; the
topic is `id:` and its id where the cluster has, or shows, no such topic. With `--once --json` the names are those
below, without `sharestate_`."""

SUBJECTS: Final[tuple[tuple[str, Subject], ...]] = (
    ("A share partition", SHARE_PARTITION),
    ("A group's share partitions of a topic", TOPIC),
    ("A group", GROUP),
    ("A partition of the state topic", STATE_PARTITION),
    ("The monitor", MONITOR),
)

UP: Final = """\
Besides these, `sharestate_up` is 1 if the last round of reading has come to an end, and
`sharestate_failed_rounds_total` counts those that have not."""


def page() -> str:
    """Return the page."""
    parts = [NOTICE, "# Metrics of the monitor", INTRODUCTION]
    for title, subject in SUBJECTS:
        rows = [_row(metric) for metric in METRICS if metric.subject is subject]
        parts += [f"## {title}", table(["metric", "type", "other labels", "meaning", "from"], rows)]
    parts += [UP]
    for title, reasons in (("Why the lag is -1", LAG_REASONS), ("Why a count is wrong", COUNT_REASONS)):
        parts += [
            f"## {title}",
            table(["reason", ""], [[f"`{name}`", _linked(text)] for name, text in reasons.items()]),
        ]
    return "\n\n".join(parts) + "\n"


def _row(metric: Metric) -> list[str]:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    kind = "histogram" if metric.kind is MetricKind.HISTOGRAM else metric.kind.value
    return [f"`{metric.full_name}`", kind, labels, metric.help, metric.source]


def _linked(text: str) -> str:
    """Return a text in which bugs of Kafka are links."""
    return re.sub(r"\b([BF]\d+)\b", lambda found: f"[{found[1]}](kafka-bugs.md#bug-{found[1].lower()})", text)


# ---- the dashboard


class Panel(NamedTuple):
    """
    A panel of the dashboard.

    Attributes:
        title: Its title.
        queries: Its queries, each with what its lines are called.
        metric: The metric whose meaning is said of it.
        unit: The unit, by Grafana's name.
        type: The type, by Grafana's name.
        width: Its width, of 24.
    """

    title: str
    queries: Mapping[str, str]
    metric: str
    unit: str = "short"
    type: str = "timeseries"
    width: int = 12


_WHERE: Final = '{group=~"$group",topic=~"$topic"}'
_PLACE: Final = "{{group}} {{topic}}-{{partition}}"
_SINCE: Final = f"time() - max without (exact) (sharestate_start_offset_moved_timestamp_seconds{_WHERE})"


def _lines(expression: str, legend: str = _PLACE) -> Mapping[str, str]:
    return MappingProxyType({expression: legend})


def _rate(done: str) -> str:
    return f"sum by (group, topic) (rate(sharestate_{done}_records_total{_WHERE}[$__rate_interval]))"


PANELS: Final = (
    Panel("Is read", _lines("sharestate_up", "up"), "read_timestamp_seconds", type="stat", width=4),
    Panel(
        "Read since",
        _lines("time() - sharestate_read_timestamp_seconds", "age"),
        "read_timestamp_seconds",
        unit="s",
        type="stat",
        width=4,
    ),
    Panel(
        "Records to do",
        _lines(f"sum(sharestate_corrected_lag_records{_WHERE})", "records"),
        "corrected_lag_records",
        type="stat",
        width=4,
    ),
    Panel(
        "Near the delivery limit",
        _lines(f"sum(sharestate_near_limit_records{_WHERE})", "records"),
        "near_limit_records",
        type="stat",
        width=4,
    ),
    Panel(
        "Lags that are -1",
        _lines(f"count by (reason) (sharestate_lag_unknown{_WHERE})", "{{reason}}"),
        "lag_unknown",
        type="stat",
        width=4,
    ),
    Panel(
        "Counts that are wrong",
        _lines(f"count by (reason) (sharestate_complete_records_wrong{_WHERE})", "{{reason}}"),
        "complete_records_wrong",
        type="stat",
        width=4,
    ),
    Panel("Lag, corrected", _lines(f"sharestate_corrected_lag_records{_WHERE}"), "corrected_lag_records"),
    Panel("Lag, as brokers count it", _lines(f"sharestate_lag_records{_WHERE}"), "lag_records"),
    Panel("How long the SPSO stands", _lines(_SINCE), "start_offset_moved_timestamp_seconds", unit="s"),
    Panel(
        "Deliveries of the oldest record",
        _lines(f"sharestate_oldest_unfinished_deliveries{_WHERE}"),
        "oldest_unfinished_deliveries",
    ),
    Panel(
        "Records finished per second",
        {_rate("acknowledged"): "{{group}} {{topic}} acknowledged", _rate("archived"): "{{group}} {{topic}} archived"},
        "acknowledged_records_total",
    ),
    Panel(
        "Records passed and not finished",
        _lines(f"increase(sharestate_passed_records_total{_WHERE}[$__rate_interval])"),
        "passed_records_total",
    ),
    Panel(
        "In flight, of what may be",
        _lines(
            f"sharestate_in_flight_records{_WHERE} / on (group) group_left () "
            "max without (assumed) (sharestate_max_record_locks)"
        ),
        "in_flight_records",
        unit="percentunit",
    ),
    Panel("Records near the limit", _lines(f"sharestate_near_limit_records{_WHERE}"), "near_limit_records"),
    Panel(
        "Delivery counts",
        _lines(f"sum by (le) (sharestate_delivery_count_bucket{_WHERE})", "{{le}}"),
        "delivery_count",
        type="bargauge",
    ),
    Panel("Fencings", _lines(f"increase(sharestate_fencings_total{_WHERE}[1h])"), "fencings_total"),
    Panel(
        "Size of the state topic",
        _lines("sum(sharestate_state_topic_bytes)", "bytes"),
        "state_topic_bytes",
        unit="bytes",
    ),
    Panel(
        "What keeps it from being pruned",
        _lines("sharestate_pruning_blocked_records", "{{state_partition}}: {{group}} {{topic}}-{{partition}}"),
        "pruning_blocked_records",
    ),
)
"""Every panel, from left to right and then down."""

_HEIGHTS: Final = MappingProxyType({"stat": 4})
_HEIGHT: Final = 8
_WIDTH: Final = 24

_SOURCE: Final = MappingProxyType({"type": "prometheus", "uid": "${source}"})


def dashboard() -> str:
    """Return the dashboard as JSON, for Grafana to import."""
    document = {
        "title": "Share groups",
        "uid": "sharestate",
        "tags": ["kafka", "sharestate"],
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": list(_variables())},
        "panels": list(_panels()),
    }
    return json.dumps(document, indent=2) + "\n"


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    for label, query in (
        ("group", "label_values(sharestate_start_offset, group)"),
        ("topic", 'label_values(sharestate_start_offset{group=~"$group"}, topic)'),
    ):
        yield {
            "name": label,
            "label": label.capitalize(),
            "type": "query",
            "datasource": dict(_SOURCE),
            "query": query,
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "sort": 1,
            "current": {"text": "All", "value": "$__all"},
        }


def _panels() -> Iterator[dict[str, Any]]:
    x = y = 0
    for number, panel in enumerate(PANELS, 1):
        height = _HEIGHTS.get(panel.type, _HEIGHT)
        yield {
            "id": number,
            "title": panel.title,
            "type": panel.type,
            "datasource": dict(_SOURCE),
            "description": BY_NAME[PREFIX + panel.metric].help,
            "gridPos": {"x": x, "y": y, "w": panel.width, "h": height},
            "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
            "targets": [
                {
                    "refId": chr(ord("A") + index),
                    "expr": expression,
                    "legendFormat": legend,
                    "datasource": dict(_SOURCE),
                }
                for index, (expression, legend) in enumerate(panel.queries.items())
            ],
        }
        x += panel.width
        if x >= _WIDTH:
            x, y = 0, y + height
