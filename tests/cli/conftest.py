"""Fixtures of the command-line tests: the sandbox."""

from sandboxes import keep_sandboxes  # noqa: F401 - a fixture
