"""Who the person at the keyboard is, as Git knows them."""

import pygit2

from fanout.plan.repository import Identity


def configured_identity() -> Identity | None:
    """user.name and user.email of the person's own Git configuration; None when one is missing."""
    try:
        config = pygit2.Config.get_global_config()
        name, address = config["user.name"], config["user.email"]
    except (KeyError, OSError):
        return None
    return Identity(name, address) if name and address else None
