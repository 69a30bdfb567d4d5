"""The page with the rules of diagnoses, made from the rules themselves."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from generate.markdown import NOTICE, table
from sharestate.diagnose import DiagnosisRule, RuleNeed, Severity
from sharestate.diagnose.comparison import MEASURES
from sharestate.diagnose.diagnosis import PARTITION_RULES
from sharestate.diagnose.group_rules import GROUP_RULES
from sharestate.diagnose.stored_rules import STORED_RULES

INTRODUCTION: Final = """\
The rules by which [`sharestate diagnose`](diagnose.md) judges share groups, the gravest first. A rule finds something
only from the bound on that its row names, with the reason for it; what lies below is no finding."""

NEEDS: Final = {
    RuleNeed.STATE: "that a leader has read the state",
    RuleNeed.TIMES: "times of events",
    RuleNeed.AGREEMENT: "that nothing was observed and computed otherwise",
    RuleNeed.LOG_END: "what the log had (`--segments`)",
}

HEAD: Final = ("rule", "finds", "when", "needs", "source")


def page() -> str:
    """Return the page."""
    parts = [NOTICE, "# Rules of diagnoses", INTRODUCTION]
    parts += ["## Share partitions", "Of a history, for each share partition.", _table(PARTITION_RULES)]
    parts += ["## Groups", "Of a history, for all share partitions of a group together.", _table(GROUP_RULES)]
    parts += ["## The state topic", "Of `--bootstrap` and `--state`, for each share partition.", _table(STORED_RULES)]
    measures = table(["measure", "of"], [[f"`{each.name}`", each.title] for each in MEASURES])
    parts += [
        "## What `--against` compares",
        "For each group that both histories have; what has grown or shrunk by half is shown.",
        measures,
    ]
    return "\n\n".join(parts) + "\n"


def _table(rules: Iterable[DiagnosisRule[Any]]) -> str:
    ordered = sorted(rules, key=lambda rule: list(Severity).index(rule.severity))
    return table(HEAD, map(list, map(_row, ordered)))


def _row(rule: DiagnosisRule[Any]) -> Iterator[str]:
    yield f"`{rule.name}`"
    yield f"**{rule.severity.value}**: {rule.title}"
    yield rule.when
    yield ", ".join(NEEDS[need] for need in rule.needs)
    yield rule.source
