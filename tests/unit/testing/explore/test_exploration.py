"""An exploration finds bugs of Kafka by shortest ways, and comes to the same end however it is carried out."""

from __future__ import annotations

import json
import signal
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from attrs import evolve

from sharestate import KAFKA_4_4
from sharestate.testing.explore import (
    RULES,
    Bound,
    Bounds,
    Configuration,
    Exploration,
    ExplorationFileError,
    expansion,
    explore,
    go_on,
    read_exploration,
    write_exploration,
)
from sharestate.testing.explore.endings import LINK, first_without_end
from sharestate.testing.explore.events import GOES_ON, ExploredEventKind
from sharestate.testing.explore.expansion import EVENT_LIMIT, Found, steps
from sharestate.testing.explore.explored_state import digest, has_due_lock
from sharestate.testing.explore.properties import Contradiction
from sharestate.testing.explore.steps import ExploredGroup
from sharestate.values.effects import Cause
from sharestate.values.records import RecordState
from tests.planted.rare import RARE
from tests.support.explorations import (
    ACCEPT,
    BUGS,
    SLOW,
    WITH_QUEUE,
    BugInSmall,
    answered,
    configuration,
    shown,
    shown_in,
)

if TYPE_CHECKING:
    from sharestate.json_lines import Json

_RULES: Final = Path(__file__).parents[4] / "docs/rules.md"

SMALL: Final = configuration((0, 0), (1, 1), failures=1, delivery_count_limit=1)


@pytest.mark.parametrize("bug", [bug for name, bug in BUGS.items() if name not in SLOW], ids=lambda bug: bug.quirk)
def test_finds_kafkas_bug(bug: BugInSmall) -> None:
    """With a bug of Kafka switched on it is found by a shortest way, and its conversation leads the library there."""
    found = explore(bug.configuration, bug.profile).counterexample
    assert found is not None
    assert (found.name, len(found.steps) - 1) == (bug.breaks, bug.steps)
    assert shown_in(answered(found.conversation, bug.profile)) == shown(found.steps[-1].after.leader)


def test_conversations_lead_to_the_states() -> None:
    """The conversation of every state leads the library to that state."""
    exploration = explore(WITH_QUEUE, KAFKA_4_4.healed, bounds=Bounds(states=300))
    for number in range(0, exploration.states, 20):
        way = exploration.show(Found(number, None, Contradiction("", "")))
        leader = way.steps[-1].after.leader
        assert shown_in(answered(way.conversation, KAFKA_4_4.healed)) == shown(leader)
        assert digest(way.steps[-1].after) in exploration.digests


def test_same_with_several_processes() -> None:
    """Two processes find what one finds."""
    apart, alone = (explore(SMALL, KAFKA_4_4.healed, jobs=jobs) for jobs in (2, 1))
    assert alone.holds
    assert apart.to_json() == alone.to_json()
    assert apart.parents == alone.parents


def test_goes_on_from_a_file(tmp_path: Path) -> None:
    """An exploration that has met a bound goes on from a file, and finds what it would have found without."""
    bug = BUGS["B10"]
    file = tmp_path / "explored.jsonl.gz"
    whole = explore(bug.configuration, KAFKA_4_4.healed, bounds=Bounds(states=600))
    part = explore(bug.configuration, KAFKA_4_4.healed, bounds=Bounds(states=200))
    assert (part.truncated, part.holds) == (Bound.STATES, False)
    write_exploration(part, file)
    again = read_exploration(file)
    go_on(again, bounds=Bounds(states=600))
    assert again.to_json() == whole.to_json()
    assert again.parents == whole.parents


@pytest.mark.parametrize(
    ("number", "change", "field"),
    [
        (0, {"sharestate_explored": 2}, "sharestate_explored"),
        (0, {"profile": "kafka-9"}, "profile"),
        (0, {"states": 7}, "found"),
        (0, {"expanded": 7}, "state"),
        (0, {"links": 7}, "links"),
        (0, {"done": 7}, "done"),
        (0, {"rules": {"8.2": 1}}, "rules"),
        (1, {"found": "AAAA"}, "found"),
        (1, {"parents": "AAABAAAAAAA="}, "parents"),
        (2, {"links": "AAABAP////8="}, "links"),
        (3, {"state": 10_000}, "state"),
        (3, {"sent": [[3, 0, [], [], False]]}, "sent"),
        (3, {"log": [9]}, "log"),
    ],
)
def test_refuses_other_files(tmp_path: Path, number: int, change: dict[str, Json], field: str) -> None:
    """A file that no exploration has written is refused with the field that is wrong."""
    file = tmp_path / "explored.jsonl"
    write_exploration(explore(SMALL, KAFKA_4_4.healed, bounds=Bounds(states=20)), file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[number] |= change
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(ExplorationFileError) as raised:
        read_exploration(file)
    assert raised.value.field == field


def test_members_are_alike() -> None:
    """Two members who have changed places make no other state."""
    leader = explore(configuration((0, 0), (1, 1), members=2), KAFKA_4_4.healed, bounds=Bounds(states=30))
    states = [leader.show(Found(number, None, Contradiction("", ""))).steps[-1].after for number in range(30)]
    swapped = {"m1": "m2", "m2": "m1", "": ""}
    both = 0
    for state in states:
        cells = tuple(cell._replace(member_id=swapped[cell.member_id]) for cell in state.leader.cells)
        both += {cell.member_id for cell in cells if cell.state is RecordState.ACQUIRED} == {"m1", "m2"}
        assert digest(state._replace(leader=evolve(state.leader, cells=cells))) == digest(state)
    assert both


def test_rules_are_rules() -> None:
    """Each cause of a transition belongs to a rule that has a heading."""
    headings = _RULES.read_text(encoding="utf-8")
    assert RULES.keys() == set(Cause)
    assert all(f"(rule-{rule.replace('.', '-')})=" in headings for rule in RULES.values())


def test_says_which_rules_are_met() -> None:
    """Of each rule it is said how many steps it has answered: each fetch asks by rule 5; nothing is compacted away."""
    exploration = explore(SMALL, KAFKA_4_4.healed)
    rules, kinds = exploration.rules, exploration.kinds
    assert set(RULES.values()) <= rules.keys()
    assert (rules["7.3"], rules["13"]) == (0, 0)
    assert (rules["5"], rules["8.1"], rules["9"]) == (kinds["fetch"], kinds["acknowledge"], kinds["close"])


def test_bound_of_time() -> None:
    """Without time nothing is said to hold."""
    exploration = explore(SMALL, KAFKA_4_4.healed, bounds=Bounds(seconds=0))
    assert (exploration.truncated, exploration.holds) == (Bound.SECONDS, False)


def test_events_fit_into_numbers() -> None:
    """The largest configuration has fewer events in a state than numbers have room for."""
    members, offsets, types = 8, 64, 5
    assert members * (offsets + types * (offsets + 1) + 1) + 3 * offsets < EVENT_LIMIT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_between_two_chunks(number: signal.Signals) -> None:
    """Ctrl-C or SIGTERM ends an exploration where it can be gone on with, and nothing is lost by it."""
    usual = signal.getsignal(number)
    whole = explore(SMALL, KAFKA_4_4.healed)
    interrupted = explore(SMALL, KAFKA_4_4.healed, show=lambda _: signal.raise_signal(number))
    assert interrupted.truncated is Bound.INTERRUPTED
    assert interrupted.expanded < whole.expanded
    go_on(interrupted, bounds=Bounds())
    assert interrupted.to_json() == whole.to_json()
    assert signal.getsignal(number) is usual


def test_knows_from_where_there_is_no_end() -> None:
    """The first state from which nothing leads to a state that is done is found, as by following each link."""
    links = [(0, 1), (0, 2), (1, 3), (3, 1), (2, 4), (5, 4), (5, 1), (6, 6)]
    for done in ([4], [4, 3], [], [4, 1, 6]):
        reach = set(done)
        for _ in links:
            reach |= {before for before, after in links if after in reach}
        first = next((number for number in range(7) if number not in reach), None)
        assert first_without_end(7, array("Q", [before * LINK + after for before, after in links]), done) == first


def test_nobody_is_saved_by_what_goes_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state from which only a mishap leads on is named, by a shortest way, though somebody can do something."""
    stuck = {ExploredEventKind.FETCH, ExploredEventKind.DEADLINE}
    monkeypatch.setattr(expansion, "GOES_ON", GOES_ON - stuck)
    exploration = explore(SMALL, KAFKA_4_4.healed)
    found = exploration.counterexample
    assert found is not None
    assert (found.name, len(found.steps)) == ("nothing stalls", 1)
    assert not exploration.holds


def test_no_time_is_left() -> None:
    """Where no time is left before a deadline, it is no success, as locks that begin then would be as old as others."""
    exploration = Exploration(around=explore(SMALL, KAFKA_4_4.healed, bounds=Bounds(states=1)).around, crowded=1)
    go_on(exploration, bounds=Bounds())
    assert (exploration.truncated, exploration.holds) == (Bound.TIME, False)


def test_what_never_happens() -> None:
    """A configuration of which nothing ever comes, as its log has no batch to compact away, is no success."""
    exploration = explore(configuration((0, 0), compactions=1), KAFKA_4_4.healed)
    assert (exploration.never, exploration.counterexample, exploration.holds) == (("compact",), None, False)


def test_locks_that_expire_at_once() -> None:
    """Two batches of one fetch expire at the same time, though two writes say so where one may be under way."""
    exploration = explore(configuration((0, 0), (1, 1), types=ACCEPT), KAFKA_4_4.healed)
    shown = (exploration.show(Found(number, None, Contradiction("", ""))) for number in range(exploration.states))
    assert any(len(step.after.sent) == 2 for way in shown for step in way.steps)


def test_lock_that_is_due_at_once() -> None:
    """Where a batch is split after its lock has expired, locks are due at once, and no time passes until they are."""
    around = ExploredGroup(configuration=RARE["archived as a whole"].configuration, profile=KAFKA_4_4.healed)
    walked = [around.begin()]
    begun = "fetch m1 2 500", "acknowledge m1 0 0 2", "succeed 0", "acknowledge m1 1 2 2", "deadline"
    for name in (*begun, "log start 2", "fetch m1 1 500", "fetch m1 1 500", "deadline"):
        walked.append(next(step for _, step in steps(around, walked[-1].after) if str(step.event) == name))
        requests = tuple(request for step in walked for request in step.requests)
        assert shown_in(answered(requests, KAFKA_4_4.healed)) == shown(walked[-1].after.leader)
    split, fetched, expired = walked[-3:]
    assert [has_due_lock(step.after.leader) for step in walked[-4:]] == [False, True, True, False]
    assert {step.after.leader.now_ms for step in walked[-4:]} == {expired.after.leader.now_ms}
    assert fetched.acquired
    assert "advance" not in {request["op"] for request in fetched.requests}  # it would handle the locks
    assert split.after.leader.locks[0].deadline_ms < split.after.leader.now_ms


def test_done_is_reached() -> None:
    """Where all states were looked at and nothing was ever done, not everything holds."""
    exploration = Exploration(around=explore(SMALL, KAFKA_4_4.healed, bounds=Bounds(states=1)).around)
    assert not exploration.holds


def test_configuration_in_json() -> None:
    """A configuration comes back from JSON as it was."""
    for bug in BUGS.values():
        for is_brief in (False, True):
            assert Configuration.from_json(bug.configuration.to_json(is_brief=is_brief)) == bug.configuration
    assert configuration((0, 1)).to_json(is_brief=True) == '{"sharestate_exploration":1,"log":[[0,1]]}'
