"""The command ``history report``, which ``log report`` is, too: what happened, in pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from sharestate.cli.exits import NoVerdict
from sharestate.cli.partition_choice import (
    chosen,
    group_option,
    partition_option,
    profile_option,
    source_argument,
    surveyed,
    topic_option,
)
from sharestate.cli.progress import no_verdicts, progress
from sharestate.explain.words import counted
from sharestate.json_lines import printable
from sharestate.values.profiles import PROFILES

_MOST_REPORTED: Final = 200
"""The most share partitions of a report."""


@click.command("report", short_help="Draw what happened, as a page for a browser.")
@group_option
@topic_option
@partition_option
@profile_option
@click.option(
    "-o", "--output", "target", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The page."
)
@source_argument
@click.pass_context
def report_command(  # noqa: PLR0913 - one parameter for each option
    context: click.Context,
    *,
    group_id: str | None,
    topic: str | None,
    partition: int | None,
    profile_name: str,
    target: Path,
    source: Path,
) -> None:
    """
    Draw what happened to share partitions, as one page of HTML to open in a browser.

    What holds each SPSO comes first, then the states of records over time, what each member held, the lag, and how
    often records were delivered. The page needs no network. It needs the extra 'plots' to be made.

    Exit code: 0, or 2 if something cannot be read or written.
    """
    with no_verdicts(), progress("reading") as bar:
        from sharestate.report import report_history  # noqa: PLC0415 - needs an extra

        survey = surveyed(source, bar)
        keys = chosen(survey, (group_id, topic, partition), source)
        if len(keys) > _MOST_REPORTED:
            message = f"{len(keys):,} share partitions are in {source}, and a page has at most {_MOST_REPORTED}: "
            raise NoVerdict(message + "choose some with --group, --topic and --partition")
        group = "history" if context.parent is None else context.parent.info_name  # 'log report' is the same
        page = report_history(survey, keys, profile=PROFILES[profile_name], command=f"{group} explain")
    target.write_text(page, encoding="utf-8", newline="\n")
    click.echo(f"{printable(str(target))}: {counted(len(keys), 'share partition')}, {len(page) / 10**6:.1f} MB")
