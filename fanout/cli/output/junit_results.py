"""Results of scenarios as JUnit XML, which CI systems show."""

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from fanout.api.output_views import TestResult
from fanout.cli.terminal import escape_control

_COUNT_ATTRIBUTES = {"Failed": "failures", "Invalid": "errors", "Empty": "skipped"}
_RESULT_ELEMENTS = {
    "Failed": ("failure", "not as expected"),
    "Invalid": ("error", "the scenario cannot run"),
    "Empty": ("skipped", "it has no expectations"),
}


def format_junit(results: Sequence[TestResult]) -> str:
    """Return the results as JUnit XML, one test case per scenario.

    The file of the scenario is the class name.
    """
    return "".join(f"{line}\n" for line in _xml_lines(results))


def _xml_lines(results: Sequence[TestResult]) -> Iterator[str]:
    count = {word: sum(result.result == word for result in results) for word in _COUNT_ATTRIBUTES}
    numbers = " ".join(f'{_COUNT_ATTRIBUTES[word]}="{number}"' for word, number in count.items())
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuite name="fanout" tests="{len(results)}" {numbers}>'
    for result in results:
        yield (
            f"  <testcase classname={_quote_attribute(result.file)}"
            f" name={_quote_attribute(result.metadata.name)}>"
        )
        if result.result in _RESULT_ELEMENTS:
            text = "\n".join(
                f"{it.file}:{it.line}: {it.subject} at {it.at}: {it.field} is {it.found}, expected"
                f" was {it.expected}{it.why and f'; {it.why}'}"
                for it in result.differences
            )
            element, message = _RESULT_ELEMENTS[result.result]
            yield (
                f"    <{element}"
                f" message={_quote_attribute(message)}>{escape(escape_control(text))}</{element}>"
            )
        yield "  </testcase>"
    yield "</testsuite>"


def _quote_attribute(text: str) -> str:
    return quoteattr(escape_control(text))
