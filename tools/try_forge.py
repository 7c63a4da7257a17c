"""Try the client of a forge on a real host: what it does is compared with what it says.

    TOKEN=... python tools/try_forge.py github github.com acme/scratch

Use an empty repository that nobody needs: a branch is pushed to it, and a pull request is opened,
marked, labeled, and merged into `main`. Nothing but its commit stays. Each line says what was
tried, and `ok` or what differed; the exit code is 1 if anything did.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from fanout.api.fanout_configuration import ForgeHost
from fanout.api.promotion_policy import MergeStyle
from fanout.errors import Conflict, FanoutError
from fanout.forge.forge_hosts import ForgeHosts
from fanout.forge.gitea import GiteaForge
from fanout.forge.github import GitHubForge
from fanout.plan.observation.merge_outcome import Merged
from fanout.plan.observation.observed_request import (
    CommitStatus,
    GuardedMerge,
    ObservedRequest,
    RepositoryName,
    RequestDraft,
    RequestEdit,
    RequestState,
    StatusState,
)
from fanout.ports import Credentials

BASE = "main"
Client = GiteaForge | GitHubForge


class Trial:
    """Steps that were tried, and how many of them differed."""

    def __init__(self) -> None:
        """Begin without any."""
        self.differences = 0

    def compare(self, step: str, seen: object, expected: object) -> None:
        """Print whether a step came to what is expected."""
        print(f"{step}: {'ok' if seen == expected else f'{seen!r}, not {expected!r}'}")
        self.differences += seen != expected

    def expect(self, step: str, error: type[FanoutError], call: Callable[[], object]) -> None:
        """Print whether a call raises this error."""
        try:
            seen: object = call()
        except FanoutError as raised:
            seen = type(raised)
        self.compare(step, seen, error)


def main(arguments: list[str]) -> int:
    """Try the host; return 1 if anything differed, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=["github", "gitea"])
    parser.add_argument("host", help="as in the URLs of repositories")
    parser.add_argument("repository", help="OWNER/NAME")
    parser.add_argument("--api", default="", help="address of the API, if it is not the usual one")
    parser.add_argument("--scheme", default="https")
    options = parser.parse_args(arguments)
    owner, _, name = options.repository.rpartition("/")
    url = f"{options.scheme}://{options.host}/{owner}/{name}.git"
    values = {"host": options.host, "type": options.program, "secretRef": {"name": "token"}}
    host = ForgeHost.model_validate(values | ({"api": options.api} if options.api else {}))
    token = os.environ["TOKEN"]
    hosts = ForgeHosts([host], lambda _: Credentials("x-access-token", token))
    try:
        client, repository = hosts.forge_of(url)
        assert isinstance(client, Client), "these are the clients that there are"
        with pushed_branch(url, token) as (branch, commit):
            return try_client(client, repository, branch, commit)
    finally:
        hosts.close()


@contextmanager
def pushed_branch(url: str, token: str) -> Iterator[tuple[str, str]]:
    """Push a branch with a commit; in the end it is deleted. Yield its name and the commit."""
    branch = f"fanout-trial-{datetime.now(UTC):%Y%m%d%H%M%S}"
    remote = url.replace("://", f"://x-access-token:{token}@", 1)
    with tempfile.TemporaryDirectory() as directory:

        def git(*words: str, check: bool = True) -> str:
            who = ("-c", "user.name=Trial", "-c", "user.email=trial@example.com")
            done = subprocess.run(
                ["git", *who, *words], cwd=directory, capture_output=True, text=True, check=False
            )
            if check and done.returncode:
                raise SystemExit(done.stderr.replace(token, "***"))
            return done.stdout.strip()

        git("clone", "--quiet", "--depth=1", f"--branch={BASE}", remote, ".")
        Path(directory, f"{branch}.txt").write_text("A trial of fanout.\n", encoding="utf-8")
        git("add", "--all")
        git("commit", "--quiet", "--message", "Try a client of fanout")
        git("push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
        try:
            yield branch, git("rev-parse", "HEAD")
        finally:
            git("push", "--quiet", "--delete", "origin", branch, check=False)


def try_client(client: Client, repository: RepositoryName, branch: str, commit: str) -> int:
    """Live the life of one pull request; return 1 if anything differed, else 0."""
    trial = Trial()
    login = client.login()
    print(f"login: {login}\nrules of {BASE}: {client.branch(repository, BASE)}")
    draft = RequestDraft(branch, BASE, "Try a client of fanout", "A trial.", is_draft=True)
    request = client.open_request(repository, draft)
    number = request.number

    def seen() -> ObservedRequest:
        observed = client.request(repository, number)
        if observed is None:
            raise SystemExit(f"pull request {number} cannot be read")
        return observed

    trial.compare("author is the login", client.identify(login).is_named(request.author), True)
    trial.compare("head", (request.head_branch, request.head_commit), (branch, commit))
    trial.compare("opened as a draft", request.is_draft, True)
    trial.expect(
        "a second one is a conflict", Conflict, lambda: client.open_request(repository, draft)
    )
    edit = RequestEdit(title="Try fanout", text="Changed.", is_draft=False)
    trial.compare(
        "parts of an edit that failed", client.edit_request(repository, request, edit), {}
    )
    changed = seen()
    shown = (changed.title, changed.text, changed.is_draft)
    trial.compare("after the edit", shown, ("Try fanout", "Changed.", False))
    client.add_labels(repository, changed, {"fanout/trial"})
    trial.compare("labels", seen().labels, frozenset({"fanout/trial"}))
    status = CommitStatus("fanout/trial", StatusState.SUCCESS, "", datetime.now(UTC), "fine")
    client.set_status(repository, commit, status)
    statuses = client.statuses(repository, commit)
    states = [it.state for it in statuses if it.context == "fanout/trial"]
    trial.compare("its status", states, [StatusState.SUCCESS])
    paths = client.changed_paths(repository, number)
    trial.compare("changed paths", paths.paths, frozenset({f"{branch}.txt"}))
    if isinstance(client, GitHubForge):
        _, polled, _ = client.poll_requests([repository])
        [listed] = [it for it in polled[repository].requests if it.number == number]
        trial.compare("a poll shows what a read shows", listed, seen())
    moved = GuardedMerge(number, "0" * 40, branch, MergeStyle.MERGE, "Trial", "")
    trial.expect(
        "another head is not merged", Conflict, lambda: client.merge_request(repository, moved)
    )
    outcome = client.merge_request(
        repository, GuardedMerge(number, commit, branch, MergeStyle.MERGE, "Trial", "")
    )
    trial.compare("merged", type(outcome), Merged)
    if not isinstance(outcome, Merged):
        print(f"  {outcome}")
        client.close_request(repository, number)
        return 1
    merged = seen()
    trial.compare("state after the merge", merged.state, RequestState.MERGED)
    trial.compare("the branch of the draft", client.branch(repository, branch), None)
    return 1 if trial.differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
