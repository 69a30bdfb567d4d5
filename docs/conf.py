"""Settings for building the documentation: ``make docs``. It needs no network."""

import re

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import GoogleDocstring
from sphinx.util.inspect import object_description

from sharestate import LATEST, AutoOffsetReset, RecordBatch, __version__, monotonic_ms
from sharestate.coordinator import LATEST_COORDINATOR
from sharestate.persister.coordinator_persister import wall_clock_ms

project = "sharestate"
author = copyright = "The sharestate authors"  # noqa: A001 - what Sphinx calls it
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
]
nitpicky = True
nitpick_ignore = [  # the standard library, whose own documentation a build without network cannot link to
    ("py:class", "ssl.SSLContext"),
    ("py:class", "collections.Counter"),
    ("py:class", "collections.abc.Callable"),
    ("py:class", "collections.abc.Collection"),
    ("py:class", "collections.abc.Coroutine"),
    ("py:class", "collections.abc.Iterable"),
    ("py:class", "collections.abc.Iterator"),
    ("py:class", "collections.abc.Mapping"),
    ("py:class", "collections.abc.Sequence"),
    ("py:class", "concurrent.futures._base.Future"),
    ("py:class", "contextlib.AbstractContextManager"),
    ("py:class", "datetime.timedelta"),
    ("py:class", "os.PathLike"),
    ("py:class", "pathlib.Path"),
    ("py:class", "types.TracebackType"),
    ("py:class", "uuid.UUID"),
    ("py:class", "confluent_kafka.cimpl.Message"),  # nor to confluent-kafka's
    ("py:class", "altair.vegalite.v6.api.FacetChart"),  # nor to Altair's
    ("py:class", "altair.vegalite.v6.api.LayerChart"),
    ("py:class", "altair.vegalite.v6.api.VConcatChart"),
    ("py:class", "DataFrame"),  # nor to Spark's
    ("py:class", "SparkSession"),
    ("py:class", "StreamingQuery"),
    ("py:exc", "AnalysisException"),
    ("py:exc", "PythonException"),
    ("py:class", "Response"),  # any answer of a node
    ("py:class", "LeaderEvent"),  # any of the classes of sharestate.leader.observed
    ("py:class", "sharestate.conversation.compare.Level"),  # levels, which the page on testing explains
    ("py:exc", "PeerDiedError"),
    ("py:class", "sharestate.partition.share_partition.SharePartition"),  # what can be seen of a SharePartition
]
nitpick_ignore_regex = [
    ("py:class", r"Mapping\[str|Any\]( \| None)?"),  # annotations that cannot be evaluated without PySpark
    ("py:class", r"sharestate\.persister\.\w+\.[PR]"),  # type variables
    ("py:class", r"sharestate\.audit\.recorder\.Client"),  # a type variable
    ("py:class", r"sharestate\.broker\.groups\.(state\.R_co|timeline_map\.V|record_order\.V)"),  # type variables
    ("py:class", r"Fetched|sharestate\.broker\.sessions\.contexts\.T"),  # what a fetch found, and a type variable
    ("py:class", r"sharestate\.broker\.server\.test_broker\.T"),  # a type variable
    ("py:class", r"sharestate\.broker_log\.lines\.Requests"),  # what a RequestLog is
    ("py:class", r"Evidence|sharestate\.diagnose\.(rule\.Facts|group_rules\.GroupFacts)"),  # what rules judge, and show
    ("py:class", r"sharestate\.explain\.log_facts\.LogFacts"),  # what a life knows of the log
    ("py:class", r"sharestate\.explain\.survey\.(Begin|Life_co)"),  # a callback, and what it returns
    ("py:class", r"sharestate\.log_check\.(budget\.Part|found_order\.FoundOrder)"),  # what a budget and a check keep
    ("py:class", r"sharestate\.values\.config_keys\.Validator"),  # what values a setting takes
    ("py:exc", r"BudgetSpentError"),  # how a budget ends a check, which catches it
    ("py:class", r"sharestate\.history\.replay_state\.Loss"),  # why a replay knows nothing
    ("py:class", r"sharestate\.spark\.largest_partition\.Size"),  # the largest share partition, to be named
    ("py:class", r"sharestate\.values\.snapshot\.\w+Row"),  # what a snapshot is made of
]

html_theme = "furo"
html_title = "sharestate"

myst_heading_anchors = 3

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"
autodoc_mock_imports = ["pyspark"]  # it is in another environment

doctest_global_setup = "from datetime import timedelta\nfrom sharestate import *"

DOCSTRINGS = Config(
    napoleon_custom_sections=["Complexity", ("Options", "params_style"), "Returns", "Source"], napoleon_use_ivar=True
)
"""The form of docstrings: Google's, with sections of our own; Returns begins with no type."""

TUPLE_FIELD = type(RecordBatch.first_offset)
"""The class of a named tuple's fields."""

PLAIN = {"attribute", "data", "property"}
"""Where a docstring's first colon is a colon; Google's style would have a type before it."""

DEFAULTS = {
    object_description(default): name
    for name, default in {
        "LATEST": LATEST,
        "LATEST_COORDINATOR": LATEST_COORDINATOR,
        "AutoOffsetReset.latest()": AutoOffsetReset.latest(),
        "monotonic_ms": monotonic_ms,
        "wall_clock_ms": wall_clock_ms,
    }.items()
}
"""The names of default values, by what Sphinx shows of them."""


CITATION = re.compile(r"\brules? \d[\d.]*\d?(?:(?:, | and )\d[\d.]*\d?)*")
"""A citation of rules, as in "rules 7.8 and 24.3"."""


def link_rules(citation: re.Match[str]) -> str:
    """Return a *citation* with links to the rules."""
    return re.sub(
        r"\d+(?:\.\d+)?", lambda number: f":ref:`{number[0]} <rule-{number[0].replace('.', '-')}>`", citation[0]
    )


def read_docstring(  # noqa: PLR0913 - what Sphinx says of a docstring
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Put reStructuredText in the place of the *lines* of a docstring."""
    lines[:] = [CITATION.sub(link_rules, line) for line in lines]
    if what not in PLAIN:
        lines[:] = GoogleDocstring(lines, DOCSTRINGS, app, what, name, obj, options).lines()  # type: ignore[arg-type] # they are wider than they say


def skip_member(*said: object) -> bool | None:
    """Leave out fields of named tuples, the fourth thing said: only their class has a description of them."""
    return True if isinstance(said[3], TUPLE_FIELD) else None


def name_defaults(signature: str) -> str:
    """Write the defaults of *signature* as users write them, not as all that they are made of."""
    for text, default in DEFAULTS.items():
        signature = signature.replace(text, default)
    return signature


def read_signature(*said: object) -> tuple[str, object] | None:
    """Return the signature and the type that is returned, the last two things that Sphinx says of a callable."""
    signature, returned = said[-2:]
    return (name_defaults(signature), returned) if isinstance(signature, str) else None


def setup(app: Sphinx) -> None:
    """Connect the functions that read docstrings and signatures."""
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-signature", read_signature)
