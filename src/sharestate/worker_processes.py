"""How a process of a pool begins; a module of its own, as pools of several packages begin so."""

from __future__ import annotations

import os
import signal
from multiprocessing import parent_process
from threading import Thread


def begin_worker() -> None:
    """Leave Ctrl-C to the process that waits for this one, and end when that has been killed, as no pool does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
