"""How the documentation is built: ``make docs``. It needs no network."""

from importlib.metadata import version as installed_version

from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config
from sphinx.ext.napoleon.docstring import GoogleDocstring

from sharestate import KAFKA_4_3, LATEST

project = "sharestate"
author = copyright = "The sharestate authors"  # noqa: A001 - what Sphinx calls it
version = release = installed_version("sharestate")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinxcontrib.mermaid",
]
nitpicky = True
nitpick_ignore = [  # the standard library, whose own documentation a build without network cannot link to
    ("py:class", "collections.abc.Callable"),
    ("py:class", "collections.abc.Iterable"),
    ("py:class", "collections.abc.Iterator"),
    ("py:class", "concurrent.futures._base.Future"),
    ("py:class", "datetime.timedelta"),
    ("py:class", "types.TracebackType"),
    ("py:class", "altair.vegalite.v6.api.VConcatChart"),  # nor to Altair's
    ("py:class", "sharestate.partition.views.PartitionView"),  # what can be seen of a SharePartition
]
nitpick_ignore_regex = [("py:class", r"sharestate\.persister\.\w+\.[PR]")]  # type variables

html_theme = "furo"
html_title = "sharestate"

myst_fence_as_directive = ["mermaid"]  # plain fences, which code hosts draw too
myst_heading_anchors = 3

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints_format = "short"

doctest_global_setup = "from datetime import timedelta\nfrom sharestate import *"

DOCSTRINGS = Config(napoleon_custom_sections=["Complexity", "Returns", "Source"])
"""How docstrings are read: as Google's style guide says, but for sections of our own; Returns begins with no type."""

PLAIN = {"attribute", "data", "property"}
"""Where a docstring's first colon is a colon; Google's style would have a type before it."""

DEFAULTS = {repr(KAFKA_4_3): "KAFKA_4_3", repr(LATEST): "LATEST"}
"""What default values are called, by what Python says that they are."""


def read_docstring(  # noqa: PLR0913 - what Sphinx says of a docstring
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Put reStructuredText in the place of the *lines* of a docstring."""
    if what not in PLAIN:
        lines[:] = GoogleDocstring(lines, DOCSTRINGS, app, what, name, obj, options).lines()  # type: ignore[arg-type] # they are wider than they say


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
    """Tell Sphinx how docstrings and signatures are read."""
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("autodoc-process-signature", read_signature)
