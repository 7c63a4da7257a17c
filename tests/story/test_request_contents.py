"""Contents of pull requests from the variants of a company, without a forge."""

import shutil
from pathlib import Path

import pytest
from companies import company
from editing import AMS, DEPLOYMENT, TEXT
from fleet import PACKAGE, POLICY, PROMOTION, Fleet

from fanout.api.promotion_policy import MergeMethod
from fanout.cli.startup import Program
from fanout.plan.decided_variant import DecidedVariant, VariantStep
from fanout.plan.pull_requests.request_content import build_content
from fanout.plan.pull_requests.request_group import RequestGroup
from fanout.plan.pull_requests.request_layout import format_difference
from fanout.plan.pull_requests.request_text import format_request
from fanout.plan.pull_requests.request_values import PackageChange, RequestContent, RequestReadings
from fanout.reconcile.pass_scope import PassMode
from fanout.reconcile.pull_requests import package_changes
from fanout.reconcile.pull_requests.package_changes import PackageChangeReader
from fanout.reconcile.pull_requests.upstream_history import UpstreamHistoryReader
from fanout.values import replace

BY = ("--reason", "why", "--by", "Ann <ann@example.com>")
SIGNED = "requires: [{name: signed-off, approval: {atLeast: 1, from: [sre]}}]"
BRANCH = "drafts/default/sites/ams/monitoring"


@company
def fleet(root: Path) -> Fleet:
    """A site with a hot fix; the drafts of later revisions wait for an approval."""
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.settle()
    made.write("policy.yaml", POLICY.replace("{name: dev, ", f"{{name: dev, {SIGNED}, "))
    edge = made.repos["edge"]
    edge.commit("main", {DEPLOYMENT: TEXT.replace("replicas: 1", "replicas: 7")}, "hot fix")
    made.later(minutes=1)
    return made


def read_group(program: Program) -> RequestGroup:
    """The variants as the pass finds them, as if a forge were there."""
    [result] = program.observe(PassMode()).policies
    assert result.decision is not None
    first = result.variants[0]
    return RequestGroup(
        namespace=first.spec.namespace,
        policy=first.spec.policy,
        stage=first.spec.stage,
        repository=first.spec.repository,
        state=first.observed.repository_state,
        ref=first.observed.draft_ref,
        members=tuple(
            DecidedVariant(
                variant, VariantStep.KEEP, evaluation=result.decision.variants[variant.spec.name]
            )
            for variant in result.variants
        ),
    )


def read_content(fleet: Fleet) -> RequestContent:
    with fleet.opened() as program:
        group = read_group(program)
        [result] = program.observe(PassMode()).policies
        variants = [it.rendered for it in group.members]
        readings = PackageChangeReader(program.world.git).read_changes(variants)
        reader = UpstreamHistoryReader(program.world.git, {})
        histories = reader.read_histories(result.resolved_policy, variants)
    return build_content(group, MergeMethod.DIRECT, replace(readings, histories=histories))


def patch_of(content: RequestContent) -> str:
    return "\n".join(line for change in content.changes for line in change.lines)


def test_a_draft_that_is_to_be_written_says_what_the_written_one_says(fleet: Fleet):
    fleet.release("v2")
    planned = read_content(fleet)
    assert "-  replicas: 7\n+  replicas: 2" in patch_of(planned)
    fleet.sweep()
    written = read_content(fleet)
    assert (planned.changes, planned.conflicts) == (written.changes, written.conflicts)
    assert (planned.variants, planned.upstreams) == (written.variants, written.upstreams)
    assert format_request(read_content(fleet.later(hours=5))) == format_request(written)


def test_a_conflict_is_undecided_until_a_person_decides_it(fleet: Fleet):
    fleet.release("v2")
    fleet.sweep()
    [conflict] = read_content(fleet).conflicts
    key = conflict.message.rpartition("(conflict ")[2].removesuffix(")")
    assert conflict.message == (
        "deployment.yaml: Deployment/prometheus: spec.replicas: upstream 2 stands, local 7 not"
        f" taken (base 1) (conflict {key})"
    )
    assert not conflict.is_decided
    resolved = fleet.run("resolve", "monitoring", "--take", f"{key}=local", *BY)
    assert resolved.code == 0, resolved.err
    fleet.later(minutes=1).sweep()
    content = read_content(fleet)
    assert [it.is_decided for it in content.conflicts] == [True]
    assert "replicas" not in patch_of(content)


def test_a_commit_on_the_draft_decides_a_conflict_and_is_in_the_changes(fleet: Fleet):
    fleet.release("v2")
    fleet.sweep()
    text = TEXT.replace("replicas: 1", "replicas: 4")
    fleet.repos["edge"].commit(BRANCH, {DEPLOYMENT: text}, "four")
    content = read_content(fleet.later(minutes=1))
    [conflict] = content.conflicts
    assert conflict.is_decided
    assert "a commit on the draft has decided it since" in conflict.message
    assert "-  replicas: 7\n+  replicas: 4" in patch_of(content)


def test_long_changes_are_cut_and_counted(fleet: Fleet):
    lines = "".join(f"line {number}\n" for number in range(500))
    files = {f"many/{number:02}.txt": "x\n" for number in range(60)}
    fleet.release(
        "v2", {"a-long.txt": lines, "b-large.txt": "x" * 300_000, "settings.yaml": None, **files}
    )
    changes = read_content(fleet).changes
    assert {change.paths for change in changes} == {(AMS,)}
    shown = "\n".join(changes[0].lines)
    assert "+line 0\n" in shown
    assert "+line 499" not in shown
    assert "300,000 bytes, too long to compare" in shown
    assert changes[0].omitted == "305 more lines and 14 more files"
    # The Kptfile takes no place of the other files.
    assert changes[1].is_metadata
    assert "ref: monitoring/v2" in "\n".join(changes[1].lines)
    assert changes[2].omitted == "14 more files of each"


def test_changes_of_objects_are_in_numbers(fleet: Fleet):
    deployment = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 3")
    fleet.release("v2", {"deployment.yaml": deployment, "notes.txt": "new\n"})
    [changed] = read_content(fleet).changed
    assert changed.paths == (AMS,)
    # The hot fix of the site has 7, and the conflict is upstream's until a person decides.
    assert format_difference(changed.difference) == (
        "replicas 7 → 3, 1 file added, 1 file changed, 1 object changed"
    )


def test_changes_of_more_packages_than_are_read_are_counted(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(package_changes, "_MAX_PACKAGES", 1)
    fleet.site("ber", "dev", "edge")
    fleet.release("v2")
    changes = read_content(fleet).changes
    assert {it.paths for it in changes[:-1]} == {("sites/ams",)}
    assert changes[-1] == PackageChange(("sites/ber",), (), "the changes of 1 package")


def test_a_package_that_cannot_be_read_is_left_out(fleet: Fleet):
    fleet.release("v2")
    with fleet.opened() as program:
        group = read_group(program)
        shutil.rmtree(fleet.root / fleet.state / "mirrors")
        reader = PackageChangeReader(program.world.git)
        changes = reader.read_changes([it.rendered for it in group.members])
    assert changes == RequestReadings()


def test_upstream_s_commits_between_the_revisions(fleet: Fleet):
    blueprints = fleet.repos["blueprints"]
    blueprints.commit("main", {"other/file.txt": "x\n"}, "Another package")
    for number in range(25):
        blueprints.commit("main", {"monitoring/notes.txt": f"{number}\n"}, f"Note {number}\n\nx")
    fleet.release("v2", {"notes.txt": "last\n"})
    [history] = read_content(fleet).histories
    assert (history.package, history.old_revision, history.revision) == ("monitoring", "v1", "v2")
    subjects = [it.subject for it in history.commits]
    assert subjects[1:] == [f"Note {number}" for number in range(24, 5, -1)]
    assert (len(subjects), history.omitted, history.is_cut) == (20, 6, False)
    assert history.authors == ("Ada Author",)
    assert (history.tag_url, history.compare_url, history.commits[0].url) == ("", "", "")


def test_an_earlier_revision_takes_commits_back(fleet: Fleet):
    fleet.write("policy.yaml", POLICY)
    fleet.release("v2", {"notes.txt": "new\n"})
    fleet.later(minutes=1).settle()
    fleet.write("policy.yaml", POLICY.replace('{semver: ">=1 <9"}', "{tag: v1}"))
    [history] = read_content(fleet.later(minutes=1)).histories
    assert (history.old_revision, history.revision) == ("v2", "v1")
    assert history.is_backward
    assert len(history.commits) == 1


def test_variants_without_a_request_have_nothing_read_for_them(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> None:
        raise AssertionError("there is no forge")

    monkeypatch.setattr(UpstreamHistoryReader, "read_histories", fail)
    monkeypatch.setattr(PackageChangeReader, "read_changes", fail)
    fleet.release("v2", {"notes.txt": "new\n"})
    fleet.sweep()


def test_a_move_says_from_where_to_where(fleet: Fleet):
    fleet.write("policy.yaml", POLICY)
    fleet.release("v2", {"notes.txt": "new\n"})
    fleet.later(minutes=1).settle()
    fleet.write("policy.yaml", POLICY.replace("'sites/'", "'other/'"))
    [moved] = read_content(fleet.later(minutes=1)).variants
    assert (moved.verb, moved.old_path, moved.path) == ("Move", "sites/ams", "other/ams")
    assert (moved.old_revision, moved.revision) == ("v2", "v2")


def test_an_approval_that_is_missing_is_among_holds_and_checks(fleet: Fleet):
    fleet.write("promotion.yaml", PROMOTION)
    fleet.release("v2")
    fleet.sweep()
    content = read_content(fleet)
    assert "ApprovalMissing" in {it.hold.reason for it in content.holds}
    assert content.approval_checks == ("signed-off",)
    assert [it.result.name for it in content.checks] == ["signed-off"]
