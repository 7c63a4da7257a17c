"""What the tests of the command line share: the sandbox."""

from sandboxes import keep_sandboxes  # noqa: F401 - a fixture
