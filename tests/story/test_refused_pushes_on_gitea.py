"""Rules of a real Gitea that refuse pushes, for repositories that fanout writes to by Git alone."""

from collections.abc import Callable
from operator import itemgetter
from pathlib import Path

import pytest
from fleet import PLAIN, PROMOTION
from forge_fleet import ForgeFleet
from gitea_server import ADMIN, Gitea

pytestmark = pytest.mark.forge
PATHS = ("sites/ams", "sites/ber")


@pytest.fixture
def fleet(gitea: Gitea, tmp_path: Path) -> ForgeFleet:
    made = ForgeFleet.on(gitea, tmp_path, {"ams": ("dev", "edge")})
    path = made.root / made.policies / "repository-edge.yaml"
    path.write_text(path.read_text().replace("  forge: {type: gitea}\n", ""))
    made.write("policy.yaml", PLAIN)
    made.write("promotion.yaml", PROMOTION)
    return made


def protect_tags(fleet: ForgeFleet, pattern: str = "sites/**") -> None:
    rule = {"name_pattern": pattern, "whitelist_usernames": [ADMIN]}
    fleet.gitea.post(f"{fleet.path('edge')}/tag_protections", rule)


def release_tags(fleet: ForgeFleet) -> None:
    path = f"{fleet.path('edge')}/tag_protections"
    for it in fleet.gitea.get(path):
        fleet.gitea.ask("DELETE", f"{path}/{it['id']}")


def archive(*, archived: bool) -> Callable[[ForgeFleet], object]:
    return lambda fleet: fleet.gitea.ask("PATCH", fleet.path("edge"), {"archived": archived})


def protect(branch: str = "main", **rules: object) -> Callable[[ForgeFleet], object]:
    return lambda fleet: fleet.protect("edge", branch, **rules)


PUSHED = {"enable_push": True, "enable_push_whitelist": False}
# Policy of the server, how it is set and taken back, what the server says, packages it stops.
SERVER_POLICIES = [
    ("a protected branch", protect(enable_push=False), protect(**PUSHED), "protected branch main"),
    ("protected tags", protect_tags, release_tags, "/v1 is protected"),
    ("an archived repository", archive(archived=True), archive(archived=False), "HTTP 403"),
]


@pytest.mark.parametrize(
    ("_", "forbid", "allow", "words"), SERVER_POLICIES, ids=map(itemgetter(0), SERVER_POLICIES)
)
def test_a_push_refused_by_gitea_is_shown_until_it_is_accepted(
    fleet: ForgeFleet, _: str, forbid, allow, words: str
):
    assert fleet.sweep().code == 0
    forbid(fleet)
    swept = fleet.later(minutes=1).sweep()
    assert (swept.code, words in swept.err) == (3, True), swept.err
    for status in fleet.targets().values():
        hold = status["holds"][0]
        assert (status["state"], hold["reason"]) == ("Held", "PushRefused")
        assert words in hold["message"]
    [ready] = [
        it["status"]["conditions"][0]
        for it in fleet.run("get", "repositories", "-o", "json").items
        if it["metadata"]["name"] == "edge"
    ]
    assert (ready["status"], ready["reason"]) == ("False", "PushRefused")
    allow(fleet)
    fleet.later(minutes=1).settle()
    assert fleet.published() == dict.fromkeys(PATHS, "v1")
    assert "PushRefused" not in fleet.run("status").out


def test_drafts_go_on_by_commits_on_top_where_gitea_refuses_force(fleet: ForgeFleet):
    fleet.remove("promotion.yaml")
    fleet.settle()
    fleet.gitea.post(
        f"{fleet.path('edge')}/branch_protections", {"rule_name": "drafts/**", **PUSHED}
    )
    repo = fleet.repos["edge"]
    before = repo.refs("refs/heads/drafts/")
    fleet.release("v2")
    swept = fleet.later(minutes=1).sweep()
    assert swept.code == 0, swept.err
    after = repo.refs("refs/heads/drafts/")
    for ref, commit in before.items():
        assert after[ref] != commit
        repo.git("merge-base", "--is-ancestor", commit, after[ref])
    fleet.write("promotion.yaml", PROMOTION)
    fleet.later(minutes=1).sweep()
    assert set(fleet.published().values()) == {"v2"}


def test_a_tag_that_gitea_protects_keeps_no_other_publication(fleet: ForgeFleet):
    fleet.sweep()
    protect_tags(fleet, "sites/ams/**")
    assert fleet.later(minutes=1).sweep().code == 3
    assert fleet.published() == {"sites/ams": "", "sites/ber": "v1"}
    assert fleet.repos["edge"].tags() == ["sites/ber/v1"]
