"""`fanout run` as a process of its own, and its log."""

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from fleet import Fleet
from preloaded import FANOUT, PreloadedProcess

PLAIN, HASTY = FANOUT, (str(Path(__file__).parent / "cli" / "hasty.py"),)
PATIENCE = 300  # seconds, for a slow machine


class Running:
    """A process of `fanout run`, or of another verb that runs continuously."""

    def __init__(
        self,
        fleet: Fleet,
        *options: str,
        program: tuple[str, ...] = HASTY,
        verb: tuple[str, ...] = (),
        name: str = "",
        environment: dict[str, str],
    ) -> None:
        """Start it; `name` distinguishes its log and state directory from those of others."""
        self.path = fleet.root / f"log{name}"
        verb = verb or ("run", "-f", str(fleet.root / "policies"))
        command = [*program, *verb]
        command += ["--state-dir", str(fleet.root / f"state{name}"), "-v", *options]
        self.errors = self.path.open("wb")
        self.process = PreloadedProcess(
            command,
            directory=fleet.root,
            environment={**os.environ, **environment},
            stderr=self.errors.fileno(),
        )

    def until(self, condition: Callable[[], object]) -> None:
        deadline, pause = monotonic() + PATIENCE, 0.05
        while not condition():
            assert self.process.poll() is None, self.path.read_text()
            assert monotonic() < deadline, self.path.read_text()
            sleep(pause)
            # Most conditions run git or parse the log, which takes the processor from the process.
            pause = min(1.2 * pause, 0.25)

    def log(self) -> list[dict[str, Any]]:
        """The complete lines so far, without warnings from before the start of the log."""
        lines = self.path.read_text().split("\n")[:-1]
        return [json.loads(line) for line in lines if not line.startswith("warning: ")]

    def passes(self) -> list[dict[str, Any]]:
        return [line for line in self.log() if line["event"] == "Pass done"]

    def triggers(self) -> set[str]:
        return {trigger for line in self.passes() for trigger in line["trigger"]}

    def count_passes(self, trigger: str) -> int:
        """The number of passes with this trigger; the last pass alone may be a later one."""
        return sum(trigger in line["trigger"] for line in self.passes())

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.errors.close()


@contextlib.contextmanager
def run_processes(**environment: str) -> Iterator[Callable[..., Running]]:
    """A function that starts `fanout run`, with these variables; all that it started is ended."""
    with contextlib.ExitStack() as stack:

        def begin(
            fleet: Fleet,
            *options: str,
            program: tuple[str, ...] = HASTY,
            verb: tuple[str, ...] = (),
            name: str = "",
        ) -> Running:
            running = Running(
                fleet, *options, program=program, verb=verb, name=name, environment=environment
            )
            stack.callback(running.close)
            return running

        yield begin
