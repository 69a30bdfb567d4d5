"""The pages that are made from the code's own tables and docstrings."""
