"""Docstrings and comments speak the field's language (docs/glossary.md).

The first line of a docstring is a statement about its subject; docstrings and comments avoid the
words that were private to this project.
"""

import re
import tokenize
from pathlib import Path

import pytest
from source_files import ONE_PROCESS, ROOT, name_of, read_source, text_of

pytestmark = ONE_PROCESS

FOLDERS = ("fanout", "tests", "benchmarks", "demo", "docs", "tools")
# Tests of pytest state their expectation with their name; their docstrings add a reason.
SOURCES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if not path.name.startswith("test_")
)
# The docstring of a verb's command is its help for users.
HELP = ROOT / "fanout" / "cli" / "verbs"

OPENINGS = re.compile(
    r"""(?: It | They | He | She | Them | We | You
          | (?: This | That | These | Those ) (?= \s+ (?: is | are | was | were ) \b | \W*$ )
          | Whatever | Whoever | Whichever | Whenever | Wherever
          | What | Who | Whom | Whose | Whether | How | Where | When | Which | Why
          | All\ that | Everything\ that | Everything | Nothing | Nobody | Somebody
          | Same | The\ same | The\ very\ same
        )\b""",
    re.VERBOSE,
)

# Private words without a meaning in Git, Kubernetes or GitOps.
PRIVATE_WORDS = (
    "aliens?|barred|beginnings|blanks|books?|census|crews?|departing|desks?|fates?|floors?|heard"
    "|heeds|houses?|leavings|lifts|moulds?|outlines?|registrars?|rooms?|said|spoken|strangers?"
    "|strays|told|unmeant|whereabouts|workshops?"
)
PRIVATE_WORD = re.compile(rf"(?<![\w./`-])(?:{PRIVATE_WORDS})(?![\w`/-])", re.IGNORECASE)


def docstrings(path: Path) -> list[tuple[int, str]]:
    """Return line and text of every docstring, and of texts after variables and fields."""
    return read_source(path).docstrings


def comments(path: Path) -> list[tuple[int, str]]:
    """Return line and text of the comments of a file with a private word; others have none."""
    if not PRIVATE_WORD.search(text_of(path)):  # tokens take ten times as long
        return []
    with path.open("rb") as source:
        tokens = tokenize.tokenize(source.readline)
        return [(it.start[0], it.string) for it in tokens if it.type == tokenize.COMMENT]


def first_line(text: str) -> str:
    return text.strip().partition("\n")[0].strip()


def first_sentence_ends(text: str) -> bool:
    """Accept a first paragraph that ends with a period or a colon before its list."""
    paragraph = text.strip().partition("\n\n")[0].rstrip()
    return paragraph.endswith((".", ":", ".)", ".`", '."'))


def faults(texts, is_fault, sources=SOURCES):
    return [
        f"{name_of(path)}:{line}: {first_line(text)}"
        for path in sources
        for line, text in texts(path)
        if is_fault(text)
    ]


def test_the_first_line_of_a_docstring_is_no_question():
    assert not faults(docstrings, lambda text: "?" in first_line(text)[-2:])


def test_the_first_line_of_a_docstring_names_its_subject():
    assert not faults(docstrings, lambda text: OPENINGS.match(first_line(text)))


def test_the_first_sentence_of_a_docstring_ends_with_a_period():
    assert not faults(docstrings, lambda text: not first_sentence_ends(text))


@pytest.mark.parametrize("texts", [docstrings, comments], ids=["docstrings", "comments"])
def test_no_private_words(texts):
    sources = [path for path in SOURCES if path.parent != HELP]
    assert not faults(texts, PRIVATE_WORD.search, sources)
