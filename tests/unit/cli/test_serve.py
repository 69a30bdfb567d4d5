"""``sharestate serve``."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from click.testing import CliRunner

from sharestate.cli.commands import sharestate

SERVE = [sys.executable, "-m", "sharestate", "serve"]
OPEN = '{"op":"open","lifecycle":"ACTIVE"}\n'


def served(text: str | bytes, *options: str) -> list[Any]:
    """Return what serve answers to the lines of *text*."""
    result = CliRunner().invoke(sharestate, ["serve", *options], input=text)

    assert result.exit_code == 0
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_each_line_is_answered() -> None:
    """One response per request, in order."""
    responses = served(OPEN + '{"op":"next_fetch_offset","quiet":true}\n{"op":"can_acquire","quiet":true}')

    assert [response["result"] for response in responses] == [None, 0, True]


def test_the_profile_can_be_chosen() -> None:
    """In the healed profile, a lock that a failed write made due expires at once (B15); in Kafka's it does not."""
    fetch = '"batch_size":9,"max_records":9,"fetch_offset":0,"batches":[[0,4]]'
    story = (
        OPEN
        + f'{{"op":"acquire","member":"m1",{fetch}}}\n'
        + '{"op":"acknowledge","member":"m1","batches":[[0,4,[1]]],"answers":["hold"]}\n'
        + '{"op":"advance","ms":30001}\n'
        + '{"op":"complete","write":0,"answer":"null"}\n'
    )

    assert len(served(story)[-1]["events"]) == 1
    assert len(served(story, "--profile", "kafka-4.3-healed")[-1]["events"]) == 3


def test_share_coordinators_are_served_too() -> None:
    """With the argument 'coordinator', requests are for share coordinators; combiners of two releases differ."""
    combine = '{"op":"combine","existing":[[0,4,2,1],[5,9,0,1]],"new":[[5,9,2,1]]}\n'

    assert served(combine, "coordinator", "--profile", "kafka-4.3") == [{"result": [[0, 4, 2, 1], [5, 9, 2, 1]]}]
    assert served(combine, "coordinator") == [{"result": [[0, 9, 2, 1]]}]


def test_what_no_release_has_is_served_by_its_name() -> None:
    """Under trunk's rules an initialization that comes again writes nothing; under those of 4.4 a record."""
    entry = '{"topic":"AAECAwQFBgcICQoLDA0ODw","partition":0,"state_epoch":1,"start_offset":5}'
    initialize = f'{{"op":"initialize","group":"g","entries":[{entry}]}}\n'
    story = '{"op":"open","topics":{"AAECAwQFBgcICQoLDA0ODw":1},"now":1000}\n' + 2 * initialize
    written = {
        name: [len(each["records"]) for each in served(story, "coordinator", "--profile", name)]
        for name in ("kafka-4.4", "kafka-trunk")
    }

    assert written == {"kafka-4.4": [0, 1, 1], "kafka-trunk": [0, 1, 0]}


def test_share_sessions_are_served_too() -> None:
    """With the argument 'sessions', requests are for the share sessions of a broker; healed ones differ."""
    fetch = '{"op":"fetch","group":"g","member":"m","partitions":[["AAECAwQFBgcICQoLDA0ODw",0]%s]}'
    twice = '{"op":"open"}\n' + fetch % ',["AAECAwQFBgcICQoLDA0ODw",0]'

    assert served(twice, "sessions", "--profile", "kafka-4.2")[1]["result"]["raised"]["error"] == "UNKNOWN_SERVER_ERROR"
    assert served(twice, "sessions", "--profile", "kip-932")[1]["result"]["raised"]["error"] == "INVALID_REQUEST"


def test_share_groups_are_served_too() -> None:
    """With the argument 'groups', requests are for a group coordinator; the first epoch is that of the release."""
    join = (
        '{"op":"open","topics":{"t":["AAECAwQFBgcICQoLDA0ODw",1]}}\n'
        '{"op":"heartbeat","group":"g","member":"m","topics":["t"]}'
    )

    assert served(join, "groups", "--profile", "kafka-4.2")[1]["result"]["epoch"] == 1
    assert served(join, "groups")[1]["result"]["epoch"] == 2


def test_a_profile_that_no_group_coordinator_has_is_refused() -> None:
    """The message lists those that there are."""
    result = CliRunner().invoke(sharestate, ["serve", "groups", "--profile", "kip-932"])

    assert result.exit_code == 2
    assert "kafka-4.4-healed" in result.output


def test_a_bad_request_to_a_share_coordinator_is_answered() -> None:
    """It has the same form as that of a share partition."""
    bad, good = served('{"op":"open","partitions":0}\n{"op":"open"}\n', "coordinator")

    assert bad["bad_request"].keys() == {"line", "field", "message"}
    assert (bad["bad_request"]["line"], bad["bad_request"]["field"]) == (1, "partitions")
    assert good == {"result": None, "records": [], "events": [], "state": []}


def test_share_partitions_can_be_named() -> None:
    """The argument 'partition' is what is served without one."""
    assert served(OPEN, "partition") == served(OPEN)


def test_a_profile_that_no_share_coordinator_has_is_refused() -> None:
    """The message lists those that there are."""
    result = CliRunner().invoke(sharestate, ["serve", "coordinator", "--profile", "kip-932"])

    assert result.exit_code == 2
    assert "kafka-4.2, kafka-4.3, kafka-4.4" in " ".join(result.stderr.split())


def test_bytes_that_are_not_text_are_answered() -> None:
    """A line that is not UTF-8 is a bad request like any other; the next one is answered."""
    bad, good = served(b'{"op":"\xff"}\n' + OPEN.encode())

    assert bad["bad_request"] == {"line": 1, "field": "", "message": "not UTF-8"}
    assert good["result"] is None


def test_lines_end_at_line_feeds_only() -> None:
    """Carriage returns are white space, and separators of Unicode end no line."""
    responses = served('{"op":"open"}\r\n{"op":"release",\r"member":"\u2028\x85"}\n')

    assert [response["result"] for response in responses] == [None, {"future": 0, "status": "ok"}]


def test_an_unknown_profile_is_refused() -> None:
    """The message lists the profiles."""
    result = CliRunner().invoke(sharestate, ["serve", "--profile", "kafka-0.8"])

    assert result.exit_code == 2
    assert "kafka-4.2-healed" in result.stderr


def test_a_line_is_answered_before_the_next_is_read() -> None:
    """In a pipe, the response to a line comes before the next line is sent."""
    with subprocess.Popen(SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        for request in (OPEN, '{"op":"state"}\n', "nonsense\n"):
            process.stdin.write(request)
            process.stdin.flush()
            assert json.loads(process.stdout.readline())
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait() == 0


def test_serve_ends_quietly_when_its_reader_is_gone() -> None:
    """A closed pipe causes no traceback."""
    with subprocess.Popen(
        SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        process.stdin.write(OPEN * 10)
        process.stdin.close()
        assert process.stderr.read() == ""
        process.wait()
