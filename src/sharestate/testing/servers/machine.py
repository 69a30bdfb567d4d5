"""
`ShareGroupMachine` in front of a real server: all that it takes is the address, and what your server calls trouble.

Each run has a topic and groups of its own, and raw members, each of one partition; confluent-kafka produces and
administers. Time is real: it passes while something is asked, and while the machine sleeps.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from struct import Struct
from time import monotonic, sleep
from typing import Any, ClassVar, Final

try:
    from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
    from confluent_kafka.admin import (
        AdminClient,
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        NewTopic,
        OffsetSpec,
        ResourceType,
    )
    from hypothesis import settings as hypothesis_settings

    from sharestate.segments.batches import BEFORE_LENGTH, HEADER, decode_batch
    from sharestate.segments.compression import Excess
except ModuleNotFoundError as error:
    extra = {"confluent_kafka": "consumer", "hypothesis": "testing", "aiokafka": "segments", "cramjam": "segments"}
    library = (error.name or "").partition(".")[0]
    if library not in extra:
        raise
    message = (
        f"sharestate.testing.servers.machine needs the extra '{extra[library]}': "
        "pip install 'sharestate[consumer,kafka,segments,testing]'"
    )
    raise ModuleNotFoundError(message, name=error.name) from error

from sharestate.audit.guarantees import Guarantee, GuaranteeBrokenError
from sharestate.error_codes import ErrorCode
from sharestate.persister.kafka.security import Security
from sharestate.testing.groups.machine import ShareGroupMachine
from sharestate.testing.groups.settings import GroupSettings
from sharestate.testing.programs import HEADING, events_of
from sharestate.testing.servers.connections import RawConnection
from sharestate.testing.servers.raw_members import CONNECTION_LOST, NOT_SENT, RawMember
from sharestate.testing.servers.share_sessions import (
    BATCH_OPTIMIZED,
    RECORD_LIMIT,
    SESSION_ERRORS,
    Fetched,
    FetchLimits,
    Partition,
)
from sharestate.values.acknowledgements import AcknowledgementBatch, AcknowledgeType
from sharestate.values.records import AcquireMode

PATIENCE_S: Final = 30.0
"""How long a server may take to do what it is asked, or to recover. [s]"""

ASK_AGAIN_S: Final = 0.05
"""How soon a server is asked again. [s]"""

BEAT_S: Final = 2.0
"""How often members say that they live; a server expects it every five seconds by default. [s]"""

SOON_S: Final = 5.0
"""How long fetches may bring nothing although there is something, in all of a run. [s]"""

RUNS: Final = 4
"""Runs of a search unless its settings say otherwise."""

EVENTS: Final = 30
"""Events of a run unless the settings of a search say otherwise."""

_LENGTH: Final = Struct(">8xi")
"""Behind its base offset a batch says how long it is, from there on. [bytes]"""

_NOT_ASKED: Final = frozenset({NOT_SENT, "not_leader_or_follower"})
"""What comes of an acknowledgement for which there is no session, or which another broker than the leader got."""

_OPENS: Final = FetchLimits(max_records=0, max_wait_ms=0, min_bytes=0)
"""A fetch that acquires nothing, and opens a session."""


class RealServerMachine(ShareGroupMachine):
    """
    A share group of a real server.

    Set ``bootstrap_servers``, and the settings that the server lets a group have; the defaults are those that Kafka's
    defaults allow. Override ``fail_over``, ``fail_writes`` and ``mend_writes`` if you can bring that about: what they
    do happens as soon as they are called, and ``fail_over`` ends with `find_leader`.

    A run is given up, and counted in ``reached``, if it cannot be judged: an answer took longer than
    ``clock_tolerance_ms``, or a connection was lost. Programs are printed as they were found: what a server does
    depends on more than the program.
    """

    bootstrap_servers: ClassVar[str]
    """Where the server is asked: ``host:port``, with commas between several."""

    security: ClassVar[Security] = Security()
    """TLS and login of the members; by default neither."""

    client_config: ClassVar[Mapping[str, Any]] = {}
    """What confluent-kafka's producer and administrator get besides, such as their own TLS and login."""

    connect: ClassVar[type[RawConnection]] = RawConnection
    """How the members connect; `NegotiatedConnection` to a server that may lack the latest versions of requests."""

    replication_factor: ClassVar[int] = -1
    """How many replicas a topic has; -1 for the server's default."""

    runs_at_once: ClassVar[int] = 1
    """How many runs go on beside each other, which mostly wait; 1 if trouble happens to all of them."""

    max_wait_ms: ClassVar[int] = 100
    """How long a fetch waits for something to acquire. [ms]"""

    renews = True
    delivers_ranges = True
    lock_duration_ms = 15_000
    max_record_locks = 200
    clock_tolerance_ms = 2_000

    # ---- the search

    def __init_subclass__(cls, **named: Any) -> None:  # noqa: ANN401 - what the base class takes
        """Run a few times: each takes a minute, or seconds if locks are short."""
        super().__init_subclass__(**named)
        cls.TestCase.settings = hypothesis_settings(
            cls.TestCase.settings, max_examples=RUNS, stateful_step_count=EVENTS, deadline=None
        )

    @classmethod
    def _run_seeds(cls, settings: hypothesis_settings) -> None:
        """Run some seeds; Hypothesis, which is not asked, would run again what fails, and see it end otherwise."""
        run = partial(cls._run_once, count=settings.stateful_step_count)
        with ThreadPoolExecutor(cls.runs_at_once) as threads:
            for _ in threads.map(run, range(settings.max_examples)):
                pass

    @classmethod
    def _run_once(cls, seed: int, count: int) -> None:
        try:
            cls._run_at_random(seed, count)
        except Exception as error:
            if events := events_of(error):
                error.add_note(f"{HEADING}\n{cls._text(events)}")
            raise

    # ---- a run

    def start(self, settings: GroupSettings) -> None:
        """Make a topic and a group, and let the members join."""
        self._noted_s = monotonic()
        self._asked_s = inf
        self._is_time_held = False
        self._soon_s = SOON_S
        self.name = f"sharestate-{uuid.uuid4().hex[:12]}"
        self.select_share_partition(*self.share_partitions[0])
        self._values: dict[tuple[int, int], bytes] = {}
        self._producers: dict[tuple[int, str | None], Producer] = {}
        self.admin = AdminClient(self._config())
        self.raw_members: dict[tuple[int, int, str], RawMember] = {}
        try:
            topic = NewTopic(self.name, 1 + max(at for _, at in self.share_partitions), self.replication_factor)
            self.admin.create_topics([topic])[self.name].result(PATIENCE_S)
            for group in self._groups():
                self._configure(group, settings)
            for group, at in self.share_partitions:
                for member in self.members:
                    self._join(group, at, member)
            self._beaten_s = monotonic()
            self.find_leader()
        except BaseException:
            self.stop()
            raise

    def select_share_partition(self, group: int, partition: int) -> None:
        """Let everything be about a group and a partition from now on."""
        self._group, self._at = group, partition

    @property
    def partition(self) -> Partition:
        """The partition that everything is about: the id of its topic, and its number."""
        return self.topic_id, self._at

    def _groups(self) -> dict[int, str]:
        """Return the name of each group by its number; the first has that of the topic."""
        return {number: f"{self.name}-{number}" if number else self.name for number, _ in self.share_partitions}

    def _join(self, group: int, at: int, member: str) -> None:
        """Let a member of a partition join; it is assigned something, and fetches what it is for."""
        raw = RawMember(
            self.bootstrap_servers,
            self._groups()[group],
            [self.name],
            f"{member}-{at}" if at else member,
            security=self.security,
            connect=self.connect,
        )
        self.raw_members[group, at, member] = raw
        raw.join()
        self.topic_id: uuid.UUID = raw.assigned[0][0]

    def stop(self) -> None:
        """Let the members leave, and delete the groups and the topic."""
        while self.raw_members:
            _, raw = self.raw_members.popitem()
            with suppress(OSError):
                raw.leave()
        groups = [*self._groups().values()]
        for delete, names in ((self.admin.delete_consumer_groups, groups), (self.admin.delete_topics, [self.name])):
            for deleted in delete(names).values():
                with suppress(KafkaException):  # a server need not let clients do so
                    deleted.result(PATIENCE_S)

    def _configure(self, group: int, settings: GroupSettings) -> None:
        config = {
            "share.auto.offset.reset": "earliest",
            "share.delivery.count.limit": str(settings.delivery_count_limit),
            "share.isolation.level": settings.isolation_level,
            "share.partition.max.record.locks": str(settings.max_record_locks),
            "share.record.lock.duration.ms": str(settings.lock_duration_ms),
            "share.renew.acknowledge.enable": str(settings.renew_acknowledge_enable).lower(),
        }
        self.set_config(ResourceType.GROUP, self._groups()[group], config)

    def set_config(self, kind: ResourceType, name: str, config: Mapping[str, str | None]) -> None:
        """Set configs of a group, a topic or a broker; None for the default."""
        entries = [
            ConfigEntry(
                key,
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for key, value in config.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)

    # ---- producers and administrators

    def produce(self, count: int, producer: str | None) -> list[int]:
        """Produce a batch; its values are like no others."""
        client = self._producer(producer)
        values: dict[int, bytes] = {}

        def delivered(value: bytes, error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is None and offset is not None:
                values[offset] = value

        for _ in range(count):
            value = uuid.uuid4().bytes
            client.produce(self.name, value=value, partition=self._at, on_delivery=partial(delivered, value))
        client.flush(PATIENCE_S)
        if len(values) != count:
            self.give_up("a batch was not produced")
        self._values |= {(self._at, offset): value for offset, value in values.items()}
        return sorted(values)

    def begin_transaction(self, producer: str) -> None:
        """Begin a transaction."""
        self._producer(producer).begin_transaction()

    def commit_transaction(self, producer: str) -> int:
        """Commit, and wait for the marker."""
        return self._ended(self._producer(producer).commit_transaction)

    def abort_transaction(self, producer: str) -> int:
        """Abort, and wait for the marker."""
        return self._ended(self._producer(producer).abort_transaction)

    def delete_records(self, before_offset: int) -> None:
        """Move the log start offset."""
        (deleted,) = self.admin.delete_records([TopicPartition(self.name, self._at, before_offset)]).values()
        deleted.result(PATIENCE_S)

    def _ended(self, end: Callable[[float], None]) -> int:
        """End a transaction, and return the offset of its marker, which comes after the answer."""
        end(PATIENCE_S)
        give_up_s = monotonic() + PATIENCE_S
        while (offset := self._log_end()) == self.known.log_end:
            if monotonic() > give_up_s:
                self.give_up("a transaction has no marker")
            sleep(ASK_AGAIN_S)
        return offset - 1

    def _log_end(self) -> int:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call] # has no annotations
        (listed,) = self.admin.list_offsets({TopicPartition(self.name, self._at): latest}).values()
        return int(listed.result(PATIENCE_S).offset)

    def _producer(self, name: str | None) -> Producer:
        if (self._at, name) not in self._producers:
            transactional_id = f"{self.name}-{self._at}-{name}"
            named = {"transactional.id": transactional_id} if name else {"enable.idempotence": True}
            # a flush does not linger, and what is flushed at once is one batch
            client = Producer(self._config(**{"linger.ms": 10_000, "batch.num.messages": 10_000, **named}))
            if name:
                client.init_transactions(PATIENCE_S)
            self._producers[self._at, name] = client
        return self._producers[self._at, name]

    def _config(self, **more: object) -> dict[str, Any]:
        quiet = {"log_level": 0, "reconnect.backoff.max.ms": 500}
        return {"bootstrap.servers": self.bootstrap_servers, **quiet, **self.client_config, **more}

    # ---- members

    def fetch(self, member: str, max_records: int) -> list[tuple[int, int, int]]:
        """Fetch; if there is something, and the server has it soon, until it does."""
        limits = FetchLimits(
            max_records=max_records,
            batch_size=max_records,
            max_wait_ms=self.max_wait_ms,
            acquire_mode=RECORD_LIMIT if self.acquire_mode is AcquireMode.RECORD_LIMIT else BATCH_OPTIMIZED,
        )
        began_s, is_first = monotonic(), self._asked_s == inf
        while True:
            fetched = self._fetched(member, limits)
            acquired = fetched.acquired.get(self.partition, [])
            # what others have got just before, in the same event, is not known yet
            if acquired or not is_first or not self.known.waiting() or monotonic() - began_s > self._soon_s:
                break
            self._asked_s = inf
        self._soon_s -= 0 if acquired else min(monotonic() - began_s, self._soon_s)
        self._expect_values(member, fetched.records.get(self.partition, b""))
        return acquired

    def acknowledge(self, member: str, batches: Sequence[AcknowledgementBatch]) -> int:
        """Acknowledge, in a session that is opened if there is none."""
        renews = any(AcknowledgeType.RENEW in batch.acknowledge_types for batch in batches)
        given = [(first, last, tuple(map(int, types))) for first, last, types in batches]
        give_up_s = monotonic() + PATIENCE_S
        while True:
            self._asked()
            codes = self._raw(member).acknowledge({self.partition: given}, renews=renews)
            self._expect_answer(codes[None])
            error = codes.get(self.partition, codes[None])
            if error not in _NOT_ASKED:
                break
            _expect_time(give_up_s, f"an acknowledgement of {member} has no leader to go to")
            self._asked_s = inf
            self._fetched(member, _OPENS)
        code = ErrorCode[error.upper()]
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not self._events.was_delivered():
            return ErrorCode.INVALID_RECORD_STATE  # nobody has fetched, so nobody leads it yet
        return code

    def close_session(self, member: str) -> None:
        """Close the sessions of a member with its group."""
        self._asked()
        for (group, _, name), raw in self.raw_members.items():
            if (group, name) == (self._group, member):
                self._expect_answer(raw.acknowledge({}, closes=True)[None])

    def advance_clock(self, ms: int) -> None:
        """Sleep."""
        sleep(ms / 1000)
        self._noted_s += ms / 1000

    def find_leader(self) -> None:
        """Connect again, and return when all leaders answer: to be called when they may be others."""
        self.admin = AdminClient(self._config())  # which would insist on the leader's epoch that it knows
        here = self._group, self._at
        for (group, at, member), raw in self.raw_members.items():
            raw.reconnect()
            self.select_share_partition(group, at)
            self._fetched(member, _OPENS)
        self.select_share_partition(*here)

    def _raw(self, member: str) -> RawMember:
        return self.raw_members[self._group, self._at, member]

    def _fetched(self, member: str, limits: FetchLimits) -> Fetched:
        """Return the answer to a fetch that the leader of the partition takes."""
        give_up_s = monotonic() + PATIENCE_S
        is_first = self._asked_s == inf and limits is not _OPENS  # which brings nothing
        while True:
            if is_first:
                self._asked_s = monotonic()
            fetched = self._raw(member).fetch(limits=limits, partitions=[self.partition])
            error, _ = fetched.codes.get(self.partition, (fetched.error, 0))
            if fetched.error == error == "none":
                return fetched
            if limits is not _OPENS:
                self._expect_answer(fetched.error)
            _expect_time(give_up_s, f"fetches of {member} are answered with {error}")
            sleep(ASK_AGAIN_S)

    def _expect_answer(self, error: str) -> None:
        if error == CONNECTION_LOST:
            self.give_up("a connection was lost")
        if error in SESSION_ERRORS:
            self.give_up("a share session was ended by the server")

    def _expect_values(self, member: str, records: bytes) -> None:
        """Compare the records of a fetch with what was produced."""
        for offset, value in values_of(records):
            if self._values.get((self._at, offset)) != value:
                what = f"{member} gets another record at offset {offset} than was produced there"
                raise GuaranteeBrokenError(Guarantee.ONLY_PRODUCED, what, offset)

    # ---- time

    def leader_fails_over(self) -> None:
        """Let another leader take over: what happens while that takes its time happens to that one."""
        with self._holding_time():
            super().leader_fails_over()

    def writes_fail(self) -> None:
        """Let writes of the state fail: locks that expire meanwhile are perhaps not written."""
        with self._holding_time():
            super().writes_fail()

    @contextmanager
    def _holding_time(self) -> Iterator[None]:
        """Say only afterwards how much time has passed."""
        self._is_time_held = True
        try:
            yield
        finally:
            self._is_time_held = False

    def _asked(self) -> None:
        """Note that something is asked whose answer depends on when: the first such thing since the last event."""
        self._asked_s = min(self._asked_s, monotonic())

    def _call(self, method: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401 - those of *method*
        return super()._call(partial(self._timed, method), *args)

    def _timed(self, method: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401 - those of *method*
        """Call a method, and say how much time has passed; what took too long cannot be judged."""
        self._asked_s = inf
        result = method(*args)
        now_s = monotonic()
        if not self._is_time_held and (now_s - self._asked_s) * 1000 > self.clock_tolerance_ms:
            self.give_up("an answer took longer than the tolerance")
        if not self._is_time_held:
            passed_ms = max(0, int((now_s - self._noted_s) * 1000))
            self._noted_s += passed_ms / 1000
            self.time_passed(passed_ms)
        self._beat(now_s)
        return result

    def _beat(self, now_s: float) -> None:
        """Let the members say that they live, now and then."""
        if now_s - self._beaten_s > BEAT_S:
            self._beaten_s = now_s
            for raw in self.raw_members.values():
                raw.heartbeat()


def _expect_time(give_up_s: float, what: str) -> None:
    if monotonic() > give_up_s:
        message = f"for {PATIENCE_S} s {what}"
        raise TimeoutError(message)


def values_of(records: bytes) -> Iterator[tuple[int, bytes | None]]:
    """
    Yield the offset and the value of each record that is no transaction marker; a batch that is cut off is left out.

    Args:
        records: Batches of format 2, as in the answer to a fetch.

    Raises:
        SegmentError: They are none.
    """
    excess, begin = Excess(), 0
    while len(records) - begin >= HEADER.size:
        (length,) = _LENGTH.unpack_from(records, begin)
        end = begin + BEFORE_LENGTH + length
        if not begin + HEADER.size <= end <= len(records):
            return
        batch = decode_batch(records[begin:end], "the answer to a fetch", begin, excess)
        if batch.control is None:
            yield from ((record.offset, record.value) for record in batch.records())
        begin = end
