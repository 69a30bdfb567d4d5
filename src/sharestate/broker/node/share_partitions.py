"""
The share partitions that a node leads: opened by the first fetch, dropped when another leader, or nobody, has them.

Its lifecycle decides: what a command or an answer makes FENCED or FAILED is dropped at once.

Source:
    SharePartitionManager, SharePartitionCache (Kafka 4.4).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar

from attrs import define, field
from sortedcontainers import SortedDict

from sharestate.broker.node.fetch_queue import LogKey, WatchKey
from sharestate.broker.node.node_config import GroupConfigs, NodeConfig
from sharestate.broker.node.partition_log import PartitionLog
from sharestate.broker.node.profiles import NODE_PROFILES, NodeQuirk
from sharestate.dead_letters.protocol import DeadLetterQueue
from sharestate.errors import ErrorCode, OffsetNotAvailableError, UnknownTopicOrPartitionError
from sharestate.leader.answers import MESSAGES
from sharestate.leader.leader import Leader
from sharestate.leader.observed import Observer
from sharestate.partition.lifecycle import Lifecycle
from sharestate.partition.share_partition import SharePartition
from sharestate.persister.protocol import Persister
from sharestate.values.offset_reset import AutoOffsetReset, OffsetReset
from sharestate.values.records import SharePartitionKey

K = TypeVar("K")

_GONE: Final = (Lifecycle.FENCED, Lifecycle.FAILED)
"""What leads to nothing but another share partition."""


@define(eq=False)
class LedPartition:
    """
    A share partition that the node leads.

    Attributes:
        key: The share partition.
        number: Its number in the order in which share partitions were opened.
        log_key: The partition of the topic.
        leader: Its leader.
        initialization: Done when its state is loaded, or could not be.
        known_offset: The fetch offset of which a fetch has found out already where it is in the log; None for none.
        deadline_ms: When its next lock expires; None if none does. [ms]
        has_arrived: Whether an answer of the persister has arrived that nobody has taken.
    """

    key: SharePartitionKey
    number: int
    log_key: LogKey = field(init=False)
    leader: Leader = field(init=False)
    initialization: Future[None] = field(factory=Future)
    known_offset: int | None = None
    deadline_ms: int | None = None
    has_arrived: bool = False

    def __attrs_post_init__(self) -> None:
        """Note whose log it has."""
        self.log_key = LogKey(self.key.topic_id, self.key.partition)

    def __getstate__(self) -> tuple[Any, ...]:
        """Return what a copy has of it: all but its initialization, which has ended."""
        return self.key, self.number, self.leader, self.known_offset, self.deadline_ms

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Take over the state of another one."""
        self.key, self.number, self.leader, self.known_offset, self.deadline_ms = state
        self.log_key = LogKey(self.key.topic_id, self.key.partition)
        self.initialization, self.has_arrived = Future(), False
        self.initialization.set_result(None)

    @property
    def is_active(self) -> bool:
        """True if fetches may take its fetch lock (rule 3)."""
        return self.leader.partition.lifecycle is Lifecycle.ACTIVE


class SharePartitions:
    """
    The share partitions of a node, and what wakes the fetches that wait for them.

    Args:
        config: The node's settings.
        groups: The settings of groups.
        persister: Stores their state.
        log_of: Returns the log of a partition; None if there is no such partition.
        dead_letter_queue: Takes their dead letters; None for none.
        observer: Gets what happens to them, as from a ``Leader``.
        notify: Called, in whatever thread, when an answer of the persister has arrived.

    Not thread-safe.

    Attributes:
        log_of: Returns the log of a partition; None if there is no such partition.
        observer: As it was given.
        notify: As it was given.
        woken: What fetches have to look at again, in order; ``ShareService`` takes it out.
        leader_epochs: The epoch of each partition's leader that is not 0.
    """

    def __init__(  # noqa: PLR0913 - what leaders are made of
        self,
        config: NodeConfig,
        groups: GroupConfigs,
        persister: Persister,
        log_of: Callable[[LogKey], PartitionLog | None],
        *,
        dead_letter_queue: DeadLetterQueue | None = None,
        observer: Observer | None = None,
        notify: Callable[[], None] | None = None,
    ) -> None:
        """Begin with none."""
        self._config = config
        self._persister = persister
        self.log_of = log_of
        self._dead_letter_queue = dead_letter_queue
        self.observer = observer
        self.notify = notify
        self._groups = groups
        self._led: dict[tuple[str, str, int], LedPartition] = {}  # a key takes longer to make than to find
        self._of_group: dict[str, dict[LedPartition, None]] = {}
        self._of_log: dict[LogKey, dict[LedPartition, None]] = {}
        self._deadlines: SortedDict[tuple[int, int], LedPartition] = SortedDict()
        self._arrived: deque[LedPartition] = deque()
        self._opened = 0
        self._now_ms = 0
        self.woken: dict[WatchKey, None] = {}
        self.leader_epochs: dict[LogKey, int] = {}

    def __iter__(self) -> Iterator[LedPartition]:
        """Iterate over those that are led, in the order in which they were opened."""
        return iter(tuple(self._led.values()))

    def find(self, group_id: str, topic_id: str, partition: int) -> LedPartition | None:
        """Return the share partition of a group; None if the node does not lead it."""
        return self._led.get((group_id, topic_id, partition))

    # ---- life

    def open(self, key: SharePartitionKey, now_ms: int) -> LedPartition:
        """
        Return the share partition *key*; if it is not led, lead it, and load its state (node 3).

        Of one whose state could not be loaded, or not yet, ``initialization`` says so.

        Source:
            SharePartitionManager.getOrCreateSharePartition, SharePartition.maybeInitialize (Kafka 4.4).
        """
        led = self._led.get(_fields(key))
        if led is not None:
            return led
        partition = SharePartition(
            key,
            leader_epoch=self.leader_epochs.get(LogKey(key.topic_id, key.partition), 0),
            profile=self._config.profile,
            config=self._groups.share_config_of(key.group_id),
        )
        led = self._bound(partition)
        self._now_ms = now_ms
        led.initialization = led.leader.start(now_ms=now_ms)
        self.take_effects(led, now_ms)
        return led

    def drop(self, led: LedPartition, now_ms: int) -> None:
        """
        Lead a share partition no longer; its locks and writes go on as long as there are any (rule 16).

        Source:
            SharePartitionManager.removeSharePartitionFromCache (Kafka 4.4).
        """
        led.leader.fence(now_ms=now_ms)
        self.take_effects(led, now_ms)

    def drop_group(self, group_id: str, now_ms: int) -> None:
        """Drop those of a group, such as one that nobody is left of."""
        self._drop_all(self._of_group.get(group_id, ()), now_ms)

    def drop_log(self, key: LogKey, now_ms: int) -> None:
        """Drop those of a partition, such as one that was deleted."""
        self._drop_all(self._of_log.get(key, ()), now_ms)

    def drop_deleted(self, now_ms: int) -> None:
        """Drop those of partitions that there are no more; takes time linear in all of them."""
        for key in tuple(self._of_log):
            if self.log_of(key) is None:
                self.drop_log(key, now_ms)

    def fail_over(self, key: LogKey, now_ms: int) -> None:
        """Drop those of a partition, whose leader has another epoch from now on."""
        self.leader_epochs[key] = self.leader_epochs.get(key, 0) + 1
        self.drop_log(key, now_ms)

    def restart(self) -> None:
        """
        Forget all share partitions, as a node does that starts again; its partitions have leaders of other epochs.

        What has a leader, and which settings groups have, is known to the cluster.
        """
        for led in dict.fromkeys((*self._led.values(), *self._deadlines.values())):
            led.leader.close()
        for index in (self._led, self._of_group, self._of_log, self._deadlines, self.woken):
            index.clear()
        self._arrived.clear()

    def configure(self, group_id: str, now_ms: int) -> None:
        """Let those of a group follow its settings, as far as the profile lets them change (rule 1)."""
        share = self._groups.share_config_of(group_id)
        for led in tuple(self._of_group.get(group_id, ())):
            led.leader.configure(share, now_ms=now_ms)
            self.take_effects(led, now_ms)

    # ---- time, and answers

    def take_effects(self, led: LedPartition, now_ms: int) -> None:
        """
        Take what has come of the last command: answers, fetches to wake, and when the next lock expires.

        To be called after each command to a leader.
        """
        self._now_ms = now_ms
        led.has_arrived = False  # first: what arrives from now on may be missed, and is taken later
        result = led.leader.poll(now_ms=now_ms)
        if result.wake:
            self.woken[led.key] = None
        if led.leader.partition.lifecycle in _GONE and self._led.get(_fields(led.key)) is led:
            self._forget(led)
        if result.next_deadline_ms != led.deadline_ms:
            self._schedule(led, result.next_deadline_ms)

    @property
    def is_idle(self) -> bool:
        """True if nothing is on its way to the persister or the dead-letter queue."""
        return not any(led.leader.unanswered for led in (*self._led.values(), *self._deadlines.values()))

    def next_deadline_ms(self) -> int | None:
        """Return when the next lock expires; None if none does. [ms]"""
        return self._deadlines.peekitem(0)[0][0] if self._deadlines else None

    def expire_next(self, now_ms: int) -> bool:
        """Expire the locks of the share partition whose locks expire first; False if none has expired by *now_ms*."""
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is None or deadline_ms > now_ms:
            return False
        self.take_effects(self._deadlines.peekitem(0)[1], now_ms)
        return True

    def take_arrived(self, now_ms: int) -> None:
        """Take the answers of the persister that have arrived."""
        while self._arrived:
            led = self._arrived.popleft()
            if led.has_arrived and not led.leader.is_closed:
                self.take_effects(led, now_ms)

    # ---- inside

    def _bound(self, partition: SharePartition) -> LedPartition:
        key = partition.key
        led = LedPartition(key, self._opened)
        led.leader = Leader(
            partition,
            self._persister,
            reset_offset=partial(self._reset_offset, key),
            dead_letter_queue=self._dead_letter_queue,
            notify=partial(self._note_arrival, led),
            observer=self.observer,
            wakes_when_stored=not self._has_quirk(NodeQuirk.SLEEPS_WHEN_STORED),
            advances_past_split=not self._has_quirk(NodeQuirk.STAYS_PAST_SPLIT),
        )
        self._opened += 1
        self._led[_fields(key)] = led
        self._of_group.setdefault(key.group_id, {})[led] = None
        self._of_log.setdefault(led.log_key, {})[led] = None
        return led

    def _has_quirk(self, quirk: NodeQuirk) -> bool:
        return NODE_PROFILES[self._config.profile.name].has(quirk)

    def _note_arrival(self, led: LedPartition) -> None:
        """Note that an answer has arrived, in whatever thread."""
        led.has_arrived = True
        self._arrived.append(led)
        if self.notify is not None:
            self.notify()

    def _reset_offset(self, key: SharePartitionKey, reset: AutoOffsetReset) -> int:
        """Return where to begin if nothing is persisted (rule 4.2)."""
        log = self.log_of(LogKey(key.topic_id, key.partition))
        if log is None:
            message = MESSAGES[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
            raise UnknownTopicOrPartitionError(message)
        if reset.strategy is OffsetReset.LATEST:
            return log.high_watermark
        if reset.duration is None:
            return log.log_start_offset
        wanted = max(0, self._now_ms - reset.duration // timedelta(milliseconds=1))
        found = log.find_timestamp(wanted)
        if found is None:
            message = f"Offset for timestamp {wanted} not found for topic partition: {key.topic_id}-{key.partition}"
            raise OffsetNotAvailableError(message)
        return found.offset

    def _drop_all(self, all_led: Iterable[LedPartition], now_ms: int) -> None:
        for led in tuple(all_led):
            self.drop(led, now_ms)

    def _forget(self, led: LedPartition) -> None:
        """Take a share partition out; fetches that wait for it look, and find nothing (rule 16)."""
        del self._led[_fields(led.key)]
        _discard(self._of_group, led.key.group_id, led)
        _discard(self._of_log, led.log_key, led)
        self.woken[led.key] = None

    def _schedule(self, led: LedPartition, deadline_ms: int | None) -> None:
        if led.deadline_ms is not None:
            del self._deadlines[led.deadline_ms, led.number]
        led.deadline_ms = deadline_ms
        if deadline_ms is not None:
            self._deadlines[deadline_ms, led.number] = led


def _fields(key: SharePartitionKey) -> tuple[str, str, int]:
    return key.group_id, key.topic_id, key.partition


def _discard(index: dict[K, dict[LedPartition, None]], name: K, led: LedPartition) -> None:
    """Take *led* out of what *index* has under *name*."""
    del index[name][led]
    if not index[name]:
        del index[name]
