"""Runs command lines of fanout, each in a process that is killed before the n-th thing it does.

What counts is what leaves the process: a git process that is started, a pack that is written
without one, and a call of a forge. Reads JSON lines `[N, environment, ["sweep", "-f", ...]]` and
answers each with `[status, effects]`; with N = 0 nobody is killed. The modules are loaded once, the
processes forked.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

# Verbs are loaded when they run, and GitPython with the first git: once is enough here.
import git.cmd  # noqa: F401

import fanout.cli.verbs.promote
import fanout.cli.verbs.remove
import fanout.cli.verbs.sweep  # noqa: F401
from fanout.api.fanout_configuration import ForgeProgram
from fanout.cli.main import run_arguments
from fanout.forge.forge_http import ForgeHttp
from fanout.git.git_command import GitProgram
from fanout.git.pack import PackWriter
from fanout.plan.pull_requests import call_limits
from fanout.values import replace

# The double of GitHub asks for no second between two writes.
LIMITS = call_limits._LIMITS_BY_PROGRAM
LIMITS[ForgeProgram.GITHUB] = replace(LIMITS[ForgeProgram.GITHUB], write_spacing=0.0)
EFFECTS = [(GitProgram, "run"), (PackWriter, "finish"), (ForgeHttp, "send")]


def sweep(last: int, environment: dict[str, str], line: list[str], answer: int) -> int:
    """In a process of its own: end as `kill -9` ends it before effect number `last`."""
    count = 0
    os.environ.clear()
    os.environ.update(environment)

    def counting(effect: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **more: Any) -> Any:
            nonlocal count
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)
            return effect(*args, **more)

        return counted

    for owner, name in EFFECTS:
        setattr(owner, name, counting(getattr(owner, name)))
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    status = run_arguments(line)
    os.write(answer, str(count).encode())
    return status


def main() -> None:
    """One forked process per line."""
    for text in sys.stdin:
        last, environment, line = json.loads(text)
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(readable)
            os._exit(sweep(last, environment, line, writable))
        os.close(writable)
        with os.fdopen(readable) as counted:
            effects = int(counted.read() or 0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps([status, effects]), flush=True)


if __name__ == "__main__":
    main()
