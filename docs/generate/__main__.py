"""Write the generated pages: ``cd docs && python -m generate``."""

from generate import vectors
from generate.pages import DOCS, PAGES

for name, page in PAGES.items():
    (DOCS / name).write_text(page())

vectors.write()
