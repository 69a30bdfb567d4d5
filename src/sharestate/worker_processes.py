"""How a process of a pool begins; a module of its own, as pools of several packages begin so."""

from __future__ import annotations

import os
import signal
from multiprocessing import parent_process
from threading import Thread


def begin_worker(at_interrupt: signal.Handlers = signal.SIG_IGN) -> None:
    """
    End when the process that waits for this one has been killed, as no pool does.

    Args:
        at_interrupt: What Ctrl-C does: nothing, so that the work is finished and kept, or with SIG_DFL the end.
    """
    signal.signal(signal.SIGINT, at_interrupt)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
