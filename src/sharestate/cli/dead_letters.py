"""The command ``dead-letters``: what came to a dead-letter topic, why, and whether all of it did."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.progress import Progress

from sharestate.cli.exits import NoVerdict
from sharestate.cli.options import FiniteRange
from sharestate.cli.partition_choice import profile_option, surveyed
from sharestate.cli.progress import no_verdicts, progress, refreshed, tables
from sharestate.cli.state import servers_option, settings_option, topic_names
from sharestate.cli.tables import print_rows
from sharestate.coordinator import COORDINATOR_4_4
from sharestate.errors import ExternalError
from sharestate.explain.words import duration, instant
from sharestate.json_lines import printable, write_json
from sharestate.state_topic import StateTopic, StateTopicFile, state_topic_files
from sharestate.state_topic.rebuild import in_log_order
from sharestate.values.profiles import PROFILES

if TYPE_CHECKING:
    from sharestate.dead_letter_topic import (
        ArchivedRecords,
        LetterAnalysis,
        LetterFile,
        LetterLives,
        LetterSource,
        LoggedLetter,
        QueueContents,
        QueueGroups,
        QueueReading,
        StateGiven,
    )
    from sharestate.state_topic import TopicRecord
    from sharestate.state_topic.cluster import Cluster

_SHOWN: Final = 5
"""How many findings of each rule are shown. [findings]"""

_ASKED_GROUPS: Final = 1000
"""The most groups of a live cluster that are asked for their settings. [groups]"""

_QUEUE: Final = "errors.deadletterqueue.topic.name"
"""The setting of a group that names its queue (GroupConfig, Kafka 4.4.0)."""

_SHOWN_ROWS: Final = 10
"""How many rows the table of counts has of each kind. [rows]"""

_GIVEN: Final = click.Path(exists=True, path_type=Path)
_WRITTEN: Final = click.Path(dir_okay=False, path_type=Path)


def _topic_id(_context: click.Context, _parameter: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    """Return the names of topics by their ids, of options NAME=ID."""
    names = {}
    for each in given:
        name, equals, topic_id = each.rpartition("=")
        if not (name and equals and topic_id):
            message = f"expected NAME=ID, got {each!r}"
            raise click.BadParameter(message)
        names[topic_id] = name
    return names


@click.command("dead-letters")
@servers_option
@settings_option
@click.option(
    "--state",
    "state_paths",
    multiple=True,
    type=_GIVEN,
    metavar="FILE_OR_DIR",
    help="The state topic, as 'state rebuild' takes it; with --bootstrap that of the cluster.",
)
@click.option("--queue-copied-last", is_flag=True, help="The queue's files were copied after those of the state topic.")
@click.option("--history", type=_GIVEN, metavar="HISTORY", help="What 'log verify -o' has written: lives, and members.")
@profile_option
@click.option("--group", "group_ids", multiple=True, help="A group that has this queue, besides those with letters.")
@click.option(
    "--other-group", "other_group_ids", multiple=True, help="A group that has another queue; the rest is not checked."
)
@click.option(
    "--topic-id", "ids", multiple=True, metavar="NAME=ID", callback=_topic_id, help="The id of a source topic."
)
@click.option(
    "--interval",
    "interval_s",
    type=FiniteRange(min=0.001),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How far letters may be from each other to be of one interval.",
)
@click.option(
    "--redrive", type=_WRITTEN, metavar="FILE", help="Write a plan of what to process again. Nothing else is."
)
@click.option("--html", "page", type=_WRITTEN, metavar="FILE", help="Write a page for a browser, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
@click.argument("topic")
@click.argument("paths", metavar="[FILE_OR_DIR]...", nargs=-1, type=_GIVEN)
@click.pass_context
def dead_letters_command(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    *,
    servers: str | None,
    settings_path: Path | None,
    state_paths: tuple[Path, ...],
    queue_copied_last: bool,
    history: Path | None,
    profile_name: str,
    group_ids: tuple[str, ...],
    other_group_ids: tuple[str, ...],
    ids: dict[str, str],
    interval_s: float,
    redrive: Path | None,
    page: Path | None,
    as_json: bool,
    topic: str,
    paths: tuple[Path, ...],
) -> None:
    """
    Look into the dead-letter topic TOPIC of share groups (KIP-1191): what came there, why, and whether all of it did.

    Reads log segments (a broker's directory, those of partitions, or files; extra 'segments'), JSON lines of
    'kcat -C -J', or with --bootstrap a live cluster (extra 'consumer'); nothing is written to it. Letters are counted
    by what they have in common; where it can be seen, those of poison records are kept apart from those of an outage.
    With the state topic, or a history, lost letters are found, and letters of records that were never archived.

    Exit code: 0 if all was checked and no letter is lost, 1 if a letter is lost, or is of a record that was never
    archived, 2 if something cannot be read, or was not checked.
    """
    if (servers is None) == (not paths):
        message = "Letters are read from files or with --bootstrap: name one of both."
        raise click.UsageError(message)
    if both := set(group_ids) & set(other_group_ids):
        message = f"--group and --other-group both name {min(both)}."
        raise click.UsageError(message)
    with no_verdicts(), ExitStack() as stack:
        from sharestate.dead_letter_topic import analyze_letters, write_redrive_plan  # noqa: PLC0415 - takes a while

        inputs = _Inputs(topic, stack.enter_context(progress("reading")))
        if servers is not None:
            inputs.read_cluster(servers, settings_path, state_paths, stack)
        else:
            inputs.read_files(paths, state_paths, is_after_state=queue_copied_last)
        contents, reading = inputs.read_queue()
        groups = inputs.groups(group_ids, other_group_ids, contents)
        lives = None if history is None else partial(_lives, history, profile_name, groups.group_ids, inputs.bar)
        analysis = analyze_letters(
            topic,
            contents,
            interval_ms=round(interval_s * 1000),
            groups=groups,
            state=inputs.state(ids),
            reading=reading,
            lives=lives,
            not_checked=inputs.not_checked if lives is None else inputs.not_checked[inputs.without_state :],
        )
    counts = None if redrive is None else write_redrive_plan(analysis, redrive)
    if page is not None:
        from sharestate.report import dead_letters_page  # noqa: PLC0415 - loaded where a page is asked for

        page.write_text(dead_letters_page(analysis), encoding="utf-8", newline="\n")
    if as_json:
        _print([write_json(analysis.to_json())])
    else:
        _print_analysis(analysis)
        if counts is not None:
            said = f"{counts.redriven:,} records to process again, {counts.excluded:,} excluded as poison records"
            _print([f"{redrive}: {said}, in {counts.ranges:,} ranges"])
    context.exit(analysis.exit_code)


def _lives(
    history: Path, profile_name: str, group_ids: Iterable[str], bar: Progress, contents: QueueContents
) -> LetterLives:
    from sharestate.dead_letter_topic import LetterLives, ShareKey  # noqa: PLC0415 - as above

    wanted = [*contents.share_partitions, *(ShareKey(group_id, "", 0) for group_id in group_ids)]
    return LetterLives(surveyed(history, bar), wanted, PROFILES[profile_name])


def _queues_of(cluster: Cluster, group_ids: Sequence[str]) -> tuple[dict[str, str], str]:
    """Return the queues that groups have now, as far as the cluster says it, and why it does not of the others."""
    reason = "the cluster does not say whether this is their queue (the client needs DescribeConfigs on them)"
    try:
        configs = cluster.group_configs(group_ids, passes_over=True)
    except ExternalError as error:
        return {}, f"whether this is their queue is not known: {error}"
    return {group_id: named[_QUEUE] for group_id, named in configs.items() if _QUEUE in named}, reason


class _Inputs:
    """
    What the command reads: the state topic first, then the queue.

    A record is ARCHIVED only after the queue has answered, so what the state topic says is in a queue that is read
    after it, unless it was lost.
    """

    def __init__(self, topic: str, bar: Progress) -> None:
        self.bar = bar
        self.not_checked: list[str] = []
        self.without_state = 0
        """How many of these are only that there is no state topic, which a history stands in for."""

        self._topic = topic
        self._names: dict[str, str] = {}
        self._archived: ArchivedRecords | None = None
        self._queue: Cluster | None = None
        self._files: list[LetterFile] = []
        self._source: LetterSource
        self._reading: QueueReading

    def read_cluster(
        self, servers: str, settings_path: Path | None, state_paths: Sequence[Path], stack: ExitStack
    ) -> None:
        """Read the state topic of a live cluster, or that of files, and look up what the queue has then."""
        from sharestate.dead_letter_topic import ClusterLetters, QueueReading  # noqa: PLC0415 - takes a while
        from sharestate.state_topic.cluster import Cluster, client_settings  # noqa: PLC0415 - needs an extra

        settings = None if settings_path is None else client_settings(settings_path)
        queue = stack.enter_context(Cluster(servers, settings, topic=self._topic))
        ends = {number: span.stop for number, span in queue.state_offsets().items()}
        if state_paths:
            self._read_state(state_paths)
        else:
            state = stack.enter_context(Cluster(servers, settings))
            try:
                offsets = state.state_offsets()
                self.bar.update(self.bar.task_ids[0], total=sum(map(len, offsets.values())))
                self._archive(state.remaining_records(offsets))
            except ExternalError as error:
                self._do_without_state(f"the state topic cannot be read: {error}")
        self._names = queue.topic_names()
        self._queue = queue
        self._source = source = ClusterLetters(queue)
        self._reading = QueueReading(
            is_after_state=True,
            ends_before_state=None if state_paths else ends,
            partition_count=len(source.spans),
        )

    def read_files(self, paths: Sequence[Path], state_paths: Sequence[Path], *, is_after_state: bool) -> None:
        """Read the state topic of files, and look which files the queue has."""
        from sharestate.dead_letter_topic import LetterFiles, QueueReading, letter_files  # noqa: PLC0415 - as above

        if state_paths:
            self._read_state(state_paths)
        else:
            self._do_without_state("the state topic is not given (--state)")
        self._files = [file for path in paths for file in letter_files(self._topic, path)]
        self._source = LetterFiles(self._files)
        self._reading = QueueReading(is_after_state=is_after_state)

    def read_queue(self) -> tuple[QueueContents, QueueReading]:
        """Read the queue."""
        from sharestate.dead_letter_topic import QueueReading, read_contents  # noqa: PLC0415 - as above

        self.bar.update(self.bar.task_ids[0], total=self._source.size, completed=0)
        contents = read_contents(self._source, self._watched_letters)
        tails = [tail for file in self._files for tail in file.tails]
        for tail in tails:
            click.echo(f"{tail}; what comes before has been read", err=True)
        if tails:
            from sharestate.segments import TailKind  # noqa: PLC0415 - an extra, which JSON lines do without

            if any(tail.kind is TailKind.TORN for tail in tails):  # with letters, so nothing later is known to be lost
                return contents, QueueReading(is_after_state=False)
        return contents, self._reading

    def state(self, ids: dict[str, str]) -> StateGiven | None:
        """Return what the state topic says; None if it is not known."""
        from sharestate.dead_letter_topic import StateGiven  # noqa: PLC0415 - as above

        return None if self._archived is None else StateGiven(archived=self._archived, names=self._names | ids)

    def groups(self, group_ids: Sequence[str], other_group_ids: Sequence[str], contents: QueueContents) -> QueueGroups:
        """Return which groups have the queue: those that are named, and what a live cluster says of the others."""
        from sharestate.dead_letter_topic import QueueGroups  # noqa: PLC0415 - as above

        if self._archived is None or self._queue is None:
            return QueueGroups(group_ids=group_ids, other_group_ids=other_group_ids)
        named = {*group_ids, *other_group_ids, *(key.group_id for key in contents.share_partitions)}
        asked = sorted(self._archived.group_ids() - named)
        unknown = dict.fromkeys(asked[_ASKED_GROUPS:], f"more than {_ASKED_GROUPS:,} are not asked for their settings")
        queues, reason = _queues_of(self._queue, asked[:_ASKED_GROUPS])
        unknown |= {each: reason for each in asked[:_ASKED_GROUPS] if each not in queues}
        return QueueGroups(
            group_ids=[*group_ids, *(each for each, queue in queues.items() if queue == self._topic)],
            other_group_ids=[*other_group_ids, *(each for each, queue in queues.items() if queue != self._topic)],
            unknown_because=unknown,
        )

    def _do_without_state(self, reason: str) -> None:
        self.not_checked.append(f"lost letters: {reason}")
        self.without_state = len(self.not_checked)

    def _read_state(self, paths: Sequence[Path]) -> None:
        files = [file for path in paths for file in state_topic_files(path)]
        sizes = [file.size for file in files]
        self.bar.update(self.bar.task_ids[0], total=None if None in sizes else sum(filter(None, sizes)))
        self._archive(in_log_order(files, self._watched))
        self._names = topic_names(None, map(str, paths))

    def _watched(self, file: StateTopicFile) -> Iterator[TopicRecord]:
        return refreshed(file, self.bar, lambda: file.position)

    def _watched_letters(self, source: LetterSource) -> Iterator[LoggedLetter]:
        return refreshed(source, self.bar, lambda: source.position)

    def _archive(self, records: Iterable[TopicRecord]) -> None:
        from sharestate.dead_letter_topic import ArchivedRecords  # noqa: PLC0415 - as above

        archived = ArchivedRecords(StateTopic(COORDINATOR_4_4))
        archived.read(records)
        self._archived = archived


# ---- what is printed


def _print_analysis(analysis: LetterAnalysis) -> None:
    from sharestate.dead_letter_topic.words import check_lines, copied_line, headline  # noqa: PLC0415 - as above

    _print([f"{analysis.topic}: {headline(analysis)}", copied_line(analysis)])
    _print(f"  {count:,} of them: {reason}" for reason, count in analysis.contents.reasons.most_common(_SHOWN_ROWS))
    rows = list(_counts(analysis))
    if rows:
        print_rows(tables(), ("letters by", "", "letters."), rows, named=2)
    _print_patterns(analysis)
    repeated = list(zip(analysis.repeated(), range(_SHOWN), strict=False))
    if repeated:
        why = "the same record of the same group again: a leader took over, or the group's offsets were reset"
        _print([f"Duplicates: {analysis.duplicates:,} letters, {why}"])
        _print(f"  {each.key}: {each.offsets}, {letters} letters each" for (each, letters), _ in repeated)
    for check in analysis.checks:
        _print(["", *check_lines(check)])
    if analysis.doubts:
        _print(["", "Not checked:", *(f"  {doubt}" for doubt in analysis.doubts)])


def _counts(analysis: LetterAnalysis) -> Iterator[list[str]]:
    contents = analysis.contents
    kinds = {of: contents.by(of) for of in ("cause", "group", "topic", "delivery count")}
    kinds["text"] = contents.texts
    width_ms, parts = analysis.over_time()
    times = kinds[f"time (UTC), {duration(width_ms * 1000)} from"] = Counter()
    for part in parts:
        times[instant(part.begin_ms * 1000)] += part.letters
    clients = analysis.by_client()
    if clients is not None:
        kinds["client (records)"] = clients
    for kind, counts in kinds.items():
        for name, count in counts.most_common(_SHOWN_ROWS):
            yield [kind, "none" if name is None else printable(str(name)), f"{count:,}"]
        if len(counts) > _SHOWN_ROWS:
            rest = counts.total() - sum(count for _, count in counts.most_common(_SHOWN_ROWS))
            yield [kind, f"{len(counts) - _SHOWN_ROWS:,} others", f"{rest:,}"]


def _print_patterns(analysis: LetterAnalysis) -> None:
    from sharestate.dead_letter_topic.pattern_rules import RULES  # noqa: PLC0415 - as above
    from sharestate.dead_letter_topic.words import finding_line, members_line  # noqa: PLC0415 - as above

    letters = analysis.patterns.letters()
    if not letters:
        return
    print_rows(
        tables(),
        ("what letters are of", "rule", "letters."),
        [[RULES[rule].pattern.value, rule.value, f"{count:,}"] for rule, count in letters.items()],
        named=2,
    )
    for rule, count in letters.items():
        row = RULES[rule]
        _print([f"{row.pattern.value}, {rule.value}: {count:,} letters. {_capital(row.sentence)}: {row.reason}"])
        found = [each for each in analysis.patterns.findings if each.rule is rule]
        for finding in found[:_SHOWN]:
            _print([f"  {finding_line(finding)}"])
            member = members_line(analysis, finding)
            _print([f"    {member}"] if member else [])
            _print(f"    {life.sentence}" for life in analysis.lives_of(finding))
        left = len(found) - _SHOWN + analysis.patterns.unlisted.get(rule, 0)
        _print([f"  and {left:,} more (--json)"] if left > 0 else [])


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _print(lines: Iterable[str]) -> None:
    """Print *lines*, which may quote an untrusted file."""
    if sys.stdout is None:
        message = "standard output is closed"
        raise NoVerdict(message)
    sys.stdout.writelines(f"{printable(line)}\n" for line in lines)
