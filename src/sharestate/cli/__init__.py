"""The command line; it needs the extra ``cli``."""

import sys


def main() -> None:
    """Run the command line, or say how to install what it needs."""
    try:
        from sharestate.cli.commands import sharestate  # noqa: PLC0415 - click and rich may be missing
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"click", "rich"}:
            raise
        print("sharestate: the command line needs the extra 'cli': pip install 'sharestate[cli]'", file=sys.stderr)  # noqa: T201 - there is nothing better to say it with
        sys.exit(2)
    sharestate()
