"""Function results that fail a rendering."""

from collections.abc import Iterable

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput
from fanout.variants.functions.function_interface import ERROR, FunctionResult
from fanout.variants.package_preparation import StepResult

_MAX_SHOWN = 5  # errors in one message


def results_until_failure(findings: Iterable[StepResult]) -> tuple[FunctionResult, ...]:
    """Return the results in pipeline order, up to the first step with an error.

    This is what a run that stops at the first failing step reports
    (`WholePackageRun.run`).
    """
    # The findings come from the shared run and from the target's own objects, each in its own
    # order.
    rows = sorted(findings, key=lambda item: (item.step, item.place))
    failed_step = next((row.step for row in rows if row.result.severity == ERROR), None)
    return tuple(row.result for row in rows if failed_step is None or row.step <= failed_step)


def find_errors(results: Iterable[FunctionResult]) -> list[FunctionResult]:
    """Return the results that fail a rendering."""
    return [result for result in results if result.severity == ERROR]


def refuse_errors(results: Iterable[FunctionResult]) -> None:
    """Raise InvalidInput with the first errors if any function reported one."""
    errors = find_errors(results)
    if errors:
        more = f"; and {len(errors) - _MAX_SHOWN} more" if len(errors) > _MAX_SHOWN else ""
        sentences = "; ".join(result.sentence for result in errors[:_MAX_SHOWN])
        raise InvalidInput(f"{sentences}{more}", reason=Reason.RENDER_FAILED)
