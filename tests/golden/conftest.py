"""Fixtures of the golden cases: the sandbox."""

from sandboxes import keep_sandboxes  # noqa: F401 - a fixture
