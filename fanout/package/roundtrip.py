"""The slow way to edit one document: ruamel.yaml, for what a text patch refuses.

Comments and order are kept, layout mostly. No scalar is interpreted: every one is text in the style
that it has, so nothing that the edits do not name changes its spelling.
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

from fanout.package.dump import Style
from fanout.package.edits import REMOVE, Edit
from fanout.package.scalars import Scalar, is_literal, is_plain, resolve, scalar

# what ruamel.yaml is seen to raise on files that it does not master
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
    """Reads every scalar as text, except the merge key."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is ScalarNode:
            merges = implicit[0] and value == "<<"
            return Tag(suffix=_MERGE) if merges else self.DEFAULT_SCALAR_TAG
        return super().resolve(kind, value, implicit)


class CannotEdit(Exception):
    """ruamel.yaml cannot read, change or write the document."""


def round_trip(text: str, edits: Sequence[Edit], style: Style) -> str:
    """The text of one document after the edits; raises CannotEdit.

    The caller reads the result: here nothing is proved.
    """
    yaml = YAML(typ="rt")
    yaml.Resolver = _TextResolver
    yaml.preserve_quotes = True
    yaml.width = 1 << 30
    yaml.allow_duplicate_keys = False
    yaml.indent(mapping=style.mapping, sequence=style.sequence + 2, offset=style.sequence)
    out = StringIO()
    try:
        data = yaml.load(text)
        for edit in edits:
            data = _edit(data, edit.path, edit.value, _shared(data))
        yaml.dump(data, out)
    except _FAILURES as error:
        raise CannotEdit(str(error)) from error
    return out.getvalue()


def _edit(data: Any, path: tuple[str | int, ...], value: Any, shared: set[int]) -> Any:
    if not path:
        return _node(value)
    part, rest = path[0], path[1:]
    if not isinstance(data, CommentedMap | CommentedSeq):
        if isinstance(data, str) and _meaning(data) is None:
            data = None
        if data is not None:
            raise CannotEdit("the path leads through a scalar")
        data = CommentedMap() if isinstance(part, str) else CommentedSeq()
    elif id(data) in shared:
        data = deepcopy(data)
        data.yaml_set_anchor(None)
    key = _key(data, part)
    there = key is not None
    if value is REMOVE and not rest:
        if there:
            del data[key]
        return data
    if value is REMOVE and not there:
        return data
    new = _edit(data[key] if there else None, rest, value, shared)
    if there:
        data[key] = new
    elif isinstance(part, str):
        data[_text(part)] = new
    else:
        data.append(new)
    return data


def _key(data: CommentedMap | CommentedSeq, part: str | int) -> Any:
    """The key as the file spells it, None when it is not there."""
    if isinstance(part, int):
        return part if part < len(data) else None
    return next((key for key in data if key == part), None)


def _meaning(text: str) -> Scalar:
    """What a scalar means, given its text and style."""
    quoted = isinstance(text, ScalarString) and not isinstance(text, PlainScalarString)
    return text if quoted else resolve(text)


def _node(value: Any) -> Any:
    if isinstance(value, dict):
        return CommentedMap((_text(key), _node(child)) for key, child in value.items())
    if isinstance(value, list):
        return CommentedSeq(map(_node, value))
    return _text(value) if isinstance(value, str) else PlainScalarString(scalar(value))


def _text(text: str) -> Any:
    if is_plain(text):
        return PlainScalarString(text)  # a bare str would take over the quotes of the old value
    if "\n" in text and is_literal(text):
        return LiteralScalarString(text)
    return DoubleQuotedScalarString(text)


def _shared(data: Any) -> set[int]:
    """The collections that stand in more than one place."""
    seen: set[int] = set()
    shared: set[int] = set()

    def walk(nodes: Iterable[Any]) -> None:
        for node in nodes:
            if isinstance(node, CommentedMap | CommentedSeq):
                if id(node) in seen:
                    shared.add(id(node))
                    continue
                seen.add(id(node))
                walk(node.values() if isinstance(node, CommentedMap) else node)

    walk([data])
    return shared
