"""What needs Cosmic Ray, which `make mutation` installs, is not imported where there is none."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("cosmic_ray") else ["mutants.py", "trial.py"]
