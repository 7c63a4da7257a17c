"""Table of fields and values that this version refuses instead of ignoring them.

It has what is named for later versions and no engine supports yet, and what an earlier version
accepted. When an engine gets support, its rows are removed.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fanout.api.field_errors import FieldError, FieldPath, find_fields
from fanout.values import Value


class UnsupportedField(Value):
    """Field that is refused with any value, or only with one of `values`."""

    kind: str
    path: str
    explanation: str
    values: tuple[Any, ...] = ()  # none: any value
    allowed_values: tuple[Any, ...] = ()  # an explicit default has no effect
    remedy: str = "remove it"
    is_former: bool = False  # supported by an earlier version

    def refuses(self, value: object) -> bool:
        """Return whether this value requests something unsupported."""

        def is_in(values: tuple[object, ...]) -> bool:  # in which True is not 1
            return any(type(value) is type(other) and value == other for other in values)

        return not is_in(self.allowed_values) and (not self.values or is_in(self.values))


_POLICY, _VARIANT = "UpstreamPolicy", "PackageVariant"
UNSUPPORTED_FIELDS: tuple[UnsupportedField, ...] = (
    *(
        UnsupportedField(kind, path, "only Gitea and GitHub are implemented", values=("gitlab",))
        for kind, path in (
            ("Repository", "spec.forge.type"),
            ("FanoutConfiguration", "forges[*].type"),
        )
    ),
    UnsupportedField(
        _POLICY,
        "spec.stages[*].verification[*].approval",
        "approvals are for drafts, and after publication there is no draft",
        remedy="move it to requires",
    ),
    UnsupportedField(
        _POLICY,
        "spec.targets[*].objectSelector.namespace",
        "only cluster-scoped objects and those of the policy's namespace are selected",
    ),
    UnsupportedField(_POLICY, "spec.history", "all revisions are kept", allowed_values=(10,)),
    *(
        row
        for kind in (_POLICY, _VARIANT)
        for row in (
            UnsupportedField(
                kind,
                "spec.updateStrategy",
                "only resource-merge is implemented",
                values=("fast-forward", "force-delete-replace", "copy-merge"),
            ),
            UnsupportedField(
                kind,
                "spec.onConflict",
                "promoting a stage accepted merge conflicts that no person had reviewed",
                values=("Review",),
                remedy="write Hold, which is the default, or UpstreamWins or LocalWins",
                is_former=True,
            ),
        )
    ),
    UnsupportedField(_VARIANT, "spec.policyRef", "only fanout sets it, in variants of a policy"),
    UnsupportedField(_VARIANT, "spec.stage", "only fanout sets it, in variants of a policy"),
    UnsupportedField(
        "PromotionPolicy",
        "spec.merge",
        "pull requests are merged by fanout or manually",
        values=("AutoMerge", "Queue"),
        remedy="write Direct or Manual",
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
    steps = ["*" if isinstance(part, int) else part for part in path]
    # A field that is refused for some values only is still documented and suggested.
    return any(
        value in row.values if row.values else True
        for row in UNSUPPORTED_FIELDS
        if row.kind == kind and row.path.replace("[*]", ".*").split(".") == steps
    )


def check_unsupported(kind: str, data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield one error for every field of the object that requests something unsupported."""
    for row in (it for it in UNSUPPORTED_FIELDS if it.kind == kind):
        for path, value in find_fields(data, row.path):
            if row.refuses(value):
                name = value if row.values else row.path.rpartition(".")[2]
                since = "any more" if row.is_former else "yet"
                problem = f"{name} is not supported {since}: {row.explanation}"
                yield FieldError(path, problem, row.remedy)
