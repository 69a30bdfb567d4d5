"""The command line; it needs the extra ``cli``."""

import sys

from sharestate.cli.signals import ending_at_once


def main() -> None:
    """Run the command line and end the process with its exit code; without the extra, show how to install it."""
    try:
        with ending_at_once():
            import rich  # noqa: F401, PLC0415 - click and rich may be missing; commands need both, and are imported later

            from sharestate.cli.commands import run  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"click", "rich"}:
            raise
        print("sharestate: the command line needs the extra 'cli': pip install 'sharestate[cli]'", file=sys.stderr)  # noqa: T201 - click is missing
        sys.exit(2)
    sys.exit(run())
