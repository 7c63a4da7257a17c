"""A repository on the tests' GitHub, with a draft to publish."""

from datetime import UTC, datetime, timedelta
from typing import Any

from github_repository import Pull
from github_server import GitHub

START = datetime(2026, 12, 1, tzinfo=UTC)
WRITES = {"contents": "write", "pull_requests": "write", "statuses": "write", "checks": "read"}


class Site:
    """A repository `acme/site` with a request from `draft` to `main`, and who asks about it."""

    def __init__(self, github: GitHub) -> None:
        self.github = github
        self.now = START
        github.state.clock = lambda: self.now
        self.repository = github.repository("acme/site", writers=("ann", "bob"), readers=("eve",))
        self.disk = self.repository.on_disk
        self.disk.commit("main", {"a.txt": "a\n", "b.txt": "b\n"})
        self.disk.git("branch", "draft", "main")
        self.disk.commit("draft", {"a.txt": "new\n"}, "change a")
        self.app = github.app("fanout")
        self.installation = github.installation(self.app, "acme", permissions=WRITES)
        self.token = github.token(self.installation)

    def pass_time(self, **time: float) -> None:
        self.now += timedelta(**time)

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Call the API below the repository as the App; return the JSON of a success."""
        status, _, answer = self.try_call(method, path, body, **options)
        assert status < 300, answer
        return answer

    def try_call(
        self, method: str, path: str, body: Any = None, *, token: str = "", **options: Any
    ) -> tuple[int, dict[str, str], Any]:
        path = path if path.startswith("//") else f"//repos/acme/site{path}"
        return self.github.ask(method, path[1:], body, token=token or self.token, **options)

    def open(self, **body: Any) -> Pull:
        """Open the request; return what the server has of it."""
        values = {"title": "Change a", "head": "draft", "base": "main", **body}
        return self.repository.pulls[self.ask("POST", "/pulls", values)["number"]]

    def merge(self, **body: Any) -> tuple[int, str]:
        """Try to merge the first request; return status and message."""
        status, _, answer = self.try_call("PUT", "/pulls/1/merge", body)
        return status, answer["message"]
