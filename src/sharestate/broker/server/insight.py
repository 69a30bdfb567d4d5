"""What the share partitions of a node hold, as values, as text, and as a table for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Final, NamedTuple

from sharestate.broker.node import PartitionLog, ShareBroker
from sharestate.errors import NodeError
from sharestate.partition.views import BatchView, RecordRun

_HEADS: Final = ("Group", "Partition", "State", "SPSO", "SPEO", "Log end", "Lag", "In flight")


class HeldShare(NamedTuple):
    """
    A share partition, and what it holds.

    Attributes:
        group_id: The group.
        topic: The name of the topic.
        partition: The index of the partition.
        lifecycle: Its lifecycle state, such as ``"active"``.
        start_offset: The SPSO.
        end_offset: The SPEO.
        log_end_offset: The offset after the last record of the log.
        lag: How many records are still to be delivered or finished (KIP-1226). [records]
        in_flight: Its records in flight, from the SPSO on: ranges with state, delivery count, member and lock.
    """

    group_id: str
    topic: str
    partition: int
    lifecycle: str
    start_offset: int
    end_offset: int
    log_end_offset: int
    lag: int
    in_flight: tuple[RecordRun, ...]

    @property
    def lines(self) -> list[str]:
        """What it holds in plain words, line by line."""
        head = (
            f"{self.group_id}, {self.topic}-{self.partition}: {self.lifecycle}, SPSO {self.start_offset}, "
            f"SPEO {self.end_offset}, the log ends at {self.log_end_offset}, lag {self.lag}"
        )
        return [head, *(f"  {_run(run)}" for run in self.in_flight)]


def held_shares(node: ShareBroker, group_id: str | None = None) -> tuple[HeldShare, ...]:
    """Return the share partitions that *node* leads, in the order in which they were opened; of a group, or of all."""
    held = []
    for partition in node.share_partitions():
        group, topic_id, index = partition.key.group_id, partition.key.topic_id, partition.key.partition
        topic = node.topics.name_of(topic_id)
        log = None if topic is None else _log(node, topic, index)
        if topic is None or log is None or group_id not in {None, group}:
            continue
        runs = tuple(_above(partition.start_offset, partition.batches()))
        end = log.high_watermark
        held.append(
            HeldShare(
                group,
                topic,
                index,
                partition.lifecycle.name.lower(),
                partition.start_offset,
                partition.end_offset,
                end,
                partition.lag(end),
                runs,
            )
        )
    return tuple(held)


def _above(start_offset: int, batches: Iterable[BatchView]) -> Iterator[RecordRun]:
    """Yield what batches have from the SPSO on: one stays as long as a record of it is in flight."""
    for batch in batches:
        for run in batch.runs:
            if run.last_offset >= start_offset:
                yield run._replace(first_offset=max(run.first_offset, start_offset))


def _log(node: ShareBroker, topic: str, partition: int) -> PartitionLog | None:
    try:
        return node.log(topic, partition)
    except NodeError:  # deleted with its topic, and made again with fewer partitions
        return None


def shares_html(held: Iterable[HeldShare]) -> str:
    """Return a table of share partitions in HTML; names come from clients."""
    head = "".join(f"<th>{name}</th>" for name in _HEADS)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in _cells(each))}</tr>" for each in held)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cells(share: HeldShare) -> tuple[object, ...]:
    place = f"{share.topic}-{share.partition}"
    runs = "; ".join(map(_run, share.in_flight)) or "nothing"
    return share.group_id, place, share.lifecycle, *share[4:8], runs


def _run(run: RecordRun) -> str:
    first, last = run.first_offset, run.last_offset
    offsets = str(first) if first == last else f"{first}-{last}"
    held = f" by {run.member_id}" if run.member_id else ""
    return f"{offsets} {run.state.name}{held}, delivery count {run.delivery_count}"
