"""A Kafka broker on loopback, straight from Maven's jars: one node, free ports, and a directory that is thrown away."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import trustme
from attrs import field, frozen
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from kio.schema.create_topics.v7.request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.metadata.v13.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v13.response import MetadataResponse
from kio.static.protocol import RequestPayload

from sharestate.coordinator.wire import topic_id_text
from sharestate.testing.servers import RawConnection
from tests.oracle.build import FLAGS, fetch_jar, fetch_jars

USER: Final = "ann"
PASSWORD: Final = "right"  # noqa: S105 - of a broker that lives as long as the tests
"""USER and PASSWORD log in by PLAIN and by SCRAM."""

CLUSTER_ID: Final = "AAAAAAAAAAAAAAAAAAAAAQ"

TOOLS: Final = "4.3.1"
"""The last release whose command line tools were published."""

LISTENERS: Final = ("plain", "secure", "mutual", "login", "controller")
"""The ports of a broker, in the order of the fields of Node."""

READY_WITHIN_S: Final = 90
"""How long a broker may take until it answers; a few seconds on a machine that does nothing else. [s]"""

SETTINGS: Final = """
process.roles=broker,controller
node.id={node}
listeners=PLAINTEXT://127.0.0.1:{plain},SASL_SSL://127.0.0.1:{secure},SSL://127.0.0.1:{mutual},\
SASL_PLAINTEXT://127.0.0.1:{login},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SASL_SSL://127.0.0.1:{secure},SSL://127.0.0.1:{mutual},\
SASL_PLAINTEXT://127.0.0.1:{login}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,\
CONTROLLER:PLAINTEXT
controller.quorum.bootstrap.servers={quorum}
log.dirs={home}/data
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
log.cleaner.dedupe.buffer.size=33554432
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=3
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
errors.deadletterqueue.auto.create.topics.enable=true
group.share.min.record.lock.duration.ms=1000
group.share.min.heartbeat.interval.ms=500
group.share.heartbeat.interval.ms=500
ssl.keystore.type=PEM
ssl.keystore.location={home}/broker.pem
listener.name.ssl.ssl.client.auth=required
listener.name.ssl.ssl.truststore.type=PEM
listener.name.ssl.ssl.truststore.location={home}/authority.pem
listener.name.sasl_ssl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_plaintext.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config={scram}
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={scram}
listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config={scram}
"""

STORAGE_TOOL: Final = "kafka.tools.StorageTool"

MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")

MOST_ITERATIONS: Final = 16_384
"""What Kafka stores of a password at the most (``ScramMechanism``)."""

SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
"""What takes logins of users whose credentials the cluster stores."""

LOGGING: Final = """
status=error
appender.output.type=Console
appender.output.name=output
appender.output.layout.type=PatternLayout
appender.output.layout.pattern=[%d] %p %m (%c)%n
appender.requests.type=File
appender.requests.name=requests
appender.requests.fileName={home}/request.log
appender.requests.layout.type=PatternLayout
appender.requests.layout.pattern=%d{{yyyy-MM-dd'T'HH:mm:ss.SSSSSS}}{{UTC}} %m%n
rootLogger.level=warn
rootLogger.appenderRef.output.ref=output
logger.logs.name=org.apache.kafka.storage.internals.log
logger.logs.level=info
logger.requests.name=kafka.request.logger
logger.requests.level={level}
logger.requests.additivity=false
logger.requests.appenderRef.requests.ref=requests
"""
"""
As in the ``log4j2.yaml`` that comes with Kafka, but for the time, which has microseconds here and is UTC.

Segments that are rolled, cleaned or deleted are in the output.
"""

BROKER_LOGGER: Final = 8
"""The type of resource whose configs are the levels of a broker's loggers."""

LOG_BINDING: Final = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"
"""Neither kafka_2.13 nor what it depends on has one, and without it a broker logs nothing."""


@frozen
class Node:
    """Which of the brokers of a cluster one is, and where it listens."""

    node_id: int
    plain: int
    secure: int
    mutual: int
    login: int
    controller: int
    quorum: tuple[str, ...] = field(default=(), kw_only=True)
    """All controllers, as id@host:port:directory; empty for the only one."""


class KafkaBroker:
    """
    A broker, its data, and what it takes to talk to it.

    Attributes:
        kafka: Its release.
        node_id: Its number among the brokers of its cluster.
        address: Where it listens without TLS and login.
        secure_address: Where it listens with both.
        login_address: Where it listens without TLS, and wants a login by SCRAM-SHA-512.
        mutual_address: Where it listens with TLS, and wants a certificate of its authority's from clients, too.
        authority: Who has signed its certificate.
        log_dir: Where its topics are.
        request_log: Where it logs its requests.
        properties: Its settings.
        output: What it has written besides.
    """

    def __init__(
        self,
        kafka: str,
        home: Path,
        settings: Mapping[str, str] = MappingProxyType({}),
        request_level: str = "warn",
        node: Node | None = None,
    ) -> None:
        """
        Prepare a broker of release *kafka* with its data in *home*.

        Args:
            kafka: The release.
            home: A directory that is empty.
            settings: What it has besides SETTINGS.
            request_level: The level of its request logger; at ``debug`` each request is logged with its answer.
            node: Which one of several it is.

        Raises:
            OracleUnavailableError: A JDK, Maven or the jars are not to be had.
        """
        self.kafka = kafka
        self.authority = trustme.CA()
        self._home = home
        self.log_dir = home / "data"
        self.request_log = home / "request.log"
        self.properties = home / "server.properties"
        self.output = home / "output.log"
        self._class_path = f"{fetch_jars(kafka)}/*:{fetch_jar(LOG_BINDING)}"
        self._process: subprocess.Popen[bytes] | None = None
        node = node or Node(1, *free_ports(len(LISTENERS)))
        self.node_id = node.node_id
        self.address = f"127.0.0.1:{node.plain}"
        self.secure_address = f"127.0.0.1:{node.secure}"
        self.mutual_address = f"127.0.0.1:{node.mutual}"
        self.login_address = f"127.0.0.1:{node.login}"
        self._port = node.plain
        (home / "broker.pem").write_bytes(self._certificate("127.0.0.1"))
        self.authority.cert_pem.write_to_path(str(home / "authority.pem"))
        quorum = [controller.split("@")[1].rpartition(":")[0] for controller in node.quorum]
        given = SETTINGS.format(
            node=node.node_id,
            plain=node.plain,
            secure=node.secure,
            mutual=node.mutual,
            login=node.login,
            controller=node.controller,
            quorum=",".join(quorum or [f"127.0.0.1:{node.controller}"]),
            home=home,
            user=USER,
            password=PASSWORD,
            scram=SCRAM,
        )
        self.properties.write_text(given + "".join(f"{name}={value}\n" for name, value in settings.items()))
        (home / "log4j2.properties").write_text(LOGGING.format(home=home, level=request_level))
        controllers = ("--initial-controllers", ",".join(node.quorum)) if node.quorum else ("--standalone",)
        users = [f"--add-scram={mechanism}=[name={USER},password={PASSWORD}]" for mechanism in MECHANISMS]
        self._run("-Xmx128m", STORAGE_TOOL, "format", *controllers, *users, "--cluster-id", CLUSTER_ID, "--config")

    @property
    def is_running(self) -> bool:
        """Whether it was started, and was not stopped."""
        return self._process is not None

    def start(self) -> None:
        """Start it, and return when it answers."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start it."""
        command = self._command("-Xmx512m", "kafka.Kafka")
        with self.output.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def wait_until_ready(self) -> None:
        """Return when it answers."""
        give_up_s = time.monotonic() + READY_WITHIN_S
        while not self._answers():
            if self._process is None or self._process.poll() is not None or time.monotonic() > give_up_s:
                self.stop()
                message = f"the broker of Kafka {self.kafka} has not started: {self.output.read_text()[-1000:]}"
                raise RuntimeError(message)
            time.sleep(0.1)

    def terminate(self) -> None:
        """Let it stop, and do not wait for it."""
        if self._process is not None:
            self._process.terminate()

    def stop(self) -> None:
        """Stop it, by its process id; its data stay."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """Kill it, so that it has no time for anything; its data stay as they are."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def tool(self, main: str, *arguments: str) -> str:
        """Return what one of Kafka's command line tools prints."""
        class_path = f"{fetch_jars(TOOLS)}/*:{fetch_jar(LOG_BINDING)}"
        command = ["java", "-Xmx128m", *FLAGS, "-cp", class_path, main, *arguments]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout

    def create_topic(
        self, name: str, partitions: int, config: Mapping[str, str] = MappingProxyType({}), replicas: int = 1
    ) -> str:
        """
        Create a topic, and return its id once this broker knows the leaders of its partitions.

        What answers the request is the controller: the broker learns of the topic a moment later.
        """
        setting: Any = CreatableTopicConfig
        topic: Any = CreatableTopic
        request: Any = CreateTopicsRequest
        wanted = topic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            assignments=(),
            configs=tuple(setting(name=name, value=value) for name, value in config.items()),
        )
        made = request(
            topics=(wanted,),
            timeout=timedelta(seconds=30),
            validate_only=False,
        )
        (created,) = self.ask(made, CreateTopicsResponse).topics
        assert created.error_code == 0, created
        assert created.topic_id is not None
        give_up_s = time.monotonic() + READY_WITHIN_S
        while not self._knows(name, partitions):
            assert time.monotonic() < give_up_s, f"{name}: no leaders"
            time.sleep(0.02)
        return topic_id_text(created.topic_id.bytes)

    def _knows(self, name: str, partitions: int) -> bool:
        """Return whether the broker knows a leader of each partition of a topic."""
        topic: Any = MetadataRequestTopic
        request: Any = MetadataRequest
        asked = request(
            topics=(topic(topic_id=None, name=name),),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        (known,) = self.ask(asked, MetadataResponse).topics
        return len(known.partitions) == partitions and all(each.error_code == 0 for each in known.partitions)

    def add_user(self, name: str, password: str) -> None:
        """Store what a user needs who logs in by SCRAM-SHA-512; it takes effect soon."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, MOST_ITERATIONS)
        given = UserScramCredentialUpsertion(name, info, password.encode())
        admin = AdminClient({"bootstrap.servers": self.address})
        admin.alter_user_scram_credentials([given])[name].result(READY_WITHIN_S)

    def set_request_level(self, level: str) -> None:
        """Set the level of the request logger while the broker runs, until it is stopped: ``DEBUG`` or ``WARN``."""
        resource: Any = AlterConfigsResource
        config: Any = AlterableConfig
        request: Any = IncrementalAlterConfigsRequest
        logger = config(name="kafka.request.logger", config_operation=0, value=level)
        made = request(
            resources=(resource(resource_type=BROKER_LOGGER, resource_name=str(self.node_id), configs=(logger,)),),
            validate_only=False,
        )
        (altered,) = self.ask(made, IncrementalAlterConfigsResponse).responses
        assert altered.error_code == 0, altered

    def ask(self, request: RequestPayload, schema: type[Any]) -> Any:  # noqa: ANN401 - an instance of the schema
        """Return the answer to a request, of kio's class *schema*."""
        with closing(RawConnection(self.address, "tests", patience_s=60)) as connection:
            return connection.ask(request, schema)

    def login(self, folder: Path, mechanism: str = "PLAIN") -> Path:
        """Return a file with the settings of a client for *secure_address*, in the names of librdkafka."""
        login = f"sasl.mechanism={mechanism}\nsasl.username={USER}\nsasl.password={PASSWORD}\n"
        return self._client_settings(folder, f"security.protocol=SASL_SSL\n{login}")

    def client_certificate(self, folder: Path) -> Path:
        """Return a file with the settings of a client for *mutual_address*, in the names of librdkafka."""
        certificate = folder / "client.pem"
        certificate.write_bytes(self._certificate(f"{USER}@example.org"))
        return self._client_settings(folder, f"security.protocol=SSL\nssl.certificate.location={certificate}\n")

    def _client_settings(self, folder: Path, settings: str) -> Path:
        file = folder / "client.properties"
        file.write_text(f"# as librdkafka names them\nssl.ca.location={self._home}/authority.pem\n{settings}")
        return file

    def _certificate(self, identity: str) -> bytes:
        """Return a key and a certificate in one PEM file; Kafka takes keys in PKCS 8 only."""
        issued = self.authority.issue_cert(identity)
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return pem + b"".join(certificate.bytes() for certificate in issued.cert_chain_pems)

    def _command(self, heap: str, main: str, *arguments: str) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={self._home}/log4j2.properties"
        return ["java", heap, *FLAGS, logging, "-cp", self._class_path, main, *arguments, str(self.properties)]

    def _run(self, heap: str, main: str, *arguments: str) -> None:
        subprocess.run(self._command(heap, main, *arguments), check=True, capture_output=True)

    def _answers(self) -> bool:
        """Return whether it answers an ApiVersions request."""
        try:
            with socket.create_connection(("127.0.0.1", self._port), 1) as connection:
                connection.settimeout(5)
                connection.sendall(bytes.fromhex("0000000a 0012 0000 00000001 ffff"))
                return len(connection.recv(4)) == 4
        except OSError:
            return False


def free_ports(number: int) -> list[int]:
    """Return ports on which nobody listens."""
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports
