"""Kinds of cluster objects that declared policies choose as targets, inject or check."""

import re
from collections.abc import Iterable, Iterator, Sequence

from fanout.api.field_errors import FieldPath
from fanout.api.object_meta import GROUP
from fanout.api.package_variant import InjectionPointFilter, PackageVariant
from fanout.api.stages import Check
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.selection.cluster_objects import group_of, version_of
from fanout.values import Value, replace

# A variable at its root, and the field of it that an expression reads by name. A call is no
# field, and a name in brackets is one only if it is a literal without escapes.
_VARIABLE = r"(?<![\w.]){}\b"
_FIELD = re.compile(r"""\.([A-Za-z_]\w*)(?!\w|\s*\()|\[(?:"(\w+)"|'(\w+)')\]""")


class RequiredKind(Value):
    """A kind whose objects are read, in the version that somebody names."""

    kind: str
    group: str | None = None  # None: any
    version: str = ""  # "": the one that the cluster prefers
    reads_status: bool = False  # an expression may read the status of its objects

    @classmethod
    def of(cls, api_version: str, kind: str, *, reads_status: bool = False) -> "RequiredKind":
        """Return the kind as an `apiVersion` and a `kind` name it."""
        return cls(kind, group_of(api_version), version_of(api_version), reads_status)


class KindReference(Value):
    """A kind that a declared object names, and the field that names its version."""

    kind: RequiredKind
    field: FieldPath


def list_references(declaration: UpstreamPolicy | PackageVariant) -> tuple[KindReference, ...]:
    """Return the kinds that a policy or variant names, besides those of fanout.

    Which kinds an injector without a kind is for is known only from the package.
    """
    references = (
        _list_of_policy(declaration)
        if isinstance(declaration, UpstreamPolicy)
        else _list_injected(declaration.spec.injectors, ("spec",))
    )
    return tuple(it for it in references if it.kind.group != GROUP)


def merge_references(references: Iterable[KindReference]) -> tuple[RequiredKind, ...]:
    """Return each kind once, with the status if any of the references reads it."""
    merged: dict[RequiredKind, bool] = {}
    for reference in references:
        key = replace(reference.kind, reads_status=False)
        merged[key] = merged.get(key, False) or reference.kind.reads_status
    return tuple(replace(it, reads_status=reads_status) for it, reads_status in merged.items())


def find_open_injectors(
    declaration: UpstreamPolicy | PackageVariant,
) -> Iterator[tuple[FieldPath, str]]:
    """Yield the paths of injectors that name no kind, with the version that they name, or ""."""
    lists: list[tuple[FieldPath, Sequence[InjectionPointFilter]]] = []
    if isinstance(declaration, PackageVariant):
        lists.append((("spec",), declaration.spec.injectors))
    else:
        for number, entry in enumerate(declaration.spec.targets):
            lists.append((("spec", "targets", number, "template"), entry.template.injectors))
    for path, injectors in lists:
        for index, injector in enumerate(injectors):
            if not injector.kind:
                yield (*path, "injectors", index), injector.version or ""


def may_read_status(texts: Iterable[str], variable: str) -> bool:
    """Return whether an expression may read the field `status` of a variable.

    Where it does more with the variable than read another field by its name, it may.
    """
    pattern = re.compile(_VARIABLE.format(variable))
    for text in texts:
        for match in pattern.finditer(text):
            if (field := _FIELD.match(text, match.end())) is None or "status" in field.groups():
                return True
    return False


def _list_of_policy(policy: UpstreamPolicy) -> Iterator[KindReference]:
    # All texts, whether they are expressions or not: no kind of expression can be forgotten.
    spec = policy.model_dump(mode="json", by_alias=True, exclude_unset=True)["spec"]
    reads_target = may_read_status(_list_texts(spec), "target")
    for index, entry in enumerate(policy.spec.targets):
        path: FieldPath = ("spec", "targets", index)
        if (selector := entry.object_selector) is not None:
            kind = RequiredKind.of(selector.api_version, selector.kind, reads_status=reads_target)
            yield KindReference(kind, (*path, "objectSelector", "apiVersion"))
        yield from _list_injected(entry.template.injectors, (*path, "template"))
    for index, stage in enumerate(policy.spec.stages):
        path = ("spec", "stages", index)
        yield from _list_checked(stage.verification, (*path, "verification"))
        yield from _list_checked(stage.requires, (*path, "requires"))


def _list_checked(checks: Iterable[Check], path: FieldPath) -> Iterator[KindReference]:
    for index, check in enumerate(checks):
        if (asked := check.object) is not None:
            reads_object = may_read_status([asked.cel, asked.observed_revision or ""], "object")
            kind = RequiredKind.of(asked.api_version, asked.kind, reads_status=reads_object)
            yield KindReference(kind, (*path, index, "object", "apiVersion"))


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for child in value.values():
            yield from _list_texts(child)
    elif isinstance(value, list):
        for child in value:
            yield from _list_texts(child)


def _list_injected(
    injectors: Iterable[InjectionPointFilter], path: FieldPath
) -> Iterator[KindReference]:
    for index, injector in enumerate(injectors):
        if injector.kind:
            kind = RequiredKind(injector.kind, injector.group, injector.version or "")
            yield KindReference(kind, (*path, "injectors", index, "version"))
