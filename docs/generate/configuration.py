"""The page of Kafka's settings of share groups, made from the table that the library reads them by."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from generate.data import DATA
from generate.markdown import NOTICE, table
from sharestate.values.config_keys import CONFIG_KEYS, RELEASES, ConfigKey
from sharestate.values.effective_configs import BOUNDED, RELATIONS, bounds

INTRODUCTION: Final = """\
Every setting of share groups, of the share coordinator and of dead-letter queues that Kafka 4.2, 4.3 and 4.4 have. The
tables are the library's own, and a test holds them equal to what the classes of 4.2.1, 4.2.2, 4.3.1 and 4.4.0 say. The
library reads settings by them, as texts with Kafka's names, those of a broker and of a group together:

```{doctest}
>>> from sharestate import GroupCoordinatorConfig, ShareConfig, effective_configs
>>> from sharestate.coordinator import CoordinatorConfig
>>> settings = {
...     "group.share.partition.max.record.locks": "4000",
...     "share.record.lock.duration.ms": "45000",
...     "share.coordinator.snapshot.update.records.per.snapshot": "100",
... }
>>> ShareConfig.from_kafka(settings, release="4.3.1").record_lock_duration_ms
45000
>>> GroupCoordinatorConfig.from_kafka(settings).session_timeout_ms
45000
>>> CoordinatorConfig.from_kafka(settings).updates_per_snapshot
100
>>> effective_configs(settings)["share.partition.max.record.locks"]
4000
```

`read_server_properties(path)` of `sharestate.broker_log` reads a broker's `server.properties`, in the syntax of
`java.util.Properties`, for this.

What Kafka refuses is refused, with `InvalidConfigurationError`, in the same words; `key` has the setting. A name that
looks like one of share groups and is none is refused as well, though Kafka only ignores it:

```{doctest}
>>> effective_configs({"group.share.min.session.timeout.ms": "50000"})
Traceback (most recent call last):
sharestate.input_errors.InvalidConfigurationError: group.share.session.timeout.ms...
>>> effective_configs({"group.share.max.sise": "20"})
Traceback (most recent call last):
sharestate.input_errors.InvalidConfigurationError: ...; did you mean group.share.max.size?
```

*Dynamic* settings can be changed while brokers run; the others are read when a broker starts. *Internal* ones are
missing in Kafka's documentation. What a setting is for is said in Kafka's words."""

SECTIONS: Final = {
    "GroupCoordinatorConfig": (
        "Brokers: groups and their members",
        (
            "The group coordinator's, `GroupCoordinatorConfig.from_kafka()`. A retry of an initialization waits at"
            " least for `offsets.commit.timeout.ms`."
        ),
    ),
    "ShareGroupConfig": ("Brokers: share partitions and share sessions", "`ShareConfig.from_kafka()`."),
    "ShareCoordinatorConfig": ("Brokers: the share coordinator", "`CoordinatorConfig.from_kafka()`."),
    "GroupConfig": (
        "Groups",
        (
            "A group that lacks one has the broker's setting of the same name after `group.`, else the default here."
            " 4.2 has the delivery count limit and the record locks for brokers only."
        ),
    ),
    "LogConfig": ("Topics", "Of a topic that is to be a dead-letter queue."),
}

BETWEEN: Final = """\
## What brokers want of two settings

A broker does not start unless all of this holds, asked in this order. The codec of the state topic is one of 0 to 4,
there is exactly one assignor, and 4.2, too, wants at most 500 updates between snapshots."""

OF_GROUPS: Final = """\
## What brokers want of a group's settings

A controller refuses a setting of a group that is outside the bounds in its own broker settings, and a session timeout
that is not above the heartbeat interval. What the group is not given counts with the broker's value; in 4.2 with
Kafka's default, so that a controller whose bounds leave out one of Kafka's defaults refuses every setting of a group
that does not set that one, too.

Bounds may change after a group was configured. A broker that then loads the group moves the number to the nearest
bound, from 4.3 on; in 4.2 it has it as it is. `is_loaded=True` reads settings like that. With a space before or
after such a number, as in `" 50000"`, 4.3.1 and 4.4.0 let the setting be made, and no broker can load it:
NumberFormatException. The library refuses it."""


def page() -> str:
    """Return the page."""
    parts = [NOTICE, "# Configuration", INTRODUCTION]
    meanings = _meanings()
    for owner, (title, about) in SECTIONS.items():
        rows = (_row(key, meanings) for key in CONFIG_KEYS if key.owner == owner)
        parts += [f"## {title}", f"{about} Kafka's class is `{owner}`.", _table(rows)]
    relations = ([f"`{each.left}`", each.is_, f"`{each.right}`"] for each in RELATIONS)
    parts += [BETWEEN, table(["setting", "is", "the other"], relations), OF_GROUPS]
    parts.append(
        table(["setting", "at least", "at most"], ([f"`{each}`" for each in (name, *bounds(name))] for name in BOUNDED))
    )
    return "\n\n".join(parts) + "\n"


def _table(rows: Iterator[list[str]]) -> str:
    return table(["setting", "type", "default", "values", "releases", "", "what it is for"], rows)


def _row(key: ConfigKey, meanings: dict[str, str]) -> list[str]:
    default = ",".join(key.default) if isinstance(key.default, tuple) else str(key.default)
    flags = ["dynamic"] * (key.is_dynamic and key.scope == "broker") + ["internal"] * key.is_internal
    return [
        f"`{key.name}`",
        key.type.value.lower(),
        f"`{default.lower() if isinstance(key.default, bool) else default}`" if default else "empty",
        f"`{key.valid}`" if str(key.valid or "") else "",
        _releases(key),
        ", ".join(flags),
        meanings[key.name],
    ]


def _releases(key: ConfigKey) -> str:
    if key.since == key.until:
        return key.since
    return "" if (key.since, key.until) == (RELEASES[0], RELEASES[-1]) else f"{key.since} to {key.until}"


def _meanings() -> dict[str, str]:
    """Return what Kafka's documentation says of each setting, in its latest words."""
    rows = [row for path in sorted(DATA.glob("configs/keys-*.json")) for row in json.loads(path.read_text())]
    return {row["name"]: _markdown(row["documentation"]) for row in rows}


def _markdown(html: str) -> str:
    """
    Return what Kafka has written for its own pages.

    >>> _markdown("An <code>enum</code>.<ul><li>one</li><li>two</li></ul>")
    'An `enum`. One of: one; two.'
    """
    text = re.sub(r"</?code>", "`", html)
    text = re.sub(r"\s*<ul><li>", " One of: ", text).replace("</li><li>", "; ")
    return re.sub(r"\.?</li></ul>", ".", text)
