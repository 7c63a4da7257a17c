"""Can anybody be sure that a target is gone, and not in something that cannot be read?

What was declared and cannot be used may be a target, or where one would be. Who keeps a variant for
a day too long loses nothing. (Design §3: missing and unreadable hold.) A target that is there and
came to nothing hides no other: it is known by its key, and removal asks no expression. (Design §6.)
"""

from fanout.cluster.declared import Declared


def doubt(declared: Declared) -> str:
    """Why nobody can be sure, in a sentence; "": the targets that are not there are gone."""
    what = [*declared.unread, *declared.unusable]
    if what:
        return f"a target may be in what cannot be used: {what[0]}"
    return ""
