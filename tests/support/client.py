"""A client of the line protocol, for tests."""

from __future__ import annotations

from typing import Any

from sharestate import KAFKA_4_3, Profile
from sharestate.conversation import Conversation


class Client:
    """Sends requests to a conversation in process, and returns the responses or parts of them."""

    def __init__(self, profile: Profile = KAFKA_4_3) -> None:
        """Start a conversation under *profile*."""
        self.conversation = Conversation(profile)
        self.line = 0

    def ask(self, op: str, **members: Any) -> Any:  # noqa: ANN401 - JSON
        """Return the response to the request *op* with *members*."""
        self.line += 1
        return self.conversation.answer({"op": op, **members}, self.line)

    def result(self, op: str, **members: Any) -> Any:  # noqa: ANN401 - JSON
        """Return the result of a request."""
        return self.ask(op, **members)["result"]

    def events(self, op: str, **members: Any) -> Any:  # noqa: ANN401 - JSON
        """Return the events of a request."""
        return self.ask(op, **members)["events"]

    def state(self, **members: Any) -> Any:  # noqa: ANN401 - JSON
        """Return the state."""
        return self.ask("state", **members)["state"]

    def acquire(self, first: int, last: int, member: str = "m1", **members: Any) -> Any:  # noqa: ANN401 - JSON
        """Acquire one batch of the log for *member*; return the result."""
        fetch = {"batch_size": 100, "max_records": 500, "fetch_offset": first, "batches": [[first, last]]}
        return self.result("acquire", member=member, **fetch, **members)
