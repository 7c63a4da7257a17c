"""ensure-name-substring: give every name in the package a prefix or a suffix.

References to a renamed object are updated. A name that already contains the text
anywhere is left unchanged, and so are the references to it.
"""

from collections.abc import Iterator, Sequence

from fanout.errors import InvalidInput
from fanout.package.field_edits import MISSING, get_value
from fanout.selection.cluster_objects import group_of
from fanout.values import frozen
from fanout.variants.functions.field_specs import FieldSpec, find_fields, parse_field_specs
from fanout.variants.functions.function_config import is_function_kind, parse_data, parse_fields
from fanout.variants.functions.function_interface import (
    CatalogFunction,
    Change,
    Identity,
    Object,
    PackageFacts,
    Path,
    VisibleObject,
    mapping,
)
from fanout.variants.functions.kind_scopes import CLUSTER_KINDS
from fanout.variants.functions.name_references import find_references
from fanout.variants.functions.set_namespace import DEPENDS_ON

_NAME: Path = ("metadata", "name")
_MAX_NAME_LENGTH = 253  # characters of an object's name
_MODES = ("prepend", "append")
_NEVER_RENAMED = frozenset(
    {
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("", "Namespace"),
    }
)


@frozen
class _Config:
    text: str
    append: bool
    fields: tuple[FieldSpec, ...]

    def rename(self, name: str) -> str:
        """Return the name with the text added, unless it contains it."""
        if self.text in name:
            return name
        return f"{name}{self.text}" if self.append else f"{self.text}{name}"


def _configure(config: Object) -> _Config:
    rows: object = None
    if is_function_kind(config, "EnsureNameSubstring"):
        settings = {key: config[key] for key in ("substring", "editMode") if key in config}
        values = parse_fields(settings, "EnsureNameSubstring", ("substring", "editMode"))
        text, mode = values.get("substring", ""), values.get("editMode") or _MODES[0]
        field_specs, name_fields = config.get("fieldSpecs"), config.get("additionalNameFields")
        if field_specs is not None and name_fields is not None:
            raise InvalidInput(
                "fieldSpecs is the old name of additionalNameFields", remedy="drop it"
            )
        rows = name_fields if field_specs is None else field_specs
    else:
        values = parse_fields(dict(parse_data(config)), "data", _MODES)
        if len(values) != 1:
            raise InvalidInput(
                f"data has {len(values)} entries", remedy="give either prepend or append"
            )
        [(mode, text)] = values.items()
    if mode not in _MODES:
        raise InvalidInput(f"editMode is {mode!r}", remedy="use prepend or append")
    if not text:
        raise InvalidInput(f"the text to {mode} is empty", remedy="give some")
    if len(text) > _MAX_NAME_LENGTH:
        problem = f"the text to {mode} has {len(text):,} characters"
        raise InvalidInput(problem, remedy=f"a name has at most {_MAX_NAME_LENGTH}")
    return _Config(text, mode == "append", parse_field_specs(rows, "additionalNameFields"))


def _identity_of(item: Object) -> Identity:
    meta = mapping(item.get("metadata"))
    group, kind = group_of(str(item.get("apiVersion", ""))), str(item.get("kind", ""))
    return _with_default_namespace(
        (group, kind, str(meta.get("namespace") or ""), str(meta.get("name") or ""))
    )


def _with_default_namespace(identity: Identity) -> Identity:
    """Return the identity with the namespace that it means: `default`, or none by scope."""
    group, kind, namespace, name = identity
    is_cluster_scoped = (group, kind) in CLUSTER_KINDS
    return group, kind, "" if is_cluster_scoped else namespace or "default", name


def _find_renamed(config: _Config, items: Sequence[VisibleObject]) -> frozenset[Identity]:
    """Return the objects that are renamed."""
    identities = (_identity_of(item.value) for item in items)
    return frozenset(
        identity
        for identity in identities
        if identity[:2] not in _NEVER_RENAMED
        and identity[3]
        and config.rename(identity[3]) != identity[3]
    )


def _changes(config: _Config, item: Object, facts: PackageFacts) -> Iterator[Change]:
    renamed: frozenset[Identity] = facts.survey
    identity = _identity_of(item)
    if identity in renamed:
        yield _NAME, config.rename(identity[3])
    # Only names of objects in the package are followed: a Secret that is created by other
    # means keeps the name by which it is referenced.
    for path, name, referenced in find_references(item):
        if _with_default_namespace(referenced) in renamed:
            new_name = config.rename(name)
            yield (
                path,
                f"{referenced[2]}/{new_name}" if "/" in str(get_value(item, path)) else new_name,
            )
    if identity[:2] not in _NEVER_RENAMED:
        for path, value in find_fields(config.fields, item):
            if value is MISSING:
                yield path, config.text
            elif isinstance(value, str) and path != _NAME:
                yield path, config.rename(value)
    depends = mapping(mapping(item.get("metadata")).get("annotations")).get(DEPENDS_ON)
    if isinstance(depends, str):
        yield (
            ("metadata", "annotations", DEPENDS_ON),
            _rename_dependencies(config, depends, renamed),
        )


def _rename_dependencies(config: _Config, text: str, renamed: frozenset[Identity]) -> str:
    """Return the depends-on annotation with renamed objects.

    Entries are `group/kind/name` or `group/namespaces/namespace/kind/name`.
    """
    updated = []
    for reference in text.split(","):
        group, *rest = reference.strip().split("/")
        if len(rest) == 4 and rest[0] == "namespaces":
            identity: Identity = (group, rest[2], rest[1] or "default", rest[3])
        elif len(rest) == 2:
            identity = _with_default_namespace((group, rest[0], "", rest[1]))
        else:
            identity = ("", "", "", "")
        start = reference[: len(reference.rstrip()) - len(identity[3])]
        updated.append(f"{start}{config.rename(identity[3])}" if identity in renamed else reference)
    return ",".join(updated)


ENSURE_NAME_SUBSTRING = CatalogFunction(
    "ensure-name-substring", "1", _configure, _changes, survey=_find_renamed
)
