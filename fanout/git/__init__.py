"""Git repositories behind private bare mirrors: list, fetch, read, write and push."""

import os

# GitPython looks for git when it is imported and would end a program that only reads files; a
# missing git is reported by the command that needs it.
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
