"""What functions had to say: in which order it is told, and when it fails the rendering."""

from collections.abc import Iterable

from fanout.api.reasons import Reason
from fanout.errors import InvalidInput
from fanout.variants.functions.function import ERROR, Result
from fanout.variants.prepared import Found

_TOLD = 5  # errors that one sentence has room for


def first_failure(found: Iterable[Found]) -> tuple[Result, ...]:
    """The results in the order in which a pipeline yields that ends with the first failure."""
    rows = sorted(found, key=lambda item: (item.step, item.place))
    last = next((row.step for row in rows if row.result.severity == ERROR), None)
    return tuple(row.result for row in rows if last is None or row.step <= last)


def errors_of(results: Iterable[Result]) -> list[Result]:
    """The results that fail a rendering."""
    return [result for result in results if result.severity == ERROR]


def refuse_errors(results: Iterable[Result]) -> None:
    """Raise InvalidInput where a function has found an error; every error in one sentence."""
    errors = errors_of(results)
    if errors:
        more = f"; and {len(errors) - _TOLD} more" if len(errors) > _TOLD else ""
        told = "; ".join(result.sentence for result in errors[:_TOLD])
        raise InvalidInput(f"{told}{more}", reason=Reason.RENDER_FAILED)
