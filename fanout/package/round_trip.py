"""Fallback of edits that the text cannot be patched for: round trips through ruamel.yaml.

A round trip keeps comments and order, and most of the layout: every scalar is read as
text in its own style, so values that the edits do not name keep their spelling.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from io import StringIO
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.resolver import VersionedResolver
from ruamel.yaml.scalarstring import (
    DoubleQuotedScalarString,
    LiteralScalarString,
    PlainScalarString,
    ScalarString,
)
from ruamel.yaml.tag import Tag

from fanout.package.field_edits import REMOVE, Edit
from fanout.package.yaml_scalars import (
    YamlStyle,
    format_scalar,
    is_literal,
    is_plain,
    resolve_scalar,
)

# Exceptions that ruamel.yaml was seen to raise on files it cannot handle.
_FAILURES: Final = (
    YAMLError,
    RecursionError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    NotImplementedError,
)
_MERGE: Final = "tag:yaml.org,2002:merge"


class _TextResolver(VersionedResolver):
    """Resolver that reads every scalar as text, except the merge key."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """Return the string tag for scalars, ruamel.yaml's own tag for collections."""
        if kind is ScalarNode:
            merges = implicit[0] and value == "<<"
            return Tag(suffix=_MERGE) if merges else self.DEFAULT_SCALAR_TAG
        return super().resolve(kind, value, implicit)


class CannotEdit(Exception):
    """ruamel.yaml cannot read, change or write the document."""


def edit_by_round_trip(text: str, edits: Sequence[Edit], style: YamlStyle) -> str:
    """Return the text of one document after the edits. Raises CannotEdit.

    The result is not verified here; the caller reads it.
    """
    yaml = YAML(typ="rt")
    yaml.Resolver = _TextResolver
    yaml.preserve_quotes = True
    # Otherwise ruamel.yaml folds long lines that nobody edited.
    yaml.width = 1 << 30
    yaml.allow_duplicate_keys = False
    yaml.indent(mapping=style.mapping, sequence=style.sequence + 2, offset=style.sequence)
    output = StringIO()
    try:
        data = yaml.load(text)
        for edit in edits:
            data = _edit_value(data, edit.path, edit.value, _shared_collections(data))
        yaml.dump(data, output)
    except _FAILURES as error:
        raise CannotEdit(str(error)) from error
    return output.getvalue()


def _edit_value(data: Any, path: tuple[str | int, ...], value: Any, shared: set[int]) -> Any:
    if not path:
        return _build_node(value)
    part, rest = path[0], path[1:]
    if not isinstance(data, CommentedMap | CommentedSeq):
        is_quoted = isinstance(data, ScalarString) and not isinstance(data, PlainScalarString)
        if isinstance(data, str) and not is_quoted and resolve_scalar(data) is None:
            data = None
        if data is not None:
            raise CannotEdit("the path leads through a scalar")
        # Null counts as a missing mapping, as in `with_value`.
        data = CommentedMap() if isinstance(part, str) else CommentedSeq()
    elif id(data) in shared:
        # The edit names one of several places: the collection is copied there, so the
        # others keep it.
        data = deepcopy(data)
        data.yaml_set_anchor(None)
    # As the file spells it.
    if isinstance(part, int):
        key = part if part < len(data) else None
    else:
        key = next((it for it in data if it == part), None)
    exists = key is not None
    if value is REMOVE and not rest:
        if exists:
            del data[key]
        return data
    if value is REMOVE and not exists:
        return data
    child = _edit_value(data[key] if exists else None, rest, value, shared)
    if exists:
        data[key] = child
    elif isinstance(part, str):
        data[_build_scalar(part)] = child
    else:
        data.append(child)
    return data


def _build_node(value: Any) -> Any:
    if isinstance(value, dict):
        return CommentedMap(
            (_build_scalar(key), _build_node(child)) for key, child in value.items()
        )
    if isinstance(value, list):
        return CommentedSeq(map(_build_node, value))
    return (
        _build_scalar(value) if isinstance(value, str) else PlainScalarString(format_scalar(value))
    )


def _build_scalar(text: str) -> Any:
    if is_plain(text):
        return PlainScalarString(text)  # a bare str would take over the quotes of the old value
    if "\n" in text and is_literal(text):
        return LiteralScalarString(text)
    return DoubleQuotedScalarString(text)


def _shared_collections(data: Any) -> set[int]:
    """Return the ids of the collections that occur in more than one place."""
    visited: set[int] = set()
    shared: set[int] = set()

    def walk(nodes: Iterable[Any]) -> None:
        for node in nodes:
            if isinstance(node, CommentedMap | CommentedSeq):
                if id(node) in visited:
                    shared.add(id(node))
                    continue
                visited.add(id(node))
                walk(node.values() if isinstance(node, CommentedMap) else node)

    walk([data])
    return shared
