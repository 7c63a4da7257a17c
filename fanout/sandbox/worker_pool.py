"""Pool of worker processes of one kind, and the distribution of a batch among them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from fanout.errors import Unavailable
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.sandbox.free_variables import FreeVariables
from fanout.sandbox.worker_protocol import (
    MAX_RESPONSE,
    OUT_OF_MEMORY,
    ExceededLimit,
    OversizeError,
    WorkerLimits,
    encode_frame,
    exchange_frames,
)
from fanout.selection.variant_spec import ExpressionFailure
from fanout.telemetry.metrics import EventCounters, EventName
from fanout.values import Value, as_data

START_TIMEOUT = 60.0  # seconds until a worker must have reported that it is ready
EXIT_TIMEOUT = 1.0  # seconds that a worker has to exit by itself
WORKER_ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": os.defpath}


class WorkerEndedError(Exception):
    """The worker ended and the request has no response.

    The message says what the request did. If no limit ended the worker, it is
    unknown, and the request may be tried again.
    """

    def __init__(self, limit: ExceededLimit, sentence: str) -> None:
        super().__init__(sentence)
        self.limit = limit


class WorkerProcess:
    """One running worker process. It never outlives `kill`, whatever it is doing."""

    def __init__(self, module: str, limits: WorkerLimits) -> None:
        self._module = module
        self._limits = limits
        self.batches = 0
        # -I: neither the working directory nor PYTHON* variables decide what is imported.
        command = [sys.executable, "-I", "-m", module, json.dumps(as_data(limits))]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Nobody would drain the pipe: a worker that fills it would block until its time limit.
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env=WORKER_ENVIRONMENT,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin_fd = self._process.stdin.fileno()
        self._stdout_fd = self._process.stdout.fileno()
        # A worker that stops reading would otherwise block the parent in a write, past its
        # own deadline.
        os.set_blocking(self._stdin_fd, False)
        try:
            exchange_frames(self._stdin_fd, self._stdout_fd, b"", START_TIMEOUT)
        except (TimeoutError, EOFError, OversizeError):
            self.kill()
            status = self._process.returncode
            problem = f"the process {self._module} did not start (status {status})"
            raise Unavailable(problem) from None

    @property
    def is_alive(self) -> bool:
        """True while the process is running."""
        return self._process.poll() is None

    def send_request(self, request: str) -> dict[str, Any]:
        """Send a request in JSON and return the response.

        Raises WorkerEndedError if there is none; the process has ended then.
        """
        try:
            data = exchange_frames(
                self._stdin_fd, self._stdout_fd, encode_frame(request), self._limits.wall_seconds
            )
        except TimeoutError:
            self.kill()
            sentence = f"it took longer than {self._limits.wall_seconds:g} s"
            raise WorkerEndedError(ExceededLimit.WALL_TIME, sentence) from None
        except OversizeError:
            self.kill()
            sentence = f"its answers are longer than {MAX_RESPONSE} bytes"
            raise WorkerEndedError(ExceededLimit.OUTPUT, sentence) from None
        except EOFError:
            with suppress(subprocess.TimeoutExpired):  # it closed the pipe and is exiting
                self._process.wait(EXIT_TIMEOUT)
            self.kill()
            # Only the exit status tells which limit ended the worker: it has no memory left to
            # explain itself.
            status = self._process.returncode
            limit = ExceededLimit.UNKNOWN
            sentence = f"its process ended unexpectedly (status {status})"
            if status == -signal.SIGXCPU:
                limit = ExceededLimit.PROCESSOR_TIME
                sentence = f"it took more than {self._limits.cpu} s of processor time"
            elif status in (OUT_OF_MEMORY, -signal.SIGABRT):  # Rust and C abort without memory
                limit = ExceededLimit.MEMORY
                sentence = f"it needed more than {self._limits.memory} MiB of memory"
            raise WorkerEndedError(limit, sentence) from None
        # Also for KeyboardInterrupt: a worker with an unread response must never get
        # another request.
        except BaseException:
            self.kill()
            raise
        response: dict[str, Any] = json.loads(data)
        return response

    def stop(self) -> None:
        """Stop an idle worker: it exits when its pipe is closed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_TIMEOUT)
        self.kill()

    def kill(self) -> None:
        """Kill the process if it is running, reap it, close the pipes; may be called again."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


ROWS_PER_REQUEST = 100  # rows in one request, to which the limits apply
TEXTS_PER_REQUEST = 20  # texts in one request
ROWS_PER_WORKER = 4000  # rows; starting a second worker takes as long as evaluating them
MAX_BATCHES = 200  # after which a worker is replaced, with what it caches and leaks
MAX_TRIES = 2  # of a request whose worker ended without exceeding a limit
STEPS_PER_TOKEN = 150  # of a text that is parsed, which takes as long, or less than that
_TOKEN = re.compile(r"\w+|[^\w\s]")  # nearly as the parsers see them


class ParsedText(Value):
    """Free variables of a text, and its serialized AST if it is simple enough."""

    free_variables: FreeVariables
    ast: list[Any] | None


class EvaluationTask(Value):
    """One request: a text over some rows, each as JSON."""

    text: str
    rows: Sequence[str]


class WorkerPool:
    """Up to `limits.processes` workers that run `module`, each started when it has work."""

    def __init__(self, module: str, limits: WorkerLimits, events: EventCounters) -> None:
        self._module = module
        self._limits = limits
        self._events = events
        self._workers: dict[int, WorkerProcess] = {}
        self._was_used = False  # in this batch

    def parse_texts(
        self, texts: Sequence[str], budget: EvaluationBudget | None
    ) -> dict[str, ParsedText | ExpressionFailure]:
        """Parse texts in a worker; return the parsed form, or an ExpressionFailure, for each.

        Without a budget each text is limited by itself.
        """
        parsed: dict[str, ParsedText | ExpressionFailure] = {}
        for start in range(0, len(texts), TEXTS_PER_REQUEST):
            parsed |= self._parse_chunk(texts[start : start + TEXTS_PER_REQUEST], budget)
        return parsed

    def _parse_chunk(
        self, texts: Sequence[str], budget: EvaluationBudget | None
    ) -> dict[str, ParsedText | ExpressionFailure]:
        parsed: dict[str, ParsedText | ExpressionFailure] = {}
        if budget is not None:
            refusals = {text: budget.find_refusal(text) for text in texts}
            parsed = {text: refusal for text, refusal in refusals.items() if refusal is not None}
            texts = [text for text in texts if text not in parsed]
        if not texts:
            return parsed
        self._start_worker(0)  # whose time is no author's
        start = time.monotonic()
        try:
            answers = self.send_request(0, json.dumps({"texts": texts}))["texts"]
        except WorkerEndedError as end:
            if len(texts) == 1:
                return parsed | {texts[0]: _note_excess(texts[0], str(end), budget)}
            # One text exceeded a limit, or all together did: each is tried alone.
            for text in texts:
                parsed |= self._parse_chunk([text], budget)
            return parsed
        if budget is not None:
            tokens = sum(len(_TOKEN.findall(text)) for text in texts)
            budget.spend(STEPS_PER_TOKEN * tokens, time.monotonic() - start)
        for text, answer in zip(texts, answers, strict=True):
            if "broken" in answer:
                parsed[text] = ExpressionFailure(*answer["broken"])
            else:
                parsed[text] = ParsedText(answer["reads"], answer["outline"])
        return parsed

    def run_tasks(
        self,
        tasks: Sequence[EvaluationTask],
        store_answers: Callable[[EvaluationTask, list[Any]], None],
        budget: EvaluationBudget | None = None,
    ) -> dict[str, ExpressionFailure]:
        """Hand the answers of all tasks to `store_answers`; return why texts have no others.

        Such a text exceeded a limit, or is not evaluated because the budget says so.
        """
        failures: dict[str, ExpressionFailure] = {}
        pending = deque(tasks)

        def run_pending(number: int) -> None:
            while True:
                try:
                    task = pending.popleft()
                except IndexError:
                    return
                text = task.text
                # A text that exceeded a limit once fails for all rows; each further task would
                # cost the limit again.
                if text in failures:
                    continue
                if budget is not None and (refusal := budget.find_refusal(text)) is not None:
                    failures[text] = refusal
                    continue
                start = time.monotonic()
                try:
                    request = f'{{"text":{json.dumps(text)},"rows":[{",".join(task.rows)}]}}'
                    response = self.send_request(number, request)
                except WorkerEndedError as end:
                    failures[text] = _note_excess(text, str(end), budget)
                    continue
                answers = response["answers"]
                store_answers(EvaluationTask(text, task.rows[: len(answers)]), answers)
                if response["exceeded"]:
                    failures[text] = _note_excess(text, answers[-1][1], budget)
                    continue
                if budget is not None:
                    budget.spend(response["steps"], time.monotonic() - start)
                if len(answers) < len(task.rows):
                    pending.appendleft(EvaluationTask(text, task.rows[len(answers) :]))

        rows = sum(len(task.rows) for task in tasks)
        # Starting a worker costs as much as evaluating some thousand rows: small batches
        # stay with one.
        worker_count = min(self._limits.processes, 1 + rows // ROWS_PER_WORKER, len(tasks))
        # Without a thread: most batches of a command are small, and a pool of threads is not free.
        if worker_count <= 1:
            run_pending(0)
            return failures
        with ThreadPoolExecutor(worker_count) as threads:
            futures = [threads.submit(run_pending, number) for number in range(worker_count)]
        for future in futures:
            future.result()
        return failures

    def send_request(self, number: int, request: str) -> dict[str, Any]:
        """Send a request to worker `number`, started if there is none or it has ended.

        Raises WorkerEndedError.
        """
        self._was_used = True
        for attempt in range(MAX_TRIES):
            worker = self._start_worker(number)
            try:
                return worker.send_request(request)
            except WorkerEndedError as end:
                self._discard_worker(number)
                self._events.add(EventName.SANDBOX_KILL, end.limit)
                if end.limit is not ExceededLimit.UNKNOWN or attempt == MAX_TRIES - 1:
                    raise
        raise AssertionError(MAX_TRIES)

    def _start_worker(self, number: int) -> WorkerProcess:
        """Return worker `number`, started if there is none."""
        worker = self._workers.get(number)
        # An idle worker may have been killed from outside; that is no fault of a text, so it costs
        # no try.
        if worker is None or not worker.is_alive:
            self._discard_worker(number)
            worker = self._workers[number] = WorkerProcess(self._module, self._limits)
        return worker

    def finish_batch(self) -> None:
        """Count a batch that sent a request; stop workers that have served enough batches."""
        if not self._was_used:
            return
        self._was_used = False
        for number, worker in list(self._workers.items()):
            worker.batches += 1
            if worker.batches >= MAX_BATCHES:
                self._workers.pop(number).stop()

    def _discard_worker(self, number: int) -> None:
        if (worker := self._workers.pop(number, None)) is not None:
            worker.kill()

    def close(self) -> None:
        """Stop all workers."""
        while self._workers:
            self._workers.popitem()[1].stop()


def _note_excess(text: str, problem: str, budget: EvaluationBudget | None) -> ExpressionFailure:
    if budget is not None:
        return budget.note_excess(text, problem)
    return ExpressionFailure("LimitExceeded", problem)
