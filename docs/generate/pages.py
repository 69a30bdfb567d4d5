"""The generated pages by their names."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from generate import (
    broker_apis,
    configuration,
    conformance_reports,
    dead_letter_rules,
    diagnosis_rules,
    green_runs,
    history_format,
    how_we_know,
    invariants,
    kafka_bug_reports,
    kafka_bugs,
    lockstep,
    monitor,
    planted_bugs,
    rules_by_profile,
    share_groups,
    share_partition,
    share_sessions,
    spark_tables,
    stability,
    state_machines,
    where_rules_live,
)

DOCS: Final = Path(__file__).parents[1]

PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "configuration.md": configuration.page,
        "conformance-reports.md": conformance_reports.page,
        "dead-letter-rules.md": dead_letter_rules.page,
        "diagnosis-rules.md": diagnosis_rules.page,
        "green-runs.md": green_runs.page,
        "history-format.md": history_format.page,
        "how-we-know.md": how_we_know.page,
        "invariants.md": invariants.page,
        "kafka-bug-reports.md": kafka_bug_reports.page,
        "kafka-bugs.md": kafka_bugs.page,
        "lifecycle.svg": state_machines.lifecycle,
        "lockstep.md": lockstep.page,
        "monitor-metrics.md": monitor.page,
        "../examples/monitor/dashboard.json": monitor.dashboard,
        "planted-bugs.md": planted_bugs.page,
        "record-machine.svg": state_machines.record_machine,
        "rules-by-profile.md": rules_by_profile.page,
        "share-group.svg": share_groups.drawing,
        "share-partition.svg": share_partition.picture,
        "share-session.svg": share_sessions.drawing,
        "spark-tables.md": spark_tables.page,
        "stability.md": stability.page,
        "state-machines.md": state_machines.page,
        "test-broker-apis.md": broker_apis.page,
        "where-rules-live.md": where_rules_live.page,
    }
)
"""The function that makes each page and drawing, by its file in ``docs``."""
