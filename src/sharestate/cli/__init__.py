"""The command line; it needs the extra ``cli``."""

import sys


def main() -> None:
    """Run the command line and end the process with its exit code; without the extra, show how to install it."""
    try:
        from sharestate.cli.commands import run  # noqa: PLC0415 - click and rich may be missing
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"click", "rich"}:
            raise
        print("sharestate: the command line needs the extra 'cli': pip install 'sharestate[cli]'", file=sys.stderr)  # noqa: T201 - click is missing
        sys.exit(2)
    sys.exit(run())
