"""What the page of the APIs says is so: what is absent is refused, and what is there was compared with brokers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from attrs import evolve

from sharestate import KAFKA_4_4
from sharestate.broker.server import TestBroker
from sharestate.broker.server.api_versions import ANNOUNCED, API_VERSIONS_KEY
from sharestate.broker.server.apis import HANDLERS, SIMPLIFIED
from sharestate.broker.server.config_entries import DESCRIBED_ONLY, OTHER_SETTINGS
from sharestate.broker.server.server_config import NODE_SETTINGS, SERVER_SETTINGS, ServerConfig
from sharestate.errors import InvalidConfigurationError
from sharestate.values.config_keys import CONFIG_KEYS, ConfigKey, ConfigType
from sharestate.values.effective_configs import BOUNDED, bounds
from tests.broker.test_wire import ASKED
from tests.support.api_scenario import Scenario
from tests.support.wire_client import WireClient

OTHER_TEXTS: Final = {
    ConfigType.BOOLEAN: ("true", "false"),
    ConfigType.STRING: ("other", "earliest", "read_committed"),
    ConfigType.LIST: ("other",),
}
"""Values to try, of which one or the other is not the default."""


class NotingClient(WireClient):
    """A client that notes what it asks."""

    def __init__(self, port: int) -> None:
        """Connect."""
        super().__init__(port)
        self.asked: set[int] = set()

    def request(self, key: int, version: int, /, **values: Any) -> None:  # noqa: ANN401 - as the client's
        """Note a request, and send it."""
        self.asked.add(key)
        super().request(key, version, **values)


def test_what_is_there_was_compared_with_brokers() -> None:
    """Each API is asked of brokers and of ours by one of two tests, but for the one that has a test of its own."""
    with TestBroker(profile=KAFKA_4_4) as broker, NotingClient(broker.port) as client:
        assert list(Scenario(client, "compared-").run())
    compared = client.asked | {key for key, *_ in ASKED} | {API_VERSIONS_KEY}

    assert HANDLERS.keys() - compared == set()
    assert SIMPLIFIED.keys() - HANDLERS.keys() == set()


@pytest.mark.parametrize("key", sorted(ANNOUNCED.keys() - HANDLERS.keys()))
def test_what_is_absent_is_refused(key: int) -> None:
    """It is not announced, and closes the connection in every version that brokers announce."""
    low, high = ANNOUNCED[key].v4_4 or (0, 0)
    with TestBroker() as broker:
        with WireClient(broker.port) as client:
            assert key not in {each.api_key for each in client.ask(API_VERSIONS_KEY, 0).api_keys}
        for version in range(low, high + 1):
            with WireClient(broker.port) as client:
                client.send(bytes.fromhex(f"0000000a {key:04x} {version:04x} 00000005 ffff"))
                assert client.is_closed()


# ---- settings


def changed_by(key: ConfigKey) -> bool:
    """Return whether a setting that is not the default makes another server."""
    default = ServerConfig.from_kafka({})
    return any(evolve(config, texts={}) != default for config in with_other_values(key))


def with_other_values(key: ConfigKey) -> Iterator[ServerConfig]:
    """Yield the settings of a server with another value of a setting, and all else as it is."""
    others = OTHER_TEXTS.get(key.type) or [str(int(str(key.default)) + more) for more in (1, -1, 1000)]
    for text in others:
        try:
            yield ServerConfig.from_kafka({key.name: text})
        except InvalidConfigurationError:
            continue


def test_what_does_nothing_is_described_only() -> None:
    """Every setting of brokers and groups makes another server, or bounds those of groups; or the table names it."""
    limits = {name for each in BOUNDED for name in bounds(each)}
    keys = [key for key in CONFIG_KEYS if key.scope != "topic" and key.is_in("4.4")]
    of_old = {key.name for key in CONFIG_KEYS if not key.is_in("4.4")} - {key.name for key in keys}
    idle = {key.name for key in keys if key.name not in limits and not changed_by(key)}
    used = {key.name for key in (*NODE_SETTINGS.values(), *SERVER_SETTINGS.values())}

    assert idle | of_old | (OTHER_SETTINGS.keys() - used) == DESCRIBED_ONLY
