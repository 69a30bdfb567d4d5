"""What Kafka's own classes say of settings, compared with what the library says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sharestate import InvalidConfigurationError, effective_configs

_UNKNOWN: Final = "Unknown group config name"


def difference(request: Mapping[str, Any], answer: Mapping[str, Any], release: str) -> str:
    """
    Return how Kafka's answer differs from ours; nothing if it does not.

    Args:
        request: Settings, as ``ConfigsDriver.java`` takes them.
        answer: What it says: what Kafka refuses them with, or the values that it makes of them.
        release: The release of Kafka.
    """
    given = {**request["broker"], **request["group"]}
    raised = answer.get("raised")
    try:
        values = effective_configs(given, release=release, is_loaded=request["loaded"])
    except InvalidConfigurationError as error:
        return f"Kafka takes it; ours: {error}" if raised is None else _other_words(raised, error)
    if raised is not None:
        return f"Kafka: {raised['message']}"
    shown = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    differing = (name for name, value in answer["result"].items() if not _is_same(name, shown[name], value))
    return "; ".join(f"{name}: Kafka {answer['result'][name]}, ours {shown[name]}" for name in differing)


def _other_words(raised: Mapping[str, str], error: InvalidConfigurationError) -> str:
    # Of several unknown names, a hash map decides which one is first; Java has words of its own for what is no number.
    both = {raised["message"], str(error)}
    is_same = len(both) == 1 or all(each.startswith(_UNKNOWN) for each in both)
    is_same |= raised["exception"] == "NumberFormatException" and "Not a number" in str(error)
    is_named = error.key is not None and error.key in str(error)
    codec = "compression type id" in str(error)  # Kafka's words do not name the setting
    return "" if is_same and (is_named or codec) else f"Kafka: {raised['message']}; ours: {error} ({error.key})"


def _is_same(name: str, ours: object, kafkas: object) -> bool:
    if name == "share.auto.offset.reset":  # as ShareGroupAutoOffsetResetStrategy.toString() has it
        return str(ours).partition(":")[0] in str(kafkas).lower()
    return ours == kafkas
