"""Fields that exclude each other, as one table.

The rules are checked on the data as written: see `fanout.api.places`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fanout.api.faults import Fault
from fanout.api.places import fields, places
from fanout.api.texts import listed
from fanout.api.unsupported import is_refused
from fanout.values import frozen


@frozen
class Choice:
    """Of these fields of the object at `path` one may be there; and must be, where `needed`."""

    kinds: tuple[str, ...]
    path: str
    fields: tuple[str, ...]
    needed: bool = False


_POLICY = ("UpstreamPolicy",)
_VARIANT = ("PackageVariant",)
_TEMPLATE = "spec.targets[*].template"
_MAPS = (
    f"{_TEMPLATE}.packageContext.dataExprs[*]",
    f"{_TEMPLATE}.labelExprs[*]",
    f"{_TEMPLATE}.annotationExprs[*]",
    f"{_TEMPLATE}.pipeline.mutators[*].configMapExprs[*]",
    f"{_TEMPLATE}.pipeline.validators[*].configMapExprs[*]",
)
_PIPELINES = ((_POLICY, f"{_TEMPLATE}.pipeline"), (_VARIANT, "spec.pipeline"))
_FUNCTIONS = tuple(
    (kind, f"{path}.{section}[*]")
    for kind, path in _PIPELINES
    for section in ("mutators", "validators")
)
_ASKS = ("report", "approval", "commitStatus", "object", "prometheus", "http")
_CHECKS = ("spec.stages[*].verification[*]", "spec.stages[*].requires[*]")
_ASKED = (
    ("object", "name"),
    ("prometheus", "address"),
    ("prometheus", "query"),
    ("http", "url"),
)

TABLE: tuple[Choice, ...] = (
    Choice(
        (*_POLICY, *_VARIANT),
        "spec.upstream.revision",
        ("tag", "semver", "latest", "commit"),
        needed=True,
    ),
    Choice(
        _POLICY,
        "spec.targets[*]",
        ("repositories", "repositorySelector", "objectSelector"),
        needed=True,
    ),
    Choice(_POLICY, _TEMPLATE, ("stage", "stageExpr")),
    Choice(_POLICY, _TEMPLATE, ("priority", "priorityExpr")),
    Choice(_POLICY, f"{_TEMPLATE}.downstream", ("repository", "repositoryExpr")),
    Choice(_POLICY, f"{_TEMPLATE}.downstream", ("package", "packageExpr")),
    Choice(_POLICY, f"{_TEMPLATE}.injectors[*]", ("name", "nameExpr"), needed=True),
    *(Choice(_POLICY, path, ("key", "keyExpr"), needed=True) for path in _MAPS),
    *(Choice(_POLICY, path, ("value", "valueExpr"), needed=True) for path in _MAPS),
    *(Choice(kind, path, ("image", "exec"), needed=True) for kind, path in _FUNCTIONS),
    *(Choice(kind, path, ("configMap", "configPath")) for kind, path in _FUNCTIONS),
    *(Choice(kind, path, ("configMapExprs", "configPath")) for kind, path in _FUNCTIONS),
    Choice(_POLICY, "spec.stages[*].after", ("require", "atLeast")),
    Choice(_VARIANT, "spec.dependsOn[*]", ("policy", "variant"), needed=True),
    *(Choice(_POLICY, path, _ASKS, needed=True) for path in _CHECKS),
    *(
        Choice(_POLICY, f"{path}.{way}", (field, f"{field}Expr"), needed=True)
        for path in _CHECKS
        for way, field in _ASKED
    ),
    Choice(("PromotionPolicy",), "spec.windows[*]", ("allow", "deny"), needed=True),
    Choice(("PromotionPolicy",), "spec.windows[*].allow", ("duration", "until"), needed=True),
    Choice(("PromotionPolicy",), "spec.windows[*].deny", ("duration", "until"), needed=True),
    Choice(("Evidence",), "spec", ("revision", "commit"), needed=True),
)


def wrong_choices(kind: str, data: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults for fields that exclude each other, and where one of several is missing."""
    for choice in TABLE:
        if kind not in choice.kinds:
            continue
        for path, value in places(data, choice.path):
            given = [name for name in choice.fields if name in fields(value)]
            if len(given) > 1:
                problem = f"{listed(given, 'and')} exclude each other"
                yield Fault(path, problem, "keep one of them")
            elif choice.needed and not given and isinstance(value, Mapping):
                usable = [name for name in choice.fields if not is_refused(kind, (*path, name))]
                yield Fault(path, f"{listed(usable, 'or')} is missing", "add it")
