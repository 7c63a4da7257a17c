"""YAML as programs write it, read a line at a time: the short way for thousands of objects.

One regular expression takes a document apart, four times faster than libyaml's events come to
Python. It knows block mappings and lists, text on one line, literal blocks, and flow collections
of single values. Whatever is anything else, or looks wrong, is for a parser of YAML to judge: this
reader never guesses, and a property test holds it against the other one.
"""

import re
from typing import Any, Final

from fanout.package.invalid import MAX_DEPTH
from fanout.package.scalars import Scalar, resolve


class NotPlain(Exception):
    """The document has something that only a parser of YAML can judge."""


# No line breaks, no controls, and nothing invisible.
_CHARACTER: Final = "[ -~\u00a1-\u00ac\u00ae-\u1fff\u3000-\ud7ff]"
# What may be a key is found here, and judged once for every text: see Texts.
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
# No indicator of YAML at the beginning, neither `: ` nor ` #` inside, no blank at the end.
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


class Texts(dict[str, Any]):
    """What texts on one line mean, kept while many documents are read: most of them repeat.

    So equal texts are one object, too, which spares a third of what thousands of objects hold.
    """

    def __missing__(self, text: str) -> Any:
        """Raises NotPlain."""
        if text[0] in "{[":
            return self._collection(text)  # not kept: each object has its own
        value: Scalar
        if _QUOTED.match(text):
            value = text[1:-1]
        elif _TEXT.match(text):
            value = _resolved(text)
        else:
            raise NotPlain
        self[text] = value
        return value

    def _collection(self, text: str) -> Any:
        if _ITEMS.match(text):
            return [self[item] for item in _ITEM.findall(text)]
        if not _ENTRIES.match(text):
            raise NotPlain
        found: dict[str, Scalar] = {}
        for name, value in _ENTRY.findall(text):
            key = self[name]
            if key.__class__ is not str or key in found:
                raise NotPlain
            found[key] = self[value]
        return found


def _resolved(text: str) -> Scalar:
    try:
        return resolve(text)
    except ValueError:
        raise NotPlain from None


def read_plain(text: str, texts: Texts) -> Any:
    """The data of one document, which ends with a line break; None for an empty one.

    Raises NotPlain when it is not as plain as this reader needs it.
    """
    lines = _LINE.findall(text)
    understood = len(lines) + sum(line[4].count("\n") for line in lines if line[4])
    if understood < text.count("\n") or not text.endswith("\n"):
        raise NotPlain
    root: dict[str, Any] = {}
    here: Any = root  # the collection that is open, the column of its entries, and those around it
    column = 0
    around: list[tuple[Any, int]] = []
    waiting = ""  # the last key of `here`, while its value may follow on lines of its own
    for indent, dash, name, chomp, block, value, item in lines:
        if not name and not item:  # nothing, or a comment
            continue
        at = len(indent)
        if waiting and (at > column or (dash and at == column)):
            around.append((here, column))
            here[waiting] = here = [] if dash else {}
            column = at
        else:
            while column > at or (column == at and not dash and here.__class__ is list):
                here, column = around.pop()
            if column != at or (dash and here.__class__ is not list):
                raise NotPlain
        waiting = ""
        if item:
            here.append(texts[item])
            continue
        if dash:
            around.append((here, column))
            here.append({})
            here, column = here[-1], at + len(dash)
        key = texts[name]
        if key.__class__ is not str or key in here:  # what is text only as a key, or is there
            raise NotPlain
        if value:
            here[key] = texts[value]
        elif block:
            here[key] = _literal(block, chomp, column)
        else:
            here[key], waiting = None, key
    return root or None


def _literal(block: str, chomp: str, column: int) -> str:
    """The text of a literal block below a key in this column."""
    lines = block.split("\n")[:-1]
    indent = len(lines[0]) - len(lines[0].lstrip(" "))
    if indent <= column or indent == len(lines[0]):
        raise NotPlain
    for number, line in enumerate(lines):
        text = line[indent:]
        if line[:indent].strip(" ") or (text and not text.strip(" ")):
            raise NotPlain
        lines[number] = text
    return "\n".join(lines).rstrip("\n") + ("" if chomp else "\n")
