"""Foreign values in the Markdown of pull requests.

Forges turn `@name`, `#1`, `!1`, ids of commits, addresses and URLs of plain text into links
and notifications, whatever is escaped around them. They leave code alone, and code can be
copied: so everything but plain words is shown as code.
"""

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from fanout.control_characters import escape_unprintable

MAX_VALUE: Final = 200  # characters of one value
_MAX_SENTENCE: Final = 2000
_MAX_LINE: Final = 400  # characters of a line of a patch

_QUOTED: Final = re.compile(r"(`[^`]+`)")  # commands in messages
_LETTERS: Final = r"[^\W\d_]+(?:['’-][^\W\d_]+)*"
_WORD: Final = re.compile(rf"""["'(“]*{_LETTERS}["')”.,;:!?…]*""")
_NUMBER: Final = re.compile(r"\(?\d{1,6}%?[).,;:]*")
_DASH: Final = re.compile(r"[—–…→]")
_COMMIT_ID: Final = re.compile(r"[0-9a-fA-F]{7,}")
_ISSUE: Final = re.compile(r"[A-Z]{1,10}-[0-9]+")
_UNSAFE_URL: Final = re.compile(r"[^A-Za-z0-9_/:?=&%+.,;~#-]|#(?=[0-9])")
_NOTED_PAGE: Final = re.compile(
    r"(?i)/(?:issues?|pulls?|pull-requests|merge_requests|discussions|work_items|epics|commits?)/"
)
_TITLE_WORD: Final = re.compile(r"[\w./…-]+")
_DRAFT_PREFIX: Final = re.compile(r"(?i)^(?:(?:wip|draft):\s*|[\[(](?:wip|draft)[\])]:?\s*)+")
_TITLE_REFERENCE: Final = re.compile(r"`|[@#!:&~%$](?=\S)")


def format_code(value: str) -> str:
    """Return a value as inline code of one line, cut to `MAX_VALUE` characters; "" for ""."""
    return _format_span(_cut(escape_unprintable(value), MAX_VALUE)) if value else ""


def format_names(names: Iterable[str], shown: int = 5) -> str:
    """Return names as inline code, with a number in place of those beyond `shown`."""
    every = list(names)
    more = f" and {len(every) - shown} more" if len(every) > shown else ""
    return ", ".join(map(format_code, every[:shown])) + more


def format_sentence(text: str) -> str:
    """Return a sentence as one line: plain words as they are, everything else as code.

    What stands between backticks, as commands in messages do, is code already.
    """
    words: list[str] = []
    for part in _QUOTED.split(_cut(text, _MAX_SENTENCE)):
        if part.startswith("`") and part.endswith("`") and len(part) > 2:
            words.append(_format_span(escape_unprintable(part[1:-1])))
            continue
        words += [" " if it.isspace() else _format_word(it) for it in re.split(r"(\s+)", part)]
    line = ""
    for word in words:
        # Two codes in a row would be read as one: their backticks are one longer delimiter.
        separator = " " if line.endswith("`") and word.startswith("`") else ""
        line += separator + word
    return " ".join(line.split(" ")).strip()


def format_cell(markdown: str) -> str:
    """Return Markdown of one line as a cell of a table, which a vertical bar would end."""
    return markdown.replace("|", "\\|")


def format_link(markdown: str, url: str) -> str:
    """Return Markdown of one line that leads to a page; a URL that is no plain one stays code."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
    except ValueError:
        is_usable = False
    if not is_usable or not url.isascii() or _UNSAFE_URL.search(url):
        return f"{markdown} {format_code(url)}" if url else markdown
    return f"[{markdown}]({url})"


def format_foreign_link(markdown: str, url: str) -> str:
    """Return a link to a page that somebody else names.

    Forges note a link to an issue, request or commit on that page, and a word before it may close
    it: the address of such a page stays code.
    """
    if _NOTED_PAGE.search(url):
        return f"{markdown} {format_code(url)}"
    return format_link(markdown, url)


def format_fold(label: str, markdown: str) -> str:
    """Return paragraphs that are shown when a person opens them; `label` is fanout's own text."""
    return f"<details>\n<summary>{label}</summary>\n\n{markdown}\n\n</details>"


def format_block(lines: Iterable[str], language: str = "") -> str:
    """Return lines as a block of code; nothing in them can end it."""
    shown = [
        _cut("\t".join(map(escape_unprintable, line.split("\t"))), _MAX_LINE) for line in lines
    ]
    longest = max((len(run) for line in shown for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}{language}", *shown, fence])


def format_title(text: str, limit: int) -> str:
    """Return one line of plain text for a title that forges read no reference from.

    It does not begin like the title of a draft. Titles have no code: characters that begin a
    reference become `_`, and words that are references by themselves stand in quotation marks.
    """

    def quote_reference(match: re.Match[str]) -> str:
        word = match[0]
        is_issue = _ISSUE.fullmatch(word.rstrip("."))
        return f"“{word}”" if _COMMIT_ID.fullmatch(word) or is_issue or "www." in word else word

    line = _DRAFT_PREFIX.sub("", escape_unprintable(" ".join(text.split())))
    return _cut(_TITLE_WORD.sub(quote_reference, _TITLE_REFERENCE.sub("_", line)), limit)


def _format_word(word: str) -> str:
    if not word or _DASH.fullmatch(word):
        return word
    if _WORD.fullmatch(word) and not _COMMIT_ID.search(word):
        return word
    if _NUMBER.fullmatch(word):
        # A number before a point or a bracket would begin a list.
        return re.sub(r"(?<=\d)([.)])", r"\\\1", word)
    stem = word.rstrip(".,;:")
    return _format_span(escape_unprintable(stem)) + word[len(stem) :] if stem else word


def _format_span(value: str) -> str:
    longest = max(map(len, re.findall(r"`+", value)), default=0)
    fence = "`" * (longest + 1)
    # A space that begins or ends the code is dropped by Markdown if there is one on both sides.
    pad = " " if value[:1] in "` " or value[-1:] in "` " else ""
    return f"{fence}{pad}{value}{pad}{fence}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
