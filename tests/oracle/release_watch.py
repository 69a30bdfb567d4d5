"""
What a release of Kafka has changed: ``python -m tests.oracle.release_watch --kafka X.Y.Z [--profile kafka-4.3] ...``.

The release's own class is built and asked all that is recorded of the releases before; its tests are recorded, if there
is a jar with them, and replayed by the library; and it is searched for differences from the library. What comes out is
one page of Markdown. The exit status is 1 if something has changed, and 2 if the release cannot be built.
"""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import ArgumentParser
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from sharestate.conversation.compare import Difference, Level, differences
from sharestate.conversation.replay import NOT_SENT, ReplayVerdict, judged, read_known_differences, replay
from sharestate.testing.search import CommandPeer, Plan, SearchProgress, search
from sharestate.values.profiles import PROFILES, Profile
from tests.kafka_bugs.junit import Outcome, expected_in, last_of, run
from tests.oracle.build import HERE, LINES, OracleError, build, last_tested, line_of
from tests.oracle.record import STORED, Conversation, Recordings, ask, compared, read, record, write
from tests.oracle.search.divergences import DIVERGENCES
from tests.oracle.search.profiles import profile_of
from tests.oracle.search.report import write_finding
from tests.oracle.search.task import KafkaTask

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tests.kafka_bugs.junit import Result

DATA: Final = HERE.parent / "data"

RECORDINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "4.3": ("kafka-tests", "vectors"),
    "4.4": ("kafka-tests-4.4", "vectors-4.4"),
}
"""The directories with what was recorded of a line of releases."""

FOUND: Final = Path("build/oracle")
"""Where conversations that show a difference are written."""

MOST_LISTED: Final = 30
"""How many names a list of the page has; the others are counted. [names]"""

LEFT_OUT: Final = (
    "Left out: Kafka publishes no compiled tests of this release. `TEST_JAR=FILE` names a jar with "
    "`SharePartitionTest`, compiled from the release's sources; tests of 4.2 cannot be recorded."
)


@frozen
class Changed:
    """A conversation that is answered otherwise."""

    name: str
    """Its name."""

    line: int
    """The line of the first response that differs."""

    differences: tuple[Difference, ...]
    """Where it differs; what was recorded is what is expected."""

    def __str__(self) -> str:
        """Return it as an item of a list."""
        return f"`{self.name}`, line {self.line}: `{self.differences[0]}`"


# ---- what was recorded, asked again


def recorded(profile: Profile) -> list[Path]:
    """Return what was recorded of the releases up to that of *profile*."""
    lines = [line for line in RECORDINGS if line <= line_of(profile.name.removeprefix("kafka-"))]
    return [file for line in lines for name in RECORDINGS[line] for file in sorted((DATA / name).rglob("*.jsonl"))]


def asked_again(files: Iterable[Path], kafka: CommandPeer) -> Iterator[tuple[Changed, Conversation]]:
    """Yield those of *files* to which *kafka* answers otherwise than was recorded, with what it has answered."""
    for file in files:
        noted = read(file)
        steps = [step for step in noted.steps if step.op not in NOT_SENT and not noted.header.obstacles]
        answers = ask(kafka, [step.request for step in steps])
        both = zip(steps, answers, strict=True)
        wrong = ((step, answer) for step, answer in both if answer != step.response)
        for step, answer in wrong:
            answered = [evolve(step, response=answer) for step, answer in zip(steps, answers, strict=True)]
            changed = Changed(noted.header.name, step.line, differences(step.response, answer))
            yield changed, evolve(noted, steps=tuple(answered))
            break


def by_the_rules(
    asked: Sequence[tuple[Changed, Conversation]], profile: Profile
) -> tuple[list[Changed], list[Changed]]:
    """Return what the library answers otherwise than the release, and what it answers as the release does."""
    made = Recordings({changed.name: answered for changed, answered in asked}, {})
    otherwise = {changed.name for changed in answered_otherwise(made, made.replayed, profile)}
    changes = [changed for changed, _ in asked]
    return [c for c in changes if c.name in otherwise], [c for c in changes if c.name not in otherwise]


# ---- Kafka's own tests


def has_tests(kafka: str, tests: Sequence[Path]) -> bool:
    """Return whether there are tests of the release *kafka* to record: published ones of 4.3, or those in jars."""
    return bool(tests) or (kafka.startswith(f"{LINES[-1]}.") and last_tested(kafka) == kafka)


def answered_otherwise(made: Recordings, names: Iterable[str], profile: Profile) -> list[Changed]:
    """Return those of the tests *names* that the library answers otherwise than Kafka, known differences apart."""
    rows = read_known_differences(DATA / "known-differences.json").by_name(profile, Level.OBSERVABLE)
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        write(made, Path(scratch))
        for name in sorted(names):
            outcome = judged(replay(Path(scratch) / f"{name}.jsonl", profile, Level.OBSERVABLE), rows)
            is_white_box = outcome.deviation is not None and outcome.deviation.request["op"] == "fire_lock"
            if outcome.verdict is ReplayVerdict.FAILED and outcome.deviation is not None and not is_white_box:
                found.append(Changed(name, outcome.deviation.line, outcome.deviation.differences))
    return found


# ---- Kafka's bugs


def part_of_bugs(results: Mapping[str, Result], release: str, before: Mapping[str, bool]) -> Part:
    """Return which of the bugs that have a JUnit test are fixed, or new; *before* is which were in *release*."""
    found = {bug for bug, result in results.items() if result.outcome is Outcome.PRESENT}
    broken = [f"{bug}: {result.message}" for bug, result in results.items() if result.outcome is Outcome.BROKEN]
    fixed = [bug for bug, present in before.items() if present and results[bug].outcome is Outcome.FIXED]
    gone = [bug for bug, present in before.items() if present and results[bug].outcome is Outcome.NOT_THERE]
    new = [bug for bug, present in before.items() if not present and bug in found]
    kinds = {"fixed": fixed, "without what they are about": gone, "new": new}
    told = "; ".join(f"{kind}: {', '.join(bugs)}" for kind, bugs in kinds.items() if bugs) or "the same"
    text = [f"Of {len(results)} bugs that have a JUnit test, {len(found)} are present. Beside {release}, {told}."]
    if broken:
        text += ["Tests that end otherwise than known, by which nothing is known:", listed(broken)]
    return Part("Kafka's bugs", tuple(text), len(fixed) + len(gone) + len(new) + len(broken))


def bugs_tried(kafka: str, profile: Profile) -> Part:
    """Return what came out of the JUnit tests of Kafka's bugs, or why they were not run."""
    release = last_of(profile.name.removeprefix("kafka-"))
    try:
        return part_of_bugs(run(kafka, say=_say), release, expected_in(release))
    except OracleError as error:
        return Part("Kafka's bugs", ("Not tried:", f"```text\n{error}\n```"), 1)


# ---- the page


@frozen
class Part:
    """A part of the page."""

    title: str
    """Its heading."""

    text: tuple[str, ...]
    """Its paragraphs and lists."""

    changes: int = 0
    """How much has changed."""


def listed(items: Iterable[object]) -> str:
    """
    Return *items* as a list of Markdown, the last of many as a number.

    >>> print(listed(["a", "b"]))
    - a
    - b
    """
    lines = [f"- {item}" for item in items]
    rest = len(lines) - MOST_LISTED
    return "\n".join(lines[:MOST_LISTED] + ([f"- and {rest} more"] if rest > 0 else []))


def part_of_recordings(asked: int, changed: Sequence[Changed], expected: Sequence[Changed], profile: str) -> Part:
    """Return what the release has answered to what was recorded; *expected* is so by the rules of *profile* too."""
    told = f"{asked} conversations with other releases were repeated; {len(changed)} are answered otherwise."
    ruled = f"{len(expected)} more are answered by the rules of `{profile}`, which the recorded release does not have:"
    text = (told, listed(changed), *((ruled, listed(expected)) if expected else ()))
    return Part("What was recorded before", text, len(changed))


def part_of_tests(
    made: Recordings, found: Mapping[str, Sequence[str]], others: Sequence[Changed], profile: str
) -> Part:
    """Return what the release's own tests say; *found* is how they compare with those of the release before."""
    counts = ", ".join(f"{len(found.get(kind, ()))} {kind}" for kind in ("same", "changed", "new"))
    text = [
        f"{len(made.replayed)} tests are conversations, {len(made.others)} are not. Against what is stored: {counts}.",
        f"Of those that are changed or new, `{profile}` answers {len(others)} otherwise than this release:",
        listed(others),
    ]
    if names := found.get("changed"):
        text += ["Changed, which may be the test's doing:", listed(f"`{name}`" for name in names)]
    return Part("Kafka's own tests", tuple(text), len(others))


def part_of_search(progress: SearchProgress, profile: Profile) -> Part:
    """Return what the search has found."""
    tally = progress.tally
    told = (
        f"{tally.total:,} requests in {tally.sequences.total():,} random sequences, by the rules of `{profile.name}`: "
        f"{len(progress.findings)} differences of different kinds."
    )
    found = listed(
        f"`{finding.op}`, after {finding.steps} requests: `{finding.differences[0]}` (sequence {finding.number})"
        for finding in progress.findings
    )
    met = {row for _, row in (*tally.shown, *tally.latent)}
    missing = [row for row in DIVERGENCES if row.id not in met]
    mended = "Known divergences that did not show; they may be mended, or rare:" if missing else ""
    rows = listed(f"{row.id}: {row.peer}" for row in missing)
    return Part("Search", (told, found, mended, rows), len(progress.findings))


def page(kafka: str, profile: Profile, parts: Sequence[Part]) -> str:
    """Return the whole page."""
    changes = sum(part.changes for part in parts)
    verdict = f"{changes} things are answered otherwise." if changes else "Nothing is answered otherwise."
    command = f"make release-watch KAFKA={kafka} PROFILE={profile.name}"
    begin = [f"# Kafka {kafka} beside `{profile.name}`", f"Made by `{command}`. {verdict}"]
    rest = (paragraph for part in parts for paragraph in (f"## {part.title}", *part.text))
    return "\n\n".join(paragraph for paragraph in (*begin, *rest) if paragraph) + "\n"


def watch(arguments: Namespace, profile: Profile) -> list[Part]:
    """
    Return the parts of the page about the release that *arguments* name.

    Raises:
        OracleError: It cannot be built, or its tests cannot be run.
    """
    oracle = build(arguments.kafka, say=_say)
    files = recorded(profile)
    _say(f"asking what {len(files)} recordings ask")
    with CommandPeer(oracle.command()) as kafka:
        changed, expected = by_the_rules([*asked_again(files, kafka)], profile)
    parts = [part_of_recordings(len(files), changed, expected, profile.name)]
    if has_tests(arguments.kafka, arguments.tests):
        made = record(arguments.kafka, arguments.tests, say=_say)
        found = defaultdict(list, compared(made.replayed, STORED[line_of(profile.name.removeprefix("kafka-"))]))
        others = answered_otherwise(made, found["changed"] + found["new"], profile)
        parts.append(part_of_tests(made, found, others, profile.name))
    else:
        parts.append(Part("Kafka's own tests", (LEFT_OUT,)))
    _say(f"searching for differences in {arguments.ops} requests")
    task = KafkaTask(command=tuple(oracle.command()), profile=profile, kafka=arguments.kafka)
    progress = search(
        Plan(
            task=task,
            operations=arguments.ops,
            seed=arguments.seed,
            jobs=arguments.jobs,
            differences=arguments.differences,
        )
    )
    for finding in progress.findings:
        write_finding(finding, FOUND)
    return [*parts, part_of_search(progress, profile), bugs_tried(arguments.kafka, profile)]


def main() -> None:
    """Watch a release, and print the page."""
    parser = ArgumentParser(
        prog="python -m tests.oracle.release_watch", description="Say what a release of Kafka has changed."
    )
    parser.add_argument("--kafka", required=True, help="the release, as Maven has it")
    parser.add_argument(
        "--profile", choices=PROFILES, help="whose rules to compare it with; its line's, or the latest, unless given"
    )
    parser.add_argument("--tests", type=Path, action="append", default=[], help="a jar with Kafka's tests")
    parser.add_argument("--ops", type=int, default=100_000, help="how many requests the search compares at least")
    parser.add_argument("--seed", type=int, default=0, help="the number of its first sequence")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes search")
    parser.add_argument("--differences", type=int, default=10, help="after how many differences it stops")
    parser.add_argument("--write", type=Path, help="write the page to this file, too")
    arguments = parser.parse_args()
    profile = PROFILES[arguments.profile] if arguments.profile else profile_of(arguments.kafka)
    try:
        parts = watch(arguments, profile)
    except OracleError as error:
        sys.stderr.write(f"release watch: {error}\n")
        sys.exit(2)
    text = page(arguments.kafka, profile, parts)
    sys.stdout.write(text)
    if arguments.write:
        arguments.write.write_text(text, encoding="utf-8")
    sys.exit(1 if any(part.changes for part in parts) else 0)


def _say(line: str) -> None:
    sys.stderr.write(f"== {line}\n")


if __name__ == "__main__":
    main()
