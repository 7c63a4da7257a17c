"""Runner of functions: allowed executables, container images, Starlark scripts.

Each program run has a temporary directory, an environment without anything of fanout's, and limits.
An executable can read and reach what fanout's own user can: allowing one means trusting it. A
container has no network, no privileges and no writable file system. A program is ended together
with all processes it has started. Scripts run in limited workers that live for one batch.
"""

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import file_digest
from pathlib import Path
from typing import IO

from fanout.api.fanout_configuration import Functions
from fanout.api.function_catalog import full_image
from fanout.api.reasons import Reason
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.sandbox.worker_pool import WorkerEndedError, WorkerPool
from fanout.sandbox.worker_protocol import FREE_STEPS, ExceededLimit, WorkerLimits
from fanout.selection.variant_spec import ExpressionFailure
from fanout.telemetry.metrics import Counters, EventCounters, EventName
from fanout.values import Value, replace
from fanout.variants.function_requests import (
    AllowedPrograms,
    KrmProgram,
    ProgramOutput,
    ProgramRun,
    ResponseError,
    ScriptOutput,
    ScriptRun,
)

_CHUNK_SIZE = 1 << 16
_MIB = 1 << 20
_MAX_STDERR = 4096  # bytes of stderr that are kept
_DRAIN_SECONDS = 2.0  # seconds to read the rest of the pipes of a program that has ended


@dataclass(slots=True)
class _ProgramRun:
    """Concurrent transfer of a program's input and outputs."""

    process: "subprocess.Popen[bytes]"
    allowed: Functions
    unsent_input: memoryview
    events: EventCounters
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    has_ended: bool = False

    def run_to_end(self) -> ProgramOutput | ResponseError:
        process, deadline = self.process, time.monotonic() + self.allowed.wall_seconds
        max_output = self.allowed.output_mib * _MIB
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        os.set_blocking(process.stdin.fileno(), False)
        # A program may end and leave children that hold its pipes open: end of file alone
        # is no sign of its end, and neither is its end a sign of end of file.
        end_fd = os.pidfd_open(process.pid)
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(end_fd, selectors.EVENT_READ)
                selector.register(process.stdin, selectors.EVENT_WRITE)
                selector.register(process.stdout, selectors.EVENT_READ)
                selector.register(process.stderr, selectors.EVENT_READ)
                while len(selector.get_map()) > (0 if self.has_ended else 1):
                    remaining = deadline - time.monotonic()
                    # The program ended, so its result is valid: a process that left the group may
                    # hold the pipes on.
                    if remaining <= 0 and self.has_ended:
                        break
                    if remaining <= 0:
                        return self._exceed_time()
                    for key, _ in selector.select(remaining):
                        if key.fd == end_fd:
                            self._handle_end(selector, end_fd)
                            deadline = min(deadline, time.monotonic() + _DRAIN_SECONDS)
                        elif key.fd in selector.get_map():  # the end, handled above, closes pipes
                            self._transfer(selector, key.fileobj)  # type: ignore[arg-type]
                    if len(self.stdout) > max_output:
                        self.events.add(EventName.SANDBOX_KILL, ExceededLimit.OUTPUT)
                        return ResponseError(f"its output is longer than {max_output:,} bytes")
                # A program that has closed its pipes has to end in time, too.
                remaining = max(0.0, deadline - time.monotonic())
                if not self.has_ended and not selector.select(remaining):
                    return self._exceed_time()
        finally:
            os.close(end_fd)
        # WNOWAIT leaves the process to be reaped: its number has to stay valid until the group is
        # killed.
        status = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert status is not None, "without WNOHANG waitid returns a status"
        code = status.si_status if status.si_code == os.CLD_EXITED else -status.si_status
        return ProgramOutput(code, bytes(self.stdout), self.stderr.decode(errors="replace"))

    def _exceed_time(self) -> ResponseError:
        self.events.add(EventName.SANDBOX_KILL, ExceededLimit.WALL_TIME)
        return ResponseError(f"it took longer than {self.allowed.wall_seconds:g} s", is_final=False)

    def _transfer(self, selector: selectors.BaseSelector, pipe: IO[bytes]) -> None:
        if pipe is self.process.stdin:
            with suppress(BlockingIOError):
                try:
                    self.unsent_input = self.unsent_input[
                        os.write(pipe.fileno(), self.unsent_input[:_CHUNK_SIZE]) :
                    ]
                except BrokenPipeError:  # it does not read all of its input
                    self.unsent_input = self.unsent_input[:0]
            if self.unsent_input:
                return
        elif piece := os.read(pipe.fileno(), _CHUNK_SIZE):
            if pipe is self.process.stdout:
                self.stdout += piece
            else:
                self.stderr = (self.stderr + piece)[-_MAX_STDERR:]
            return
        selector.unregister(pipe)
        pipe.close()

    def _handle_end(self, selector: selectors.BaseSelector, end_fd: int) -> None:
        """Kill what the program has left; until it is reaped, the group is still its own."""
        self.has_ended = True
        selector.unregister(end_fd)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            selector.unregister(self.process.stdin)
            self.process.stdin.close()


_SCRIPTS_PER_WORKER = 20  # scripts; starting a second worker takes as long as running them
_STEPS_PER_TICK = 50  # that a thousand instructions of a script count as


def run_scripts(
    scripts: Sequence[ScriptRun],
    limits: WorkerLimits,
    events: EventCounters,
    budget: EvaluationBudget | None = None,
) -> list[ScriptOutput | ResponseError]:
    """Run scripts, several at a time; the results are in the order of the scripts."""
    results: list[ScriptOutput | ResponseError] = [ResponseError("it was not run")] * len(scripts)
    pending = deque(enumerate(scripts))
    workers = WorkerPool("fanout.sandbox.starlark_worker", limits, events)

    def run_one(worker_number: int, script: ScriptRun) -> ScriptOutput | ResponseError:
        source = json.dumps(script.source)
        if budget is not None and (refusal := budget.find_refusal(script.source)) is not None:
            return _refuse("the script was not run", refusal)
        request = f'{{"source":{source},"list":{script.resource_list}}}'
        try:
            response = workers.send_request(worker_number, request)
        except WorkerEndedError as end:
            if budget is not None:
                return _refuse("the script was ended", budget.note_excess(script.source, str(end)))
            remedy = "see sandbox of the configuration"
            return ResponseError(f"the script was ended: {end}", remedy, is_final=False)
        if "refused" in response:
            reason, problem, remedy = response["refused"]
            # The same on every machine, so the error is kept, with the script and its input.
            if budget is not None and reason == Reason.LIMIT_EXCEEDED:
                budget.note_excess(script.source, problem)
            return ResponseError(problem, remedy)
        if budget is not None:
            budget.spend(max(0, _STEPS_PER_TICK * response["steps"] - FREE_STEPS))
            budget.note_success(script.source)
        return ScriptOutput(response["items"], tuple(response["printed"]))

    def run_pending(worker_number: int) -> None:
        while pending:
            try:
                number, script = pending.popleft()
            except IndexError:  # another thread took the last script
                return
            results[number] = run_one(worker_number, script)

    worker_count = min(limits.processes, 1 + len(scripts) // _SCRIPTS_PER_WORKER)
    try:
        with ThreadPoolExecutor(worker_count) as threads:
            for future in [threads.submit(run_pending, it) for it in range(worker_count)]:
                future.result()
    finally:
        workers.close()
    return results


def _refuse(action: str, refusal: ExpressionFailure) -> ResponseError:
    """Return the error of a run that a later pass makes."""
    return ResponseError(f"{action}: {refusal.problem}", refusal.remedy, is_final=False)


# programs use the processor, so more would only cost memory
_MAX_CONCURRENT = 2 * (os.cpu_count() or 1)
_CONTAINER_USER = "65534:65534"
_CONTAINER_PIDS = 256
_REMOVE_TIMEOUT = 10.0  # seconds that the runtime has to remove a container
_MAX_FILE_SIZE = 1 << 30  # bytes of one file that an executable may write
# For the runtime's client to find its images; not passed into containers.
_RUNTIME_VARIABLES = ("HOME", "PATH", "XDG_RUNTIME_DIR", "DOCKER_HOST", "CONTAINER_HOST")
_VERSION_DIGITS = 16


def find_allowed_programs(allowed: Functions) -> AllowedPrograms:
    """Return the programs that may be run, by every name a pipeline may use for them.

    An executable's version is a hash of its content, so that rendered results are computed
    anew when it changes; an image's version is its name.
    """
    executables: dict[str, KrmProgram] = {}
    for item in allowed.executables:
        name = item.name or item.path.rpartition("/")[2]
        # Hashed here and not per run: the version is part of what a rendered result depends on.
        path, version, problem = Path(item.path), "", ""
        try:
            with path.open("rb") as file:
                digest = file_digest(file, "sha256")
            if os.access(path, os.X_OK):
                version = digest.hexdigest()[:_VERSION_DIGITS]
            else:
                problem = f"{path} is not executable"
        except OSError as error:
            problem = f"{path}: {error.strerror}"
        program = KrmProgram(name, item.path, version=version, missing=problem)
        executables |= {name: program, item.path: program}
    if allowed.container_runtime is None:
        problem = "no containerRuntime is named"
    elif shutil.which(allowed.container_runtime):
        problem = ""
    else:
        problem = f"{allowed.container_runtime} is not on the PATH"
    images = {
        image: KrmProgram(image, image, image=True, version=image, missing=problem)
        for image in map(full_image, allowed.images)
    }
    return AllowedPrograms(executables, images)


class ProgramRunner(Value):
    """Runner of programs and scripts for `fanout.ports`."""

    allowed: Functions
    max_concurrent: int
    counters: Counters
    script_limits: WorkerLimits

    def run(
        self, runs: Sequence[ProgramRun], budget: EvaluationBudget | None = None
    ) -> list[ProgramOutput | ResponseError]:
        """Run programs, a few at a time; the results are in the order of the arguments."""
        if not runs:
            return []
        self.counters.add("programs", len(runs))
        with ThreadPoolExecutor(min(self.max_concurrent, _MAX_CONCURRENT, len(runs))) as threads:
            return list(threads.map(partial(self._run_allowed, budget), runs))

    def run_scripts(
        self, scripts: Sequence[ScriptRun], budget: EvaluationBudget | None = None
    ) -> list[ScriptOutput | ResponseError]:
        """Run Starlark scripts in limited worker processes."""
        self.counters.add("scripts", len(scripts))
        return run_scripts(scripts, self.script_limits, self.counters.events, budget)

    def _run_allowed(
        self, budget: EvaluationBudget | None, program_run: ProgramRun
    ) -> ProgramOutput | ResponseError:
        """Run a program if the budget allows it, and tell the budget if it took too long."""
        if budget is None:
            return self._run_one(program_run)
        name = program_run.program.name
        if (refusal := budget.find_refusal(name)) is not None:
            return _refuse("it was not run", refusal)
        result = self._run_one(program_run)
        if isinstance(result, ResponseError) and not result.is_final:
            refusal = budget.note_excess(name, result.problem)
            return replace(result, remedy=refusal.remedy)
        budget.note_success(name)
        return result

    def _run_one(self, program_run: ProgramRun) -> ProgramOutput | ResponseError:
        program, stdin = program_run.program, program_run.stdin
        with tempfile.TemporaryDirectory(prefix="fanout-function-") as home:
            if program.image:
                result = self._run_container(program.command, Path(home), stdin)
            else:
                # One second more of processor time than of wall time: the deadline here has the
                # clearer message.
                cpu, memory = self.allowed.wall_seconds + 1, self.allowed.memory_mib * _MIB
                limits = [str(limit) for limit in (cpu, memory, _MAX_FILE_SIZE)]
                command = [sys.executable, "-I", "-m", "fanout.sandbox.exec_limits", *limits]
                environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": home, "TMPDIR": home}
                result = self._run_program(
                    [*command, program.command], Path(home), environment, stdin
                )
        if isinstance(result, ProgramOutput) and result.status < 0:
            self.counters.events.add(EventName.SANDBOX_KILL, ExceededLimit.UNKNOWN)
            return ResponseError(f"it was ended by signal {-result.status}", "see its limits")
        return result

    def _run_container(
        self, image: str, directory: Path, stdin: bytes
    ) -> ProgramOutput | ResponseError:
        if (runtime := shutil.which(str(self.allowed.container_runtime))) is None:
            return ResponseError(f"{self.allowed.container_runtime} is not on the PATH")
        environment = {key: os.environ[key] for key in _RUNTIME_VARIABLES if key in os.environ}
        name = f"fanout-{uuid.uuid4().hex}"
        arguments = [
            runtime, "run", "--name", name, "--rm", "--interactive",
            "--network=none", f"--user={_CONTAINER_USER}", "--read-only", "--cap-drop=ALL",
            "--security-opt=no-new-privileges", f"--memory={self.allowed.memory_mib}m",
            f"--pids-limit={_CONTAINER_PIDS}", "--tmpfs=/tmp", image,
        ]  # fmt: skip
        result = self._run_program(arguments, directory, environment, stdin)
        # Killing the client does not stop the container, which the runtime's daemon may own.
        if isinstance(result, ResponseError):
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    [runtime, "rm", "--force", name],
                    env=environment,
                    cwd=directory,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=_REMOVE_TIMEOUT,
                    check=False,
                )
        return result

    def _run_program(
        self,
        arguments: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        stdin: bytes,
    ) -> ProgramOutput | ResponseError:
        """Run a program to its end, or kill it with all it has started if it exceeds a limit."""
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=directory,
                env=environment,  # complete
                # Killing the program alone would leave what it started, with its pipes open.
                start_new_session=True,
            )
        except OSError as error:
            return ResponseError(f"it cannot be started: {error.strerror}")
        events = self.counters.events
        try:
            return _ProgramRun(process, self.allowed, memoryview(stdin), events).run_to_end()
        finally:
            # Killed before it is reaped: until then the number of the group cannot be reused.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
