"""Results of scenarios as JUnit XML, which CI systems show."""

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from fanout.api.simulation import TestResult
from fanout.cli.terminal import printable


def junit(results: Sequence[TestResult]) -> str:
    """One test case per scenario; its file is the class."""
    return "".join(f"{line}\n" for line in _lines(results))


def _lines(results: Sequence[TestResult]) -> Iterator[str]:
    count = {word: sum(one.result == word for one in results) for word in _COUNTED}
    numbers = " ".join(f'{_COUNTED[word]}="{number}"' for word, number in count.items())
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuite name="fanout" tests="{len(results)}" {numbers}>'
    for one in results:
        yield f"  <testcase classname={_quoted(one.file)} name={_quoted(one.metadata.name)}>"
        if one.result in _ELEMENTS:
            text = "\n".join(
                f"{it.file}:{it.line}: {it.subject} at {it.at}: {it.field} is {it.found}, expected"
                f" was {it.expected}{it.why and f'; {it.why}'}"
                for it in one.differences
            )
            element, message = _ELEMENTS[one.result]
            yield f"    <{element} message={_quoted(message)}>{escape(printable(text))}</{element}>"
        yield "  </testcase>"
    yield "</testsuite>"


_COUNTED = {"failed": "failures", "invalid": "errors", "empty": "skipped"}
_ELEMENTS = {
    "failed": ("failure", "not as expected"),
    "invalid": ("error", "the scenario cannot be played"),
    "empty": ("skipped", "nothing is expected"),
}


def _quoted(text: str) -> str:
    return quoteattr(printable(text))
