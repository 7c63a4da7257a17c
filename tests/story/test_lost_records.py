"""Records are not where they are looked for: nothing is decided anew unless a person says so."""

import shutil
from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, POLICY, Fleet
from rewinding import RECORDS_BRANCH, moved

BY = ("--by", "Ann <ann@example.com>")
EDITED = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 9")
NOTHING_LEFT = (
    "that monitoring-ams-047978a1d8 is gone with its target; nothing of it is on a branch"
)
FREEZE = ("suspend", "monitoring", "--stage", "prod", "--reason", "freeze", *BY)


@company
def frozen(root: Path) -> Fleet:
    """Prod is suspended, everything else is done."""
    made = Fleet.build(root)
    made.write("policy.yaml", POLICY.replace(", soak: 1h", ""))
    made.settle()
    made.run(*FREEZE)
    made.report("dev", "v1")
    made.settle()
    assert made.states()["sites/ber"] == "Suspended"
    return made


VERBS = [
    ("a sweep", ("sweep",)),
    ("a plan", ("plan",)),
    ("a table", ("get", "stages")),
    ("an explanation", ("explain", "monitoring")),
    ("a decision", (*FREEZE,)),
    ("a sweep of a policy that never did anything", ("sweep", "idle")),
]


@pytest.mark.parametrize(("_", "line"), VERBS, ids=[row[0] for row in VERBS])
def test_deleted_records_are_missed(frozen: Fleet, _, line):
    frozen.policy("idle", ("tier", "level"), ("spec.repository", "spec.place"))
    before = frozen.refs()
    shutil.rmtree(frozen.root / frozen.state)
    result = frozen.run(*line)
    assert result.code == 2
    assert str(frozen.records().path) in result.err
    assert "core.git" in result.err
    assert "fanout/default/rendered" in result.err
    assert "--records" in result.err
    assert "--new-records" in result.err
    assert frozen.refs() == before
    assert not frozen.records().path.exists()


def test_a_mistyped_address_is_noticed(frozen: Fleet, tmp_path: Path):
    empty = frozen.repository("empty", declare=False).path
    before = frozen.refs()
    for path in (tmp_path / "recrods.git", empty):
        result = frozen.run("sweep", "--records", str(path))
        assert result.code == 2
        assert str(path) in result.err
    assert frozen.refs() == before
    assert not (tmp_path / "recrods.git").exists()


def test_drafts_alone_show_that_there_were_records(fleet: Fleet):
    fleet.sweep("--drafts-only")
    for repo in fleet.repos.values():
        repo.git("update-ref", "-d", "refs/heads/fanout/default/rendered")
    shutil.rmtree(fleet.records().path)
    before = fleet.refs()
    swept = fleet.sweep()
    assert swept.code == 3
    assert "core.git" in swept.err
    assert "drafts/default/sites/cph/monitoring" in swept.err
    assert fleet.refs() == before


TRACES = "refs/heads/fanout/default/_records"


def drop(refs: dict[str, str]) -> dict[str, str]:
    return {ref: oid for ref, oid in refs.items() if ref != TRACES}


def without_traces(fleet: Fleet) -> dict[str, dict[str, str]]:
    return {name: drop(refs) for name, refs in fleet.refs().items()}


def test_new_records_begin_on_request(frozen: Fleet):
    before, published = frozen.refs(), frozen.published()
    shutil.rmtree(frozen.records().path)
    assert frozen.plan("--new-records").code == 0
    assert not frozen.records().path.exists()
    assert frozen.sweep("--new-records").code == 0
    assert without_traces(frozen) == {name: drop(refs) for name, refs in before.items()}
    assert frozen.repos["edge"].files(TRACES) == [], "the suspension is given up there, too"
    assert frozen.published() == published
    assert frozen.states()["sites/ber"] == "Drafted"
    assert frozen.sweep().out == "nothing to do\n", "it is said once"


def test_a_process_that_stays_never_discards_its_records(fleet: Fleet):
    assert "No such option '--new-records'" in fleet.run("run", "--new-records").err
    result = fleet.run("--new-records", "run")
    assert result.code == 1
    assert "fanout sweep --new-records" in result.err


def test_records_of_others_are_not_those_of_a_policy(frozen: Fleet):
    """Another company's records are not empty, yet nothing of this policy is in them."""
    other = frozen.repository("other-records", declare=False).path
    branch = "refs/heads/fanout/default/default/logging"
    frozen.repos["other-records"].git("update-ref", branch, "main")
    published = frozen.refs()
    swept = frozen.sweep("--records", str(other))
    assert swept.code == 3
    assert frozen.plan("-o", "json", "--records", str(other)).problems == [("", "RecordsLost")]
    assert "core.git" in swept.err
    assert "drafts/default/sites/cph/monitoring" in swept.err
    for site in ("ber", "cph"):
        frozen.remove(f"site-{site}.yaml")
    for name in ("core", "edge"):
        for draft in frozen.repos[name].refs("refs/heads/drafts"):
            frozen.repos[name].git("update-ref", "-d", draft)
    swept = frozen.sweep("--records", str(other))
    assert "edge.git" in swept.err
    assert "sites/ams/v1" in swept.err
    assert frozen.repos["edge"].tags() == ["sites/ams/v1"]
    assert published["edge"]["refs/heads/main"] == frozen.refs()["edge"]["refs/heads/main"]
    assert frozen.sweep("--records", str(other), "--new-records").code == 0
    assert frozen.sweep("--records", str(other)).out == "nothing to do\n"


def test_a_new_policy_among_others_needs_no_word(frozen: Fleet):
    frozen.policy("second")
    assert frozen.sweep().code == 0
    assert "sites/ams/monitoring" not in frozen.repos["edge"].drafts()
    assert "second/ams/second" in frozen.repos["edge"].drafts()


def test_the_path_of_created_records_is_printed_once(fleet: Fleet, tmp_path: Path):
    path = tmp_path / "elsewhere" / "records.git"
    fleet.plan("--records", str(path))
    assert not path.exists()
    assert str(path) in fleet.sweep("--records", str(path)).err
    assert path.exists()
    assert str(path) not in fleet.sweep("--records", str(path)).err


READERS = [("plan",), ("get", "variants"), ("get", "drafts"), ("explain", "monitoring")]


@pytest.mark.parametrize("line", READERS, ids=" ".join)
def test_a_reading_command_creates_no_records(fleet: Fleet, line):
    fleet.run(*line)
    assert not fleet.records().path.exists()


def test_a_new_beginning_is_one_also_where_it_can_do_nothing(frozen: Fleet):
    edge = frozen.repos["edge"]
    edge.commit("main", {path: None for path in edge.files() if path.startswith("sites/")})
    shutil.rmtree(frozen.root / frozen.state)
    assert "--new-records" in frozen.sweep().err
    begun = frozen.sweep("--new-records")
    assert (begun.code, begun.out) == (3, "1 recorded\n")
    again = frozen.sweep()
    assert (again.code, again.out) == (3, "nothing to do\n")
    assert frozen.states()["sites/ams"] == "Held"


def test_a_publication_is_recovered_behind_a_draft_of_a_later_revision(fleet: Fleet):
    """The draft that is there says nothing of it; the tag and fanout's own branch do."""
    fleet.settle()
    fleet.repos["edge"].commit("main", {"sites/ams/deployment.yaml": EDITED}, "by hand")
    fleet.release("v2")
    fleet.sweep("--drafts-only")
    before, published, states = fleet.refs(), fleet.published(), fleet.states()
    assert published["sites/ams"] == "v1"
    assert "sites/ams/monitoring" in fleet.repos["edge"].drafts()
    shutil.rmtree(fleet.records().path)
    assert fleet.later(minutes=1).sweep("--drafts-only", "--new-records").code == 3
    assert fleet.published() == published
    assert fleet.states() == states
    assert fleet.refs() == before
    assert fleet.sweep("--drafts-only").out == "nothing to do\n", "it is said once"
    fleet.remove("site-ams.yaml")
    plan = fleet.plan()
    assert NOTHING_LEFT not in plan.out
    assert "the package sites/ams" in plan.err


@pytest.mark.parametrize("edited", [False, True], ids=["as it was published", "edited"])
def test_a_draft_leads_to_the_package_of_a_target_that_is_gone(fleet: Fleet, edited: bool):
    """The records began anew when the target was gone already: its package is nobody's else."""
    fleet.settle()
    edge = fleet.repos["edge"]
    if edited:
        edge.commit("main", {"sites/ams/deployment.yaml": EDITED}, "by hand")
    fleet.release("v2")
    fleet.sweep("--drafts-only")
    shutil.rmtree(fleet.records().path)
    fleet.remove("site-ams.yaml")
    begun = fleet.later(minutes=1).sweep("--new-records")
    assert NOTHING_LEFT not in begun.out + begun.err
    files = [path for path in edge.files() if path.startswith("sites/ams/")]
    if edited:
        assert "the package sites/ams" in begun.err
        assert edge.file("main", "sites/ams/deployment.yaml") == EDITED
    else:
        assert files == []
        assert "sites/ams/monitoring" not in edge.drafts()


RENAMED = [  # the new name; among the branches of other policies; for a process that never saw it
    ("archive/monitoring", False, True),
    ("archive/monitoring", True, False),
    ("fanout/old/default/monitoring", False, False),
    ("fanout/default/default/old", True, True),
]


@pytest.mark.parametrize(("name", "several", "fresh"), RENAMED)
def test_a_renamed_branch_of_records_is_reported_as_renamed(frozen: Fleet, name, several, fresh):
    if several:
        frozen.policy("second")
        frozen.sweep("second", "--drafts-only")
    records, renamed = frozen.records(), f"refs/heads/{name}"
    records.git("update-ref", renamed, RECORDS_BRANCH)
    records.git("update-ref", "-d", RECORDS_BRANCH)
    if fresh:
        records = moved(frozen, "fresh").records()
    swept = frozen.sweep()
    assert swept.code in (2, 3)
    branch = RECORDS_BRANCH.removeprefix("refs/heads/")
    assert f"{records.path} has no branch {branch}, but 1 with another name" in swept.err
    assert f"if a branch there has the records, rename it back to {branch};" in swept.err
    listed = f"`git ls-remote {records.path}`"
    assert listed in swept.err
    assert renamed in records.git(*listed.strip("`").split()[1:])
    shown = swept.err + frozen.run("explain", "monitoring").out
    for destroying in ("--new-records", "accept-records", "remove"):
        assert destroying not in shown
    records.git("update-ref", RECORDS_BRANCH, renamed)
    records.git("update-ref", "-d", renamed)
    frozen.sweep()
    assert frozen.states()["sites/ber"] == "Suspended"
