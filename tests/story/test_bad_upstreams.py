"""What is wrong upstream stops the policies that take it, and no other.

One company, one policy per fault beside a sound one; swept, a tag moved, swept again.
"""

from dataclasses import dataclass

import pytest
from fleet import PACKAGE, RULE, Fleet, Result

LATEST = "revision: {latest: true}"
NO_COMMIT = "a" * 40

# Policy, what it says of upstream, reason, words of the sentence. These stop the policy.
STOPPED = [
    ("a tag that does not exist", "notag", "package: monitoring, revision: {tag: v7}",
     "TagMissing", ("spec.upstream.revision.tag", "monitoring/v7")),
    ("a range that matches nothing", "norange", 'package: monitoring, revision: {semver: ">=5"}',
     "NoRevision", ("spec.upstream.revision", ">=5")),
    ("a tag that moved", "moved", f"package: moved, {LATEST}",
     "TagMoved", ("spec.upstream.revision", "moved/v1")),
    ("an upstream that is not declared", "unknown", f"package: monitoring, {LATEST}",
     "UnknownRepository", ("spec.upstream.repository", "nowhere")),
    ("an upstream that is not there", "gone", f"package: monitoring, {LATEST}",
     "RemoteNotFound", ("gone.git", "spec.url")),
]  # fmt: skip
# These fail the variants, each by name.
FAILED = [
    ("a package without a Kptfile", "bare", f"package: bare, {LATEST}",
     "InvalidPackage", ("bare at v1", "Kptfile")),
    ("a manifest that cannot be parsed", "broken", f"package: broken, {LATEST}",
     "InvalidManifest", ("broken at v1 of ", "x.yaml:2: ")),
    ("a tag without the package's directory", "nodir", f"package: nodir, {LATEST}",
     "NoRevision", ("nodir", "v1", "spec.upstream.package")),
    ("a commit that is on no branch", "nocommit",
     f"package: monitoring, revision: {{commit: {NO_COMMIT}}}",
     "NoRevision", (NO_COMMIT,)),
]  # fmt: skip


@dataclass(frozen=True)
class Story:
    """What happened in the company."""

    fleet: Fleet
    first: Result
    second: Result
    policies: dict[str, dict]
    targets: dict[str, dict]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    root = tmp_path_factory.mktemp("company")
    fleet = Fleet.build(root, {"ams": ("dev", "edge")})
    upstream = fleet.repos["blueprints"]
    upstream.commit("main", {
        "bare/deployment.yaml": PACKAGE["deployment.yaml"],
        "broken/Kptfile": PACKAGE["Kptfile"],
        "broken/x.yaml": "a: b\n\tc: d\n",
        "moved/Kptfile": PACKAGE["Kptfile"],
    })  # fmt: skip
    for package in ("bare", "broken", "moved", "nodir"):
        upstream.git("update-ref", f"refs/tags/{package}/v1", "main")
    missing = fleet.repository("gone")
    (missing.path / "HEAD").unlink()
    fleet.repos.pop("gone")
    elsewhere = {"unknown": "nowhere", "gone": "gone"}
    for _, name, rule, *_ in (*STOPPED, *FAILED):
        place = ("repository: blueprints", f"repository: {elsewhere.get(name, 'blueprints')}")
        fleet.policy(name, (RULE, rule), place)
    first = fleet.sweep()
    upstream.commit("main", {"moved/more.txt": "more\n"})
    upstream.git("update-ref", "refs/tags/moved/v1", "main")
    second = fleet.sweep()
    policies = {
        item["metadata"]["name"]: item for item in fleet.run("get", "policies", "-o", "json").items
    }
    targets = {item["policy"]: item for item in fleet.run("get", "targets", "-o", "json").views}
    return Story(fleet, first, second, policies, targets)


def test_the_sound_policy_is_served(story: Story):
    assert (story.first.code, story.second.code) == (3, 3)
    assert story.fleet.repos["edge"].tags() == ["sites/ams/v1"]
    assert story.targets["monitoring"]["state"] == "Verifying"


@pytest.mark.parametrize(
    ("_", "name", "rule", "reason", "words"), STOPPED, ids=[row[0] for row in STOPPED]
)
def test_a_policy_is_stopped_with_its_field_and_line(story: Story, _, name, rule, reason, words):
    conditions = story.policies[name]["status"]["conditions"]
    assert [(it["type"], it["status"], it["reason"]) for it in conditions] == [
        ("Ready", "False", reason),
        ("Stalled", "True", reason),
    ]
    sentence = conditions[0]["message"]
    assert f"default/{name}: {sentence}" in story.second.err
    assert all(word in sentence for word in words)
    if name != "gone":
        assert f"policy-{name}.yaml:5: UpstreamPolicy/{name}: {words[0]}" in sentence


@pytest.mark.parametrize(
    ("_", "name", "rule", "reason", "words"), FAILED, ids=[row[0] for row in FAILED]
)
def test_a_revision_that_is_no_package_fails_its_variants(
    story: Story, _, name, rule, reason, words
):
    target = story.targets[name]
    assert (target["state"], target["holds"][0]["reason"]) == ("Failed", reason)
    sentence = target["holds"][0]["message"]
    assert all(word in sentence for word in words)
    assert f"default/{name}: {target['targetName']}: {sentence}" in story.first.err


def test_a_moved_tag_leaves_the_draft_that_was_written_for_it(story: Story):
    assert story.fleet.repos["edge"].drafts() == ["moved/ams/moved"]
    story.fleet.repos["edge"].fsck()
