"""Command line; `verbs` has one file per verb, a thin layer over other packages.

`input` reads options, settings and names, `output` prints, and `recording` has what the
verbs that record evidence, approvals and decisions share.
"""

import os

# Otherwise pydantic searches all installed packages for plugins at import.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
