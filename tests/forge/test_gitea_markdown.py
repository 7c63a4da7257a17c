"""Texts of pull requests as a real Gitea renders them: nobody is pinged and nothing is linked."""

import base64
from dataclasses import dataclass
from html.parser import HTMLParser

import pytest
from gitea_server import ADMIN, Gitea, await_condition
from request_contents import COMMIT, HOSTILE_NAMES, build_content, build_hostile

from fanout.plan.pull_requests.request_layout import MAX_TEXT
from fanout.plan.pull_requests.request_text import format_request, needs_update, replace_own_text

pytestmark = pytest.mark.forge

# Elements that fanout's Markdown is made of. Blocks of code are colored with span.
ELEMENTS = {"p", "ul", "li", "h3", "code", "pre", "span", "div", "details", "summary"}
ELEMENTS |= {"table", "thead", "tbody", "tr", "th", "td"}


@dataclass
class Board:
    """A repository with a commit and issue 1, which texts could refer to."""

    gitea: Gitea
    name: str
    commit: str

    @property
    def path(self) -> str:
        return f"/repos/{self.name}"

    def render(self, text: str, mode: str = "comment") -> str:
        """Return the HTML of a text in this repository."""
        body = {"Text": text, "Mode": mode, "Context": self.name, "Wiki": False}
        request = self.gitea._send("POST", "/markdown", body, f"token {self.gitea.tokens[ADMIN]}")
        assert request[0] == 200, request
        return request[1]


@pytest.fixture(scope="module")
def board(gitea: Gitea) -> Board:
    gitea.repository("texts", writers=("ann",))
    content = base64.b64encode(b"x").decode()
    path = f"/repos/{ADMIN}/texts"
    commit = gitea.post(f"{path}/contents/x", {"content": content, "message": "Add x"})
    gitea.post(f"{path}/issues", {"title": "first"})
    return Board(gitea, f"{ADMIN}/texts", commit["commit"]["sha"])


class Elements(HTMLParser):
    """Names of elements, and values of attributes that lead somewhere."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.links += [f"{key}={value}" for key, value in attrs if key in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("kind", HOSTILE_NAMES)
def test_hostile_names_are_shown_as_they_are(board: Board, kind: str):
    name = HOSTILE_NAMES[kind].replace(COMMIT, board.commit).replace("0123456", board.commit[:7])
    request = format_request(build_hostile(name))
    for mode in ("comment", "gfm"):
        elements = Elements(board.render(request.text, mode))
        # A plain URL is the link that whoever reported a result gave it.
        links = [f"href={name}"] if kind == "URL" else []
        assert elements.links == links
        assert elements.names - ({"a"} if links else set()) <= ELEMENTS
        # No section was swallowed by the value before it.
        assert "Installation:" in elements.text
        assert request.digest not in elements.text


# Without ids of commits: in plain text of this call they end the server (a nil pointer in
# commit_checker.go of Gitea 1.26.0). So the test above would not miss one either.
LINKED = ["mention", "issue", "request", "URL", "address", "link"]


@pytest.mark.parametrize("kind", LINKED)
def test_the_same_names_in_plain_text_are_links(board: Board, kind: str):
    """So the test above would see them."""
    assert Elements(board.render(f"see {HOSTILE_NAMES[kind]} there")).links != []


def test_an_ordinary_text_has_its_sections_and_hides_its_comments(board: Board):
    html = board.render(format_request(build_content()).text)
    elements = Elements(html)
    assert "What it waits for" in elements.text
    assert "fanout install=" not in elements.text
    assert "<!--" not in html


def test_hostile_names_in_a_request_notify_no_person_and_refer_to_no_issue(board: Board):
    gitea = board.gitea
    for name in HOSTILE_NAMES.values():
        request = format_request(build_hostile(name.replace(COMMIT, board.commit)))
        gitea.post(f"{board.path}/issues", {"title": request.title, "body": request.text})
    plain = {"title": "control", "body": "@bob, see #1"}
    number = gitea.post(f"{board.path}/issues", plain)["number"]

    def notified() -> list[str]:
        # Other tests notify him about other repositories of the server.
        notifications = gitea.get(f"{board.path}/notifications?all=true", by="bob")
        return [it["subject"]["title"] for it in notifications]

    await_condition(notified, "bob was not notified")
    assert notified() == ["control"]
    mentioned = gitea.get("/repos/issues/search?mentioned=true&type=issues", by="ann")
    assert mentioned == []
    events = gitea.get(f"{board.path}/issues/1/timeline")
    assert [it["ref_issue"]["number"] for it in events if it.get("ref_issue")] == [number]


def test_gitea_keeps_the_text_that_fanout_finds_its_part_in(board: Board):
    request = format_request(build_hostile(HOSTILE_NAMES["marker on a line of its own"]))
    body = f"From ann\n\n{request.text}\nAlso from ann"
    issue = board.gitea.post(f"{board.path}/issues", {"title": "kept", "body": body}, by="ann")
    other = format_request(build_content())
    replaced = replace_own_text(issue["body"], other)
    assert replaced == f"From ann\n\n{other.text}\nAlso from ann\n"


def test_a_text_of_the_greatest_length_is_kept_and_not_written_again(board: Board):
    request = format_request(build_content(), body="line of text\n" * 9000)
    path = f"{board.path}/issues"
    issue = board.gitea.post(path, {"title": "long", "body": request.text})
    kept = board.gitea.get(f"{path}/{issue['number']}")["body"]
    assert len(kept.encode()) > MAX_TEXT * 0.9
    assert not needs_update(kept, request)


def test_a_title_of_hostile_length_is_kept(board: Board):
    request = format_request(build_hostile("x" * 300), title="y" * 300)
    issue = board.gitea.post(f"{board.path}/issues", {"title": request.title, "body": ""})
    assert issue["title"] == request.title
