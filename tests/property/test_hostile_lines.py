"""Bad lines in a conversation leave no trace in it."""

from __future__ import annotations

from copy import deepcopy
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharestate import (
    Profile,
)
from sharestate.conversation import BadRequestError, Conversation
from sharestate.testing.generator.mix import WILD
from sharestate.testing.generator.operations import converse
from sharestate.testing.generator.surroundings import Request, Response, Steps
from sharestate.testing.protocol.strategies import sequences
from tests.support.partitions import every_profile

BAD_LINES: Final = st.one_of(
    st.sampled_from(
        [
            "{",
            "[]",
            "null",
            '{"op":"acknowledge","member":"m1","batches":[[0,9,[1.0]]]}',
            '{"op":"acquire","member":"m1","batch_size":0,"max_records":5,"fetch_offset":0,"batches":[[0,9]]}',
            '{"op":"advance","ms":-1}',
            '{"op":"complete","write":99,"answer":"ok"}',
            '{"op":"log_start","offset":9223372036854775808}',
            '{"op":"initialize","answer":{"start_offset":-2}}',
            '{"op":"release","member":"m1","answers":["ok","never"]}',
        ]
    ),
    st.text(max_size=9).filter(lambda line: not line.isdigit()),
)


@every_profile
@given(sequence=sequences(mix=WILD), lines=st.lists(BAD_LINES, min_size=1, max_size=5))
def test_bad_lines_do_not_disturb_a_conversation(profile: Profile, sequence: Steps[None], lines: list[str]) -> None:
    """Lines that are refused take no id and no answer, and leave no trace: the other answers are the same."""
    plain, disturbed = Conversation(profile), Conversation(profile)

    def answer(request: Request) -> Response:
        for line in lines:
            with pytest.raises(BadRequestError):
                disturbed.answer_line(line, 1)
        expected: Response = plain.answer(deepcopy(request), 1)
        assert disturbed.answer(deepcopy(request), 1) == expected
        return expected

    for _ in converse(sequence, answer):
        pass
