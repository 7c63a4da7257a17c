"""ensure-name-substring: every name in the package has a prefix or a suffix.

What refers to an object that gets another name follows it. A name that has the text anywhere is
left alone, and so is what refers to it.
"""

from collections.abc import Iterator, Sequence

from fanout.errors import InvalidInput
from fanout.package.edits import MISSING, get
from fanout.selection.objects import group_of
from fanout.values import frozen
from fanout.variants.functions.config import data_of, fields_of, is_own_kind
from fanout.variants.functions.fields import Field, found, further
from fanout.variants.functions.function import (
    Change,
    Facts,
    Identity,
    InProcess,
    Object,
    Path,
    Seen,
    mapping,
)
from fanout.variants.functions.references import references
from fanout.variants.functions.scope import CLUSTER_KINDS
from fanout.variants.functions.set_namespace import DEPENDS_ON

_NAME: Path = ("metadata", "name")
_LONGEST_NAME = 253  # characters of an object's name
_MODES = ("prepend", "append")
_KEPT = frozenset(
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
    fields: tuple[Field, ...]

    def named(self, name: str) -> str:
        """The name with the text in it."""
        if self.text in name:
            return name
        return f"{name}{self.text}" if self.append else f"{self.text}{name}"


def _configure(config: Object) -> _Config:
    rows: object = None
    if is_own_kind(config, "EnsureNameSubstring"):
        given = {key: config[key] for key in ("substring", "editMode") if key in config}
        values = fields_of(given, "EnsureNameSubstring", ("substring", "editMode"))
        text, mode = values.get("substring", ""), values.get("editMode") or _MODES[0]
        old, new = config.get("fieldSpecs"), config.get("additionalNameFields")
        if old is not None and new is not None:
            raise InvalidInput(
                "fieldSpecs is the old name of additionalNameFields", remedy="drop it"
            )
        rows = new if old is None else old
    else:
        values = fields_of(dict(data_of(config)), "data", _MODES)
        if len(values) != 1:
            raise InvalidInput(
                f"data has {len(values)} entries", remedy="give either prepend or append"
            )
        [(mode, text)] = values.items()
    if mode not in _MODES:
        raise InvalidInput(f"editMode is {mode!r}", remedy="use prepend or append")
    if not text:
        raise InvalidInput(f"the text to {mode} is empty", remedy="give some")
    if len(text) > _LONGEST_NAME:
        problem = f"the text to {mode} has {len(text):,} characters"
        raise InvalidInput(problem, remedy=f"a name has at most {_LONGEST_NAME}")
    return _Config(text, mode == "append", further(rows, "additionalNameFields"))


def _identity(item: Object) -> Identity:
    meta = mapping(item.get("metadata"))
    group, kind = group_of(str(item.get("apiVersion", ""))), str(item.get("kind", ""))
    return _placed((group, kind, str(meta.get("namespace") or ""), str(meta.get("name") or "")))


def _placed(identity: Identity) -> Identity:
    """The identity with the namespace that it means."""
    group, kind, namespace, name = identity
    cluster = (group, kind) in CLUSTER_KINDS
    return group, kind, "" if cluster else namespace or "default", name


def _survey(config: _Config, items: Sequence[Seen]) -> frozenset[Identity]:
    """The objects that get another name."""
    identities = (_identity(item.value) for item in items)
    return frozenset(
        identity
        for identity in identities
        if identity[:2] not in _KEPT and identity[3] and config.named(identity[3]) != identity[3]
    )


def _changes(config: _Config, item: Object, facts: Facts) -> Iterator[Change]:
    renamed: frozenset[Identity] = facts.survey
    identity = _identity(item)
    if identity in renamed:
        yield _NAME, config.named(identity[3])
    for path, name, to in references(item):
        if _placed(to) in renamed:
            new = config.named(name)
            yield path, f"{to[2]}/{new}" if "/" in str(get(item, path)) else new
    if identity[:2] not in _KEPT:
        for path, named in found(config.fields, item):
            if named is MISSING:
                yield path, config.text
            elif isinstance(named, str) and path != _NAME:
                yield path, config.named(named)
    depends = mapping(mapping(item.get("metadata")).get("annotations")).get(DEPENDS_ON)
    if isinstance(depends, str):
        yield ("metadata", "annotations", DEPENDS_ON), _dependencies(config, depends, renamed)


def _dependencies(config: _Config, text: str, renamed: frozenset[Identity]) -> str:
    """Each of them is group/kind/name or group/namespaces/namespace/kind/name."""
    given = []
    for reference in text.split(","):
        group, *rest = reference.strip().split("/")
        if len(rest) == 4 and rest[0] == "namespaces":
            to: Identity = (group, rest[2], rest[1] or "default", rest[3])
        elif len(rest) == 2:
            to = _placed((group, rest[0], "", rest[1]))
        else:
            to = ("", "", "", "")
        start = reference[: len(reference.rstrip()) - len(to[3])]
        given.append(f"{start}{config.named(to[3])}" if to in renamed else reference)
    return ",".join(given)


ENSURE_NAME_SUBSTRING = InProcess(
    "ensure-name-substring", "1", _configure, _changes, survey=_survey
)
