"""Who the person at the keyboard is, as Git knows them."""

from collections.abc import Mapping
from contextlib import suppress

import pygit2

from fanout.plan.repository import Identity


def configured_identity(ambient: Mapping[str, str]) -> Identity | None:
    """The author of a commit that the person would make; None where name or address is missing.

    As `git var GIT_AUTHOR_IDENT` has it: Git's variables in the environment (`ambient`), then
    author.* and user.* of the person's own configuration, then EMAIL. Git goes on to make one up
    from the account and the machine; nobody is recorded by such a name.
    """
    config = _global(ambient)
    name = ambient.get("GIT_AUTHOR_NAME") or _text(config, "author.name", "user.name")
    address = ambient.get("GIT_AUTHOR_EMAIL") or _text(config, "author.email", "user.email")
    address = address or ambient.get("EMAIL", "")
    return Identity(name, address) if name and address else None


def _global(ambient: Mapping[str, str]) -> pygit2.Config:
    """The person's own configuration; an empty one where there is none."""
    named = ambient.get("GIT_CONFIG_GLOBAL")
    try:
        return pygit2.Config(named) if named else pygit2.Config.get_global_config()
    except OSError:
        return pygit2.Config()


def _text(config: pygit2.Config, *keys: str) -> str:
    """The first of these that is configured."""
    for key in keys:
        with suppress(KeyError):
            if config[key]:
                return str(config[key])
    return ""
