"""
The page of one state of an exploration: what there is, what the last event did, and what may happen next.

A state has the address of the events that lead to it, by their positions among those that are possible: ``/0.3.1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from string import Template
from typing import Final

from sharestate.errors import SnapshotError
from sharestate.explain.words import counted
from sharestate.json_lines import write_json
from sharestate.report.elements import PageLink, list_of, read_part, table_of, text_of
from sharestate.testing.explore import RULES, Exploration, ExploredEventKind, ExploredState, Step
from sharestate.testing.explore.explored_state import digest
from sharestate.testing.explore.properties import (
    Contradiction,
    contradictions,
    is_done,
    not_done,
    refused,
    stalled,
)
from sharestate.testing.explore.rules_met import in_order, rules_of
from sharestate.testing.explore.steps import ExploredGroup
from sharestate.testing.explore.walks import following, walk
from sharestate.values.acknowledgements import AcknowledgeType
from sharestate.values.records import RecordState
from sharestate.values.requests import StateBatch
from sharestate.values.snapshot import CellRow, Snapshot

_NOTHING: Final = "nothing"

_NUMBERS: Final = (
    "The numbers of a fetch are its batches and its size; those of an acknowledgement the first and last offset and "
    f"the type ({', '.join(f'{each.value} {each.name}' for each in AcknowledgeType)})."
)
"""What the numbers of events are."""


def address_of(positions: Iterable[int]) -> str:
    """
    Return the address of the state to which the events at *positions* lead.

    >>> address_of([0, 3, 1])
    '/0.3.1'
    """
    return f"/{'.'.join(map(str, positions))}"


def state_page(exploration: Exploration, positions: Sequence[int]) -> str:
    """
    Return the page of a state of *exploration* as HTML, which needs no other files and no scripts.

    The way there is walked again, so that it may lead on from where the exploration has ended.

    Args:
        exploration: The exploration.
        positions: The positions of the events that lead there, from the beginning.

    Raises:
        NoSuchEventError: There is no such event in a state.

    Complexity:
        Linear in the events that are possible in the states on the way, a fraction of a millisecond each.
    """
    walked = walk(exploration.around, positions)
    title = f"State {address_of(positions)}"
    after = f"{counted(len(positions), 'event')} after the beginning, by the rules of {exploration.around.profile.name}"
    return page_of(
        title, f"{after}; {_found(exploration, walked[-1])}", "\n".join(_sections(exploration, positions, walked))
    )


def page_of(title: str, subtitle: str, sections: str) -> str:
    """Return a page, of which *sections* are HTML."""
    return Template(read_part("sections.html")).substitute(
        title=text_of(title), subtitle=text_of(subtitle), style=read_part("page.css"), sections=sections
    )


def way_back(positions: Sequence[int]) -> str:
    """Return what leads to the beginning, and to the state before the last event, as HTML."""
    links = [("the beginning", "/")]
    if positions:
        links.append(("the state before", address_of(positions[:-1])))
    return " · ".join(f'<a href="{address}">{text}</a>' for text, address in links)


def _found(exploration: Exploration, step: Step) -> str:
    if step.error:
        return "no state, as it was not reached"
    number = exploration.digests.get(digest(step.after))
    return "the exploration has not met it" if number is None else f"number {number:,} of {exploration.states:,} states"


def _sections(exploration: Exploration, positions: Sequence[int], walked: Sequence[Step]) -> Iterator[str]:
    around, last = exploration.around, walked[-1]
    yield f"<p>{way_back(positions)}</p>{_counterexample(exploration)}"
    broken = list(contradictions(around, walked[-2].after, last)) if positions else []
    try:
        then = following(around, last)
        broken += _of_state(around, last, [step for _, step in then])
    except SnapshotError as error:
        then = []
        broken.append(refused(error))
    if broken:
        lines = [f"{name}: {text}" for name, text in broken]
        yield f'<section id="broken" class="finding stalled"><h2>What does not hold here</h2>{list_of(lines)}</section>'
    yield f'<section id="way"><h2>The way here</h2>{_way(around, positions, walked)}</section>'
    if positions:
        yield f'<section id="changed"><h2>What has changed</h2>{_changed(around, walked[-2].after, last)}</section>'
    if not last.error:
        yield f'<section id="next"><h2>What may happen next</h2>{_next(around, positions, last.after, then)}</section>'
        yield f'<section id="state"><h2>The state</h2>{_state(around, last.after)}</section>'


def _counterexample(exploration: Exploration) -> str:
    found = exploration.counterexample
    if found is None:
        left = "" if exploration.expanded == exploration.states else ", but has not looked at all"
        return f"<p>The exploration has found nothing that does not hold{left}.</p>"
    text, address = text_of(f"{found.name}: {found.text}"), address_of(found.positions)
    return (
        f'<p class="standing stalled">The exploration has found what does not hold: <a href="{address}">{text}</a></p>'
    )


def _of_state(around: ExploredGroup, last: Step, then: Sequence[Step]) -> Iterator[Contradiction]:
    """Yield what does not hold of the state after *last*, which may be followed by *then*."""
    if last.error:
        return
    if not any(step.error for step in then):
        fetched = [step.after for step in then if step.event.kind is ExploredEventKind.FETCH]
        yield from stalled(around, last.after, fetched)


def _way(around: ExploredGroup, positions: Sequence[int], walked: Sequence[Step]) -> str:
    before = [walked[0].after, *(step.after for step in walked)]
    rows = [
        (
            PageLink(str(step.event) if count else "beginning", address_of(positions[:count])),
            *_outcome(around, before[count], step),
        )
        for count, step in enumerate(walked)
    ]
    return table_of(("event", "acquired", "SPSO", "rules"), rows)


def _outcome(around: ExploredGroup, before: ExploredState, step: Step) -> tuple[object, ...]:
    if step.error:
        return "", "", step.error
    acquired = ", ".join(f"{_range(first, last)} x{count}" for first, last, count in step.acquired)
    rules = in_order(rules_of(around, before, step))
    return acquired, step.after.leader.start_offset, ", ".join(rules)


# ---- what the last event did


def _changed(around: ExploredGroup, before: ExploredState, step: Step) -> str:
    asked = list_of([write_json(request) for request in step.requests], "ol") or f"<p>{_NOTHING}</p>"
    said = f"<h3>Said to the leader</h3>{asked}"
    if step.error:
        return f"{said}<h3>Raised</h3><p>{text_of(step.error)}</p>"
    old, new = (dict(_facts(around, state)) for state in (before, step.after))
    rows = [(name, old[name], new[name]) for name in new if old[name] != new[name]]
    rows += list(_changed_records(before.leader, step.after.leader))
    differs = _table(("", "before", "after"), rows, "Nothing differs.")
    why = [
        (
            _range(change.first_offset, change.last_offset),
            change.cause.value,
            f"rule {RULES[change.cause]}",
            change.state.name,
            change.delivery_count,
            change.member_id,
        )
        for change in step.transitions
    ]
    heads = ("records", "cause", "rule of docs/rules.md", "state", "delivery count", "member")
    reasons = _table(heads, why, "No record has changed.")
    return f"{differs}<h3>Why</h3>{reasons}{said}"


def _changed_records(before: Snapshot, after: Snapshot) -> Iterator[tuple[str, str, str]]:
    old, new = _by_offset(before), _by_offset(after)
    missing = "not in flight"
    differing = [
        (offset, (old.get(offset, missing), new.get(offset, missing)))
        for offset in sorted(old.keys() | new.keys())
        if old.get(offset) != new.get(offset)
    ]
    for (_, (was, is_)), group in groupby(enumerate(differing), lambda each: (each[1][0] - each[0], each[1][1])):
        offsets = [offset for _, (offset, _) in group]
        yield f"records {_range(offsets[0], offsets[-1])}", was, is_


def _by_offset(leader: Snapshot) -> dict[int, str]:
    return {offset: _cell(cell) for first, last, cell in _runs(leader) for offset in range(first, last + 1)}


# ---- the state


def _next(
    around: ExploredGroup, positions: Sequence[int], state: ExploredState, then: Iterable[tuple[int, Step]]
) -> str:
    rows = []
    for position, step in then:
        broken = ", ".join(each.name for each in contradictions(around, state, step))
        link = PageLink(str(step.event), address_of([*positions, position]))
        rows.append((link, *_outcome(around, state, step), broken))
    heads = ("event", "acquires", "SPSO", "rules", "does not hold then")
    return f"<p>{_NUMBERS}</p>{table_of(heads, rows)}" if rows else "<p>Nothing.</p>"


def _state(around: ExploredGroup, state: ExploredState) -> str:
    leader = state.leader
    held: dict[str, list[str]] = {}
    flying, locks = [], []
    left_ms = {creation: deadline_ms - leader.now_ms for creation, deadline_ms in leader.locks}
    for first, last, cell in _runs(leader):
        records = _range(first, last)
        flying.append((records, cell.state.name, cell.delivery_count, cell.member_id, cell.lock, cell.write))
        if cell.member_id:
            held.setdefault(cell.member_id, []).append(records)
        if cell.lock is not None:
            ms = left_ms[cell.lock]
            ends = "was handled" if cell.lock_expired else f"in {ms:,} ms" if ms >= 0 else "due"
            locks.append((cell.lock, records, ends))
    tables = (
        ("In flight", ("records", "state", "delivery count", "member", "lock", "write"), flying),
        ("Locks", ("lock", "records", "expires"), locks),
        ("Members", ("member", "holds"), [(member, ", ".join(records)) for member, records in held.items()]),
    )
    shown = [f"<h3>{title}</h3>{_table(heads, rows)}" for title, heads, rows in tables]
    return table_of(("", ""), list(_facts(around, state))) + "".join(shown)


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]], without: str = "Nothing.") -> str:
    return table_of(heads, rows) if rows else f"<p>{without}</p>"


def _facts(around: ExploredGroup, state: ExploredState) -> Iterator[tuple[str, str]]:
    """Yield what there is to say about *state*, but for its records; always the same names, in the same order."""
    leader, log = state.leader, around.configuration.log
    yield "SPSO", str(leader.start_offset)
    yield "SPEO", str(leader.end_offset)
    yield "delivery complete count", str(leader.delivery_complete_count)
    yield "not done", _NOTHING if is_done(around, state) else _offsets(not_done(around, state))
    yield "leader epoch", str(state.leader_epoch)
    yield "gap window", "none" if leader.gap_window is None else _range(*leader.gap_window)
    yield "next fetch looks for something cached", "yes" if leader.find_next else "no"
    yield "log start", str(state.log_start)
    yield "log", ", ".join(_range(log[each].first_offset, log[each].last_offset) for each in state.log) or _NOTHING
    yield "fetches end", str(around.readable_end(state))
    stored = f"SPSO {state.stored.start_offset}; {_batches(state.stored.state_batches)}"
    yield "stored", stored if state.left.failovers else "not followed, as no other leader will read it"
    yield "writes under way", "; ".join(_writes(state)) or "none"
    yield "dead letters under way", ", ".join(str(number) for number, _ in leader.dead_letters) or "none"
    yield "accepted, and confirmed", _offsets(sorted(state.confirmed))
    left = state.left._asdict()
    wrong = [f"{name.replace('_', ' ')} {count}" for name, count in left.items() if count]
    yield "may still go wrong", ", ".join(wrong) or _NOTHING


def _writes(state: ExploredState) -> Iterator[str]:
    for number, start, batches, _accepted, is_stored in state.sent:
        applied = ", applied" if is_stored else ""
        yield f"{number} (SPSO {'as it is' if start < 0 else start}; {_batches(batches)}{applied})"


def _batches(batches: Iterable[StateBatch]) -> str:
    shown = ", ".join(f"{_range(first, last)} {RecordState(of).name} x{count}" for first, last, of, count in batches)
    return shown or "no records"


def _runs(leader: Snapshot) -> Iterator[tuple[int, int, CellRow]]:
    """Yield the ranges of records in flight that are alike."""
    for first, last, is_split, runs in leader.batches:
        offset = first
        for size, position in runs:
            end = offset + size - 1 if is_split else last
            yield offset, end, leader.cells[position]
            offset = end + 1


def _cell(cell: CellRow) -> str:
    parts = [f"{cell.state.name} x{cell.delivery_count}", cell.member_id]
    if cell.lock is not None:
        parts.append(f"lock {cell.lock}{' expired' if cell.lock_expired else ''}")
    if cell.write is not None:
        parts.append(f"write {cell.write}")
    return ", ".join(filter(None, parts))


def _offsets(offsets: Sequence[int]) -> str:
    groups = groupby(enumerate(offsets), lambda each: each[1] - each[0])
    runs = [[offset for _, offset in group] for _, group in groups]
    return ", ".join(_range(run[0], run[-1]) for run in runs) or _NOTHING


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
