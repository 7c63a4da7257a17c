"""What the golden cases share: the sandbox."""

from sandboxes import keep_sandboxes  # noqa: F401 - a fixture
