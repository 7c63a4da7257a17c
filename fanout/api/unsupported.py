"""Fields and values that this version does not take: refused by name, never ignored.

One table: what the design names and no engine can do yet, and what an earlier version took. When an
engine comes, its rows go.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fanout.api.faults import Fault, Path
from fanout.api.places import fits, places
from fanout.values import frozen

_REMOVE = "remove it"


@frozen
class Row:
    """A field that is refused: whatever it says, or only when it says one of `values`."""

    kind: str
    path: str
    why: str
    values: tuple[Any, ...] = ()  # none: any value
    harmless: tuple[Any, ...] = ()  # the default, written out, asks for nothing
    remedy: str = _REMOVE
    is_former: bool = False  # an earlier version took it

    def refuses(self, value: object) -> bool:
        """Does this value ask for what cannot be done?"""
        if any(_same(value, other) for other in self.harmless):
            return False
        return not self.values or any(_same(value, other) for other in self.values)


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other  # True is not 1


_DRAFTS = "what people approve is a draft, and this is asked when there is none any more"
_STAGE = "spec.stages[*]"
_ENTRY = "spec.targets[*]"
_POLICY = "UpstreamPolicy"
_VARIANT = "PackageVariant"
_PROMOTION = "PromotionPolicy"


def _for_strategies(kind: str) -> Iterator[Row]:
    yield Row(
        kind,
        "spec.updateStrategy",
        "updates are by resource-merge",
        values=("fast-forward", "force-delete-replace", "copy-merge"),
    )


def _for_conflicts(kind: str) -> Row:
    return Row(
        kind,
        "spec.onConflict",
        "with it a promotion of the stage decided merge conflicts that nobody had looked at",
        values=("Review",),
        remedy="write Hold, which is the default, or UpstreamWins or LocalWins",
        is_former=True,
    )


TABLE: tuple[Row, ...] = (
    Row(
        "Repository",
        "spec.forge.type",
        "fanout merges drafts by itself",
        values=("github", "gitlab", "gitea"),
    ),
    # UpstreamPolicy
    Row(
        _POLICY,
        f"{_STAGE}.verification[*].approval",
        _DRAFTS,
        remedy="move it to requires",
    ),
    Row(
        _POLICY,
        f"{_ENTRY}.objectSelector.namespace",
        "objects are those of the policy's namespace and those without one",
    ),
    Row(_POLICY, "spec.draftPer", "every variant has its own draft", values=("Stage",)),
    Row(_POLICY, "spec.history", "all revisions are remembered", harmless=(10,)),
    *_for_strategies(_POLICY),
    _for_conflicts(_POLICY),
    # PackageVariant
    *_for_strategies(_VARIANT),
    _for_conflicts(_VARIANT),
    Row(_VARIANT, "spec.policyRef", "a variant in a file is written by hand"),
    Row(_VARIANT, "spec.stage", "a variant in a file is written by hand"),
    # PromotionPolicy
    Row(
        _PROMOTION,
        "spec.merge",
        "fanout merges drafts by itself",
        values=("AutoMerge", "Queue", "Manual"),
    ),
    Row(_PROMOTION, "spec.pullRequest", "there are no pull requests"),
    # FanoutConfiguration
    Row("FanoutConfiguration", "signingKey", "commits are not signed"),
)


def is_refused(kind: str, path: Path, value: object = None) -> bool:
    """Would this value be refused here? Without a value: the field, whatever it asks for?"""
    rows = (row for row in TABLE if row.kind == kind and fits(path, row.path))
    return any(value in row.values if row.values else True for row in rows)


def unsupported(kind: str, data: Mapping[str, Any]) -> Iterator[Fault]:
    """One fault for every field of the object that asks for what this version cannot do."""
    for row in TABLE:
        if row.kind != kind:
            continue
        for path, value in places(data, row.path):
            if row.refuses(value):
                name = value if row.values else row.path.rpartition(".")[2]
                since = "any more" if row.is_former else "yet"
                yield Fault(path, f"{name} is not supported {since}: {row.why}", row.remedy)
