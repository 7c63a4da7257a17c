"""Reading of cluster objects from files: many small documents, without positions.

Data and guards are those of `Manifest.parse`, duplicate keys included. Each document goes to the
first of three readers that can read it: by lines, by libyaml's events, and, for what is rare
(anchors, tags, problems), the parser with positions, which then reads the whole file.

The reader by lines takes a document apart with one regular expression, four times faster than
libyaml's events reach Python. It reads block mappings and lists, text on one line, literal blocks,
and flow collections of scalars, as programs write them. Anything else, or anything that looks
wrong, it leaves to a YAML parser: it never guesses, and a property test compares the two.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from fanout.package.json_manifest import is_json, read_json
from fanout.package.yaml_nodes import (
    MAX_DEPTH,
    MAX_OBJECTS,
    MERGE,
    InvalidManifest,
    RefusedDocument,
    decode,
    parse_events,
    parse_yaml,
    single_problem,
)
from fanout.package.yaml_scalars import Scalar, resolve_scalar


class NotPlainYaml(Exception):
    """The document contains something that only a YAML parser can judge."""


# No line breaks, no controls, and nothing invisible.
_CHARACTER: Final = "[ -~\u00a1-\u00ac\u00ae-\u1fff\u3000-\ud7ff]"
# Possible keys; `ScalarMemo` checks each text once.
_KEY: Final = r"[A-Za-z_/.][A-Za-z0-9_./-]{0,400}+|\"[^\"\n]{0,400}+\"|'[^'\n]{0,400}+'"
# A level is at least a column wide, but for a list right below its key: so the depth is kept too.
_INDENT: Final = f" {{0,{MAX_DEPTH - 10}}}"
_LITERAL: Final = rf"\|(-?)\n((?:\1 +{_CHARACTER}*+\n| *+\n)++)"
_LINE: Final = re.compile(
    rf"^({_INDENT})(?:"
    rf"(- +)?(?:({_KEY}):(?: +(?:{_LITERAL}|(.*+)\n)|\n)"
    rf"|(?<=- )(.++)\n)"
    rf"|(?:#{_CHARACTER}*+)?\n)",
    re.MULTILINE,
)
# No YAML indicator at the start, neither `: ` nor ` #` inside, no space at the end.
_TEXT: Final = re.compile(
    r"(?=[A-Za-z0-9_./+$(~]|[^\x00-\xa0]|-[A-Za-z0-9.])"
    rf"(?:(?=[^ :#]){_CHARACTER}|(?<! )#|:(?! |\Z)| ++(?!#|\Z))++\Z"
)
_QUOTED: Final = re.compile(rf"\"(?:(?![\"\\]){_CHARACTER})*+\"\Z|'(?:(?!'){_CHARACTER})*+'\Z")
_SINGLE: Final = r"(?:[A-Za-z0-9_./][A-Za-z0-9_./-]*+|\"[^\"]*+\"|'[^']*+')"
_ENTRY: Final = re.compile(rf"({_SINGLE}): ({_SINGLE})")
_ENTRIES: Final = re.compile(rf"\{{(?:{_ENTRY.pattern}(?:, {_ENTRY.pattern})*+)?\}}\Z")
_ITEM: Final = re.compile(_SINGLE)
_ITEMS: Final = re.compile(rf"\[(?:{_SINGLE}(?:, {_SINGLE})*+)?\]\Z")


class ScalarMemo(dict[str, Any]):
    """Values of one-line texts, memoized while many documents are read: most texts repeat.

    Equal texts are one object, too, which saves a third of the memory of thousands of objects.
    """

    def __missing__(self, text: str) -> Any:
        """Compute the value of a text and memoize it. Raises NotPlainYaml."""
        if text[0] in "{[":
            # A memoized list would be shared between objects, and a change to one would change
            # others.
            if _ITEMS.match(text):
                return [self[item] for item in _ITEM.findall(text)]
            if not _ENTRIES.match(text):
                raise NotPlainYaml
            entries: dict[str, Scalar] = {}
            for name, entry in _ENTRY.findall(text):
                key = self[name]
                if key.__class__ is not str or key in entries:
                    raise NotPlainYaml
                entries[key] = self[entry]
            return entries
        value: Scalar
        if _QUOTED.match(text):
            value = text[1:-1]
        elif _TEXT.match(text):
            try:
                value = resolve_scalar(text)
            except ValueError:
                raise NotPlainYaml from None
        else:
            raise NotPlainYaml
        self[text] = value
        return value


def read_plain(text: str, memo: ScalarMemo) -> Any:
    """Return the data of one document, which ends with a line break.

    None for an empty one. Raises NotPlainYaml if the document needs a YAML parser.
    """
    lines = _LINE.findall(text)
    # `findall` skips lines that do not match. Only the count shows that a line was
    # skipped, since a literal block is one match of many lines.
    matched_lines = len(lines) + sum(line[4].count("\n") for line in lines if line[4])
    if matched_lines < text.count("\n") or not text.endswith("\n"):
        raise NotPlainYaml
    root: dict[str, Any] = {}
    # the open collection; `column`: of its entries; `enclosing`: the collections around it
    open_collection: Any = root
    column = 0
    enclosing: list[tuple[Any, int]] = []
    pending_key = ""  # the last key of `here`, while its value may follow on lines of its own
    for indent, dash, name, chomp, block, value, item in lines:
        if not name and not item:  # nothing, or a comment
            continue
        indent_width = len(indent)
        if pending_key and (indent_width > column or (dash and indent_width == column)):
            enclosing.append((open_collection, column))
            open_collection[pending_key] = open_collection = [] if dash else {}
            column = indent_width
        else:
            # A list may stand in the column of its key: the first line there without a dash
            # closes it.
            while column > indent_width or (
                column == indent_width and not dash and open_collection.__class__ is list
            ):
                open_collection, column = enclosing.pop()
            if column != indent_width or (dash and open_collection.__class__ is not list):
                raise NotPlainYaml
        pending_key = ""
        if item:
            open_collection.append(memo[item])
            continue
        if dash:
            enclosing.append((open_collection, column))
            open_collection.append({})
            open_collection, column = open_collection[-1], indent_width + len(dash)
        key = memo[name]
        # A key that is not a string (`on`, `1`), or a duplicate.
        if key.__class__ is not str or key in open_collection:
            raise NotPlainYaml
        if value:
            open_collection[key] = memo[value]
        elif block:
            open_collection[key] = _literal_text(block, chomp, column)
        else:
            open_collection[key], pending_key = None, key
    return root or None


def _literal_text(block: str, chomp: str, column: int) -> str:
    """Return the text of a literal block below a key in this column. Raises NotPlainYaml."""
    lines = block.split("\n")[:-1]
    indent = len(lines[0]) - len(lines[0].lstrip(" "))
    if indent <= column or indent == len(lines[0]):
        raise NotPlainYaml
    for number, line in enumerate(lines):
        text = line[indent:]
        if line[:indent].strip(" ") or (text and not text.strip(" ")):
            raise NotPlainYaml
        lines[number] = text
    return "\n".join(lines).rstrip("\n") + ("" if chomp else "\n")


def load_objects(
    data: bytes, file: str, shared_memo: ScalarMemo | None = None
) -> list[dict[str, Any]]:
    """Return all objects of a file, items of a `List` included.

    Empty documents are skipped. `shared_memo`: memo to share between many files. Raises
    InvalidManifest with every problem and its line.
    """
    text = decode(data, file, MAX_OBJECTS)
    if is_json(file):
        values = [read_json(text, file)]
    else:
        try:
            if BYTE_ORDER_MARK in text:
                # Invalid inside a file; at the start of a part it would pass as the file's own.
                raise _NeedsPositions
            memo = ScalarMemo() if shared_memo is None else shared_memo
            values = []
            # Cut at lines that are nothing but a marker: one at the beginning of a line ends every
            # open collection and text, so a part that can be read by itself reads the same as
            # within the file.
            *parts, last = text.removeprefix(_MARKER).split(f"\n{_MARKER}")
            for part in (*(f"{it}\n" for it in parts), last):
                try:
                    values.append(read_plain(part, memo))
                except NotPlainYaml:
                    values += _values_from_events(part, file)
        # The whole file again and not the part alone: only then do the problems have their lines.
        except _NeedsPositions:
            reading = parse_yaml(text, file)
            if reading.problems:
                raise InvalidManifest(reading.problems) from None
            values = [root.node.data for root in reading.roots]
    objects: list[dict[str, Any]] = []
    for value in values:
        kind = value.get("kind") if isinstance(value, dict) else None
        has_items = isinstance(kind, str) and kind.endswith("List")
        if has_items and isinstance(value.get("items"), list):
            objects += value["items"]
        elif value is not None:
            objects.append(value)
    for item in objects:
        if not isinstance(item, dict):
            problem = f"a {type(item).__name__} is not a Kubernetes object"
            remedy = "each document must be a mapping with apiVersion, kind and metadata"
            raise single_problem(file, 0, problem, remedy)
    return objects


class _NeedsPositions(Exception):
    """The file contains something that only the parser with positions can judge."""


_MARKER = "---\n"
BYTE_ORDER_MARK = "\ufeff"


_STARTS = frozenset((yaml.MappingStartEvent, yaml.SequenceStartEvent))
_ENDS = frozenset((yaml.MappingEndEvent, yaml.SequenceEndEvent))


def _values_from_events(text: str, file: str) -> Iterator[Any]:
    """Yield the data of the documents. Raises _NeedsPositions."""
    stack: list[tuple[Any, str | None]] = []  # the open collections and the keys that wait in them
    open_collection: Any = None
    key: str | None = None
    value: Any = None
    try:
        for event in parse_events(text, file):
            if (kind := event.__class__) is yaml.ScalarEvent:
                is_plain = event.implicit[0]
                is_merge = is_plain and event.value == MERGE
                if event.anchor is not None or event.tag is not None or is_merge:
                    raise _NeedsPositions
                value = resolve_scalar(event.value) if is_plain else event.value
            elif kind in _STARTS:
                # Refusals are left to the parser with positions, whose errors name the line.
                if event.anchor is not None or event.tag is not None or len(stack) >= MAX_DEPTH:
                    raise _NeedsPositions
                stack.append((open_collection, key))
                open_collection, key = {} if kind is yaml.MappingStartEvent else [], None
                continue
            elif kind in _ENDS:
                value, (open_collection, key) = open_collection, stack.pop()
            elif kind is yaml.DocumentEndEvent:
                yield value
                continue
            elif kind is yaml.AliasEvent:
                raise _NeedsPositions
            else:
                continue
            if key is not None:
                open_collection[key] = value
                key = None
            elif open_collection.__class__ is list:
                open_collection.append(value)
            elif open_collection is not None:
                if not isinstance(value, str) or value in open_collection:
                    raise _NeedsPositions  # such as `on` or `1`: its text counts, not its value
                key = value
    except (RefusedDocument, ValueError):
        raise _NeedsPositions from None
