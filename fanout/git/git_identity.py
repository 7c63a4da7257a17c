"""Git identity of the user who runs fanout."""

from collections.abc import Mapping
from contextlib import suppress

import pygit2

from fanout.plan.observation.repository_state import CommitIdentity


def read_identity(ambient: Mapping[str, str]) -> CommitIdentity | None:
    """Return the author of a commit made by this user; None if name or address is missing.

    Follows `git var GIT_AUTHOR_IDENT`: Git's variables in `ambient`, then author.* and
    user.* of the user's configuration, then EMAIL. Git would then make up an identity from
    account and host name, which is not acceptable for a record.
    """
    path = ambient.get("GIT_CONFIG_GLOBAL")
    try:
        config = pygit2.Config(path) if path else pygit2.Config.get_global_config()
    except OSError:
        config = pygit2.Config()  # the user has none
    name = ambient.get("GIT_AUTHOR_NAME") or _first_value(config, "author.name", "user.name")
    email = ambient.get("GIT_AUTHOR_EMAIL") or _first_value(config, "author.email", "user.email")
    email = email or ambient.get("EMAIL", "")
    return CommitIdentity(name, email) if name and email else None


def _first_value(config: pygit2.Config, *keys: str) -> str:
    for key in keys:
        with suppress(KeyError):
            if config[key]:
                return str(config[key])
    return ""
