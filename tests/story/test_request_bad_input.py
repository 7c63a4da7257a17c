"""What pull requests do with what a forge, or people on it, should not have done."""

from pathlib import Path

import pytest
from fleet import PROMOTION, Fleet
from forge_fleet import SCOPES, SECRET, ForgeFleet
from forge_proxy import proxying
from gitea_server import Gitea

pytestmark = pytest.mark.forge
HEAD = "drafts/default/_stages/default.monitoring/dev"
MANUAL = PROMOTION + "  merge: Manual\n"
API_SECRET = "FANOUT_SECRET_API"


@pytest.fixture
def fleet(gitea: Gitea, tmp_path: Path) -> ForgeFleet:
    """Two sites in a repository of the forge, and one in a repository without."""
    made = ForgeFleet.on(gitea, tmp_path, {"a": ("dev", "edge"), "b": ("dev", "edge")})
    Fleet.repository(made, "disk")
    made.site("c", "dev", "disk")
    return made


def sweep(fleet: ForgeFleet, passes: int = 1) -> str:
    """Sweep each minute; what the last one wrote about problems."""
    for _ in range(passes):
        swept = fleet.later(minutes=1).sweep()
        assert swept.code in (0, 3), swept.err
    lines = swept.err.splitlines()
    return "\n".join(line for line in lines if "records are kept" not in line)


def reasons(fleet: ForgeFleet) -> dict[str, str]:
    """The reason of each variant's Ready condition, by path."""
    return {path: it["conditions"][0]["reason"] for path, it in fleet.variants().items()}


def call_with(fleet: ForgeFleet, patch: pytest.MonkeyPatch, token: str) -> None:
    """Have the API called with this token; Git keeps its own."""
    path = Path(fleet.options[1])
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(f"name: {SECRET}}}", "name: api}"), encoding="utf-8")
    patch.setenv(API_SECRET, f"{fleet.bot}:{token}")


def new_token(fleet: ForgeFleet, *scopes: str, by: str = "") -> str:
    """A second token of an account."""
    login = by or fleet.bot
    first = fleet.gitea.tokens[login]
    token = fleet.gitea.add_token(login, *scopes)
    fleet.gitea.tokens[login] = first
    return token


def revoked(fleet: ForgeFleet) -> str:
    token = fleet.gitea.tokens[fleet.bot]
    fleet.gitea.revoke_tokens(fleet.bot)
    fleet.gitea.add_token(fleet.bot, *SCOPES)  # Git has another one
    return token


def of_a_stranger(fleet: ForgeFleet) -> str:
    login = f"eve-{fleet.owner}"
    fleet.gitea.add_person(login)
    return fleet.gitea.tokens[login]


DENIED = [
    ("a revoked token", revoked, "renew the secret api"),
    ("no right to its own login", lambda it: new_token(it, *SCOPES[:2]), "read:user"),
    ("no right to pull requests", lambda it: new_token(it, "read:user"), "read:issue"),
    ("a repository that it must not see", of_a_stranger, "give the account access"),
]


@pytest.mark.parametrize(
    ("token_of", "words"), [it[1:] for it in DENIED], ids=[it[0] for it in DENIED]
)
def test_a_token_that_is_denied_holds_its_host_alone(fleet, monkeypatch, token_of, words):
    call_with(fleet, monkeypatch, token_of(fleet))
    output = sweep(fleet, 3)
    assert reasons(fleet) == {
        "sites/a": "ForgeDenied",
        "sites/b": "ForgeDenied",
        "sites/c": "VerificationPending",
    }
    assert words in output
    assert fleet.published() == {"sites/a": "", "sites/b": "", "sites/c": "v1"}
    monkeypatch.setenv(API_SECRET, f"{fleet.bot}:{fleet.gitea.tokens[fleet.bot]}")
    sweep(fleet, 3)
    assert set(fleet.published().values()) == {"v1"}
    assert [it["state"] for it in fleet.requests("edge")] == ["merged"]


def test_a_certificate_that_does_not_verify_holds(fleet: ForgeFleet):
    with proxying(fleet.gitea.url, uses_tls=True) as proxy:
        fleet.configure(api=proxy.api)
        output = sweep(fleet, 3)
        assert proxy.seen == [], "nothing was sent"
    assert output.startswith("default/monitoring: edge: ")
    assert "certificate verify failed" in output
    assert reasons(fleet)["sites/a"] == "ForgeUnavailable"
    assert fleet.published() == {"sites/a": "", "sites/b": "", "sites/c": "v1"}


def test_an_archived_repository_holds_until_it_is_not(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    fleet.write("promotion.yaml", PROMOTION)
    fleet.gitea.ask("PATCH", fleet.path("edge"), {"archived": True})
    output = sweep(fleet, 2)
    assert "archived" in output
    assert fleet.published() == {"sites/a": "", "sites/b": "", "sites/c": "v1"}
    fleet.gitea.ask("PATCH", fleet.path("edge"), {"archived": False})
    sweep(fleet, 3)
    assert set(fleet.published().values()) == {"v1"}


def test_a_repository_that_moved_holds_with_its_new_address(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    fleet.gitea.ask("PATCH", fleet.path("edge"), {"name": "elsewhere"})
    output = sweep(fleet, 2)
    assert f"{fleet.owner}/elsewhere" in output
    assert reasons(fleet)["sites/a"] == "ForgeUnavailable"


def test_a_repository_that_is_deleted_holds_alone(fleet: ForgeFleet):
    sweep(fleet)
    fleet.gitea.ask("DELETE", fleet.path("edge"))
    sweep(fleet, 2)
    states = reasons(fleet)
    assert states["sites/a"] == states["sites/b"] == "RepositoryUnavailable"
    assert fleet.published()["sites/c"] == "v1"


def test_a_branch_with_commits_of_others_alone_is_never_overwritten(fleet: ForgeFleet):
    commit = fleet.repos["edge"].commit(HEAD, {"notes.txt": "mine\n"}, by="ann")
    sweep(fleet, 3)
    assert fleet.repos["edge"].refs()[f"refs/heads/{HEAD}"] == commit
    assert fleet.requests("edge") == []
    reason, sentence = fleet.condition("sites/a")
    assert reason == "PathTaken"
    assert HEAD in sentence


def test_a_draft_of_another_installation_keeps_its_variant_out(fleet: ForgeFleet, tmp_path: Path):
    other = fleet.beside(tmp_path / "other", "blue")
    for name in ("site-b.yaml", "site-c.yaml"):
        other.remove(name)
    other.write("promotion.yaml", MANUAL)
    sweep(other, 2)
    sweep(fleet, 4)
    assert reasons(fleet)["sites/a"] == "OtherInstallation"
    assert fleet.published() == {"sites/a": "", "sites/b": "v1", "sites/c": "v1"}
    states = {it["head"]: it["state"] for it in fleet.requests("edge")}
    assert states == {HEAD: "merged", HEAD.replace("default", "blue", 1): "open"}


def test_the_head_branch_decides_whose_a_request_is(fleet: ForgeFleet):
    """A marker that is removed, or copied into the request of somebody, changes nothing."""
    fleet.write("promotion.yaml", MANUAL)
    sweep(fleet, 2)
    text = fleet.only_request("edge")["body"]
    fleet.repos["edge"].commit("theirs", {"notes.txt": "x\n"}, by="bob")
    opening = {"head": "theirs", "base": "main", "title": "mine", "body": text}
    theirs = fleet.gitea.post(f"{fleet.path('edge')}/pulls", opening, by="bob")["number"]
    fleet.rewrite("edge", 1, "It is mine.\n")
    sweep(fleet, 2)
    own, other = fleet.requests("edge")
    assert (own["state"], other["state"]) == ("open", "open")
    assert own["body"].startswith("It is mine.\n")
    # Its own part is back, with the stages as they are by now.
    begin, opening_sentence, *_ = text.strip().split("\n\n")
    assert f"{begin}\n\n{opening_sentence}\n\n" in own["body"]
    assert own["body"].count("<!-- fanout install=") == 1
    assert (other["number"], other["body"], other["title"]) == (theirs, text, "mine")
    fleet.merge("edge", 1)
    sweep(fleet, 2)
    assert set(fleet.published().values()) == {"v1"}
    assert [it["state"] for it in fleet.requests("edge")] == ["merged", "open"]
