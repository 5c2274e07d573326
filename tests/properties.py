"""Settings of the property tests: the same examples at every run, and nothing written to disk."""

from hypothesis import settings

deterministic = settings(derandomize=True, database=None, deadline=None, max_examples=20)
