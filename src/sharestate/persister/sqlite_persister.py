"""A persister whose state is in a file of SQLite."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike, fspath
from threading import get_ident

from sharestate.coordinator.profiles import LATEST_COORDINATOR, CoordinatorConfig, CoordinatorProfile
from sharestate.coordinator.sqlite_log import BUSY_TIMEOUT_S, SqliteLog
from sharestate.errors import WrongThreadError
from sharestate.persister.coordinator_persister import CoordinatorPersister, wall_clock_ms


class SqlitePersister(CoordinatorPersister):
    """
    Stores the state of share partitions in a file of SQLite, by the rules of a share coordinator.

    What was answered is in the file, and survives the end of the process and of the machine. Several processes may
    use one file at a time, each with a persister of its own.

    It belongs to the thread that has opened it, and each request waits for the disk: an event loop has it in a thread
    of its own, with ``ThreadedPersister``.

    Raises:
        StateLogError: The file cannot be opened, has another schema version, is not one of these, or lacks records.
        WrongThreadError: A method was called in another thread; nothing was done.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        profile: CoordinatorProfile = LATEST_COORDINATOR,
        config: CoordinatorConfig | None = None,
        clock: Callable[[], int] = wall_clock_ms,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
    ) -> None:
        """
        Open the file *path*, which is made if it does not exist.

        Args:
            path: The file; SQLite keeps two others beside it while it is open.
            profile: Whose rules to follow.
            config: The settings of the coordinator; None for those that brokers have by default.
            clock: Returns the time. [ms since 1970]
            busy_timeout_s: How long a request waits for that of another process at most. [s]
        """
        self._path = fspath(path)
        self._thread = get_ident()
        log = SqliteLog(path, busy_timeout_s=busy_timeout_s)
        try:
            super().__init__(log, profile=profile, config=config, clock=clock)
        except BaseException:
            log.close()
            raise

    def _expect_caller(self) -> None:
        if get_ident() != self._thread:
            message = (
                f"the state log {self._path!r} was opened in another thread, and belongs to it: "
                "use it there, or through a ThreadedPersister"
            )
            raise WrongThreadError(message)
