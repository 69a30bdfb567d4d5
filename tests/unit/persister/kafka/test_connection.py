"""The beginning of a connection: versions, the login, and when it is replaced."""

from __future__ import annotations

from collections import deque

import pytest
from attrs import evolve

from sharestate import ErrorCode
from sharestate.persister.kafka import Security
from tests.support.kafka_broker import API_VERSIONS, FIND_COORDINATOR, SASL_HANDSHAKE, WRITE, FakeBroker
from tests.support.kafka_cluster import FIRST, ClusterPersister

from .test_state_manager import begin, codes, message, summary

LOGIN = Security(security_protocol="SASL_PLAINTEXT", sasl_plain_username="ann", sasl_plain_password="right")  # noqa: S106 - of the fake broker


def broker_with_login(lifetime_ms: int = 0) -> FakeBroker:
    """Return a broker that wants a login."""
    broker = FakeBroker(FIRST)
    broker.login = ("ann", "right")
    broker.lifetime_ms = lifetime_ms
    return broker


def test_a_connection_asks_for_versions_first() -> None:
    """Without a login there is one request before the first that was asked for."""
    cluster = ClusterPersister()
    cluster.submit(begin())

    names = [type(request).__name__ for request in cluster.broker.requests]
    assert names == ["ApiVersionsRequest", "FindCoordinatorRequest", "InitializeShareGroupStateRequest"]
    assert cluster.broker.requests[0].client_software_name == "sharestate"


def test_a_login_follows_the_versions() -> None:
    """With SASL the mechanism is agreed on after the versions, and then the name and password are sent."""
    cluster = ClusterPersister(broker_with_login(), security=LOGIN)

    assert codes(cluster.submit(begin())) == [0]
    names = [type(request).__name__ for request in cluster.broker.requests[:4]]
    assert names == ["ApiVersionsRequest", "SaslHandshakeRequest", "SaslAuthenticateRequest", "FindCoordinatorRequest"]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login_may_take_two_messages(mechanism: str) -> None:
    """With SCRAM the password is not sent; it is known to both sides in the end."""
    broker = broker_with_login()
    broker.mechanism = mechanism
    cluster = ClusterPersister(broker, security=evolve(LOGIN, sasl_mechanism=mechanism))

    assert codes(cluster.submit(begin())) == [0]
    names = [type(request).__name__ for request in broker.requests[1:5]]
    assert names == ["SaslHandshakeRequest", *["SaslAuthenticateRequest"] * 2, "FindCoordinatorRequest"]
    assert not any(b"right" in request.auth_bytes for request in broker.requests[2:4])


def test_a_wrong_password_is_refused_by_scram() -> None:
    """With the broker's text, as by PLAIN."""
    broker = broker_with_login()
    broker.mechanism = "SCRAM-SHA-256"
    broker.login = ("ann", "another")
    cluster = ClusterPersister(broker, security=evolve(LOGIN, sasl_mechanism=broker.mechanism))
    future = cluster.submit(begin())

    assert codes(future) == [ErrorCode.SASL_AUTHENTICATION_FAILED]
    assert "invalid credentials with SASL mechanism SCRAM-SHA-256" in message(future)


@pytest.mark.parametrize(
    ("spoken", "text"),
    [
        ((0, 0), "version 1 of WriteShareGroupState is needed, but it speaks 0 to 0"),
        ((2, 3), "version 1 of WriteShareGroupState is needed, but it speaks 2 to 3"),
        (None, "version 1 of WriteShareGroupState is needed, but it does not speak it at all"),
    ],
)
def test_a_broker_of_another_release_is_refused(spoken: tuple[int, int] | None, text: str) -> None:
    """A broker that does not speak a version that is needed is answered with UNSUPPORTED_VERSION, at once."""
    cluster = ClusterPersister()
    del cluster.broker.versions[WRITE]
    if spoken:
        cluster.broker.versions[WRITE] = spoken
    future = cluster.submit(summary())

    assert codes(future) == [ErrorCode.UNSUPPORTED_VERSION]
    assert message(future) == f"first:9092: {text}"


@pytest.mark.parametrize(
    ("api_key", "code", "text"),
    [
        (API_VERSIONS, ErrorCode.INVALID_REQUEST, "it refuses to say what it speaks"),
        (
            SASL_HANDSHAKE,
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
            "it does not take the SASL mechanism PLAIN, but these: PLAIN",
        ),
    ],
)
def test_a_broker_that_refuses_is_answered_with_its_code(api_key: int, code: ErrorCode, text: str) -> None:
    """An error before the connection is ready is passed on, and not retried."""
    cluster = ClusterPersister(broker_with_login(), security=LOGIN)
    cluster.broker.errors[api_key] = deque([code])
    future = cluster.submit(begin())

    assert codes(future) == [code]
    assert message(future) == f"first:9092: {text}"


def test_a_wrong_password_is_an_error() -> None:
    """A login that the broker refuses is SASL_AUTHENTICATION_FAILED, with the broker's text."""
    cluster = ClusterPersister(broker_with_login(), security=LOGIN)
    cluster.broker.login = ("ann", "another")
    future = cluster.submit(begin())

    assert codes(future) == [ErrorCode.SASL_AUTHENTICATION_FAILED]
    assert message(future) == "first:9092: Authentication failed: Invalid username or password"


def test_a_refusal_by_the_coordinator_is_an_error_too() -> None:
    """A coordinator that refuses what the bootstrap server has taken is answered with its error code."""
    cluster = ClusterPersister()
    cluster.broker.address = FIRST._replace(port=9093)
    other = FakeBroker(cluster.broker.address)
    other.versions.pop(FIND_COORDINATOR)
    cluster.brokers[other.address] = other

    assert codes(cluster.submit(begin())) == [ErrorCode.UNSUPPORTED_VERSION]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_login_that_expires_is_renewed(mechanism: str) -> None:
    """A connection is replaced before its login expires, for the broker would cut it then."""
    broker = broker_with_login(lifetime_ms=10_000)
    broker.mechanism = mechanism
    cluster = ClusterPersister(broker, security=evolve(LOGIN, sasl_mechanism=mechanism))
    cluster.submit(begin())
    cluster.pass_time(8_499)
    assert codes(cluster.submit(summary())) == [0]
    assert len(cluster.opened) == 1
    cluster.pass_time(1)

    assert codes(cluster.submit(summary())) == [0]
    assert (len(cluster.opened), len(cluster.closed)) == (2, 1)


def test_a_connection_in_use_is_replaced_later() -> None:
    """What is on the way when a login is about to expire is waited for; what comes then goes over another."""
    cluster = ClusterPersister(broker_with_login(lifetime_ms=10_000), security=LOGIN)
    cluster.submit(begin())
    cluster.pass_time(8_499)
    cluster.is_holding = True
    futures = [cluster.submit(summary())]
    cluster.pass_time(1)
    cluster.is_holding = False
    futures.append(cluster.submit(begin()))
    futures.append(cluster.submit(begin(partition=1)))
    assert (len(cluster.opened), codes(*futures)) == (1, [None, None, None])
    cluster.deliver()

    assert codes(*futures) == [0, 0, 0]
    assert len(cluster.opened) == 2


def test_bytes_may_arrive_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The login does not depend on how the bytes are cut."""
    cluster = ClusterPersister(broker_with_login(), security=LOGIN)
    received = cluster.manager.data_received

    def one_by_one(number: int, data: bytes, now_ms: int) -> None:
        for index in range(len(data)):
            received(number, data[index : index + 1], now_ms)

    monkeypatch.setattr(cluster.manager, "data_received", one_by_one)

    assert codes(cluster.submit(begin())) == [0]
