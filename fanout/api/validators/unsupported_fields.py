"""Table of fields and values that this version refuses instead of ignoring them.

It has what the design names and no engine supports yet, and what an earlier version
accepted. When an engine gets support, its rows are removed.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fanout.api.field_errors import FieldError, FieldPath, find_fields, matches_pattern
from fanout.values import Value

_REMOVE = "remove it"


class UnsupportedField(Value):
    """Field that is refused with any value, or only with one of `values`."""

    kind: str
    path: str
    explanation: str
    values: tuple[Any, ...] = ()  # none: any value
    allowed_values: tuple[Any, ...] = ()  # an explicit default has no effect
    remedy: str = _REMOVE
    is_former: bool = False  # supported by an earlier version

    def refuses(self, value: object) -> bool:
        """Return whether this value requests something unsupported."""
        if any(_is_same_value(value, other) for other in self.allowed_values):
            return False
        return not self.values or any(_is_same_value(value, other) for other in self.values)


def _is_same_value(left_value: object, right_value: object) -> bool:
    return type(left_value) is type(right_value) and left_value == right_value  # True is not 1


_APPROVAL_EXPLANATION = "approvals are for drafts, and after publication there is no draft"
_STAGE_PATH = "spec.stages[*]"
_TARGET_PATH = "spec.targets[*]"
_POLICY = "UpstreamPolicy"
_VARIANT = "PackageVariant"
_PROMOTION = "PromotionPolicy"


def _update_strategy_rows(kind: str) -> Iterator[UnsupportedField]:
    yield UnsupportedField(
        kind,
        "spec.updateStrategy",
        "only resource-merge is implemented",
        values=("fast-forward", "force-delete-replace", "copy-merge"),
    )


def _conflict_policy_row(kind: str) -> UnsupportedField:
    return UnsupportedField(
        kind,
        "spec.onConflict",
        "promoting a stage accepted merge conflicts that no person had reviewed",
        values=("Review",),
        remedy="write Hold, which is the default, or UpstreamWins or LocalWins",
        is_former=True,
    )


UNSUPPORTED_FIELDS: tuple[UnsupportedField, ...] = (
    UnsupportedField(
        "Repository",
        "spec.forge.type",
        "only Gitea and Forgejo are implemented",
        values=("github", "gitlab"),
    ),
    # UpstreamPolicy
    UnsupportedField(
        _POLICY,
        f"{_STAGE_PATH}.verification[*].approval",
        _APPROVAL_EXPLANATION,
        remedy="move it to requires",
    ),
    UnsupportedField(
        _POLICY,
        f"{_TARGET_PATH}.objectSelector.namespace",
        "only cluster-scoped objects and those of the policy's namespace are selected",
    ),
    UnsupportedField(_POLICY, "spec.history", "all revisions are kept", allowed_values=(10,)),
    *_update_strategy_rows(_POLICY),
    _conflict_policy_row(_POLICY),
    # PackageVariant
    *_update_strategy_rows(_VARIANT),
    _conflict_policy_row(_VARIANT),
    UnsupportedField(_VARIANT, "spec.policyRef", "only fanout sets it, in variants of a policy"),
    UnsupportedField(_VARIANT, "spec.stage", "only fanout sets it, in variants of a policy"),
    # PromotionPolicy
    UnsupportedField(
        _PROMOTION,
        "spec.merge",
        "pull requests are merged by fanout or manually",
        values=("AutoMerge", "Queue"),
        remedy="write Direct or Manual",
    ),
    # FanoutConfiguration
    UnsupportedField(
        "FanoutConfiguration",
        "forges[*].type",
        "only Gitea and Forgejo are implemented",
        values=("github", "gitlab"),
    ),
    UnsupportedField("FanoutConfiguration", "signingKey", "commits are not signed"),
    UnsupportedField(
        "FanoutConfiguration",
        "gitEngine",
        "fanout writes commits itself, in packs of any size",
        is_former=True,
    ),
)


def is_unsupported(kind: str, path: FieldPath, value: object = None) -> bool:
    """Return whether this value is refused at the path. Without a value, whether the field is."""
    # A field that is refused for some values only is still documented and suggested.
    rows = (
        row for row in UNSUPPORTED_FIELDS if row.kind == kind and matches_pattern(path, row.path)
    )
    return any(value in row.values if row.values else True for row in rows)


def check_unsupported(kind: str, data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield one error for every field of the object that requests something unsupported."""
    for row in UNSUPPORTED_FIELDS:
        if row.kind != kind:
            continue
        for path, value in find_fields(data, row.path):
            if row.refuses(value):
                name = value if row.values else row.path.rpartition(".")[2]
                since = "any more" if row.is_former else "yet"
                yield FieldError(
                    path, f"{name} is not supported {since}: {row.explanation}", row.remedy
                )
