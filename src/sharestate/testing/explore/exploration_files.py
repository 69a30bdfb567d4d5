"""
An exploration in a file, to go on with.

JSON lines, compressed if the name ends with ``.gz``: the first says what is explored and how far it has come, the
others have what was found, and the states that were not looked at yet. What is read is checked like anything from
outside.
"""

from __future__ import annotations

import base64
import os
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from sharestate.errors import MalformedInputError, UnreadableFileError
from sharestate.json_checks import (
    Check,
    Field,
    an_object,
    boolean,
    integer,
    list_of,
    one_of,
    record,
    refuse,
    row,
    text,
    version,
)
from sharestate.json_line_files import JsonLinesFile, NumberedLines
from sharestate.json_lines import Json, read_json
from sharestate.partition.share_partition import SharePartition
from sharestate.testing.explore.configuration import MOST_OFFSETS, Configuration, stored_check, stored_json
from sharestate.testing.explore.endings import LINK
from sharestate.testing.explore.events import ExploredEventKind
from sharestate.testing.explore.expansion import EVENT_LIMIT
from sharestate.testing.explore.exploration import CHUNK, Exploration, packed, unpacked
from sharestate.testing.explore.explored_state import DIGEST_SIZE, ExploredState, Left, UnansweredWrite
from sharestate.testing.explore.rules_met import SHOWN
from sharestate.testing.explore.steps import ExploredGroup
from sharestate.values.effects import Cause
from sharestate.values.profiles import PROFILES
from sharestate.values.requests import StateBatch
from sharestate.values.snapshot import Snapshot

FILE_VERSION: Final = 4
"""The version of the format that is written and read."""

_NUMBERS_IN_LINE: Final = 4096
"""How many numbers, and digests, there are in a line."""


class ExplorationFileError(UnreadableFileError):
    """A file is no exploration, or not of a version that is known."""


def write_exploration(exploration: Exploration, path: Path) -> None:
    """
    Write *exploration*, of a profile of ``PROFILES``; a file that is there is replaced once all is written.

    Raises:
        OSError: It cannot be written.
    """
    target = path.with_name(f".{os.getpid()}.{path.name}")  # another exploration may write beside this one
    try:
        file = JsonLinesFile(target, _header(exploration))
        try:
            file.write_lines(_found(exploration))
            file.write_lines(_numbers("links", exploration.links))
            file.write_lines(_numbers("done", exploration.done))
            file.write_lines(_to_do(exploration))
        finally:
            file.close()
        target.replace(path)
    finally:
        target.unlink(missing_ok=True)


def _header(exploration: Exploration) -> Json:
    return {
        "sharestate_explored": FILE_VERSION,
        "profile": exploration.around.profile.name,
        "configuration": exploration.around.configuration.to_json(),
        "states": exploration.states,
        "expanded": exploration.expanded,
        "edges": exploration.edges,
        "crowded": exploration.crowded,
        "depth": exploration.depth,
        "done": len(exploration.done),
        "links": len(exploration.links),
        "events": dict(exploration.kinds),
        "causes": dict(exploration.causes),
        "rules": dict(exploration.met),
    }


def _found(exploration: Exploration) -> Iterator[Json]:
    digests = iter(exploration.digests)
    for line in _numbers("parents", exploration.parents):
        yield {"found": base64.b64encode(b"".join(islice(digests, _NUMBERS_IN_LINE))).decode(), **line}


def _numbers(name: str, numbers: array[int]) -> Iterator[dict[str, Json]]:
    for first in range(0, len(numbers), _NUMBERS_IN_LINE):
        written = numbers[first : first + _NUMBERS_IN_LINE]
        if sys.byteorder == "big":
            written.byteswap()
        yield {name: base64.b64encode(written.tobytes()).decode()}


def _to_do(exploration: Exploration) -> Iterator[Json]:
    for is_next, chunks in enumerate((exploration.to_do.level, exploration.to_do.next_level)):
        for chunk in chunks:
            for number, state in unpacked(chunk):
                yield {"state": number, "next_level": bool(is_next), **_state_json(state)}


def _state_json(state: ExploredState) -> dict[str, Json]:
    sent = [
        [number, start, [[first, last, int(of), count] for first, last, of, count in batches], list(accepted), stored]
        for number, start, batches, accepted, stored in state.sent
    ]
    return {
        "leader": state.leader.to_json(),
        "leader_epoch": state.leader_epoch,
        "log": list(state.log),
        "log_start": state.log_start,
        "stored": stored_json(state.stored),
        "sent": sent,
        "left": list(state.left),
        "confirmed": sorted(state.confirmed),
        "finished": sorted(state.finished),
    }


# ---- reading


def read_exploration(path: Path) -> Exploration:
    """
    Read what ``write_exploration`` has written.

    Raises:
        ExplorationFileError: It is no exploration, or one of another version.
    """
    lines = NumberedLines(path, ExplorationFileError)
    number = 1
    waiting: _Waiting = ([], [])
    try:
        exploration, counts = None, _Counts(0, 0, 0)
        for number, line in lines:  # noqa: B007 - for the error
            value = read_json(line)
            if exploration is None:
                exploration, counts = _HEADER(value, "")
            else:
                _take_line(exploration, waiting, value)
        if exploration is None:
            refuse("an exploration", None, "")
        _expect_all(exploration, waiting, counts)
    except MalformedInputError as error:
        raise ExplorationFileError(error.message, str(path), number, field=error.field or "") from error
    finally:
        lines.close()
    for is_next in (False, True):
        _pack(exploration, waiting, is_next=is_next)
    return exploration


_Waiting: TypeAlias = tuple[list[tuple[int, ExploredState]], list[tuple[int, ExploredState]]]
"""The states to do of this level and of the next one that have not been packed, as they do not fill a chunk yet."""


class _Counts(NamedTuple):
    """
    What a whole file has.

    Attributes:
        states: The number of states that were found.
        links: The number of links between them.
        done: The number of those that are done.
    """

    states: int
    links: int
    done: int


def _expect_all(exploration: Exploration, waiting: _Waiting, counts: _Counts) -> None:
    """Refuse a file of which something is missing, or that speaks of states that it does not have."""
    states = exploration.states
    if states != counts.states or len(exploration.digests) != states:
        refuse(f"{counts.states} states", states, "found")
    chunks = len(exploration.to_do.level) + len(exploration.to_do.next_level)
    left = chunks * CHUNK + sum(map(len, waiting))
    if exploration.expanded + left != states:
        refuse(f"{states - exploration.expanded} states to look at", left, "state")
    links = exploration.links
    if len(links) != counts.links or any(link // LINK >= states or link % LINK >= states for link in links):
        refuse(f"{counts.links} links between states", len(links), "links")
    if len(exploration.done) != counts.done or any(number >= states for number in exploration.done):
        refuse(f"{counts.done} numbers of states", len(exploration.done), "done")


def _take_line(exploration: Exploration, waiting: _Waiting, value: Json) -> None:
    if "found" in an_object(value, ""):
        digests, parents = _FOUND(value, "")
        first = len(exploration.parents)
        if any(parent // EVENT_LIMIT >= max(number, 1) for number, parent in enumerate(parents, first)):
            refuse("states that follow states with lower numbers", first, "parents")
        exploration.digests.update((digest, number) for number, digest in enumerate(digests, first))
        exploration.parents.extend(parents)
    elif "links" in value:
        exploration.links.extend(_LINKS(value, ""))
    elif "done" in value:
        exploration.done.extend(_DONE(value, ""))
    else:
        _take_state(exploration, waiting, value)


def _take_state(exploration: Exploration, waiting: _Waiting, value: Json) -> None:
    number, is_next, state = _STATE(value, "")
    if number >= exploration.states:
        refuse("the number of a state that was found", number, "state")
    if state.leader.profile != exploration.around.profile:
        refuse("a leader of the same profile", state.leader.profile.name, "leader")
    SharePartition.restore(state.leader, max_records=MOST_OFFSETS)
    if {sent.number for sent in state.sent} != {write.number for write in state.leader.writes}:
        refuse("the writes that the leader waits for", len(state.sent), "sent")
    if any(position >= len(exploration.around.configuration.log) for position in state.log):
        refuse("positions of batches", list(state.log), "log")
    waiting[is_next].append((number, state))
    if len(waiting[is_next]) == CHUNK:
        _pack(exploration, waiting, is_next=is_next)


def _pack(exploration: Exploration, waiting: _Waiting, *, is_next: bool) -> None:
    chunks = exploration.to_do.next_level if is_next else exploration.to_do.level
    chunks += packed(waiting[is_next])
    waiting[is_next].clear()


def _bytes_of(size: int) -> Check[bytes]:
    def check(value: Json, path: str) -> bytes:
        try:
            found = base64.b64decode(text(value, path), validate=True)
        except ValueError:  # of base64, or of texts that are not ASCII
            found = b"?"
        return refuse(f"base64 of numbers of {size} bytes", value, path) if len(found) % size else found

    return check


def _numbers_of(value: Json, path: str) -> array[int]:
    numbers = array("Q")
    numbers.frombytes(_EIGHT_BYTES(value, path))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _digests_and_parents(found: bytes, parents: array[int]) -> tuple[list[bytes], array[int]]:
    return [found[first : first + DIGEST_SIZE] for first in range(0, len(found), DIGEST_SIZE)], parents


def _counts(names: Iterable[str]) -> Check[Counter[str]]:
    known = set(names)

    def check(value: Json, path: str) -> Counter[str]:
        counts = {name: _COUNT(count, f"{path}.{name}") for name, count in an_object(value, path).items()}
        return Counter(counts) if counts.keys() <= known else refuse("counts of known names", value, path)

    return check


def _exploration(
    configuration: Configuration,
    events: Counter[str],
    rules: Counter[str],
    **members: Any,  # noqa: ANN401 - of the checks
) -> tuple[Exploration, _Counts]:
    del members["sharestate_explored"]
    around = ExploredGroup(configuration=configuration, profile=members.pop("profile"))
    counts = _Counts(*(members.pop(name) for name in _Counts._fields))
    return Exploration(around=around, kinds=events, met=rules, **members), counts


def _state(state: int, next_level: bool, **members: Any) -> tuple[int, bool, ExploredState]:  # noqa: ANN401, FBT001 - of the checks
    return state, next_level, ExploredState(**members)


_COUNT: Final = integer(0)
_OFFSETS: Final[Check[tuple[int, ...]]] = list_of(_COUNT)

_EIGHT_BYTES: Final = _bytes_of(8)

_FOUND: Final = record({"found": Field(_bytes_of(DIGEST_SIZE)), "parents": Field(_numbers_of)}, _digests_and_parents)
_LINKS: Final = record({"links": Field(_numbers_of)}, lambda links: links)
_DONE: Final = record({"done": Field(_numbers_of)}, lambda done: done)

_COUNTS: Final[Mapping[str, Field]] = dict.fromkeys(
    (*_Counts._fields, "expanded", "edges", "crowded", "depth"), Field(_COUNT)
)

_HEADER: Final = record(
    {
        "sharestate_explored": Field(version(FILE_VERSION)),
        "profile": Field(one_of(PROFILES)),
        "configuration": Field(lambda value, path: Configuration.from_json(text(value, path))),
        **_COUNTS,
        "events": Field(_counts(ExploredEventKind)),
        "causes": Field(_counts(Cause)),
        "rules": Field(_counts(SHOWN)),
    },
    _exploration,
)

_STATE: Final = record(
    {
        "state": Field(_COUNT),
        "next_level": Field(boolean),
        "leader": Field(lambda value, path: Snapshot.from_json(text(value, path))),
        "leader_epoch": Field(_COUNT),
        "log": Field(_OFFSETS),
        "log_start": Field(_COUNT),
        "stored": Field(stored_check),
        "sent": Field(
            list_of(
                row(
                    _COUNT,
                    integer(-1),
                    list_of(row(_COUNT, _COUNT, integer(0, 4), _COUNT, make=StateBatch)),
                    _OFFSETS,
                    boolean,
                    make=UnansweredWrite,
                )
            )
        ),
        "left": Field(row(*[_COUNT] * len(Left._fields), make=Left)),
        "confirmed": Field(lambda value, path: frozenset(_OFFSETS(value, path))),
        "finished": Field(lambda value, path: frozenset(_OFFSETS(value, path))),
    },
    _state,
)
