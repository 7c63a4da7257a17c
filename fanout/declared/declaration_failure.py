"""Failures of declarations, by the kind and namespace that they could concern."""

from fanout.api.object_meta import GROUP, KRMObject
from fanout.selection.cluster_objects import GroupKind
from fanout.values import Value


def own_kind(kind: type[KRMObject]) -> GroupKind:
    """Return group and kind of one of fanout's own kinds."""
    return GROUP, kind.__name__


class DeclarationFailure(Value):
    """A source of declarations that could not be read, or an object that cannot be used.

    `source` names it in messages. Where kind or namespace is not known, it may be any.
    """

    source: str
    kind: GroupKind | None = None  # None: any
    namespace: str = ""  # "": any, or cluster-scoped

    def concerns(self, kind: GroupKind, namespace: str) -> bool:
        """Return whether objects of a kind may be missing that a namespace reads."""
        return self.kind in (None, kind) and self.namespace in ("", namespace)
