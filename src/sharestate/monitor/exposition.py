"""The metrics as Prometheus scrapes them (extra ``monitor``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Thread
from typing import Final, TypeAlias
from wsgiref.simple_server import WSGIServer

try:
    from prometheus_client import CollectorRegistry, start_http_server
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeHistogramMetricFamily,
        GaugeMetricFamily,
    )
    from prometheus_client.registry import Collector
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "prometheus_client":
        raise
    message = "sharestate.monitor.exposition needs the extra 'monitor': pip install 'sharestate[monitor]'"
    raise ModuleNotFoundError(message, name=error.name) from error
from sharestate.monitor.metrics import METRICS, Metric, MetricKind
from sharestate.monitor.readings import Reading

__all__ = ["ReadingCollector", "serve"]

Family: TypeAlias = GaugeMetricFamily | CounterMetricFamily | GaugeHistogramMetricFamily

_UP: Final = "sharestate_up"
_FAILURES: Final = "sharestate_failed_rounds"


class ReadingCollector(Collector):
    """
    What Prometheus collects: the last reading, whole, no matter how often it is scraped.

    A scrape asks nothing of the cluster. Readings are values, so one may be replaced while it is collected.

    Attributes:
        reading: The last reading; None before the first one.
        is_up: Whether the last round has come to an end.
        failed_count: How many rounds have not. [rounds]
    """

    def __init__(self) -> None:
        """Start without a reading."""
        self.reading: Reading | None = None
        self.is_up = False
        self.failed_count = 0

    def collect(self) -> Iterator[Family]:
        """
        Yield every metric that has a value.

        Complexity:
            O(n) in the samples; one metric of them is in memory at a time.
        """
        yield GaugeMetricFamily(_UP, "1 if the last round of reading has come to an end.", float(self.is_up))
        yield CounterMetricFamily(_FAILURES, "How many rounds of reading have failed.", self.failed_count)
        if self.reading is not None:
            reading = self.reading
            for metric in METRICS:
                yield _family(metric, reading)

    def describe(self) -> Iterator[Family]:
        """Yield nothing: what is collected has its names from one table, and none comes twice."""
        return iter(())


def _family(metric: Metric, reading: Reading) -> Family:
    labels = metric.all_labels
    if metric.kind is MetricKind.HISTOGRAM:
        histogram = GaugeHistogramMetricFamily(metric.full_name, metric.help, labels=labels)
        for values, subject in metric.subject.of(reading):
            buckets = [(names[0], float(number)) for names, number in metric.samples(subject)]
            total = sum(count * number for count, number in subject.delivery_counts.items())
            histogram.add_metric(values, buckets, total)
        return histogram
    of_kind: Callable[..., GaugeMetricFamily | CounterMetricFamily]
    of_kind = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
    family = of_kind(metric.full_name, metric.help, labels=labels)
    for values, subject in metric.subject.of(reading):
        for more, number in metric.samples(subject):
            family.add_metric((*values, *more), number)
    return family


def serve(collector: ReadingCollector, host: str, port: int) -> tuple[WSGIServer, Thread]:
    """
    Serve ``/metrics`` in a thread, and return the server and its thread; ``server.shutdown()`` ends it.

    Args:
        collector: What is collected.
        host: The address that is listened at.
        port: The port; 0 for one that is free.

    Raises:
        OSError: Nothing can listen there.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return start_http_server(port, host, registry)
