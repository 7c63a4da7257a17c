"""Command line; `verbs` has a file for each verb, or for two verbs that belong together.

`input` reads options, settings and names, `output` has the output that several verbs share, and
`recording` has what the verbs that record evidence, approvals and decisions share.
"""

import os

# Otherwise pydantic searches all installed packages for plugins at import.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
