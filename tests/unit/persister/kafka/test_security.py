"""How brokers are connected to: what is refused, and that no password is shown."""

from __future__ import annotations

from ssl import PROTOCOL_TLS_CLIENT, SSLContext
from typing import Any

import pytest

from sharestate.errors import ErrorCode, MalformedInputError, UnsupportedSaslMechanismError
from sharestate.persister.kafka import Security
from sharestate.persister.kafka.security import Address, addresses


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ("localhost:9092", [Address("localhost", 9092)]),
        ("br_1.b\u00fccher.de.:9092", [Address("br_1.b\u00fccher.de.", 9092)]),
        ("a:1, b:65535", [Address("a", 1), Address("b", 65535)]),
        (["a:1", "[::1]:2"], [Address("a", 1), Address("::1", 2)]),
    ],
)
def test_addresses_are_read(servers: Any, expected: list[Address]) -> None:  # noqa: ANN401 - a text or a list
    """Addresses come as one text with commas, or as several texts."""
    assert list(addresses(servers)) == expected


@pytest.mark.parametrize(
    "servers",
    ["", "localhost", ":9092", "a:", "a:x", "a:0", "a:65536", "a:1,,", [], [None], "a:²", "a..b:1", "\ud800:1", ".:1"],
)
def test_what_is_no_address_is_refused(servers: Any) -> None:  # noqa: ANN401 - anything
    """An address has a host and a port, and there is at least one."""
    with pytest.raises(MalformedInputError, match="bootstrap_servers"):
        addresses(servers)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "scram-sha-256", "GSSAPI", "OAUTHBEARER", "plain", None])
def test_another_mechanism_is_refused(mechanism: Any) -> None:  # noqa: ANN401 - anything
    """Those that are not spoken are refused with Kafka's code for that, and the message says which are."""
    known = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"
    with pytest.raises(UnsupportedSaslMechanismError, match=f"expected one of {known}, .*no other is") as caught:
        Security(security_protocol="SASL_SSL", sasl_mechanism=mechanism)

    assert caught.value.code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert caught.value.field == "sasl_mechanism"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"security_protocol": "TLS"}, "security_protocol"),
        ({"security_protocol": None}, "security_protocol"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "sasl_plain_username"),
        ({"security_protocol": "SASL_SSL", "sasl_plain_username": "u"}, "sasl_plain_password"),
        (
            {"security_protocol": "SASL_SSL", "sasl_plain_username": "u\0", "sasl_plain_password": "p"},
            "sasl_plain_username",
        ),
        ({"security_protocol": "SASL_SSL", "sasl_plain_username": "\ud800"}, "sasl_plain_username"),
        ({"security_protocol": "SASL_SSL", "sasl_plain_username": ""}, "sasl_plain_username"),
        (
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "SCRAM-SHA-512",
                "sasl_plain_username": "\u00e5nn",
                "sasl_plain_password": "p",
            },
            "sasl_plain_username",
        ),
        ({"sasl_plain_username": "u"}, "sasl_plain_username"),
        ({"ssl_context": SSLContext(PROTOCOL_TLS_CLIENT)}, "ssl_context"),
        ({"security_protocol": "SSL", "ssl_context": "ca.pem"}, "ssl_context"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, Any], field: str) -> None:
    """The error names the setting that is missing or too much, or of the wrong type."""
    with pytest.raises(MalformedInputError) as caught:
        Security(**settings)

    assert caught.value.field == field


def test_tls_checks_certificates_unless_told_otherwise() -> None:
    """Without a context of the caller's the certificate and the name of the broker are checked."""
    context = Security(security_protocol="SSL").context()

    assert context is not None
    assert Security(security_protocol="SSL", ssl_context=context).context() is context
    assert context.check_hostname
    assert Security().context() is None


def test_a_password_is_not_shown() -> None:
    """The text of the settings has the name, not the password."""
    login: Any = {"sasl_plain_username": "ann", "sasl_plain_password": "hidden"}
    security = Security(security_protocol="SASL_PLAINTEXT", **login)

    assert "ann" in repr(security)
    assert "hidden" not in repr(security)
    assert security.credentials == ("ann", "hidden")
