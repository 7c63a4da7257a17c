"""Requests of fanout to a Gitea, counted in the server's own log: pushes and calls."""

from collections import Counter
from dataclasses import dataclass

from forge_fleet import ForgeFleet
from gitea_server import await_condition

from fanout.cli.startup import Program
from fanout.reconcile.pass_scope import PassMode


@dataclass
class Asked:
    """Pushes and calls by repository, and calls that are of no repository."""

    pushes: Counter[str]
    calls: Counter[str]
    of_host: list[str]  # "GET /repos/issues/search"


@dataclass
class ForgeLog:
    """The log of a server from `start` on; each reading begins where the last one ended."""

    fleet: ForgeFleet
    start: int = 0

    def read(self) -> Asked:
        lines = self.fleet.gitea.calls(self.fleet.bot)
        new, self.start = lines[self.start :], len(lines)
        asked = Asked(Counter(), Counter(), [])
        for method, path, _ in (line.split(" ") for line in new):
            if path.endswith(".git/git-receive-pack"):
                asked.pushes[path.split("/")[2].removesuffix(".git")] += 1
            elif path.startswith(f"/repos/{self.fleet.owner}/"):
                asked.calls[path.split("/")[3].partition("?")[0]] += 1
            elif ".git/" not in path:
                asked.of_host.append(f"{method} {path.partition('?')[0]}")
        return asked

    def rest(self, program: Program, *, waiting: int = 0) -> Asked:
        """Sweep until no repository is asked but for `waiting` statuses; return what is asked then.

        What changed within the last two seconds is read again, because the host's instants are
        whole seconds.
        """
        answers: list[Asked] = []

        def is_at_rest() -> bool:
            self.read()
            sweep(program)
            answers[:] = [self.read()]
            return answers[0].calls.total() <= waiting

        await_condition(is_at_rest, "the passes do not come to rest", pause=0.5)
        return answers[0]


def sweep(program: Program) -> None:
    """Make one pass, in which nothing may fail."""
    report = program.sweep(PassMode())
    assert report.fix_count == 0, [it.problem for it in report.failed_outcomes]
