"""Results of `fanout test` as text and as JUnit XML, and the course of scenarios as tables."""

from collections import Counter
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from fanout.api.durations import format_instant
from fanout.api.field_errors import format_path
from fanout.api.output_views import DifferenceView, ReasonView, Simulation, TestResult
from fanout.api.text_fields import pluralize
from fanout.api.view_base import dump_view, label_verdict
from fanout.cli.output.printer import build_list, format_table, print_value, write_stdout
from fanout.cli.settings import OutputFormat
from fanout.cli.terminal import escape_control
from fanout.errors import ErrorLocation
from fanout.gates.gate_wording import format_names
from fanout.scenarios.scenario_expectations import ComparedValue, ExpectedValue

_MARKS = {"Passed": "ok", "Failed": "FAILED", "Invalid": "INVALID", "Empty": "empty"}


def build_difference(compared: ComparedValue, where: ErrorLocation) -> DifferenceView:
    """Return the view of a result that differs from the expectation at a file and line."""
    subject = compared.subject
    return DifferenceView(
        at=format_instant(subject.at),
        subject=subject.name,
        field=format_path(compared.path),
        expected=_format_value(compared.expected),
        found=_format_value(compared.actual),
        why=subject.explanation,
        file=where.file,
        line=where.line,
    )


def _format_value(value: ExpectedValue) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "none"
        case tuple():
            return f"[{', '.join(map(str, value))}]"
        case _:
            return str(value) or '""'


def format_results(results: Sequence[TestResult], faults: int) -> Iterator[str]:
    """Yield the lines of each scenario, and their numbers; `faults`: errors in other files."""
    for result in results:
        number = pluralize(result.expectations, "expectation")
        yield (
            f"{_MARKS[result.result]:8}{result.file}:{result.line}: {result.metadata.name}"
            f" ({number})\n"
        )
        for difference in result.differences:
            field = difference.field.rpartition(".")[2]
            sentence = f"{field} is {difference.found}, expected {difference.expected}"
            yield (
                f"  {difference.file}:{difference.line}: {difference.subject} at"
                f" {difference.at}: {sentence}\n"
            )
            if difference.why:
                yield f"    {difference.why}\n"
    failed = sum(result.result in ("Failed", "Invalid") for result in results)
    broken = f", {pluralize(faults, 'error')} in others" if faults else ""
    yield f"{pluralize(len(results), 'scenario')}, {failed} failed{broken}\n"


_HEADS = ("STAGE", "CANDIDATE", "GATE", "VERDICT", "RELEASED", "PUBLISHED", "HELD", "NEXT")
_NAME_LIMIT = 8  # variants that a cell names


def print_simulations(
    simulations: Sequence[Simulation], output: OutputFormat, *, alone: bool
) -> None:
    """Print the simulations; `alone`: one scenario was requested, so no list is printed."""
    if output is OutputFormat.TABLE:
        write_stdout("\n".join("".join(_format_simulation(it)) for it in simulations))
        return
    plain = [dump_view(it, nulls=True) for it in simulations]
    if plain or not alone:
        print_value(plain[0] if alone else build_list(plain), output)


def _format_simulation(simulation: Simulation) -> Iterator[str]:
    yield f"{simulation.metadata.name} (policy {simulation.policy})\n"
    for moment in simulation.moments:
        further = f", next {format_instant(moment.next)}" if moment.next else ""
        yield f"\n{format_instant(moment.at)}{further}\n"
        rows = []
        for stage in moment.stages:
            counts = Counter(
                name for it in stage.held for name in {reason.class_.value for reason in it.reasons}
            )
            row = (
                stage.stage,
                stage.candidate or "-",
                label_verdict(stage.gate),
                f"{label_verdict(stage.verdict)}{', halted' if stage.halted else ''}",
                _format_names(stage.released),
                _format_names(stage.published),
                ",".join(f"{name}={number}" for name, number in sorted(counts.items())) or "-",
                format_instant(stage.next) if stage.next else "-",
            )
            rows.append(row)
        yield format_table(_HEADS, rows)
        for reason in (*moment.holds, *(it for variant in moment.stages for it in variant.holds)):
            yield f"  {reason.class_}: {reason.message}{_format_actor(reason)}\n"
        for stage in moment.stages:
            for other_revision in stage.others:
                reasons = "; ".join(
                    f"{it.message}{_format_actor(it)}" for it in other_revision.reasons
                )
                yield (
                    f"  revision: stage {stage.stage} does not take {other_revision.revision}:"
                    f" {reasons}\n"
                )
        for variant in moment.in_no_stage:
            yield (
                f"  {variant.variant}:"
                f" {variant.reasons[0].message if variant.reasons else variant.state}\n"
            )


def _format_names(names: Sequence[str]) -> str:
    """Return the names in order. For more than eight their number, the first two and the last."""
    if len(names) <= _NAME_LIMIT:
        return ",".join(names) or "-"
    return f"{len(names)}: {','.join(names[:2])},…,{names[-1]}"


def _format_actor(reason: ReasonView) -> str:
    return f" ({format_names([reason.who])})" if reason.who else ""


_COUNT_ATTRIBUTES = {"Failed": "failures", "Invalid": "errors", "Empty": "skipped"}
_RESULT_ELEMENTS = {
    "Failed": ("failure", "not as expected"),
    "Invalid": ("error", "the scenario cannot run"),
    "Empty": ("skipped", "it has no expectations"),
}


def format_junit(results: Sequence[TestResult]) -> str:
    """Return the results as JUnit XML: a test case per scenario, with its file as class name."""
    counts: Counter[str] = Counter(result.result for result in results)
    numbers = " ".join(f'{name}="{counts[word]}"' for word, name in _COUNT_ATTRIBUTES.items())
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name="fanout" tests="{len(results)}" {numbers}>',
    ]
    for result in results:
        file, name = (quoteattr(escape_control(it)) for it in (result.file, result.metadata.name))
        lines.append(f"  <testcase classname={file} name={name}>")
        if result.result in _RESULT_ELEMENTS:
            text = "\n".join(
                f"{it.file}:{it.line}: {it.subject} at {it.at}: {it.field} is {it.found}, expected"
                f" was {it.expected}{it.why and f'; {it.why}'}"
                for it in result.differences
            )
            element, message = _RESULT_ELEMENTS[result.result]
            text = escape(escape_control(text))
            lines.append(f'    <{element} message="{message}">{text}</{element}>')
        lines.append("  </testcase>")
    return "".join(f"{line}\n" for line in (*lines, "</testsuite>"))
