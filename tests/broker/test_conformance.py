"""`sharestate conform` at brokers of Kafka behind TLS and a login."""

from __future__ import annotations

import gzip
import json
import time
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import evolve
from click.testing import CliRunner

from sharestate.cli.commands import sharestate
from sharestate.errors import ErrorCode, ExternalError
from sharestate.testing.servers import RawConnection, Security
from tests.broker.conftest import RELEASES
from tests.broker.kafka_broker import MECHANISMS, PASSWORD, USER, KafkaBroker

pytestmark = [pytest.mark.broker, pytest.mark.parametrize("broker", RELEASES[-1:], indirect=True)]

SCRIPTS: Final = ("renewal-off", "stored-offset-lags")
"""Scripts that take little time, in which members, an administrator and a producer ask their brokers."""

RULES: Final = {"15", "20.2"}

TRIES: Final = 20
"""How often a login is tried, in a tenth of a second each."""


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Those scripts in a file."""
    shipped = files("sharestate.conformance").joinpath("scripts.jsonl.gz").read_bytes()
    header, *lines = gzip.decompress(shipped).decode().splitlines()
    file = tmp_path / "few.jsonl"
    file.write_text("\n".join([header, *(line for line in lines if json.loads(line)["name"] in SCRIPTS)]))
    return file


def conform(broker: KafkaBroker, address: str, settings: Path, few: Path) -> tuple[int, str]:
    """Return the exit code of the command, and all that it prints."""
    at = ["--bootstrap", address, "--command-config", str(settings)]
    made = CliRunner().invoke(sharestate, ["conform", *at, "--release", broker.kafka, "--vectors", str(few), "--json"])
    return made.exit_code, made.output


@pytest.mark.parametrize("is_mutual", [False, True], ids=["login", "certificate"])
def test_a_broker_behind_tls_conforms(broker: KafkaBroker, few: Path, tmp_path: Path, *, is_mutual: bool) -> None:
    """With a name and a password, and with a certificate: members, administrators and producers get through."""
    address = broker.mutual_address if is_mutual else broker.secure_address
    settings = broker.client_certificate(tmp_path) if is_mutual else broker.login(tmp_path)

    code, printed = conform(broker, address, settings, few)

    found: dict[str, Any] = json.loads(printed)
    assert {rule["rule"] for rule in found["rules"] if rule["verdict"] == "passed"} == RULES
    assert code == 0


def test_a_wrong_login_is_told(broker: KafkaBroker, few: Path, tmp_path: Path) -> None:
    """Nothing is known of the broker then."""
    settings = broker.login(tmp_path)
    settings.write_text(settings.read_text().replace(PASSWORD, "wrong"))

    code, printed = conform(broker, broker.secure_address, settings, few)

    assert code == 2
    assert "Authentication failed" in printed


# ---- SCRAM


def without_tls(folder: Path, mechanism: str) -> Path:
    """Return a file with the settings of a client for the address with a login only."""
    file = folder / "client.properties"
    login = f"sasl.mechanism={mechanism}\nsasl.username={USER}\nsasl.password={PASSWORD}\n"
    file.write_text(f"security.protocol=SASL_PLAINTEXT\n{login}")
    return file


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_scram_leads_to_a_broker(broker: KafkaBroker, few: Path, tmp_path: Path, mechanism: str) -> None:
    """With each hash; a wrong password is not taken."""
    settings = broker.login(tmp_path, mechanism)
    code, report = conform(broker, broker.secure_address, settings, few)
    settings.write_text(settings.read_text().replace(PASSWORD, "wrong"))
    refused, printed = conform(broker, broker.secure_address, settings, few)

    assert (code, refused) == (0, 2), report
    assert f"due to invalid credentials with SASL mechanism {mechanism}" in printed


def test_scram_needs_no_tls(broker: KafkaBroker, few: Path, tmp_path: Path) -> None:
    """The password is not sent. A mechanism that the broker does not take is named with those that it takes."""
    code, _ = conform(broker, broker.login_address, without_tls(tmp_path, "SCRAM-SHA-512"), few)
    refusals = [
        conform(broker, broker.login_address, without_tls(tmp_path, mechanism), few)
        for mechanism in ("PLAIN", "SCRAM-SHA-256")
    ]

    assert code == 0
    for mechanism, (refused, printed) in zip(("PLAIN", "SCRAM-SHA-256"), refusals, strict=True):
        assert f"it does not take the SASL mechanism {mechanism}, but these: SCRAM-SHA-512" in printed
        assert refused == 2


@pytest.mark.parametrize(
    ("name", "password"),
    [("a=b,c d", "=2C, \u20ac"), ("ligature", "\ufb01sh\u00a0and\u00adchips"), ("digit", "\u2463")],
)
def test_names_and_passwords_are_taken_as_they_are(broker: KafkaBroker, name: str, password: str) -> None:
    """Whatever SASLprep would make of them: Kafka does not prepare what it stores, and neither do its clients."""
    broker.add_user(name, password)
    given: Any = {"sasl_plain_username": name, "sasl_plain_password": password}
    security = Security(security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-512", **given)

    assert accepts(broker.login_address, security)
    assert not accepts(broker.login_address, evolve(security, sasl_plain_password=f"{password}."))


def accepts(address: str, security: Security) -> bool:
    """Return whether a broker takes a login, which it may learn of a little later."""
    for _ in range(TRIES):
        try:
            RawConnection(address, "tests", security).close()
        except ExternalError as error:
            assert error.code is ErrorCode.SASL_AUTHENTICATION_FAILED  # noqa: PT017 - not the one that is looked for
            time.sleep(0.1)
        else:
            return True
    return False
