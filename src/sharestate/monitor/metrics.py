"""
The metrics as data: from this table come the exposition, the columns of ``--once`` and what the page says of them.

A row says what a metric means, and how a reading has it. Times are timestamps, as Prometheus wants them: how long ago
something was is the query's affair, ``time() - sharestate_start_offset_moved_timestamp_seconds``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from attrs import field, frozen

from sharestate import __version__
from sharestate.monitor.readings import GroupSetting, PartitionReading, Reading, StatePartitionReading

PREFIX: Final = "sharestate_"

Number = int | float
Sample = tuple[Sequence[str], Number]
"""The values of the labels that a metric has besides those of its subject, and its value."""


class MetricKind(Enum):
    """The types of Prometheus that metrics have."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "gaugehistogram"


class GroupReading(NamedTuple):
    """A group's settings, by its id."""

    group_id: str
    setting: GroupSetting


class TopicReading(NamedTuple):
    """What is known of a group's share partitions of one topic, together."""

    group_id: str
    topic: str
    delivery_counts: dict[int, int]


@frozen
class Subject:
    """
    What a metric is about.

    Attributes:
        labels: The labels that name one of them.
        of: Returns each of them in a reading, with the values of the labels.
    """

    labels: tuple[str, ...]
    of: Callable[[Reading], Iterator[tuple[Sequence[str], Any]]]


def _key_labels(each: PartitionReading) -> tuple[str, str, str]:
    return each.key.group_id, each.topic, str(each.key.partition)


def _topics(reading: Reading) -> Iterator[tuple[Sequence[str], TopicReading]]:
    topics: dict[tuple[str, str], TopicReading] = {}
    for each in reading.share_partitions:
        labels = each.key.group_id, each.topic
        topic = topics.setdefault(labels, TopicReading(*labels, {}))
        for count, number in each.delivery_counts.items():
            topic.delivery_counts[count] = topic.delivery_counts.get(count, 0) + number
    yield from topics.items()


SHARE_PARTITION: Final = Subject(
    ("group", "topic", "partition"), lambda reading: ((_key_labels(each), each) for each in reading.share_partitions)
)
TOPIC: Final = Subject(("group", "topic"), _topics)
GROUP: Final = Subject(
    ("group",), lambda reading: (((name,), GroupReading(name, each)) for name, each in reading.settings.items())
)
STATE_PARTITION: Final = Subject(
    ("state_partition",), lambda reading: (((str(each.number),), each) for each in reading.state_partitions)
)
MONITOR: Final = Subject((), lambda reading: iter((((), reading),)))

BUCKETS: Final = (1, 2, 3, 4, 5, 7, 10)
"""The delivery counts at which the histogram is cut; groups may have limits of up to 10, by default 5. [deliveries]"""


@frozen(kw_only=True)
class Metric:
    """
    A metric.

    Attributes:
        name: Its name without the prefix, and as Prometheus has it: a counter's ends with ``_total``.
        help: What it means.
        subject: What it is about.
        source: Where it comes from.
        samples: Returns its values for one subject; none where it is not known.
        kind: Its type.
        labels: The labels that it has besides those of its subject.
        column: The heading of its column in tables; None for none.
    """

    name: str
    help: str
    subject: Subject
    source: str
    samples: Callable[[Any], Iterable[Sample]]
    kind: MetricKind = field(default=MetricKind.GAUGE)
    labels: tuple[str, ...] = ()
    column: str | None = None

    @property
    def full_name(self) -> str:
        """The name as Prometheus has it."""
        return PREFIX + self.name

    @property
    def all_labels(self) -> tuple[str, ...]:
        """The names of all its labels."""
        return self.subject.labels + self.labels


def _value(read: Callable[[Any], Number | None]) -> Callable[[Any], Iterable[Sample]]:
    """Return the samples of a metric that has one value, or none."""

    def samples(subject: Any) -> Iterable[Sample]:  # noqa: ANN401 - whatever the metric is about
        value = read(subject)
        return () if value is None else (((), value),)

    return samples


def _flag(read: Callable[[Any], str | None]) -> Callable[[Any], Iterable[Sample]]:
    """Return the samples of a metric that is 1 with a word in its label, or not there."""

    def samples(subject: Any) -> Iterable[Sample]:  # noqa: ANN401 - whatever the metric is about
        word = read(subject)
        return () if word is None else (((word,), 1),)

    return samples


def _moved(each: PartitionReading) -> Iterable[Sample]:
    return () if each.moved_ms is None else ((("false" if each.is_moved_at_least else "true",), each.moved_ms / 1000),)


def _state_records(each: PartitionReading) -> Iterable[Sample]:
    yield ("snapshot",), each.happened.snapshot_count
    yield ("update",), each.happened.update_count


def _limit(read: Callable[[GroupSetting], int]) -> Callable[[GroupReading], Iterable[Sample]]:
    return lambda each: (((str(each.setting.is_assumed).lower(),), read(each.setting)),)


def _buckets(each: TopicReading) -> Iterable[Sample]:
    counts = each.delivery_counts
    for bound in BUCKETS:
        yield (str(bound),), sum(number for count, number in counts.items() if count <= bound)
    yield ("+Inf",), sum(counts.values())


def _blocked(each: StatePartitionReading) -> Iterable[Sample]:
    if each.blocked_by is not None:
        key, topic = each.blocked_by
        yield (key.group_id, topic, str(key.partition)), each.blocked_count


_TOPIC_SOURCE: Final = "state topic"
_LOGS: Final = "state topic, ListOffsets"
_CONFIGS: Final = "DescribeConfigs"

METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        name="lag_records",
        help="Records to be delivered or finished, as brokers count them: log end - SPSO - delivery complete count "
        "(KIP-1226). Not there while brokers say -1; see lag_unknown.",
        subject=SHARE_PARTITION,
        source=_LOGS,
        samples=_value(lambda each: each.lag),
        column="lag",
    ),
    Metric(
        name="lag_unknown",
        help="1 while brokers say that the lag is -1, with the reason.",
        subject=SHARE_PARTITION,
        source=_LOGS,
        samples=_flag(PartitionReading.lag_reason),
        labels=("reason",),
        column="why unknown",
    ),
    Metric(
        name="corrected_lag_records",
        help="Records to be delivered or finished: the lag, but without deleted records, with what is stored as done "
        "in the place of a count that is missing or proved wrong, and without an SPSO by share.auto.offset.reset.",
        subject=SHARE_PARTITION,
        source=f"{_LOGS}, {_CONFIGS}",
        samples=_value(lambda each: each.corrected_lag),
        column="corrected lag",
    ),
    Metric(
        name="complete_records_wrong",
        help="1 while the delivery complete count is proved wrong, with the reason, until a leader counts again.",
        subject=SHARE_PARTITION,
        source=_LOGS,
        samples=_flag(lambda each: each.happened.miscounted),
        labels=("reason",),
        column="wrong count",
    ),
    Metric(
        name="complete_records",
        help="Kafka's count of records at or above the SPSO that are done, as it is stored; -1 for none.",
        subject=SHARE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_value(lambda each: each.complete_count),
        column="complete",
    ),
    Metric(
        name="stored_done_records",
        help="Records at or above the SPSO that are stored as acknowledged or archived. Leaders archive those of "
        "aborted transactions, and compacted ones, in memory only: the delivery complete count may be higher.",
        subject=SHARE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_value(lambda each: each.done_count),
        column="done",
    ),
    Metric(
        name="start_offset",
        help="The SPSO; -1 while there is none.",
        subject=SHARE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_value(lambda each: each.start_offset),
        column="SPSO",
    ),
    Metric(
        name="start_offset_moved_timestamp_seconds",
        help="When the SPSO got where it is, by the timestamp of the record. With exact=false that is the oldest "
        "that is left: it may have been there before, so it stands at least that long.",
        subject=SHARE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_moved,
        labels=("exact",),
        column="SPSO since",
    ),
    Metric(
        name="log_start_offset",
        help="The first offset that the log has.",
        subject=SHARE_PARTITION,
        source="ListOffsets",
        samples=_value(lambda each: None if each.log is None else each.log.start),
    ),
    Metric(
        name="log_end_offset",
        help="The offset of the next record of the log.",
        subject=SHARE_PARTITION,
        source="ListOffsets",
        samples=_value(lambda each: None if each.log is None else each.log.stop),
        column="log end",
    ),
    Metric(
        name="oldest_unfinished_offset",
        help="The first offset from the SPSO on that is not stored as done. Not there if all is done.",
        subject=SHARE_PARTITION,
        source=_LOGS,
        samples=_value(lambda each: each.unfinished_offset),
        column="oldest",
    ),
    Metric(
        name="oldest_unfinished_deliveries",
        help="How often that record was delivered, as far as it is stored; 0 if nothing is stored of it.",
        subject=SHARE_PARTITION,
        source=_LOGS,
        samples=_value(lambda each: None if each.unfinished_offset is None else each.unfinished_delivery_count),
        column="its deliveries",
    ),
    Metric(
        name="in_flight_records",
        help="Offsets from the SPSO to the last one that is stored. What was acquired behind it, and nothing else, is "
        "in the leader's memory only: in flight are at least so many.",
        subject=SHARE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_value(lambda each: each.in_flight_count),
        column="in flight",
    ),
    Metric(
        name="near_limit_records",
        help="Records that were delivered, are not done, and have one delivery left, or none.",
        subject=SHARE_PARTITION,
        source=f"{_TOPIC_SOURCE}, {_CONFIGS}",
        samples=_value(lambda each: each.near_limit_count),
        column="near limit",
    ),
    Metric(
        name="acknowledged_records_total",
        help="Records that were stored as acknowledged, in what was read of the state topic.",
        subject=SHARE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_value(lambda each: each.happened.acknowledged),
        kind=MetricKind.COUNTER,
        column="acknowledged",
    ),
    Metric(
        name="archived_records_total",
        help="Records that were stored as archived: rejected, at the delivery limit, or no data, such as markers of "
        "transactions.",
        subject=SHARE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_value(lambda each: each.happened.archived),
        kind=MetricKind.COUNTER,
        column="archived",
    ),
    Metric(
        name="passed_records_total",
        help="Offsets that the SPSO has passed though they were never stored as done: deleted, compacted or aborted.",
        subject=SHARE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_value(lambda each: each.happened.passed),
        kind=MetricKind.COUNTER,
        column="passed",
    ),
    Metric(
        name="state_epoch",
        help="The epoch of the state, which rises when its offsets are reset or the group is made again.",
        subject=SHARE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_value(lambda each: each.state_epoch),
        column="state epoch",
    ),
    Metric(
        name="leader_epoch",
        help="The epoch of the last leader that has read the state.",
        subject=SHARE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_value(lambda each: each.leader_epoch),
        column="leader epoch",
    ),
    Metric(
        name="fencings_total",
        help="How often a leader of a higher epoch has read the state, which fences the one before.",
        subject=SHARE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_value(lambda each: each.happened.leader_changes),
        kind=MetricKind.COUNTER,
        column="fencings",
    ),
    Metric(
        name="initializations_total",
        help="How often the group coordinator has initialized the state: for the first time, or after a reset.",
        subject=SHARE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_value(lambda each: each.happened.initializations),
        kind=MetricKind.COUNTER,
    ),
    Metric(
        name="state_records_total",
        help="Records of the state topic about the share partition.",
        subject=SHARE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_state_records,
        kind=MetricKind.COUNTER,
        labels=("type",),
    ),
    Metric(
        name="needed_state_offset",
        help="The offset of its last snapshot: what comes after it in the state topic cannot be deleted.",
        subject=SHARE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_value(lambda each: each.needed_offset),
    ),
    Metric(
        name="delivery_count",
        help="Records that are stored and not done, by how often they were delivered.",
        subject=TOPIC,
        source=_TOPIC_SOURCE,
        samples=_buckets,
        kind=MetricKind.HISTOGRAM,
    ),
    Metric(
        name="max_record_locks",
        help="share.partition.max.record.locks; assumed=true if the cluster does not say it.",
        subject=GROUP,
        source=_CONFIGS,
        samples=_limit(lambda setting: setting.max_record_locks),
        labels=("assumed",),
    ),
    Metric(
        name="delivery_count_limit",
        help="share.delivery.count.limit; assumed=true if the cluster does not say it.",
        subject=GROUP,
        source=_CONFIGS,
        samples=_limit(lambda setting: setting.delivery_count_limit),
        labels=("assumed",),
    ),
    Metric(
        name="state_topic_begin_offset",
        help="The first offset that a partition of the state topic has.",
        subject=STATE_PARTITION,
        source="ListOffsets",
        samples=_value(lambda each: each.offsets.start),
    ),
    Metric(
        name="state_topic_end_offset",
        help="The offset of its next record.",
        subject=STATE_PARTITION,
        source="ListOffsets",
        samples=_value(lambda each: each.offsets.stop),
    ),
    Metric(
        name="state_topic_bytes",
        help="About how large it is: its records, times the mean size of the keys and values that were read.",
        subject=STATE_PARTITION,
        source=_LOGS,
        samples=_value(lambda each: len(each.offsets) * each.bytes_per_record),
    ),
    Metric(
        name="state_topic_redundant_records",
        help="Its records that brokers may delete, because later snapshots have replaced them.",
        subject=STATE_PARTITION,
        source=_LOGS,
        samples=_value(lambda each: each.redundant_count),
    ),
    Metric(
        name="pruning_blocked_records",
        help="Its records that could be deleted if one share partition, the one of the labels, had a new snapshot.",
        subject=STATE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_blocked,
        labels=("group", "topic", "partition"),
    ),
    Metric(
        name="missed_state_records_total",
        help="Its records that brokers had deleted before the monitor has read them: counters lack what they said.",
        subject=STATE_PARTITION,
        source=_LOGS,
        samples=_value(lambda each: each.missed_count),
        kind=MetricKind.COUNTER,
    ),
    Metric(
        name="unreadable_state_records_total",
        help="Its records that the monitor could not read, and has skipped.",
        subject=STATE_PARTITION,
        source=_TOPIC_SOURCE,
        samples=_value(lambda each: each.unreadable_count),
        kind=MetricKind.COUNTER,
    ),
    Metric(
        name="restarts_total",
        help="How often a log of the state topic was another one than before, so that all known of it began again.",
        subject=MONITOR,
        source="ListOffsets, Metadata",
        samples=_value(lambda reading: reading.restarts),
        kind=MetricKind.COUNTER,
    ),
    Metric(
        name="read_timestamp_seconds",
        help="When the log ends of all this were asked for. The state is that of just before.",
        subject=MONITOR,
        source="monitor",
        samples=_value(lambda reading: reading.at_ms / 1000),
    ),
    Metric(
        name="build_info",
        help="1, with the version of sharestate.",
        subject=MONITOR,
        source="monitor",
        samples=_flag(lambda _: __version__),
        labels=("version",),
    ),
)
"""Every metric, those first that operators ask for first."""

BY_NAME: Final = MappingProxyType({metric.full_name: metric for metric in METRICS})


def document(each: PartitionReading) -> dict[str, Any]:
    """
    Return what is known of a share partition as a JSON object, in the names of the metrics.

    A metric with a label of its own is an object of its values; one that is not known is null.
    """
    fields: dict[str, Any] = {**dict(zip(SHARE_PARTITION.labels, _key_labels(each), strict=True))}
    fields["partition"] = each.key.partition
    fields["topic_id"] = each.key.topic_id
    for metric in METRICS:
        if metric.subject is SHARE_PARTITION:
            samples = dict(metric.samples(each))
            fields[metric.name] = (
                {values[0]: number for values, number in samples.items()} if metric.labels else samples.get(())
            )
    fields["delivery_count"] = {str(count): number for count, number in sorted(each.delivery_counts.items())}
    return fields
