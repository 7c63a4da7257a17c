"""An upstream tag that cannot be used is left out with a warning, and stops nothing.

One company, one policy and package per fault. All packages are published at v1; then each has a
sound v2, and a v3 that cannot be used; then a sound v4.
"""

import subprocess
from dataclasses import dataclass

import pytest
from fleet import PACKAGE, PLAIN, PROMOTION, RULE, Fleet, Repo, Result

WHO = ("--reason", "why", "--by", "Ann <ann@example.com>")


def write_object(repo: Repo, kind: str, data: bytes) -> str:
    line = ["git", "hash-object", "-t", kind, "-w", "--stdin", "--literally"]
    done = subprocess.run(line, cwd=repo.path, input=data, capture_output=True, check=True)
    return done.stdout.decode().strip()


def without_directory(upstream: Repo, _: str) -> str:
    tree = upstream.git("mktree", input="")
    return upstream.git(
        "-c", "user.name=a", "-c", "user.email=a@b.c", "commit-tree", "-m", "x", tree
    )


def blob(upstream: Repo, _: str) -> str:
    return upstream.git("rev-parse", "main:README.md")


def tree(upstream: Repo, _: str) -> str:
    return upstream.git("rev-parse", "main^{tree}")


def tag_text(oid: str, kind: str) -> bytes:
    tagger = "Ada <ada@example.com> 1772442000 +0000"
    return f"object {oid}\ntype {kind}\ntag v3\ntagger {tagger}\n\nx\n".encode()


def annotated_blob(upstream: Repo, name: str) -> str:
    return write_object(upstream, "tag", tag_text(blob(upstream, name), "blob"))


def odd_tag_object(upstream: Repo, _: str) -> str:
    commit = upstream.git("rev-parse", "main")
    return write_object(upstream, "tag", f"object {commit}\ntype commit\ntag\n\n".encode())


def tag_of_nothing(upstream: Repo, _: str) -> str:
    return write_object(upstream, "tag", tag_text("a" * 40, "commit"))


def refused_tree(upstream: Repo, _: str) -> str:
    """A commit with a directory that Git refuses."""
    file = write_object(upstream, "blob", b"x\n")
    bad = write_object(upstream, "tree", b"100644 .git\0" + bytes.fromhex(file))
    return upstream.git(
        "-c", "user.name=a", "-c", "user.email=a@b.c", "commit-tree", "-m", "x", bad
    )


def without_tree(upstream: Repo, _: str) -> str:
    person = "Ada <ada@example.com> 1772442000 +0000"
    text = f"tree {'b' * 40}\nauthor {person}\ncommitter {person}\n\nx\n"
    return write_object(upstream, "commit", text.encode())


def lost_commit(_: Repo, name: str) -> str:
    return name.encode().hex().ljust(40, "0")[:40]


# Policy, what v3 is, words of the warning.
ROWS = [
    ("nodir", without_directory, "has no directory nodir"),
    ("blob", blob, "is a file, not a commit"),
    ("tree", tree, "is a directory, not a commit"),
    ("annotated", annotated_blob, "is a file, not a commit"),
    ("refused", refused_tree, "Git refuses an object"),
    ("oddtag", odd_tag_object, "not our ref"),
    ("lost", lost_commit, "lacks an object"),
    ("nothing", tag_of_nothing, "does not send the objects"),
    ("losttree", without_tree, "does not send the objects"),
]  # fmt: skip


def set_tag(upstream: Repo, name: str, revision: str, oid: str) -> None:
    """Write the file of a ref: git refuses some of these objects."""
    path = upstream.path / "refs" / "tags" / name / revision
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{oid}\n", encoding="ascii")


@dataclass(frozen=True)
class Story:
    """What happened in the company."""

    fleet: Fleet
    swept: Result
    published: dict[str, str]
    states: dict[str, str]
    after: dict[str, str]


def release(fleet: Fleet, revision: str) -> None:
    upstream = fleet.repos["blueprints"]
    text = PACKAGE["deployment.yaml"].replace("replicas: 1", f"replicas: {revision[1:]}")
    files = {"Kptfile": PACKAGE["Kptfile"], "deployment.yaml": text}
    commit = upstream.commit(
        "main", {f"{row[0]}/{path}": text for row in ROWS for path, text in files.items()}
    )
    for name, *_ in ROWS:
        set_tag(upstream, name, revision, commit)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    fleet = Fleet(tmp_path_factory.mktemp("company"))
    for name in ("blueprints", "edge"):
        fleet.repository(name)
    fleet.write("promotion.yaml", PROMOTION)
    for name, *_ in ROWS:
        text = PLAIN.replace("name: monitoring}", f"name: {name}}}")
        text = text.replace(RULE, f"package: {name}, revision: {{latest: true}}")
        fleet.write(f"{name}.yaml", text.replace("sites/ams, sites/ber", f"{name}/ams"))
    release(fleet, "v1")
    fleet.settle()
    release(fleet, "v2")
    upstream = fleet.repos["blueprints"]
    for name, make, _ in ROWS:
        set_tag(upstream, name, "v3", make(upstream, name))
    swept = [fleet.later(minutes=1).sweep() for _ in range(2)][1]
    published, states = fleet.published(), fleet.states()
    release(fleet, "v4")
    for _ in range(2):
        fleet.later(minutes=1).sweep()
    return Story(fleet, swept, published, states, fleet.published())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_sound_tags_stay_usable_and_the_other_is_named(story: Story, row):
    name, _, words = row
    path = f"{name}/ams"
    assert story.published[path] == "v2"
    assert story.states[path] == "Ready"
    assert story.after[path] == "v4"
    [warning] = [it for it in story.swept.err.splitlines() if f"tag {name}/v3 of blueprints" in it]
    assert words in warning
    assert story.swept.code == 0, story.swept.err


def test_explain_and_promote_name_the_unusable_tag(tmp_path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.settle()
    upstream = fleet.repos["blueprints"]
    set_tag(upstream, "monitoring", "v2", without_directory(upstream, "monitoring"))
    assert fleet.later(minutes=1).sweep().code == 0
    assert "tag monitoring/v2 of blueprints" in fleet.run("explain", "monitoring").out
    refused = fleet.run("promote", "monitoring", "--stage", "dev", "--revision", "v2", *WHO)
    assert refused.code != 0
    assert "tag monitoring/v2 of blueprints cannot be used" in refused.err
    assert fleet.published() == {"sites/ams": "v1"}


def test_a_revision_that_the_rule_names_holds_its_variants_by_name(tmp_path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.settle()
    upstream = fleet.repos["blueprints"]
    set_tag(upstream, "monitoring", "v2", without_directory(upstream, "monitoring"))
    text = (fleet.root / "policies" / "policy.yaml").read_text()
    fleet.write("policy.yaml", text.replace('{semver: ">=1 <9"}', "{tag: v2}"))
    assert fleet.later(minutes=1).sweep().code == 3
    reason, sentence = fleet.condition("sites/ams")
    assert reason == "NoRevision"
    assert "has no directory monitoring at v2" in sentence
    assert fleet.published() == {"sites/ams": "v1"}


def test_a_package_with_errors_fails_its_variants_by_name(tmp_path):
    """It is a release: its author has to hear of it, and what is published stays."""
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.settle()
    fleet.release("v2", {"x.yaml": "a: b\n\tc: d\n"})
    assert fleet.later(minutes=1).sweep().code == 3
    reason, sentence = fleet.condition("sites/ams")
    assert reason == "InvalidManifest"
    assert "monitoring at v2" in sentence
    assert fleet.published() == {"sites/ams": "v1"}
