"""The command ``diagnose``: what is wrong with share groups, what shows it, and what to do."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource
from rich.text import Text

from sharestate.cli.exits import NoVerdict, exit_code_of_diagnosis
from sharestate.cli.partition_choice import group_option, partition_option, profile_option, topic_option
from sharestate.cli.progress import no_verdicts, progress, tables, watched
from sharestate.cli.state import PATH, limits_of, read_topic, servers_option, settings_option
from sharestate.cli.tables import Cell, print_rows
from sharestate.diagnose import (
    Comparison,
    Diagnosis,
    DiagnosisFinding,
    HistoryFacts,
    NotChecked,
    compare,
    computed_lines,
    diagnose,
    diagnose_stored,
    read_facts,
)
from sharestate.explain.words import counted
from sharestate.history import Header
from sharestate.json_lines import printable, write_json
from sharestate.state_topic import StateTopic
from sharestate.values.profiles import PROFILES

_SHOWN: Final = 3
"""How many share partitions of a finding are shown; ``--json`` has all. [share partitions]"""

_SHOWN_CHANGES: Final = 12
"""How many measures are shown that have changed; ``--json`` has all."""

_ADVISED_S: Final = 60
"""How long settings are computed for. [s of CPU]"""

_STYLES: Final = {"critical": "bold red", "warning": "yellow", "notice": ""}

Wanted = tuple[str | None, str | None, int | None]
"""The group, the topic's name or id, and the partition; None for all."""


@click.command("diagnose")
@click.option(
    "--against",
    "other",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="HISTORY",
    help="Compare with another history, such as that of a good run, and say what differs most.",
)
@servers_option
@settings_option
@click.option(
    "--state",
    "paths",
    multiple=True,
    type=PATH,
    metavar="FILE_OR_DIR",
    help="Files of the topic __share_group_state in place of a history, as 'state rebuild' takes them.",
)
@click.option(
    "--delivery-limit",
    type=click.IntRange(min=1),
    metavar="DELIVERIES",
    help="Of the state topic: the groups' delivery count limit. A cluster is asked; else 5 is assumed.",
)
@click.option(
    "--max-record-locks",
    type=click.IntRange(min=1),
    metavar="RECORDS",
    help="Likewise their share.partition.max.record.locks; else 2000 is assumed.",
)
@group_option
@topic_option
@partition_option
@profile_option
@click.option(
    "--advise",
    "is_advised",
    is_flag=True,
    help="Compute what other settings would have changed, by simulating the load that the history shows.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page for a browser, too.",
)
@click.argument(
    "source",
    metavar="[HISTORY]",
    required=False,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.pass_context
def diagnose_command(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    *,
    other: Path | None,
    servers: str | None,
    settings_path: Path | None,
    paths: tuple[str, ...],
    delivery_limit: int | None,
    max_record_locks: int | None,
    group_id: str | None,
    topic: str | None,
    partition: int | None,
    profile_name: str,
    is_advised: bool,
    as_json: bool,
    page: Path | None,
    source: Path | None,
) -> None:
    """
    Say what is wrong with share groups, what shows it, and what to do.

    Of a broker's log HISTORY is what 'log verify -o' has written; a program may have written another one. It is read
    once, and each share partition is judged by rules, which docs/diagnose.md lists. What a rule needs and the history
    does not say is not checked, with the reason.

    With --advise, findings about settings have what others would have changed: locks, polls, limits and members are
    tried on the load that the history shows, for a minute of CPU at the most.

    With --bootstrap or --state, what the state topic proves: no members, no times of processing, no causes.

    Exit code: 0 if nothing was found, 1 if something was (with --against: if something differs), or 2 if nothing was
    found and not all could be checked, or something cannot be read.
    """
    wanted = group_id, topic, partition
    if (source is None) == (servers is None and not paths):
        message = "Give either a history, or --bootstrap or --state." if source else "Missing argument 'HISTORY'."
        raise click.UsageError(message)
    if other is not None and (source is None or page is not None or is_advised):
        message = "--against compares two histories, and goes without --html and --advise."
        raise click.UsageError(message)
    limits = {"delivery_count_limit": delivery_limit, "max_record_locks": max_record_locks}
    _expect_sense(context, is_history=source is not None)
    with no_verdicts():
        if source is None:
            found = _stored(servers, settings_path, paths, limits, wanted)
        else:
            facts = _read(source, profile_name, wanted)
            if other is not None:
                compared = compare(facts, _read(other, profile_name, wanted))
                _print([write_json(compared.to_json())] if as_json else _compared_lines(compared))
                context.exit(_code_of_comparison(compared))
            found = diagnose(facts)
            if is_advised:
                found = _advised(found, source)
    of = "events" if source is not None else "records of the topic"
    if page is not None:
        from sharestate.report import diagnosis_page  # noqa: PLC0415 - loaded where a page is asked for

        title = "the state topic" if source is None else source.name
        page.write_text(diagnosis_page(found, title=title, of=of), encoding="utf-8", newline="\n")
    if as_json:
        _print([write_json(found.to_json())])
    else:
        _print_diagnosis(found, of)
    context.exit(exit_code_of_diagnosis(has_findings=bool(found.findings), is_whole=not found.not_checked))


_OF_STATE_TOPIC: Final = ("delivery_limit", "max_record_locks", "settings_path")
_OF_HISTORY: Final = ("profile_name", "is_advised")


def _expect_sense(context: click.Context, *, is_history: bool) -> None:
    """Refuse options that would have no effect."""
    of_other, why = (
        (_OF_STATE_TOPIC, "is for the state topic (--bootstrap, --state); a history has the settings of its groups")
        if is_history
        else (_OF_HISTORY, "is for a history; what the state topic proves is so by the rules of every release")
    )
    for option in context.command.params:
        if option.name in of_other and context.get_parameter_source(option.name) is not ParameterSource.DEFAULT:
            message = f"{option.opts[0]} {why}."
            raise click.UsageError(message)


def _read(source: Path, profile_name: str, wanted: Wanted) -> HistoryFacts:
    group_id, topic, partition = wanted

    def is_wanted(header: Header, key: tuple[str, str, int]) -> bool:
        asked = group_id, None if topic is None else header.topic_id(topic), partition
        return all(want in {None, each} for want, each in zip(asked, key, strict=True))

    with progress("reading") as bar:
        facts = read_facts(
            source, profile=PROFILES[profile_name], wanted=is_wanted, watch=lambda history: watched(history, bar)
        )
    if not facts.partitions:
        message = f"no such share partition is in {source}"
        raise NoVerdict(message)
    return facts


def _advised(found: Diagnosis, source: Path) -> Diagnosis:
    from sharestate.simulate import advise_findings  # noqa: PLC0415 - what most diagnoses do without

    give_up_s = time.process_time() + _ADVISED_S
    with progress("simulating") as bar:
        return advise_findings(
            found,
            source,
            is_over=lambda: time.process_time() > give_up_s,
            watch=lambda history: watched(history, bar),
        )


def _stored(
    servers: str | None,
    settings_path: Path | None,
    paths: tuple[str, ...],
    limits: Mapping[str, int | None],
    wanted: Wanted,
) -> Diagnosis:
    state = StateTopic()
    ends, names, configs = read_topic(state, servers, settings_path, paths, asks_configs=True)
    group_id, topic, partition = wanted
    chosen = [
        each
        for each in state.share_partitions()
        if group_id in {None, each.key.group_id}
        and topic in {None, each.key.topic_id, names.get(each.key.topic_id)}
        and partition in {None, each.key.partition}
    ]
    if not chosen:
        message = "no such share partition is in the state topic"
        raise NoVerdict(message)
    return diagnose_stored(
        chosen,
        records=sum(each.counts.total() for each in state.partitions.values()),
        log_ends=ends,
        topics=names,
        configs={each.key.group_id: limits_of(configs.get(each.key.group_id, {}), **limits) for each in chosen},
        last_ms=state.last_timestamp_ms if servers is None else time.time_ns() // 1_000_000,
    )


# ---- for people


def _print_diagnosis(found: Diagnosis, of: str) -> None:
    partitions = counted(found.share_partitions, "share partition")
    rules = [(rule, list(each)) for rule, each in groupby(found.findings, key=lambda finding: finding.rule.name)]
    _print([f"{counted(len(rules), 'finding') if rules else 'Nothing found'} in {partitions}, {found.events:,} {of}."])
    _print(found.summary)
    if rules:
        print_rows(
            tables(),
            ("severity", "finding", "rule", "in."),
            [_row(findings) for _, findings in rules],
        )
    for _, findings in rules:
        _print(_finding_lines(findings, found))
    _print(_not_checked_lines(found))
    _print(found.notes)


def _row(findings: Sequence[DiagnosisFinding]) -> list[Cell]:
    rule = findings[0].rule
    severity = Text(rule.severity.value, style=_STYLES[rule.severity.value])
    return [severity, rule.title, rule.name, str(len(findings))]


def _finding_lines(findings: Sequence[DiagnosisFinding], found: Diagnosis) -> Iterator[str]:
    rule = findings[0].rule
    yield ""
    yield f"{rule.severity.value}: {rule.title} ({rule.name})"
    for each in findings[:_SHOWN]:
        yield f"  {each.place.named(found.topics)}: {each.evidence}"
    if len(findings) > _SHOWN:
        yield f"  and {counted(len(findings) - _SHOWN, 'share partition')} more (--json)"
    yield f"  What to do: {findings[0].advice}"
    yield from (f"  Computed: {line}" for line in computed_lines(findings))


def _not_checked_lines(found: Diagnosis) -> Iterator[str]:
    """Yield what was not checked, and why, with the number of share partitions."""
    if found.not_checked:
        yield ""
    for reason, those in _by_reason(found.not_checked).items():
        rules = list(dict.fromkeys(each.rule.name for each in those if each.rule is not None))
        places = Counter(each.place for each in those)
        first = next(iter(places)).named(found.topics)
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        named = f": {', '.join(rules)}" if rules else ""
        yield f"Not checked in {first}{more}, because {reason}{named}."


def _by_reason(not_checked: Iterable[NotChecked]) -> dict[str, list[NotChecked]]:
    found: dict[str, list[NotChecked]] = {}
    for each in not_checked:
        found.setdefault(each.reason, []).append(each)
    return found


# ---- two histories


def _code_of_comparison(compared: Comparison) -> int:
    if not compared.groups:
        return 2
    has_changed = bool(compared.changed or compared.settings or compared.found or compared.gone)
    return exit_code_of_diagnosis(has_findings=has_changed, is_whole=not compared.limits)


def _compared_lines(compared: Comparison) -> Iterator[str]:
    if not compared.groups:
        yield "Not comparable: they have no group in common."
    elif not compared.changed:
        yield "Nothing has changed by a half or more."
    else:
        yield "What has changed most:"
    for each in compared.changed[:_SHOWN_CHANGES]:
        yield f"  group {each.group_id}: {each.line}"
    if len(compared.changed) > _SHOWN_CHANGES:
        yield f"  and {len(compared.changed) - _SHOWN_CHANGES} more (--json)"
    for group_id, name, here, there in compared.settings:
        yield f"  group {group_id}: the setting {name} is {_setting(here)}, where it was {_setting(there)}"
    if compared.found:
        yield f"Found here only: {', '.join(compared.found)}."
    if compared.gone:
        yield f"Found there only: {', '.join(compared.gone)}."
    for limit in compared.limits:
        yield f"Not quite comparable: {limit}."


def _setting(value: object) -> str:
    return "not known" if value is None else str(value)


def _print(lines: Iterable[str]) -> None:
    """Print *lines*, which may quote an untrusted file."""
    if sys.stdout is not None:
        sys.stdout.writelines(f"{printable(line)}\n" for line in lines)
