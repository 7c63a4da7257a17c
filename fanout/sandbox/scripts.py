"""Runs scripts of packages in child processes, which live as long as one batch of them."""

import json
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from fanout.sandbox.child import Child, EndedError
from fanout.sandbox.limits import Limits
from fanout.variants.questions import Broken, Listed, Script

_MODULE = "fanout.sandbox.starlark_worker"
_WORTH_ANOTHER = 20  # scripts; a second child takes as long to start as these to run
_TRIES = 2  # of a script whose child ended for a reason that no limit explains


def run_scripts(scripts: Sequence[Script], limits: Limits) -> list[Listed | Broken]:
    """Run scripts, several at a time; the answers are in the order of the scripts."""
    answers: list[Listed | Broken] = [Broken("it was not run")] * len(scripts)
    waiting = deque(enumerate(scripts))

    def drain() -> None:
        with _Worker(limits) as worker:
            while waiting:
                try:
                    number, script = waiting.popleft()
                except IndexError:  # another thread took the last one
                    return
                answers[number] = worker.run(script)

    hands = min(limits.processes, 1 + len(scripts) // _WORTH_ANOTHER)
    with ThreadPoolExecutor(hands) as threads:
        for future in [threads.submit(drain) for _ in range(hands)]:
            future.result()
    return answers


class _Worker:
    """One child at a time, replaced where a script has ended it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._child: Child | None = None

    def __enter__(self) -> "_Worker":
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.leave()

    def run(self, script: Script) -> Listed | Broken:
        source = json.dumps(script.source)
        question = f'{{"source":{source},"list":{script.resource_list}}}'
        for attempt in range(_TRIES):
            if self._child is None:
                self._child = Child(_MODULE, self._limits)
            try:
                answer = self._child.ask(question)
            except EndedError as end:
                self._child = None
                if not end.unexplained or attempt == _TRIES - 1:
                    return Broken(
                        f"the script was ended: {end}", "see sandbox of the configuration"
                    )
                continue
            if "refused" in answer:
                _, problem, remedy = answer["refused"]
                return Broken(problem, remedy)
            return Listed(answer["items"], tuple(answer["printed"]))
        raise AssertionError(_TRIES)
