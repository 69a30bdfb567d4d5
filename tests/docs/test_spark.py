"""The page on Spark: its settings are those that the commands have."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Final

from generate.pages import DOCS
from sharestate.cli.spark_job import SETTINGS

PAGE: Final = DOCS / "spark.md"


def test_the_settings_are_those_of_the_commands() -> None:
    """A session that is set as the page says has the bounds that ``sharestate spark`` gives its own."""
    shown: dict[str, object] = {}
    (section,) = re.findall(r"## Fixed costs\n(.*?)\n## ", PAGE.read_text(), re.DOTALL)
    (program,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)

    exec(program, {"spark": SimpleNamespace(conf=SimpleNamespace(set=shown.__setitem__))})  # noqa: S102 - it is what the page says

    assert shown == {name: value for name, value in SETTINGS.items() if ".arrow." in name}
