"""``python -m sharestate``."""

from sharestate.cli import main

if __name__ == "__main__":
    main()
