"""A command as a peer: requests go out as fast as its pipe takes them, and responses come back in order."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Self, cast

from sharestate.json_lines import read_json, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from sharestate.testing.generator.model import Request, Response


class PeerDiedError(Exception):
    """The command ended before it had answered everything."""


class CommandPeer(AbstractContextManager["CommandPeer"]):
    """
    A running command that answers each line with one line.

    Many requests may be under way: a thread takes the responses off the pipe meanwhile.

    >>> import sys
    >>> with CommandPeer([sys.executable, "-m", "sharestate", "serve"]) as peer:
    ...     peer({"op": "open", "lifecycle": "ACTIVE"})["state"]["lifecycle"]
    'ACTIVE'
    """

    def __init__(self, command: Sequence[str], log: Path | None = None) -> None:
        """
        Run *command*; what it writes to standard error goes to the file *log*, or to one that is deleted at the end.

        Raises:
            OSError: It cannot be run.
        """
        self._scratch = None if log else tempfile.TemporaryDirectory(prefix="sharestate-peer-")
        self._log = log or Path(cast("tempfile.TemporaryDirectory[str]", self._scratch).name) / "log"
        with self._log.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - the command is the caller's
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # Ctrl-C is not for the peer
            )
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line)
        self._lines.put(b"")

    def ask(self, requests: Sequence[str]) -> None:
        """
        Send *requests*, one line each, without waiting for what they are answered.

        Raises:
            PeerDiedError: There is nobody to send them to.
        """
        pipe = self._process.stdin
        try:
            if pipe is not None:
                pipe.write("".join(f"{request}\n" for request in requests).encode())
                pipe.flush()
        except BrokenPipeError as error:
            raise PeerDiedError(self._last_words()) from error

    def response(self) -> str:
        """
        Return the next response, in the order of the requests.

        Raises:
            PeerDiedError: There will be none.
        """
        line = self._lines.get()
        if not line:
            raise PeerDiedError(self._last_words())
        return line.decode().rstrip("\n")

    def __call__(self, request: Request) -> Response:
        """
        Return the response to one request, as JSON values.

        Raises:
            MalformedInputError: The response is not JSON.
            PeerDiedError: There is none.
        """
        self.ask([write_json(request)])
        response: Response = read_json(self.response())
        return response

    def _last_words(self) -> str:
        self._process.wait()
        said = self._log.read_text(errors="replace").splitlines()[-5:]
        return "\n  ".join([f"the peer ended with status {self._process.returncode}", *said])

    def close(self) -> None:
        """Let the command come to its end, which the end of its input is: it may have something to write then."""
        with self._process:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._reader.join()
        if self._scratch is not None:
            self._scratch.cleanup()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self
