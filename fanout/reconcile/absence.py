"""Can anybody be sure that a target is gone, and not in something that cannot be read?

What was declared and cannot be used may be a target, or where one would be. Who keeps a variant for
a day too long loses nothing. (Design §3: missing and unreadable hold.)
"""

from fanout.cluster.declared import Declared
from fanout.reconcile.names import Named


def doubt(named: Named, declared: Declared) -> str:
    """Why nobody can be sure, in a sentence; "": the targets that are not there are gone."""
    what = [*declared.unread, *declared.unusable]
    if what:
        return f"a target may be in what cannot be used: {what[0]}"
    if named.failures:
        failure = named.failures[0]
        return f"no variant could be made for a target: {failure.target}"
    return ""
