"""The command line: `verbs` has one file per verb, each a thin layer over the rooms below."""

import os

# pydantic would look for plugins through all packages that are installed, whatever they are.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
