"""`sharestate conform` at brokers of Kafka behind TLS and a login."""

from __future__ import annotations

import gzip
import json
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from sharestate.cli.commands import sharestate
from tests.broker.conftest import RELEASES
from tests.broker.kafka_broker import PASSWORD, KafkaBroker

pytestmark = [pytest.mark.broker, pytest.mark.parametrize("broker", RELEASES[-1:], indirect=True)]

SCRIPTS: Final = ("renewal-off", "stored-offset-lags")
"""Scripts that take little time, in which members, an administrator and a producer ask their brokers."""

RULES: Final = {"15", "20.2"}


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
