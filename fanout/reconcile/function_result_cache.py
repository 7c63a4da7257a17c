"""Cache of the function results and schemas that renderings request."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from fanout.cluster.kubernetes_schemas import read_schemas
from fanout.ports import FunctionRunner
from fanout.variants.pending_inputs import (
    InputPending,
    PendingInput,
    ProgramOutput,
    ProgramRun,
    Response,
    Responses,
    SchemaRequest,
    ScriptRun,
)

Value = TypeVar("Value")
MAX_CACHED_BYTES = 64 << 20  # bytes of inputs and outputs of programs


@dataclass(slots=True)
class FunctionResultCache:
    """Obtains each result once; one per process."""

    function_runtime: FunctionRunner
    _results: dict[PendingInput, Response] = field(default_factory=dict)
    _size: int = 0

    @property
    def results(self) -> Responses:
        """Results obtained so far, by question."""
        return self._results

    def obtain(self, questions: Iterable[PendingInput]) -> None:
        """Obtain the results of new questions; programs run in parallel."""
        new_questions = [
            question_item
            for question_item in dict.fromkeys(questions)
            if question_item not in self._results
        ]
        runs = [
            question_item
            for question_item in new_questions
            if isinstance(question_item, ProgramRun)
        ]
        for question, answer in zip(
            runs, self.function_runtime.run(runs) if runs else (), strict=True
        ):
            self._results[question] = answer
            self._size += len(question.stdin) + (
                len(answer.stdout) if isinstance(answer, ProgramOutput) else 0
            )
        scripts = [
            question_item for question_item in new_questions if isinstance(question_item, ScriptRun)
        ]
        script_results = self.function_runtime.run_scripts(scripts) if scripts else ()
        for script, items in zip(scripts, script_results, strict=True):
            self._results[script] = items
            self._size += 2 * len(script.resource_list)  # the output is about as long
        for question_item in new_questions:
            if isinstance(question_item, SchemaRequest):
                self._results[question_item] = read_schemas(question_item)

    def run_until_answered(self, work: Callable[[Responses], Value]) -> Value:
        """Repeat `work` until it asks no further question, and return its value.

        Raises what it raises.
        """
        while True:
            try:
                return work(self._results)
            except InputPending as unanswered:
                self.obtain([unanswered.pending_input])

    def drop_if_large(self) -> None:
        """Drop the results of programs once they exceed the size limit; schemas stay."""
        if self._size > MAX_CACHED_BYTES:
            self._results = {
                question: it
                for question, it in self._results.items()
                if isinstance(question, SchemaRequest)
            }
            self._size = 0
