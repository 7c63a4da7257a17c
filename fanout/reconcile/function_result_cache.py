"""Cache of the function results and schemas that renderings request."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from fanout.kubernetes_schemas import read_schemas
from fanout.pending_inputs import Responses, complete
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.ports import FunctionRunner
from fanout.variants.function_requests import (
    FunctionRequest,
    ProgramOutput,
    ProgramRun,
    Response,
    ResponseError,
    SchemaRequest,
    ScriptRun,
)

Result = TypeVar("Result")
MAX_CACHED_BYTES = 64 << 20  # bytes of inputs and outputs of programs


@dataclass(slots=True)
class FunctionResultCache:
    """Obtains each result once; one per process."""

    function_runtime: FunctionRunner
    _results: dict[FunctionRequest, Response] = field(default_factory=dict)
    _size: int = 0

    @property
    def results(self) -> Responses:
        """Results obtained so far, by request."""
        return self._results

    def obtain(
        self, requests: Sequence[FunctionRequest], budget: EvaluationBudget | None = None
    ) -> None:
        """Obtain the results of requests that have none; programs run in parallel."""
        runs = [request for request in requests if isinstance(request, ProgramRun)]
        outputs = self.function_runtime.run(runs, budget) if runs else ()
        for run, output in zip(runs, outputs, strict=True):
            self._results[run] = output
            stdout = output.stdout if isinstance(output, ProgramOutput) else b""
            self._size += len(run.stdin) + len(stdout)
        scripts = [request for request in requests if isinstance(request, ScriptRun)]
        script_results = self.function_runtime.run_scripts(scripts, budget) if scripts else ()
        for script, items in zip(scripts, script_results, strict=True):
            self._results[script] = items
            self._size += 2 * len(script.resource_list)  # the output is about as long
        for request in requests:
            if isinstance(request, SchemaRequest):
                self._results[request] = read_schemas(request)

    def run_until_answered(self, work: Callable[[Responses], Result]) -> Result:
        """Repeat `work` until it requests no further result; return and raise as it does."""
        [value] = complete([lambda: work(self._results)], self.obtain)
        return value

    def begin_pass(self) -> None:
        """Begin a pass: drop errors that are not final, so that they are requested again."""
        # Dropped between passes only: the rounds of one pass rely on the results before them.
        for request, result in list(self._results.items()):
            if isinstance(result, ResponseError) and not result.is_final:
                del self._results[request]

    def drop_if_large(self) -> None:
        """Drop the results of programs once they exceed the size limit; schemas stay."""
        if self._size > MAX_CACHED_BYTES:
            results = self._results.items()
            self._results = {key: it for key, it in results if isinstance(key, SchemaRequest)}
            self._size = 0
