"""B12: a topic id that is equal but another object is another topic's, so that the persister's answer is malformed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import evolve

from sharestate.conversation.answers import GivenAnswer, ReadMeaning, WriteMeaning
from sharestate.conversation.requests import CompleteRead, CompleteWrite, Initialize
from sharestate.conversation.served_partition import ServedPartition
from sharestate.leader.answers import Failed
from sharestate.testing.generator.dead_letters import EQUAL
from tests.planted.putting import put

if TYPE_CHECKING:
    from sharestate.conversation.requests import Command
    from sharestate.json_lines import Json

RELEASE: Final = "4.4.0"

_carry_out = ServedPartition._carry_out  # noqa: SLF001 - what is planted


def carry_out(self: ServedPartition, command: Command) -> Json:
    """Carry out *command*, with a malformed answer in place of one with an equal topic id."""
    if isinstance(command, Initialize | CompleteRead) and command.answer.as_given == EQUAL:
        command = evolve(command, answer=GivenAnswer[ReadMeaning](EQUAL, Failed()))
    elif isinstance(command, CompleteWrite) and command.answer.as_given == EQUAL:
        command = evolve(command, answer=GivenAnswer[WriteMeaning](EQUAL, Failed()))
    return _carry_out(self, command)


def plant() -> None:
    """Put the old rule back."""
    put(ServedPartition, "_carry_out", carry_out)
