"""TLS and the login of ``sharestate conform --bootstrap``, from a file with the names of librdkafka."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
import trustme
from click.testing import CliRunner

from sharestate.cli.commands import sharestate
from sharestate.conformance.brokers.client_security import security_of
from sharestate.errors import MalformedInputError, UnsupportedSaslMechanismError
from tests.unit.persister.kafka.test_persister import Server, serving

LOGIN: Final = "sasl.mechanisms=PLAIN\nsasl.username=ann\nsasl.password=right\n"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Who signs the certificates of the broker and of the client."""
    return trustme.CA()


@pytest.fixture(scope="module")
def authority_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that says to trust it."""
    file = tmp_path_factory.mktemp("authority") / "authority.pem"
    authority.cert_pem.write_to_path(file)
    return file


@pytest.fixture
def server(authority: trustme.CA) -> Iterator[Server]:
    """A broker with TLS and a login, which knows no share groups."""
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(theirs)
    with serving(theirs) as server:
        server.broker.login = ("ann", "right")
        yield server


def run(server: Server, settings: str, folder: Path) -> str:
    """Return what the command says that cannot judge this broker."""
    file = folder / "client.properties"
    file.write_text(settings)
    result = CliRunner().invoke(
        sharestate, ["conform", "--bootstrap", str(server.broker.address), "--command-config", str(file)]
    )
    assert result.exit_code == 2
    return result.stderr


def test_a_file_leads_through_tls_and_the_login(server: Server, authority_file: Path, tmp_path: Path) -> None:
    """The name and the password of the file come to a broker whose certificate its authority has signed."""
    said = run(server, f"security.protocol=sasl_ssl\nssl.ca.location={authority_file}\n{LOGIN}", tmp_path)

    assert "MetadataRequest: it is not there" in said
    names = [type(request).__name__ for request in server.broker.requests]
    assert names == ["ApiVersionsRequest", "SaslHandshakeRequest", "SaslAuthenticateRequest"]
    assert server.broker.requests[-1].auth_bytes == b"\0ann\0right"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_leads_through_the_login(server: Server, authority_file: Path, tmp_path: Path, mechanism: str) -> None:
    """A right password is taken, a wrong one is not, and where a mechanism is not enabled, those are named that are."""
    server.broker.mechanism = mechanism
    login = LOGIN.replace("PLAIN", mechanism)
    secure = f"security.protocol=sasl_ssl\nssl.ca.location={authority_file}\n"

    assert "MetadataRequest: it is not there" in run(server, secure + login, tmp_path)
    refused = f"invalid credentials with SASL mechanism {mechanism}"
    assert refused in run(server, secure + login.replace("right", "wrong"), tmp_path)
    other = f"it does not take the SASL mechanism PLAIN, but these: {mechanism}"
    assert other in run(server, secure + LOGIN, tmp_path)


def test_what_the_broker_or_the_client_refuses_is_said(server: Server, authority_file: Path, tmp_path: Path) -> None:
    """A wrong password is the broker's word, a certificate that is not trusted the client's, which sends nothing."""
    secure = f"security.protocol=SASL_SSL\nssl.ca.location={authority_file}\n"

    assert "Invalid username or password" in run(server, secure + LOGIN.replace("right", "wrong"), tmp_path)
    asked = len(server.broker.requests)
    assert "certificate verify failed" in run(server, f"security.protocol=SASL_SSL\n{LOGIN}", tmp_path)
    assert len(server.broker.requests) == asked


def test_the_client_has_a_certificate_of_its_own(authority: trustme.CA, authority_file: Path, tmp_path: Path) -> None:
    """It is loaded with its key, which may be in a file of its own; checks of the broker can be switched off."""
    mine = authority.issue_cert("ann")
    certificate, key = tmp_path / "ann.pem", tmp_path / "ann.key"
    certificate.write_bytes(b"".join(blob.bytes() for blob in mine.cert_chain_pems))
    mine.private_key_pem.write_to_path(key)
    named = {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
    settings = {"security.protocol": "ssl", "ssl.ca.location": str(authority_file), **named}

    contexts = [
        security_of({**settings, **more}).context()
        for more in (
            {},
            {"ssl.endpoint.identification.algorithm": "none"},
            {"enable.ssl.certificate.verification": "false"},
        )
    ]

    checks = [(context.check_hostname, context.verify_mode) for context in contexts if context is not None]
    assert checks == [(True, ssl.CERT_REQUIRED), (False, ssl.CERT_REQUIRED), (False, ssl.CERT_NONE)]


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"client.id": "me"}, "client.id"),
        ({"security.protocol": "TLS"}, "security.protocol"),
        ({"security.protocol": "SASL_SSL", "sasl.username": "ann"}, "sasl.password"),
        ({"sasl.username": "ann"}, "sasl.username"),
        ({"ssl.ca.location": "ca.pem"}, "ssl.ca.location"),
        ({"security.protocol": "SSL", "ssl.ca.location": "/none"}, "ssl.ca.location"),
        ({"security.protocol": "SSL", "ssl.ca.location": __file__}, "ssl.ca.location"),
        ({"security.protocol": "SSL", "ssl.certificate.location": __file__}, "ssl.certificate.location"),
        ({"security.protocol": "SSL", "ssl.key.location": __file__}, "ssl.key.location"),
        ({"security.protocol": "SSL", "ssl.ca.location": "a\0b"}, "ssl.ca.location"),
        ({"security.protocol": "SSL", "ssl.certificate.location": "a\0b"}, "ssl.certificate.location"),
        (
            {"security.protocol": "SSL", "ssl.certificate.location": __file__, "ssl.key.password": "p" * 1025},
            "ssl.certificate.location",
        ),
        (
            {"security.protocol": "SSL", "enable.ssl.certificate.verification": "no"},
            "enable.ssl.certificate.verification",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused(settings: Mapping[str, str], field: str) -> None:
    """What is not known, missing or too much, and files that cannot be used; the error names the setting."""
    with pytest.raises(MalformedInputError) as caught:
        security_of(settings)

    assert caught.value.field == field


def test_other_mechanisms_are_refused() -> None:
    """As by `Security`, with the name that stands in the file."""
    with pytest.raises(UnsupportedSaslMechanismError, match=r"sasl\.mechanism: expected one of .*, got 'GSSAPI'"):
        security_of({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"})
