"""Evaluation of untrusted expressions and templates in limited worker processes.

Policies may be written by many (docs/concepts/security.md), and neither celpy nor Jinja bounds what
a text costs: 328 characters of CEL took 5 GiB. So they run in workers with limits of memory,
processor time and wall time. The parent learns the free variables of a text, sends only these, each
distinct part of a row once, and keeps the answers by the values read. Expressions whose shape
bounds their cost are computed in process, from the AST that a worker serialized.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Self

from fanout.disk_cache import installed_version, read_cache_value, write_cache_file
from fanout.errors import Bug
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.sandbox.expression_closures import build_closure
from fanout.sandbox.free_variables import (
    GLOBALS,
    FreeVariables,
    answer_key,
    encode_part,
    project_row,
)
from fanout.sandbox.worker_pool import ROWS_PER_REQUEST, EvaluationTask, ParsedText, WorkerPool
from fanout.sandbox.worker_protocol import WorkerLimits
from fanout.selection.variant_spec import ASK, ExpressionFailure, InProcessExpression
from fanout.telemetry.metrics import Counters
from fanout.values import Value, write_json

AST_FORMAT = 3  # changed where a cached AST would no longer be valid
MAX_ENTRIES = 4096  # expressions; beyond, the file is started anew


class SerializedAstCache:
    """File cache of serialized ASTs.

    Several processes may use the file; the last writer wins. Starting a worker takes longer
    than most commands, so a later command reads what an earlier one learned. The file may
    be deleted at any time (`fanout.disk_cache`). Only simple expressions are cached: all
    others need a worker anyway.
    """

    def __init__(self, path: Path | None) -> None:
        """Use the file at `path`; None caches nothing."""
        self._path = path
        self._entries: dict[str, ParsedText] | None = None

    def find(self, texts: Iterable[str]) -> dict[str, ParsedText]:
        """Return the cached texts among these."""
        entries = self._read_entries()
        return {text: entries[text] for text in texts if text in entries}

    def store(self, parsed: Mapping[str, ParsedText]) -> None:
        """Add to the file. A failed write is ignored: the next command parses again."""
        if self._path is None or not parsed:
            return
        entries = self._read_entries()
        is_full = len(entries) + len(parsed) > MAX_ENTRIES
        self._entries = {**({} if is_full else entries), **parsed}
        write_cache_file(self._path, write_json(self._entries), _cache_version())

    def _read_entries(self) -> dict[str, ParsedText]:
        if self._entries is None:
            cached = None
            if self._path is not None:
                cached = read_cache_value(self._path, _cache_version(), dict[str, ParsedText])
            self._entries = cached or {}
        return self._entries


def _cache_version() -> str:
    """Return the versions that the entries depend on: fanout's format of celpy's trees."""
    return f"{AST_FORMAT} {installed_version()} {installed_version('cel-python')}"


MAX_ANSWERS = 200_000
MAX_TEXTS = 4096
_ROWS_PER_BLOCK = 128  # rows

_AnswerKey = str | bytes  # key of the answer for the part of a row that is read


class CompiledText(Value):
    """Free variables of a text, and a function that computes it if it is simple."""

    free_variables: FreeVariables
    compute: Callable[[Mapping[str, Any]], Any] | None


@dataclass(slots=True)
class _PendingAnswers:
    """Answers of one text, and the keys of those that are still to come, by row number."""

    answers: list[Any]
    pending_keys: dict[int, _AnswerKey]


class TextEvaluator:
    """Evaluator of texts of one kind."""

    def __init__(
        self, workers: WorkerPool, counters: Counters, ast_cache: SerializedAstCache
    ) -> None:
        self.workers = workers
        self._counters = counters
        self._ast_cache = ast_cache
        self._texts: dict[str, CompiledText | ExpressionFailure] = {}
        self._answers: dict[str, dict[_AnswerKey, Any]] = {}  # least recently asked text first

    def evaluate_texts(
        self,
        texts: Sequence[str],
        rows: Sequence[Mapping[str, Any]],
        budget: EvaluationBudget | None,
    ) -> list[list[Any]]:
        """Evaluate each text over each row.

        Return `answers[text][row]`: plain data, or an ExpressionFailure.
        """
        if not rows:
            return [[] for _ in texts]

        def store_answers(task: EvaluationTask, answers: list[Any]) -> None:
            known_answers = self._answers[task.text]
            for part, answer in zip(task.rows, answers, strict=True):
                known_answers[answer_key(part)] = (
                    answer[0] if len(answer) == 1 else ExpressionFailure(*answer)
                )
            self._counters.add("evaluations", len(answers))

        columns: dict[str, _PendingAnswers] = {}
        tasks: list[EvaluationTask] = []
        try:
            compiled = self.compile_texts(texts, budget)
            computations = {
                text: it.compute
                for text, it in compiled.items()
                if isinstance(it, CompiledText) and it.compute is not None
            }
            computed: dict[str, list[Any]] = {text: [] for text in computations}
            # Block by block of rows: the fields of a row that one text has read are still in the
            # processor's cache for the next one.
            for start in range(0, len(rows), _ROWS_PER_BLOCK):
                block = rows[start : start + _ROWS_PER_BLOCK]
                for text, compute in computations.items():
                    computed[text] += [compute(row) for row in block]
            for text, compiled_text in compiled.items():
                if isinstance(compiled_text, ExpressionFailure):
                    columns[text] = _PendingAnswers([compiled_text] * len(rows), {})
                else:
                    # A closure returns ASK where celpy's answer is not certain: these rows alone go
                    # to a worker.
                    answers = computed.get(text) or [ASK] * len(rows)
                    columns[text], missing_parts = self._collect_answers(
                        text, compiled_text.free_variables, answers, rows
                    )
                    tasks += [
                        EvaluationTask(text, missing_parts[start : start + ROWS_PER_REQUEST])
                        for start in range(0, len(missing_parts), ROWS_PER_REQUEST)
                    ]
            failures = self.workers.run_tasks(tasks, store_answers, budget) if tasks else {}
        finally:
            self.workers.finish_batch()
        for text, column in columns.items():
            failure, known_answers = failures.get(text), self._answers.get(text, {})
            for number, key in column.pending_keys.items():
                # What exceeded a limit fails for all rows that had no answer before.
                column.answers[number] = (
                    known_answers[key] if failure is None else known_answers.get(key, failure)
                )
        # Of those that were evaluated now: what is kept may be a verdict by steps.
        if budget is not None:
            for text in {task.text for task in tasks} - failures.keys():
                budget.note_success(text)
        self._evict()
        return [columns[text].answers for text in texts]

    def compile_texts(
        self, texts: Sequence[str], budget: EvaluationBudget | None = None
    ) -> dict[str, CompiledText | ExpressionFailure]:
        """Compile texts; new ones are parsed together."""
        distinct = list(dict.fromkeys(texts))
        new_texts = [text for text in distinct if text not in self._texts]
        compiled = {text: self._texts[text] for text in distinct if text in self._texts}
        cached = self._ast_cache.find(new_texts) if new_texts else {}
        missing = [text for text in new_texts if text not in cached]
        by_worker = self.workers.parse_texts(missing, budget) if missing else {}
        self._ast_cache.store(
            {
                text: it
                for text, it in by_worker.items()
                if isinstance(it, ParsedText) and it.ast is not None
            }
        )
        for text, parsed in {**cached, **by_worker}.items():
            if isinstance(parsed, ExpressionFailure):
                compiled[text] = parsed
            else:
                names, ast = parsed.free_variables, parsed.ast
                closure = None if ast is None else build_closure(ast, names)
                compiled[text] = CompiledText(names, closure)
            # Everything else about a text is final; a limit may be met because the machine was
            # busy.
            if not (isinstance(parsed, ExpressionFailure) and parsed.reason == "LimitExceeded"):
                self._texts[text] = compiled[text]
        return {text: compiled[text] for text in distinct}

    def compile_batch(self, texts: Sequence[str]) -> dict[str, CompiledText | ExpressionFailure]:
        """Compile texts as a batch of its own."""
        try:
            return self.compile_texts(texts)
        finally:
            self.workers.finish_batch()
            self._evict()

    def _collect_answers(
        self,
        text: str,
        free_variables: FreeVariables,
        answers: list[Any],
        rows: Sequence[Mapping[str, Any]],
    ) -> tuple[_PendingAnswers, list[str]]:
        """Return the known answers, and the parts of rows that a worker has to evaluate."""
        column = _PendingAnswers(answers, {})
        missing_parts: dict[_AnswerKey, str] = {}
        # Taken out and put in again: a dict keeps insertion order, so this makes it the
        # most recently used.
        known_answers = self._answers[text] = self._answers.pop(text, {})
        for number, answer in enumerate(answers):
            if answer is not ASK:
                continue
            try:
                part = encode_part(project_row(rows[number], free_variables))
            # Only rows whose part is no plain data become failures; a worker answers the others.
            except (TypeError, ValueError, RecursionError) as error:
                problem = f"it uses a value that is not plain data: {error}"
                answers[number] = ExpressionFailure("ExpressionError", problem)
                continue
            key = column.pending_keys[number] = answer_key(part)
            if key not in known_answers:
                missing_parts[key] = part
        return column, list(missing_parts.values())

    def _evict(self) -> None:
        """Evict the least recently evaluated texts while too many answers or texts are kept."""
        answer_count = sum(map(len, self._answers.values()))
        while answer_count > MAX_ANSWERS or len(self._answers) > MAX_TEXTS:
            answer_count -= len(self._answers.pop(next(iter(self._answers))))
        while len(self._texts) > MAX_TEXTS:
            del self._texts[next(iter(self._texts))]


class ProcessSandbox:
    """Implementation of `fanout.ports.Sandbox`; a context manager that ends its workers."""

    def __init__(
        self, limits: WorkerLimits, counters: Counters, cache_file: Path | None = None
    ) -> None:
        """`cache_file`: file for serialized ASTs of expressions. None: each process parses anew."""
        self._lock = Lock()
        self._closed = False
        self._expressions = TextEvaluator(
            WorkerPool("fanout.sandbox.cel_worker", limits, counters.events),
            counters,
            SerializedAstCache(cache_file),
        )
        self._templates = TextEvaluator(
            # Templates have no AST that a parent could compute from, so there is nothing to cache.
            WorkerPool("fanout.sandbox.jinja_worker", limits, counters.events),
            counters,
            SerializedAstCache(None),
        )

    def evaluate(
        self,
        expressions: Sequence[str],
        rows: Sequence[Mapping[str, Any]],
        budget: EvaluationBudget | None = None,
    ) -> list[list[Any]]:
        """Evaluate expressions over rows.

        Return `answers[expression][row]`: immutable plain data, or an ExpressionFailure.
        """
        # One batch at a time: a worker has one pipe, and requests of two batches must not
        # interleave.
        with self._lock:
            return self._require_open(self._expressions).evaluate_texts(expressions, rows, budget)

    def render(
        self,
        templates: Sequence[str],
        rows: Sequence[Mapping[str, Any]],
        budget: EvaluationBudget | None = None,
    ) -> list[list[Any]]:
        """Fill templates from rows: `answers[template][row]` is text or an ExpressionFailure."""
        with self._lock:
            return self._require_open(self._templates).evaluate_texts(templates, rows, budget)

    def closures(self, expressions: Sequence[str]) -> list[InProcessExpression | None]:
        """Return each expression as a function of one row; None if none of them is computed."""
        with self._lock:
            compiled = self._require_open(self._expressions).compile_batch(expressions)
        return [
            None
            if isinstance(it, ExpressionFailure) or it.compute is None
            else InProcessExpression(text, it.free_variables, it.compute)
            for text in expressions
            for it in (compiled[text],)
        ]

    def compile(
        self, expressions: Sequence[str], templates: Sequence[str]
    ) -> Mapping[str, ExpressionFailure]:
        """Return the texts that are no valid expressions or templates, with their problem."""
        with self._lock:
            compiled = [
                *self._require_open(self._expressions).compile_batch(expressions).items(),
                *self._require_open(self._templates).compile_batch(templates).items(),
            ]
        return {text: answer for text, answer in compiled if isinstance(answer, ExpressionFailure)}

    def free_variables(
        self, expressions: Sequence[str], templates: Sequence[str]
    ) -> tuple[list[frozenset[str]], list[frozenset[str]]]:
        """Return the variables that each expression and template names; none if it is invalid."""
        with self._lock:
            return (
                _find_names(self._require_open(self._expressions), expressions, frozenset()),
                _find_names(self._require_open(self._templates), templates, GLOBALS),
            )

    def _require_open(self, evaluator: TextEvaluator) -> TextEvaluator:
        if self._closed:
            raise Bug("the sandbox was closed before it was asked")
        return evaluator

    def close(self) -> None:
        """End all workers; may be called again."""
        with self._lock:
            self._closed = True
            self._expressions.workers.close()
            self._templates.workers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _find_names(
    evaluator: TextEvaluator, texts: Sequence[str], builtin_names: frozenset[str]
) -> list[frozenset[str]]:
    """Return the variables that each valid text names, without the language's own names."""
    names = {
        text: frozenset(it.free_variables) - builtin_names
        for text, it in evaluator.compile_batch(texts).items()
        if isinstance(it, CompiledText)
    }
    return [names.get(text, frozenset()) for text in texts]
