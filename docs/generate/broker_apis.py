"""The page of what the test broker answers, made from the tables by which it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from generate.markdown import NOTICE, table
from sharestate.broker.server.api_versions import ANNOUNCED, Versions, served_versions
from sharestate.broker.server.apis import HANDLERS, SIMPLIFIED
from sharestate.broker.server.config_entries import DESCRIBED_ONLY
from sharestate.broker.server.other_group_configs import other_broker_keys
from sharestate.broker.server.server_config import JUDGED_SETTINGS, NODE_SETTINGS, SERVER_SETTINGS
from sharestate.values.config_keys import CONFIG_KEYS, RELEASES
from sharestate.values.effective_configs import BOUNDED, bounds

INTRODUCTION: Final = """\
Of the APIs that brokers of Kafka announce to clients, what [the test broker](test-broker.md) has:

- **exact**: tests have asked brokers of Kafka and the test broker the same, and compared whole answers, but for times
  and ids that are drawn. That holds for a cluster of one broker where everybody may do everything, in which there are
  [no internal topics](test-broker.md#what-it-answers).
- **simplified**: so it was compared, too, but for what is said.
- **absent**: it is not announced, so clients say at once that the broker does not support it, as with an older broker.
  Who asks all the same is treated as by a broker: the connection is closed. The logger `sharestate.broker.server` says
  why.

Versions are those that are announced. The test broker announces those of the release whose rules it follows, as far as
[kio](https://github.com/Aiven-Open/kio) has their schemas."""

SETTINGS: Final = """\
## Settings

Of a `server.properties`, or of `config`, this does something ([what it is for](configuration.md)):"""

GROUPS: Final = """\
The last row is for groups that have no settings of their own: a broker of Kafka has no such keys for all groups. What
is about share groups is judged as a broker judges it; where Kafka would not start, the test broker does not, either.

These are judged as well, and described to who asks for the configs of the broker, and do nothing else:"""

OTHER_GROUPS: Final = """\
A group has the configs of consumer groups and of streams groups, too, as in Kafka: they are described, with the
broker's settings as their defaults, and can be altered within its bounds, and do nothing. These settings of the broker
are judged for that, and not described:"""

JUDGED: Final = "This is judged, as a broker does not start that cannot read it, and does nothing:"

LEFT_OUT: Final = """\
Every other key is left out, as a broker leaves out what it does not know: not even DescribeConfigs has it. A topic has
the configs that it is given, or Kafka's defaults, whatever `server.properties` says of `log.retention.ms` and its
likes."""


def page() -> str:
    """Return the page."""
    served = {release: served_versions(release, HANDLERS) for release in RELEASES}
    head = ["API", "key", *RELEASES, "here", "how"]
    rows = (
        [
            announced.name,
            str(key),
            *(_versions(announced.by(release)) for release in RELEASES),
            _same(_versions(served[release].get(key)) for release in RELEASES),
            _how(key),
        ]
        for key, announced in ANNOUNCED.items()
    )
    parts = [NOTICE, "# What the test broker answers", INTRODUCTION, table(head, rows)]
    parts += [SETTINGS, table(["of", "keys"], _used()), GROUPS, _names(sorted(DESCRIBED_ONLY))]
    others = dict.fromkeys(name for line in RELEASES for name in other_broker_keys(line))
    parts += [OTHER_GROUPS, _names(others), JUDGED, _names(key.name for key in JUDGED_SETTINGS)]
    parts.append(LEFT_OUT)
    return "\n\n".join(parts) + "\n"


def _versions(versions: Versions | None) -> str:
    return "" if versions is None else "-".join(map(str, dict.fromkeys(versions)))


def _same(versions: Iterable[str]) -> str:
    """Return what is the same with the rules of every release that has the API."""
    (version,) = set(versions)
    return version


def _how(key: int) -> str:
    if key not in HANDLERS:
        return "absent"
    return f"**simplified**: {SIMPLIFIED[key]}" if key in SIMPLIFIED else "**exact**"


def _used() -> Iterator[list[str]]:
    """Yield a row for each kind of settings that do something."""
    limits = {name for each in BOUNDED for name in bounds(each)}
    used = [key for key in CONFIG_KEYS if key.name not in DESCRIBED_ONLY]
    of_brokers = [key.name for key in used if key.scope == "broker"]
    yield ["any broker", _names(sorted(key.name for key in (*NODE_SETTINGS.values(), *SERVER_SETTINGS.values())))]
    yield ["share groups", _names(name for name in of_brokers if name not in limits)]
    yield ["bounds of what groups may be set to", _names(name for name in of_brokers if name in limits)]
    yield ["a group", _names(key.name for key in used if key.scope == "group")]


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
