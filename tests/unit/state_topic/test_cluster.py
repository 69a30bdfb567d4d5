"""The state topic of a live cluster, which librdkafka plays here: what is read, what is passed over, and what fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any, Final
from uuid import UUID

import pytest
from attrs import Factory, define
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import AdminClient, ConfigResource

from sharestate import ErrorCode, ExternalError, InvalidConfigurationError, SharePartitionKey
from sharestate.coordinator.wire import topic_id_text
from sharestate.errors import UnreadableFileError
from sharestate.state_topic import StateTopic, StateTopicFile
from sharestate.state_topic.cluster import Cluster, client_settings
from tests.support.mock_brokers import DUMP, TOPIC, Brokers

TOPIC_ID: Final = UUID("fedcba98-7654-3210-8fff-123456789abc")
"""The id of a topic; both halves would be negative as signed integers."""


@pytest.fixture
def brokers() -> Brokers:
    """A cluster without topics."""
    return Brokers()


@pytest.fixture
def cluster(brokers: Brokers) -> Iterator[Cluster]:
    """The client."""
    with Cluster(brokers.address, timeout_s=5) as cluster:
        yield cluster


def test_the_topic_is_what_was_written(brokers: Brokers, cluster: Cluster) -> None:
    """Every record of a broker's dump, tombstones included, with its partition and offset."""
    brokers.write_dump()

    offsets = cluster.state_offsets()
    logged = sorted(cluster.records(offsets), key=lambda each: (each.state_partition or 0, each.offset or 0))

    dumped = list(StateTopicFile(DUMP))
    assert [(*each[3:5], *each[6:8]) for each in logged] == [(*each[3:5], *each[6:8]) for each in dumped]
    assert any(each.value is None for each in logged)
    assert sum(map(len, offsets.values())) == len(logged)
    assert {(each.file, each.timestamp_type) for each in logged} == {(brokers.address, 0)}


def test_what_is_written_meanwhile_is_not_read(brokers: Brokers, cluster: Cluster) -> None:
    """Reading ends where the topic ended when it was asked, however busy the cluster is."""
    brokers.write(TOPIC, 1, b"early", None)
    offsets = cluster.state_offsets()
    brokers.write(TOPIC, 1, b"late", None)
    brokers.write(TOPIC, 2, b"late", None)

    assert [each.key for each in cluster.records(offsets)] == [b"early"]
    assert [each.key for each in cluster.records({1: range(1, 2)})] == [b"late"]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_each_record_of_a_short_partition_is_read(brokers: Brokers, cluster: Cluster, size: int) -> None:
    """However few there are, from offset 0 on."""
    for number in range(size):
        brokers.write(TOPIC, 0, bytes([number]), None)

    assert [each.offset for each in cluster.records(cluster.state_offsets())] == [*range(size)]


def test_some_partitions_are_read(brokers: Brokers) -> None:
    """Those that are named, of a topic that is named; one that is not there is refused."""
    for number in range(3):
        brokers.write("copy", number, bytes([number]), None)
    with Cluster(brokers.address, topic="copy") as copy:
        offsets = copy.state_offsets({0, 2, 3})

        assert offsets == {0: range(1), 2: range(1), 3: range(0)}
        assert sorted(each.key for each in copy.records(offsets)) == [b"\0", b"\2"]
        with pytest.raises(UnreadableFileError, match=r"^copy-9 of 127.0.0.1:\d+: there is no such partition"):
            copy.state_offsets({1, 9})


def test_records_that_brokers_have_deleted(brokers: Brokers, cluster: Cluster) -> None:
    """Whoever wants just the records that were there gets an error; the others get what is there now."""
    for number in range(3):
        brokers.write(TOPIC, 0, bytes([number]), None)
        brokers.write(TOPIC, 1, bytes([number]), None)
    gone = {0: range(7, 9), 1: range(2, 3)}  # which a client is answered as if the log had started later

    with pytest.raises(UnreadableFileError, match=f"^{TOPIC}-0 of .*: the log has started at offset 7, and brokers"):
        list(cluster.records(gone))
    assert sorted((each.state_partition, each.offset) for each in cluster.remaining_records(gone)) == [
        *((0, 0), (0, 1), (0, 2)),
        (1, 2),
    ]


def test_a_log_that_ends_earlier(brokers: Brokers, cluster: Cluster) -> None:
    """The client is at the end before it has got what was there: that is no end."""
    brokers.write(TOPIC, 1, b"k", None)

    with pytest.raises(UnreadableFileError, match="the log ends at offset 1 now, and has ended at 3"):
        list(cluster.records({1: range(3)}))


def test_a_record_that_is_none_is_named(brokers: Brokers, cluster: Cluster) -> None:
    """Cluster, partition and offset are said."""
    brokers.write(TOPIC, 3, b"\0\0", b"")
    (logged,) = cluster.records(cluster.state_offsets())

    with pytest.raises(UnreadableFileError) as caught:
        StateTopic().add(logged)

    assert str(caught.value).startswith(f"{brokers.address}: partition 3, offset 0: key: byte 2: ")


def test_without_the_topic_there_is_nothing_to_read(brokers: Brokers, cluster: Cluster) -> None:
    """Which is said, with what makes the state topic, and no topic is made by asking."""
    brokers.write("orders", 0, b"k", b"v")
    made = "; the first share group with a member makes it"

    for _ in range(2):
        with pytest.raises(ExternalError, match=rf"there is no topic __share_group_state{made}$") as caught:
            cluster.state_offsets()
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with Cluster(brokers.address, topic="copy") as copy, pytest.raises(ExternalError, match=r"there is no topic copy$"):
        copy.state_offsets()


@pytest.mark.parametrize("settings", [{}, {"reconnect.backoff.ms": "1", "reconnect.backoff.max.ms": "1"}])
def test_nobody_listens(settings: dict[str, str]) -> None:
    """What has failed is said long before the timeout, with the address, however often it fails until then."""
    begin = monotonic()
    with (
        Cluster("127.0.0.1:1", settings) as cluster,
        pytest.raises(ExternalError, match=r"^127.0.0.1:1: .*refused") as caught,
    ):
        cluster.state_offsets()

    assert caught.value.code == ErrorCode.NETWORK_EXCEPTION
    assert monotonic() - begin < 30


def test_a_cluster_that_falls_silent(brokers: Brokers) -> None:
    """A cluster that stops while it is read is waited for so long, and no longer."""
    brokers.write(TOPIC, 0, b"k", None)
    with Cluster(brokers.address, timeout_s=1) as cluster:
        offsets = cluster.state_offsets()
        brokers.stop()
        with pytest.raises(ExternalError) as caught:
            list(cluster.records(offsets))

    assert caught.value.code == ErrorCode.REQUEST_TIMED_OUT


def test_a_wrong_setting_is_refused() -> None:
    """In librdkafka's words."""
    with pytest.raises(InvalidConfigurationError, match="nope"):
        Cluster("127.0.0.1:1", {"nope": "1"})


# ---- what librdkafka's own brokers do not do


@define
class PlayedConsumer:
    """A consumer of a cluster whose state topic has partition 0 only, and which fails as it is told to."""

    failures: list[KafkaError] = Factory(list)
    """What it calls back with before the cluster is there."""
    span: tuple[int, int] | None = None
    """Where the log starts and ends; None if nobody answers that."""
    messages: list[Message] = Factory(list)
    topic_error: KafkaError | None = None
    assigned: Sequence[object] = ()
    """What it goes on fetching."""
    settings: dict[str, Any] = Factory(dict)
    is_closed: bool = False

    def list_topics(self, **_options: float) -> Any:  # noqa: ANN401 - as far as it is looked at
        """Return the metadata, once nothing fails any more."""
        if self.failures:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "no metadata"))  # noqa: SLF001 - its documented name
        return SimpleNamespace(topics={TOPIC: SimpleNamespace(error=self.topic_error, partitions={0: None})})

    def poll(self, _timeout_s: float) -> None:
        """Call back."""
        self.settings["error_cb"](self.failures.pop(0))

    def get_watermark_offsets(self, *_place: object, **_options: float) -> tuple[int, int]:
        """Return where the log starts and ends."""
        if self.span is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no offsets"))  # noqa: SLF001 - its documented name
        return self.span

    def consume(self, *_limits: float) -> list[Message]:
        """Return all that there is."""
        messages, self.messages = self.messages, []
        return messages

    def assign(self, places: Sequence[object]) -> None:
        """Fetch from *places*."""
        self.assigned = places

    def unassign(self) -> None:
        """Fetch nothing."""
        self.assigned = ()

    def close(self) -> None:
        """End the connections."""
        self.is_closed = True


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedConsumer:
    """The consumer of each cluster that is made."""
    consumer = PlayedConsumer()

    def made(settings: dict[str, Any]) -> PlayedConsumer:
        consumer.settings = settings
        return consumer

    monkeypatch.setattr("sharestate.state_topic.cluster.Consumer", made)
    return consumer


def test_a_log_may_end_with_what_is_no_record(played: PlayedConsumer) -> None:
    """Markers of transactions take offsets, too: having come to the end is to have read all."""
    end = KafkaError(KafkaError._PARTITION_EOF)  # noqa: SLF001 - its documented name
    played.messages = [Message(TOPIC, 0, 7, b"k", b"v"), Message(TOPIC, 0, 9, error=end)]

    with Cluster("played") as cluster:
        assert [(each.offset, each.key, each.value) for each in cluster.records({0: range(7, 9)})] == [(7, b"k", b"v")]


def test_what_lies_behind_the_offsets_is_not_read(played: PlayedConsumer) -> None:
    """Of a compacted log the last one may be gone, and a later record be the next; then nothing more is fetched."""
    played.messages = [Message(TOPIC, 0, 7, b"k", b"v"), Message(TOPIC, 0, 12, b"late", b"v")]

    with Cluster("played") as cluster:
        assert [each.offset for each in cluster.records({0: range(7, 9)})] == [7]
        assert not played.assigned
    assert played.is_closed


def test_a_fetch_that_is_refused_ends_the_reading(played: PlayedConsumer) -> None:
    """With the broker's error."""
    refusal = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    played.messages = [Message(TOPIC, 0, 7, b"k", b"v"), Message(TOPIC, 0, error=refusal)]

    with Cluster("played") as cluster, pytest.raises(ExternalError) as caught:
        list(cluster.records({0: range(7, 9)}))
    assert caught.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_topic_that_may_not_be_read_is_refused(played: PlayedConsumer) -> None:
    """With the broker's error, which its metadata has."""
    played.topic_error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)

    with Cluster("played") as cluster, pytest.raises(ExternalError) as caught:
        cluster.state_offsets()
    assert caught.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_cluster_is_waited_for(played: PlayedConsumer) -> None:
    """A connection that fails may come about later; what has failed until then is not said of what fails then."""
    played.failures = [KafkaError(KafkaError._TRANSPORT, text) for text in ("refused", "again")]  # noqa: SLF001
    with Cluster("played") as cluster:
        with pytest.raises(ExternalError, match=r"^played: no offsets$") as caught:
            cluster.state_offsets()
        assert caught.value.code == ErrorCode.REQUEST_TIMED_OUT
        played.span = (3, 8)
        assert cluster.state_offsets() == {0: range(3, 8)}


def test_what_has_failed_last_is_said(played: PlayedConsumer) -> None:
    """Of several brokers that fail in different ways, one of them twice; that all are down says less."""
    played.failures = [
        KafkaError(KafkaError._TRANSPORT, "refused"),  # noqa: SLF001 - its documented name
        KafkaError(KafkaError._RESOLVE, "no such host"),  # noqa: SLF001 - its documented name
        KafkaError(KafkaError._TRANSPORT, "refused again"),  # noqa: SLF001 - its documented name
        KafkaError(KafkaError._ALL_BROKERS_DOWN, "2/2 brokers are down"),  # noqa: SLF001 - its documented name
        KafkaError(KafkaError._RESOLVE, "never called back with"),  # noqa: SLF001 - its documented name
    ]

    with Cluster("played") as cluster, pytest.raises(ExternalError, match=r"^played: refused again$"):
        cluster.state_offsets()


# ---- the settings of groups


def answering(
    monkeypatch: pytest.MonkeyPatch, groups: Mapping[str, Mapping[str, str | None] | int]
) -> list[list[ConfigResource]]:
    """Have settings of *groups* be answered, or an error code; return where requests will be listed."""
    asked: list[list[ConfigResource]] = []

    def describe(_: AdminClient, resources: list[ConfigResource], **_options: float) -> Mapping[ConfigResource, Any]:
        asked.append(resources)
        futures: dict[ConfigResource, Future[Any]] = {resource: Future() for resource in resources}
        for resource, future in futures.items():
            answer = groups[resource.name]
            if isinstance(answer, int):
                future.set_exception(KafkaException(KafkaError(answer)))
            else:
                future.set_result({name: SimpleNamespace(value=value) for name, value in answer.items()})
        return futures

    monkeypatch.setattr(AdminClient, "describe_configs", describe)
    return asked


def test_the_settings_of_groups_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all groups at once, those with a value; without groups nothing is asked."""
    asked = answering(monkeypatch, {"g": {"share.isolation.level": "read_committed", "hidden": None}, "h": {}})

    with Cluster("127.0.0.1:1") as cluster:
        assert cluster.group_configs([]) == {}
        assert cluster.group_configs(["g", "h"]) == {"g": {"share.isolation.level": "read_committed"}, "h": {}}
    assert [[each.name for each in resources] for resources in asked] == [["g", "h"]]


def test_groups_whose_settings_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are left out if that is asked for; else it is an error, as is an answer that has not come, always."""
    answering(
        monkeypatch,
        {"g": {}, "hidden": KafkaError.GROUP_AUTHORIZATION_FAILED, "late": KafkaError._TIMED_OUT},  # noqa: SLF001
    )

    def code_of(call: Callable[[], object]) -> ErrorCode:
        with pytest.raises(ExternalError) as caught:
            call()
        return caught.value.code

    with Cluster("127.0.0.1:1") as cluster:
        assert cluster.group_configs(["hidden", "g"], passes_over=True) == {"g": {}}
        assert code_of(lambda: cluster.group_configs(["hidden", "g"])) == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert code_of(lambda: cluster.group_configs(["late", "g"], passes_over=True)) == ErrorCode.REQUEST_TIMED_OUT


# ---- where logs end


def key_of(topic_id: UUID, partition: int) -> SharePartitionKey:
    """Return a share partition."""
    return SharePartitionKey(group_id="g", topic_id=topic_id_text(topic_id.bytes), partition=partition)


def refusing(monkeypatch: pytest.MonkeyPatch, code: int) -> list[Any]:
    """Have every request for offsets fail with *code*; return where they will be listed."""
    asked: list[Any] = []

    def refused(_: AdminClient, requests: Any, **_options: Any) -> dict[Any, Future[Any]]:  # noqa: ANN401 - of any
        asked.append(requests)
        futures: dict[Any, Future[Any]] = {place: Future() for place in requests}
        for future in futures.values():
            future.set_exception(KafkaException(KafkaError(code)))
        return futures

    monkeypatch.setattr(AdminClient, "list_offsets", refused)
    return asked


def test_log_ends_are_found_by_topic_id(brokers: Brokers, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of topics and partitions that are there; the others are left out."""
    monkeypatch.setattr(AdminClient, "describe_topics", brokers.describe({"orders": TOPIC_ID}))
    for _ in range(3):
        brokers.write("orders", 1, b"k", b"v")

    ends = cluster.log_end_offsets(
        [key_of(TOPIC_ID, 1), key_of(TOPIC_ID, 2), key_of(TOPIC_ID, 99), key_of(UUID(int=1), 0)]
    )

    assert ends == {key_of(TOPIC_ID, 1): 3, key_of(TOPIC_ID, 2): 0}
    assert cluster.log_end_offsets([]) == {}


def test_a_topic_that_is_not_shown_is_left_out(
    brokers: Brokers, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker's refusal concerns one topic."""
    brokers.write("orders", 1, b"k", b"v")
    monkeypatch.setattr(AdminClient, "describe_topics", brokers.describe({}))

    assert cluster.log_end_offsets([key_of(TOPIC_ID, 1)]) == {}


def test_a_failure_is_no_absence(brokers: Brokers, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an answer nothing is known."""
    brokers.write("orders", 1, b"k", b"v")
    failure = KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - its documented name
    monkeypatch.setattr(AdminClient, "describe_topics", brokers.describe({"orders": failure}))

    with pytest.raises(ExternalError) as caught:
        cluster.log_end_offsets([key_of(TOPIC_ID, 1)])
    assert caught.value.code == ErrorCode.REQUEST_TIMED_OUT


def test_a_failure_to_find_an_end_is_no_absence(
    brokers: Brokers, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition whose end is not answered is not said not to be there."""
    brokers.write("orders", 1, b"k", b"v")
    asked = refusing(monkeypatch, KafkaError._TIMED_OUT)  # noqa: SLF001 - its documented name

    with pytest.raises(ExternalError) as caught:
        cluster.log_offsets([key_of(TOPIC_ID, 1)], {key_of(TOPIC_ID, 0).topic_id: "orders"})
    assert caught.value.code == ErrorCode.REQUEST_TIMED_OUT
    assert len(asked) == 1


def test_a_leader_is_asked_again_after_a_failover(
    brokers: Brokers, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client keeps the epochs of leaders; another one is asked, and once only."""
    brokers.write("orders", 1, b"k", b"v")
    list_offsets = AdminClient.list_offsets
    asked: list[AdminClient] = []

    def fenced(admin: AdminClient, requests: Any, **options: Any) -> dict[Any, Future[Any]]:  # noqa: ANN401 - of any
        asked.append(admin)
        if admin is not asked[0]:
            return list_offsets(admin, requests, **options)
        futures: dict[Any, Future[Any]] = {place: Future() for place in requests}
        for future in futures.values():
            future.set_exception(KafkaException(KafkaError(KafkaError.FENCED_LEADER_EPOCH)))
        return futures

    monkeypatch.setattr(AdminClient, "list_offsets", fenced)
    names = {key_of(TOPIC_ID, 0).topic_id: "orders"}

    assert cluster.log_offsets([key_of(TOPIC_ID, 1)], names) == {key_of(TOPIC_ID, 1): range(1)}
    assert [admin is asked[0] for admin in asked] == [True, False, False]


def test_a_partition_whose_leader_is_always_another_one_is_left_out(
    brokers: Brokers, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it was asked for twice."""
    brokers.write("orders", 1, b"k", b"v")
    asked = refusing(monkeypatch, KafkaError.NOT_LEADER_FOR_PARTITION)

    assert cluster.log_offsets([key_of(TOPIC_ID, 1)], {key_of(TOPIC_ID, 0).topic_id: "orders"}) == {}
    assert len(asked) == 2


# ---- settings


def test_settings_are_read(tmp_path: Path) -> None:
    """Comments and blank lines are passed over, and a value may have an equals sign."""
    file = tmp_path / "client.properties"
    file.write_text("# how\n\nsecurity.protocol = SASL_SSL\nsasl.password=a=b#c\n")

    assert client_settings(file) == {"security.protocol": "SASL_SSL", "sasl.password": "a=b#c"}


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"a=1\nb\n", ":2: expected name=value"),
        (b"=1", ":1: "),
        (b"\xff", ": not UTF-8"),
        (b"#" * (2**20 + 1), ": more than 1048576 bytes are no settings of a client"),
    ],
    ids=["no value", "no name", "not UTF-8", "too large"],
)
def test_settings_that_are_none(tmp_path: Path, data: bytes, place: str) -> None:
    """File and line are said."""
    file = tmp_path / "client.properties"
    file.write_bytes(data)

    with pytest.raises(UnreadableFileError) as caught:
        client_settings(file)

    assert str(caught.value).startswith(f"{file}{place}")


def test_settings_may_be_as_long_as_certificates_take(tmp_path: Path) -> None:
    """A mebibyte is read."""
    file = tmp_path / "client.properties"
    file.write_bytes(b"a=" + b"1" * (2**20 - 2))

    assert len(client_settings(file)["a"]) == 2**20 - 2


def test_settings_that_are_not_there(tmp_path: Path) -> None:
    """It is the file that is named."""
    with pytest.raises(UnreadableFileError, match="No such file"):
        client_settings(tmp_path / "none")
