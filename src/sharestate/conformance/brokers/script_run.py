"""
A script at a cluster: each step is a request of JSON, and its answer is what members and administrators see of it.

Members are raw: they send what the script says and nothing else, but for heartbeats while a script waits for a lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from kio.schema.errors import ErrorCode as KioErrorCode

from sharestate.conformance.brokers.cluster import NO_ANSWER, NOT_YET, ClusterUnderTest
from sharestate.errors import ErrorCode, ExternalError
from sharestate.json_lines import Json
from sharestate.persister.kafka.security import Security
from sharestate.testing.servers import (
    BATCH_OPTIMIZED,
    RECORD_LIMIT,
    Acknowledgement,
    FetchLimits,
    NegotiatedConnection,
    Partition,
    RawMember,
)
from sharestate.testing.servers.raw_members import CONNECTION_LOST
from sharestate.testing.servers.share_sessions import SESSION_ERRORS

EARLIEST: Final = {"share.auto.offset.reset": "earliest"}
"""What groups are set to, so that records may be there before the first fetch."""

LOCK_SETTING: Final = "share.record.lock.duration.ms"

SHORT_LOCKS_MS: Final = (1_500, 5_000, 15_000)
"""Durations of locks for a script that waits: the first that the broker permits, which by default is 15 s. [ms]"""

SHORTEST: Final = {LOCK_SETTING: "<shortest>"}
"""What sets a group to the first of them."""

SLACK_MS: Final = 500
"""How long after its deadline a lock is taken to have expired, by brokers' timers. [ms]"""

BEAT_MS: Final = 2_000
"""How often members say that they live while a script waits. [ms]"""

WAIT_MS: Final = 5_000
"""How long a fetch waits if its step does not say, and a script for dead letters: it is to bring something. [ms]"""

OPENING_MS: Final = 250
"""How long the first fetch waits by which a group begins with what is written next, if it cannot be set. [ms]"""

LETTERS_PREFIX: Final = "dlq."
"""What the names of topics with dead letters begin with (``errors.deadletterqueue.topic.name.prefix``)."""

KNOWN_AFTER_MS: Final = 300
"""How long brokers may take to know of a setting, or to release what a session had. [ms]"""

_MODES: Final = {"batch_optimized": BATCH_OPTIMIZED, "record_limit": RECORD_LIMIT}

_HEADERS: Final = "__dlq.errors."
"""What the names of a dead letter's headers begin with (rule 21.6)."""

_LOCAL: Final = {"topic": "<topic>", "group": "<group>"}
"""Headers whose values are names of this run."""

NO_GROUP_SETTINGS: Final = "the broker does not take the settings of the group: {}"

NO_SHORT_LOCKS: Final = f"the broker permits none of {', '.join(map(str, SHORT_LOCKS_MS))} ms as the duration of locks"

SEVERAL_PARTITIONS: Final = "topics cannot be made of one partition, which members would share, and have {}"

HEARTBEAT_REFUSED: Final = "ShareGroupHeartbeat is answered with {}"

_PASSING: Final = NOT_YET | {"none", CONNECTION_LOST}
"""What may be answered to the first heartbeat of a member that joins later."""


class NotSupportedError(Exception):
    """A broker cannot be asked this; the text is the reason."""


class ScriptRun:
    """
    A run of one script, with a topic and a group of its own.

    Args:
        cluster: Where.
        bootstrap_servers: Its brokers, for members.
        name: The name of the topic and of the group.
        sleep: Lets time pass. [s]
        security: TLS and login.
        is_patient: Whether locks are not as short as possible, for a machine that is busy.
    """

    def __init__(  # noqa: PLR0913 - what can be chosen
        self,
        cluster: ClusterUnderTest,
        bootstrap_servers: str,
        name: str,
        sleep: Callable[[float], None],
        security: Security | None = None,
        *,
        is_patient: bool = False,
    ) -> None:
        """Prepare it; nothing is asked yet."""
        self.name = name
        self.topics: list[str] = []
        self._cluster, self._bootstrap, self._sleep, self._security = cluster, bootstrap_servers, sleep, security
        self._members: dict[str, RawMember] = {}
        self._locks_ms = SHORT_LOCKS_MS[1:] if is_patient else SHORT_LOCKS_MS
        self._begins_at_zero = False
        self._has_records = False
        self._lock_ms = 0

    def answer(self, request: Mapping[str, Json]) -> Json:
        """
        Return what comes of a step.

        Raises:
            NotSupportedError: The broker cannot be asked this.
            OSError: A connection is lost.
            ExternalError: What the step needs is refused.
            ResponseFormatError: What the broker says is no answer.
        """
        what = dict(request)
        step: Callable[..., Json] = getattr(self, f"_{what.pop('op')}")
        try:
            return step(**what)
        except ExternalError as error:
            if error.code is ErrorCode.UNSUPPORTED_VERSION:
                raise NotSupportedError(str(error)) from error
            raise

    def end(self) -> None:
        """Have all members leave, and delete the topics and the group."""
        for member in self._members.values():
            with suppress(*NO_ANSWER):
                member.leave()
        self._cluster.delete([self.name], self.topics)

    # ---- administration

    def _begin(self, settings: Mapping[str, str] | None = None, *, waits: bool = False) -> Json:
        """Make the topic, and set the group; where nothing else is set it begins with the first record."""
        self._cluster.create_topic(self.name)
        self.topics.append(self.name)
        wanted = {key: value.replace("<letters>", self._letters_topic) for key, value in (settings or {}).items()}
        try:
            self._cluster.configure_group(self.name, EARLIEST)
            self._begins_at_zero = True
        except ExternalError as error:
            if wanted:
                raise NotSupportedError(NO_GROUP_SETTINGS.format(error)) from error
        if self._letters_topic in wanted.values():
            self._cluster.create_topic(self._letters_topic, {"errors.deadletterqueue.group.enable": "true"})
            self.topics.append(self._letters_topic)
        if wanted:
            try:
                self._cluster.configure_group(self.name, wanted)
            except ExternalError as error:
                raise NotSupportedError(NO_GROUP_SETTINGS.format(error)) from error
        if waits and self._begins_at_zero:
            self._shorten_locks()
        return {}

    def _shorten_locks(self) -> bool:
        """Let locks be as short as the broker permits; return whether it permits any of these durations."""
        for duration_ms in self._locks_ms:
            with suppress(ExternalError):
                self._cluster.configure_group(self.name, {LOCK_SETTING: str(duration_ms)})
                return True
        return False

    def _set(self, settings: Mapping[str, str]) -> Json:
        """Set the group later on; what is refused is the answer."""
        if settings == SHORTEST:
            if not self._shorten_locks():
                raise NotSupportedError(NO_SHORT_LOCKS)
        else:
            try:
                self._cluster.configure_group(self.name, settings)
            except ExternalError as error:
                return {"error": error.code.name.lower()}
        self._sleep(KNOWN_AFTER_MS / 1000)
        return {}

    def _produce(self, batches: Iterable[int], transaction: str | None = None) -> Json:
        named = None if transaction is None else f"{self.name}-{transaction}"
        self._has_records = True
        return {"first_offsets": [self._cluster.produce(self.name, count, named) for count in batches]}

    def _end(self, transaction: str, *, commits: bool) -> Json:
        self._cluster.end_transaction(f"{self.name}-{transaction}", self.name, is_committed=commits)
        return {}

    def _delete_records(self, before: int) -> Json:
        self._cluster.delete_records(self.name, before)
        return {}

    def _start_offset(self) -> Json:
        return {"start_offset": self._cluster.group_offsets(self.name, self.name)[0]}

    def _lag(self) -> Json:
        return {"lag": self._cluster.group_offsets(self.name, self.name)[1]}

    def _letters(self, count: int) -> Json:
        """Return the headers of dead letters, with names of this run left out."""
        found = self._cluster.records(self._letters_topic, count, patience_s=WAIT_MS / 1000)
        return {"letters": [dict(map(_header, record.headers)) for record in found]}

    @property
    def _letters_topic(self) -> str:
        return f"{LETTERS_PREFIX}{self.name}"

    # ---- members

    def _join(self, member: str) -> Json:
        made = RawMember(
            self._bootstrap,
            self.name,
            [self.name],
            security=self._security,
            note=self._note,
            connect=NegotiatedConnection,
        )
        if self._members and (count := self._cluster.partition_count(self.name)) > 1:
            raise NotSupportedError(SEVERAL_PARTITIONS.format(count))
        self._members[member] = made
        if (error := made.heartbeat()) not in _PASSING:
            raise NotSupportedError(HEARTBEAT_REFUSED.format(error.upper()))
        try:
            made.join()
        except TimeoutError as error:
            raise NotSupportedError(str(error).replace(made.member_id, member)) from error
        if not self._begins_at_zero and not self._has_records:
            made.fetch({}, FetchLimits(max_wait_ms=OPENING_MS), [self._partition])
        return {}

    def _fetch(  # noqa: PLR0913 - the fields of a step
        self,
        member: str,
        max_records: int = 500,
        batch_size: int = 500,
        mode: str = "batch_optimized",
        acknowledge: Iterable[Any] = (),
        *,
        renews: bool = False,
        wait_ms: int = WAIT_MS,
    ) -> Json:
        limits = FetchLimits(
            max_records=max_records, batch_size=batch_size, max_wait_ms=wait_ms, acquire_mode=_MODES[mode]
        )
        given = {self._partition: _batches(acknowledge)} if acknowledge else {}
        fetched = self._members[member].fetch(given, None if renews else limits, [self._partition])
        if fetched.error in SESSION_ERRORS and not given:  # a client opens another session
            fetched = self._members[member].fetch({}, limits, [self._partition])
        error, code = fetched.codes.get(self._partition, ("none", 0))
        named = (
            ("error", fetched.error),
            ("partition_error", error),
            ("acknowledge_error", KioErrorCode(code).name),
        )
        acquired = [list(each) for each in fetched.acquired.get(self._partition, ())]
        return {**{name: text for name, text in named if text != "none"}, "acquired": acquired}

    def _acknowledge(self, member: str, batches: Iterable[Any], *, renews: bool = False) -> Json:
        codes = self._members[member].acknowledge({self._partition: _batches(batches)}, renews=renews)
        named = (("error", codes[None]), ("partition_error", codes.get(self._partition, "none")))
        return {name: text for name, text in named if text != "none"}

    def _close(self, member: str, batches: Iterable[Any] = ()) -> Json:
        """Close the share session, with last acknowledgements, if any."""
        given = {self._partition: _batches(batches)} if batches else {}
        codes = self._members[member].acknowledge(given, closes=True)
        self._sleep(KNOWN_AFTER_MS / 1000)
        return {} if codes[None] == "none" else {"error": codes[None]}

    def _wait(self) -> Json:
        """Let all locks expire that run now."""
        left_ms = self._lock_ms + SLACK_MS
        self._pause(left_ms)
        return {}

    def _wait_part(self, percent: int) -> Json:
        """Let a part of a lock's duration pass."""
        self._pause(self._lock_ms * percent // 100)
        return {}

    def _pause(self, left_ms: int) -> None:
        while left_ms > 0:
            self._sleep(min(left_ms, BEAT_MS) / 1000)
            left_ms -= BEAT_MS
            for member in self._members.values():
                member.heartbeat()

    @property
    def _partition(self) -> Partition:
        topic_id, _ = self._cluster.topic(self.name)
        return topic_id, 0

    def _note(self, noted: Mapping[str, Any]) -> None:
        self._lock_ms = noted.get("lock_ms") or self._lock_ms


def _batches(batches: Iterable[Any]) -> list[Acknowledgement]:
    return [(first, last, tuple(types)) for first, last, types in batches]


def _header(header: tuple[str, bytes | None]) -> tuple[str, Json]:
    name = header[0].removeprefix(_HEADERS)
    return name, _LOCAL.get(name, (header[1] or b"").decode())
