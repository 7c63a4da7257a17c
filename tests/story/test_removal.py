"""A person removes a variant whose target is gone: that one, once, and nothing else."""

from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, PLAIN, POLICY, Fleet
from killing import killer

ANN = ("--reason", "the site is closed", "--by", "Ann <ann@example.com>")
AMS, BER = "sites/ams", "sites/ber"
EDITED = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 9")
RENDERED = "fanout/default/rendered"


@company
def fleet(root: Path) -> Fleet:
    """Two sites in one repository, and a third alone in another; all are published."""
    sites = {"ams": ("dev", "edge"), "ber": ("dev", "edge"), "cph": ("dev", "core")}
    made = Fleet.build(root, sites)
    made.settle()
    assert set(made.published().values()) == {"v1"}
    return made


def remove_target(fleet: Fleet, site: str = "ams") -> str:
    """Take the site away; answers the name of its variant."""
    before = fleet.run("get", "variants", "-o", "json").items
    fleet.remove(f"site-{site}.yaml")
    [name] = [
        item["metadata"]["name"]
        for item in before
        if item["spec"]["downstream"]["package"] == f"sites/{site}"
    ]
    return name


def remove(fleet: Fleet, name: str, *more: str):
    return fleet.run("remove", "monitoring", name, *ANN, *more)


def orphaning(fleet: Fleet) -> None:
    text = POLICY.replace("  stages:\n", "  deletionPolicy: Orphan\n  stages:\n")
    fleet.write("policy.yaml", text)


def test_a_removed_package_leaves_the_branch_in_a_single_commit_and_its_tags_stay(fleet: Fleet):
    edge, name = fleet.repos["edge"], remove_target(fleet)
    before, others = edge.refs(), [it for it in edge.files() if not it.startswith(AMS)]
    done = remove(fleet, name)
    assert (done.code, done.err) == (0, "")
    assert "sites/ams in " in done.out
    assert edge.files() == others
    assert edge.git("rev-list", f"{before['refs/heads/main']}..main").count("\n") == 0
    message = edge.git("log", "-1", "--format=%B", "main")
    assert message.startswith("Remove sites/ams\n\nThe site is closed.\n")
    assert f"Fanout-Variant: {name}" in message
    assert edge.tags() == ["sites/ams/v1", "sites/ber/v1"]
    assert [it for it in edge.files(RENDERED) if "ams" in it] == []
    assert [it for it in edge.files(RENDERED) if "ber" in it]
    edge.fsck()


def test_a_removed_variant_is_mentioned_no_more_and_the_others_are_untouched(fleet: Fleet):
    name = remove_target(fleet)
    core = fleet.repos["core"].refs()
    assert remove(fleet, name).code == 0
    swept = fleet.sweep()
    assert (swept.code, swept.out, swept.err) == (0, "nothing to do\n", "")
    assert fleet.published() == {BER: "v1", "sites/cph": "v1"}
    assert fleet.repos["core"].refs() == core
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.published() == {BER: "v2", "sites/cph": "v2"}
    assert "sites/ams/deployment.yaml" not in fleet.repos["edge"].files()


def test_the_decision_is_on_record_and_troubles_no_gate(fleet: Fleet):
    remove(fleet, remove_target(fleet))
    records, records_branch = fleet.records(), "fanout/default/default/monitoring"
    record_files = [it for it in records.files(records_branch) if it.startswith("records/")]
    assert '"action":"ConfirmRemoval"' in records.file(records_branch, record_files[-1])
    assert "ann@example.com" in records.git("log", "--format=%ae", records_branch)
    assert fleet.states() == {BER: "Verifying", "sites/cph": "Verifying"}


def test_with_orphan_the_package_stays_and_fanout_knows_nothing_of_it(fleet: Fleet):
    orphaning(fleet)
    edge, name = fleet.repos["edge"], remove_target(fleet)
    head = edge.refs()["refs/heads/main"]
    done = remove(fleet, name)
    assert done.code == 0, done.err
    assert "stays on the branch" in done.out
    assert edge.refs()["refs/heads/main"] == head
    assert [it for it in edge.files(RENDERED) if "ams" in it] == []
    assert fleet.sweep().out == "nothing to do\n"
    fleet.site("ams", "dev", "edge")
    assert fleet.sweep().code == 3
    assert fleet.condition(AMS)[0] == "PathTaken"


def test_a_site_that_comes_back_gets_its_variant_anew(fleet: Fleet):
    remove(fleet, remove_target(fleet))
    fleet.site("ams", "dev", "edge")
    fleet.settle()
    assert fleet.published()[AMS] == "v1"
    assert fleet.repos["edge"].tags() == ["sites/ams/v1", "sites/ams/v2", "sites/ber/v1"]


def test_a_site_that_comes_back_is_released_once_while_it_waits_for_approval(fleet: Fleet):
    fleet.remove("site-ams.yaml")
    fleet.settle()
    asked = "{name: dev, requires: [{name: ok, approval: {from: [sre]}}],"
    fleet.write("policy.yaml", POLICY.replace("{name: dev,", asked))
    fleet.site("ams", "dev", "edge")
    swept = [fleet.later(minutes=1).sweep().out for _ in range(3)]
    assert swept == ["1 draft written\n", "1 released\n", "nothing to do\n"]


def test_an_open_draft_goes_with_it(fleet: Fleet):
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    name = remove_target(fleet)
    assert remove(fleet, name).code == 0
    assert fleet.repos["edge"].drafts() == ["sites/ber/monitoring"]


def test_a_variant_that_was_never_published_is_a_draft_and_no_more(fleet: Fleet):
    fleet.site("dub", "dev", "edge")
    fleet.sweep("--drafts-only")
    edge, head = fleet.repos["edge"], fleet.repos["edge"].refs()["refs/heads/main"]
    done = remove(fleet, remove_target(fleet, "dub"))
    assert (done.code, edge.drafts()) == (0, [])
    assert edge.refs()["refs/heads/main"] == head
    assert fleet.sweep().err == ""


def test_a_foreign_package_at_the_path_of_a_draft_stays(fleet: Fleet):
    fleet.site("dub", "dev", "edge")
    fleet.sweep("--drafts-only")
    edge = fleet.repos["edge"]
    edge.commit("main", {"sites/dub/notes.txt": "mine\n"})
    assert remove(fleet, remove_target(fleet, "dub")).code == 0
    assert edge.file("main", "sites/dub/notes.txt") == "mine\n"


def edit_package(fleet: Fleet) -> None:
    fleet.repos["edge"].commit("main", {f"{AMS}/deployment.yaml": EDITED})


def edit_and_take_along(fleet: Fleet) -> None:
    fleet.repos["edge"].commit("main", {f"{AMS}/notes.txt": "ours\n"})
    fleet.release("v2")
    fleet.later(minutes=1).settle()


def edit_draft(fleet: Fleet) -> None:
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    branch = "drafts/default/sites/ams/monitoring"
    fleet.repos["edge"].commit(branch, {f"{AMS}/deployment.yaml": EDITED})


EDITS = [
    ("a package that was edited", edit_package, "the package sites/ams"),
    ("edits that a later revision took along", edit_and_take_along, "the package sites/ams"),
    ("a draft with a person's commit", edit_draft, "the draft drafts/default/sites/ams/monitoring"),
]


@pytest.mark.parametrize(("_", "edit", "words"), EDITS, ids=[row[0] for row in EDITS])
def test_an_edited_package_is_removed_only_with_edited(fleet: Fleet, _, edit, words):
    edit(fleet)
    name, before = remove_target(fleet), fleet.refs()
    refused = remove(fleet, name)
    assert refused.code == 4
    assert words in refused.err
    assert "--edited" in refused.err
    assert fleet.refs() == before
    assert remove(fleet, name, "--edited").code == 0
    assert not [it for it in fleet.repos["edge"].files() if it.startswith(AMS)]
    assert fleet.repos["edge"].drafts() in ([], ["sites/ber/monitoring"])


def test_edits_do_not_matter_where_the_package_stays(fleet: Fleet):
    edit_package(fleet)
    orphaning(fleet)
    assert remove(fleet, remove_target(fleet)).code == 0
    assert fleet.repos["edge"].file("main", f"{AMS}/deployment.yaml") == EDITED


def test_a_variant_whose_target_is_there_is_refused(fleet: Fleet):
    name = remove_target(fleet)
    fleet.site("ams", "dev", "edge")
    before = fleet.refs(), fleet.records().refs()
    refused = remove(fleet, name)
    assert refused.code == 4
    assert (
        f"{name} left no other package, and its target still exists: it would be created again"
        in refused.err
    )
    assert (fleet.refs(), fleet.records().refs()) == before


def test_a_name_that_nothing_has_is_refused(fleet: Fleet):
    refused = remove(fleet, "monitoring-xyz")
    assert refused.code == 1
    assert "monitoring-xyz" in refused.err
    assert "fanout get targets" in refused.err


def test_a_repository_without_any_other_variant_is_found(fleet: Fleet):
    name = remove_target(fleet, "cph")
    done = remove(fleet, name)
    assert done.code == 0, done.err
    core = fleet.repos["core"]
    assert core.files() == ["README.md"]
    assert core.files(RENDERED) == []
    assert fleet.sweep().out == "nothing to do\n"
    core.fsck()


def test_a_repository_that_nobody_declares_is_named(fleet: Fleet):
    name = remove_target(fleet, "cph")
    fleet.remove("repository-core.yaml")
    refused = remove(fleet, name)
    assert refused.code == 2
    assert "core.git#refs/heads/main" in refused.err
    assert (
        "declare the Repository again with this URL and branch, or set deletionPolicy: Orphan to"
        " leave the package as it is" in refused.err
    )
    orphaning(fleet)
    assert remove(fleet, name).code == 0
    assert fleet.sweep().err == ""


def test_a_package_that_was_removed_by_hand_is_forgotten(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit("main", dict.fromkeys((it for it in edge.files() if it.startswith(AMS)), None))
    head = edge.refs()["refs/heads/main"]
    done = remove(fleet, remove_target(fleet))
    assert (done.code, edge.refs()["refs/heads/main"]) == (0, head)
    assert fleet.sweep().err == ""


def test_a_removal_that_the_remote_refuses_is_finished_by_a_rerun(fleet: Fleet):
    edge, name = fleet.repos["edge"], remove_target(fleet)
    edge.hook("pre-receive", "echo no; exit 1")
    before = edge.refs()
    assert remove(fleet, name).code not in (0, 2)
    assert edge.refs() == before
    assert "remove the package edge:sites/ams" in fleet.sweep().err
    edge.hook("pre-receive", "exit 0")
    assert remove(fleet, name).code == 0
    assert fleet.sweep().err == ""


def moved_tag(fleet: Fleet) -> None:
    upstream = fleet.repos["blueprints"]
    commit = upstream.commit("main", {"monitoring/x.txt": "x\n"})
    upstream.git("update-ref", "refs/tags/monitoring/v1", commit)


def no_upstream(fleet: Fleet) -> None:
    fleet.remove("repository-blueprints.yaml")


def no_revision(fleet: Fleet) -> None:
    policy = (fleet.root / "policies" / "policy.yaml").read_text()
    fleet.write("policy.yaml", policy.replace(">=1 <9", ">=7 <9"))


def away(fleet: Fleet) -> None:
    path = fleet.repos["blueprints"].path
    path.rename(path.with_suffix(".away"))


STOPS = [
    ("a tag that moved", moved_tag, "TagMoved"),
    ("an upstream that nobody declares", no_upstream, "UnknownRepository"),
    ("no revision that fits", no_revision, "NoRevision"),
    ("an upstream that does not answer", away, "RemoteNotFound"),
]


@pytest.mark.parametrize(("_", "stop", "reason"), STOPS, ids=[row[0] for row in STOPS])
@pytest.mark.parametrize("sites", ["ams", "ams ber cph"], ids=["one site", "every site"])
def test_a_stopped_policy_still_removes_variants(fleet: Fleet, _, stop, reason, sites):
    names = [remove_target(fleet, site) for site in sites.split()]
    stop(fleet)
    [policy] = fleet.run("get", "policies", "-o", "json").items
    assert policy["status"]["conditions"][0]["reason"] == reason
    for name in names:
        assert remove(fleet, name).code == 0
    remaining = [it for it in fleet.repos["edge"].files() if it.startswith(AMS)]
    assert remaining == []
    views = fleet.run("get", "targets", "-o", "json").views
    assert [it for it in views if it["target"] in names] == []


def test_a_record_that_cannot_be_read_stops_a_removal(fleet: Fleet):
    name, before = remove_target(fleet), fleet.refs()
    fleet.records().commit("fanout/default/default/monitoring", {"records/x.json": "{ no record"})
    assert remove(fleet, name).code != 0
    assert fleet.refs() == before


@pytest.mark.diagonal
@pytest.mark.parametrize("word", ["Delete", "Orphan"])
def test_a_removal_that_is_killed_anywhere_is_finished_by_a_rerun(tmp_path: Path, word: str):
    fleet = Fleet.build(tmp_path / "live", {"ams": ("dev", "edge")})
    fleet.write("policy.yaml", PLAIN)
    fleet.settle()
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    name = next(it for it in _names(fleet) if "ams" in it)
    text = PLAIN.replace("sites/ams, ", "") + f"  deletionPolicy: {word}\n"
    fleet.write("policy.yaml", text)
    edge = fleet.repos["edge"]

    def outcome() -> object:
        views = fleet.run("get", "targets", "-o", "json").views
        return edge.refs(), [it["target"] for it in views]

    driver = killer(fleet)
    line = ["remove", "monitoring", name, *ANN]
    # once the status forgot it, there is nothing to run again
    assert driver.everywhere(line, outcome) > 4
    assert [it for it in edge.files() if it.startswith(AMS)] == (
        [] if word == "Delete" else [f"{AMS}/{path}" for path in sorted(PACKAGE)]
    )


def _names(fleet: Fleet) -> list[str]:
    items = fleet.run("get", "variants", "-o", "json").items
    return [item["metadata"]["name"] for item in items]
