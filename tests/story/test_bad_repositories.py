"""What the owners of repositories can do to a pass: one's fault is that of its variants alone.

One company in which every repository but one has a fault of its own, swept twice.
"""

import shutil
from dataclasses import dataclass, replace

import pytest
from fleet import PACKAGE, POLICY, PROMOTION, Fleet, Result

REFUSE_ALL = "echo 'change freeze until monday' >&2; exit 1"
PROTECT = 'if [ "$1" = refs/heads/main ]; then echo "main is protected" >&2; exit 1; fi'
OTHER = "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\ninstallId: other\n"

# Held before anything is tried: site, reason, what the sentence must name.
HELD = [
    ("a repository that is not there", "gone", "RepositoryUnavailable", "spec.url"),
    ("a repository in the SHA-256 format", "sha", "RepositoryUnavailable", "SHA-1"),
    ("a repository without its branch", "empty", "BranchMissing", "main"),
    ("a symlink on the way to the path", "link", "InvalidPath", "symlink"),
    ("a file on the way to the path", "file", "InvalidPath", "file"),
    (
        "a person's branch where the draft goes",
        "stranger",
        "PathTaken",
        "drafts/default/sites/stranger/monitoring",
    ),
    ("a package that somebody else wrote", "taken", "PathTaken", "sites/taken"),
    ("a second installation's draft", "other", "OtherInstallation", "other"),
]
# Tried and refused: site, kind of the action, reason, what the sentence must have in it.
REFUSED = [
    ("a hook that refuses all", "hook", "WriteDraft", "PushRefused", "change freeze until monday"),
    ("a ref in the way", "clash", "WriteDraft", "RefNameClash", "drafts"),
    ("a protected branch", "protected", "Publish", "PushRefused", "main is protected"),
]
NAMES = ("good", *(row[1] for row in HELD), *(row[1] for row in REFUSED))


@dataclass(frozen=True)
class Story:
    """What happened in the company."""

    fleet: Fleet
    before: dict[str, dict[str, str]]
    first: Result
    second: Result
    again: Result
    targets: dict[str, dict]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    fleet = Fleet(tmp_path_factory.mktemp("company"))
    fleet.repository("blueprints")
    fleet.release("v1")
    for name in NAMES:
        options = ["--object-format=sha256"] if name == "sha" else []
        fleet.repository(name, *options, first=name not in ("empty", "sha"))
        fleet.site(name, "dev", name)
    fleet.site("lost", "dev", "nowhere")
    fleet.write("policy.yaml", POLICY)
    fleet.write("promotion.yaml", PROMOTION)
    _spoil(fleet)
    missing = fleet.repos.pop("gone")
    shutil.rmtree(missing.path)
    before = fleet.refs()
    first, second = fleet.sweep(), fleet.sweep()
    return Story(fleet, before, first, second, fleet.sweep("-o", "json"), fleet.targets())


def _spoil(fleet: Fleet) -> None:
    repos = fleet.repos
    repos["hook"].hook("pre-receive", REFUSE_ALL)
    repos["protected"].hook("update", PROTECT)
    repos["clash"].commit("drafts", {"README.md": "in the way\n"})
    repos["file"].commit("main", {"sites": "a file\n"})
    repos["stranger"].commit("drafts/default/sites/stranger/monitoring", {"x": "mine\n"})
    package = {f"sites/taken/{path}": text for path, text in PACKAGE.items()}
    repos["taken"].commit("main", package)
    sha = repos["sha"]
    first = sha.git("commit-tree", sha.git("mktree", input=""), "-m", "first commit")
    sha.git("update-ref", "refs/heads/main", first)
    link = repos["link"]
    blob = link.git("hash-object", "-w", "--stdin", input="/etc")
    tree = link.git("mktree", input=f"120000 blob {blob}\tsites\n")
    commit = link.git("commit-tree", tree, "-m", "a link")
    link.git("update-ref", "refs/heads/main", commit)
    other = replace(fleet, policies="policies-of-other", state="state-of-other")
    shared = ("repository-blueprints", "repository-other", "site-other", "policy")
    for name in shared:
        text = (fleet.root / fleet.policies / f"{name}.yaml").read_text()
        other.write(f"{name}.yaml", text)
    config = fleet.root / "other.yaml"
    config.write_text(OTHER)
    assert other.run("sweep", "--config", str(config)).code == 0


def test_the_others_are_served_and_the_exit_code_says_that_some_were_not(story: Story):
    assert (story.first.code, story.second.code, story.again.code) == (3, 3, 3)
    assert story.fleet.repos["good"].tags() == ["sites/good/v1"]
    assert story.targets["good"]["state"] == "Verifying"


@pytest.mark.parametrize(("_", "site", "reason", "words"), HELD, ids=[row[0] for row in HELD])
def test_an_obstacle_in_a_repository_holds_a_single_variant_and_is_reported(
    story: Story, _, site, reason, words
):
    [hold] = story.targets[site]["holds"]
    assert (story.targets[site]["state"], hold["reason"]) == ("Held", reason)
    assert words in hold["message"]
    assert site in hold["message"]
    assert hold["message"] in story.first.err
    if site != "gone":
        assert story.fleet.repos[site].refs() == story.before[site]


@pytest.mark.parametrize(
    ("_", "site", "kind", "reason", "words"), REFUSED, ids=[row[0] for row in REFUSED]
)
def test_a_refusal_of_a_remote_is_quoted_and_retried(story: Story, _, site, kind, reason, words):
    [failed] = [
        item
        for item in story.again.json["outcomes"]
        if item["repository"] == site and not item["done"]
    ]
    assert (failed["kind"], failed["reason"]) == (kind, reason)
    assert words in failed["message"]
    assert f"{site}.git: " in failed["message"]
    assert failed["message"] in story.second.err


def test_an_unknown_repository_fails_its_target_by_name(story: Story):
    [hold] = story.targets["lost"]["holds"]
    assert (story.targets["lost"]["state"], hold["reason"]) == ("Failed", "UnknownRepository")
    assert "template.downstream.repositoryExpr: " in hold["message"]
    assert hold["message"] in story.first.err


def test_no_ref_of_others_is_lost(story: Story):
    for name, repo in story.fleet.repos.items():
        moved = {ref for ref, oid in story.before[name].items() if repo.refs().get(ref) != oid}
        assert moved == ({"refs/heads/main"} if name == "good" else set())
        repo.fsck()


def test_a_branch_that_is_protected_keeps_its_draft_for_a_person_to_merge(story: Story):
    repo = story.fleet.repos["protected"]
    assert repo.drafts() == ["sites/protected/monitoring"]
    assert repo.refs("refs/heads/main") == {
        "refs/heads/main": story.before["protected"]["refs/heads/main"]
    }
    assert repo.tags() == []


URGENT = [*(row[:3] for row in HELD), *((name, site, "PushRefused") for name, site, *_ in REFUSED)]


@pytest.mark.parametrize(("_", "site", "reason"), URGENT, ids=[row[0] for row in URGENT])
def test_status_lists_it_among_what_needs_a_person(story: Story, _, site: str, reason: str):
    urgent = story.fleet.run("status", "-o", "json").json["status"]["needsPerson"]
    by_reason = [it for it in urgent if it["reason"] == reason]
    assert any(site in " ".join([*it["variants"], it["message"]]) for it in by_reason), urgent
