"""The status fanout on pull requests of other people, on a real Gitea that requires it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fleet import PACKAGE, PROMOTION
from forge_fleet import ForgeFleet
from gitea_server import Gitea, GiteaError, await_condition

from fanout.reconcile.pass_scope import PassMode

pytestmark = pytest.mark.forge
SITES = {"a": ("dev", "edge"), "b": ("dev", "edge")}
MANUAL = PROMOTION + "  merge: Manual\n"
RULES = {"enable_push": False, "enable_status_check": True}
EDITED = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 7")
SUCCESS = "success: it changes no package that fanout manages"
FAILURE = "failure: it changes a package that fanout manages: sites/a"


@pytest.fixture
def fleet(gitea: Gitea, tmp_path: Path) -> ForgeFleet:
    """A company that has published, on a branch that requires the status."""
    made = ForgeFleet.on(gitea, tmp_path / "fleet", SITES)
    made.protect("edge", **RULES, status_check_contexts=["fanout"])
    settle(made)
    assert made.published() == {"sites/a": "v1", "sites/b": "v1"}
    return made


def settle(fleet: ForgeFleet) -> None:
    """Sweep until there is nothing to do."""
    for _ in range(8):
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == 0, swept.err
        if swept.out == "nothing to do\n":
            return
    raise AssertionError(swept.out)


def propose(fleet: ForgeFleet, branch: str, files: dict[str, Any], base: str = "main") -> int:
    """Ann commits to a branch, and opens a request from it."""
    fleet.repos["edge"].commit(branch, files, by="ann")
    opening = {"head": branch, "base": base, "title": f"From {branch}"}
    answer = fleet.gitea.post(f"{fleet.path('edge')}/pulls", opening, by="ann")
    return int(answer["number"])


def find_statuses(fleet: ForgeFleet, number: int) -> dict[str, str]:
    """State and description of the newest status of each context at a request's head."""
    path = fleet.path("edge")
    commit = fleet.gitea.get(f"{path}/pulls/{number}")["head"]["sha"]
    statuses = fleet.gitea.get(f"{path}/commits/{commit}/statuses?limit=50")
    statuses.sort(key=lambda it: it["id"])
    return {it["context"]: f"{it['status']}: {it['description']}" for it in statuses}


def test_a_request_beside_packages_can_be_merged(fleet: ForgeFleet):
    number = propose(fleet, "words", {"README.md": "# Better words\n"})
    with pytest.raises(GiteaError, match="405"):
        fleet.merge("edge", number)
    planned = fleet.later(minutes=1).plan()
    assert f"pull request {number} of edge: {SUCCESS}" in planned.out
    assert find_statuses(fleet, number) == {}
    assert fleet.later(minutes=1).sweep().out == "1 status set\n"
    assert find_statuses(fleet, number) == {"fanout": SUCCESS}
    fleet.merge("edge", number)
    assert fleet.repos["edge"].file("main", "README.md") == "# Better words\n"
    settle(fleet)


def test_a_request_that_changes_a_package_cannot_be_merged(fleet: ForgeFleet):
    number = propose(fleet, "replicas", {"sites/a/deployment.yaml": EDITED})
    settle(fleet)
    assert find_statuses(fleet, number) == {"fanout": FAILURE}
    with pytest.raises(GiteaError, match="405"):
        fleet.merge("edge", number)


def test_a_renamed_file_changes_what_it_leaves(fleet: ForgeFleet):
    moved = {"sites/a/deployment.yaml": None, "deployment.yaml": PACKAGE["deployment.yaml"]}
    number = propose(fleet, "away", moved)
    settle(fleet)
    assert find_statuses(fleet, number) == {"fanout": FAILURE}


def test_all_pages_of_changed_files_count(fleet: ForgeFleet):
    files = {f"notes/{index:02}.txt": f"{index}\n" for index in range(60)}
    number = propose(fleet, "notes", {**files, "sites/a/deployment.yaml": EDITED})
    settle(fleet)
    assert find_statuses(fleet, number) == {"fanout": FAILURE}


def test_a_push_is_evaluated_again(fleet: ForgeFleet):
    number = propose(fleet, "work", {"README.md": "# More\n"})
    settle(fleet)
    assert find_statuses(fleet, number) == {"fanout": SUCCESS}
    fleet.repos["edge"].commit("work", {"sites/a/deployment.yaml": EDITED}, by="ann")
    settle(fleet)
    assert find_statuses(fleet, number) == {"fanout": FAILURE}
    fleet.repos["edge"].commit(
        "work", {"sites/a/deployment.yaml": PACKAGE["deployment.yaml"]}, by="ann"
    )
    settle(fleet)
    assert find_statuses(fleet, number) == {"fanout": SUCCESS}


def test_a_package_that_is_only_drafted_is_not_theirs(fleet: ForgeFleet):
    number = propose(fleet, "early", {"sites/c/deployment.yaml": EDITED})
    settle(fleet)
    assert find_statuses(fleet, number) == {"fanout": SUCCESS}
    fleet.write("promotion.yaml", MANUAL)
    fleet.site("c", "dev", "edge")
    settle(fleet)
    assert find_statuses(fleet, number) == {
        "fanout": "failure: it changes a package that fanout manages: sites/c"
    }


def test_requests_from_forks_of_the_same_branch(fleet: ForgeFleet):
    numbers = []
    for person, file in (("ann", "notes.txt"), ("bob", "sites/a/notes.txt")):
        fork = f"{fleet.owner}-{person}"
        fleet.gitea.post(f"{fleet.path('edge')}/forks", {"name": fork}, by=person)
        content = {"content": "bm90ZQo=", "message": "Add a note", "branch": "main"}
        fleet.gitea.post(f"/repos/{person}/{fork}/contents/{file}", content, by=person)
        opening = {"head": f"{person}/{fork}:main", "base": "main", "title": "Add a note"}
        answer = fleet.gitea.post(f"{fleet.path('edge')}/pulls", opening, by=person)
        numbers.append(answer["number"])
    settle(fleet)
    assert [find_statuses(fleet, it) for it in numbers] == [
        {"fanout": SUCCESS},
        {"fanout": FAILURE},
    ]


def test_no_status_is_set_unless_the_branch_requires_it(gitea: Gitea, tmp_path: Path):
    fleet = ForgeFleet.on(gitea, tmp_path / "fleet", SITES)
    fleet.protect("edge", **RULES, status_check_contexts=["ci"])
    fleet.repos["edge"].commit("other", {"a.txt": "a\n"}, by="ann")
    number = propose(fleet, "words", {"README.md": "# Better words\n"})
    fleet.status("edge", fleet.requests("edge")[0]["commit"], "ci")
    fleet.later(minutes=1).sweep()
    assert set(find_statuses(fleet, number)) == {"ci"}


def test_a_request_to_another_branch_gets_none(fleet: ForgeFleet):
    fleet.repos["edge"].commit("other", {"a.txt": "a\n"}, by="ann")
    number = propose(fleet, "words", {"README.md": "# Better words\n"}, base="other")
    settle(fleet)
    assert find_statuses(fleet, number) == {}


def test_a_copy_of_a_draft_keeps_the_status_of_the_draft(fleet: ForgeFleet):
    fleet.write("promotion.yaml", MANUAL)
    fleet.release("v2")
    fleet.later(minutes=1).sweep()
    own = fleet.requests("edge")[-1]
    branch = {"new_branch_name": "copy", "old_ref_name": own["head"]}
    fleet.gitea.post(f"{fleet.path('edge')}/branches", branch, by="ann")
    opening = {"head": "copy", "base": "main", "title": "Mine"}
    fleet.gitea.post(f"{fleet.path('edge')}/pulls", opening, by="ann")
    before = find_statuses(fleet, own["number"])
    settle(fleet)
    assert find_statuses(fleet, own["number"]) == before


def is_skipped(fleet: ForgeFleet) -> bool:
    """Whether a new process answers from the snapshot of a pass without work."""
    with fleet.later(minutes=1).opened() as program:
        return program.find_noop_result(PassMode()) is not None


def settle_until_skipped(fleet: ForgeFleet) -> None:
    """Sweep until the next sweep is skipped."""
    await_condition(
        lambda: is_skipped(fleet) or fleet.later(minutes=1).sweep().code != 0,
        "there is always something to do",
        pause=0.5,  # what changed shortly before a reading is read again
    )
    assert is_skipped(fleet)


def test_a_request_from_a_branch_that_was_there_before(
    fleet: ForgeFleet, monkeypatch: pytest.MonkeyPatch
):
    """No ref changes with it, so that only the listing shows it."""
    # A pass that has the warning about local records to repeat is never skipped.
    monkeypatch.setattr("fanout.cli.startup._find_remote_repositories", lambda *_: [])
    fleet.repos["edge"].commit("words", {"README.md": "# Better words\n"}, by="ann")
    settle_until_skipped(fleet)
    opening = {"head": "words", "base": "main", "title": "Words"}
    number = fleet.gitea.post(f"{fleet.path('edge')}/pulls", opening, by="ann")["number"]
    assert not is_skipped(fleet)
    assert fleet.later(minutes=1).sweep().out == "1 status set\n"
    assert find_statuses(fleet, number) == {"fanout": SUCCESS}
    settle_until_skipped(fleet)


def test_unchanged_requests_cost_a_single_listing(fleet: ForgeFleet):
    propose(fleet, "words", {"README.md": "# Better words\n"})
    propose(fleet, "replicas", {"sites/a/deployment.yaml": EDITED})
    settle(fleet)
    fleet.calls()
    settle(fleet)
    calls = [it for it in fleet.calls() if fleet.path("edge") in it]
    assert [it.partition("?")[0] for it in calls] == [f"GET {fleet.path('edge')}/pulls"]


def test_two_installations_have_a_status_each(gitea: Gitea, tmp_path: Path):
    one = ForgeFleet.on(gitea, tmp_path / "one", {"a": ("dev", "edge")}, install="one")
    two = one.beside(tmp_path / "two", "two")
    two.remove("site-a.yaml")
    one.protect("edge", **RULES, status_check_contexts=["fanout/one", "fanout/two"])
    two.site("b", "dev", "edge")
    start = one.now
    while {it["state"] for it in one.requests("edge")} != {"merged"}:
        assert one.now < start + timedelta(minutes=20)
        assert one.later(minutes=1).sweep().code == 0
        assert two.later(minutes=1).sweep().code == 0
    assert len(one.requests("edge")) == 2
    assert (one.published(), two.published()) == ({"sites/a": "v1"}, {"sites/b": "v1"})
    number = propose(one, "replicas", {"sites/a/deployment.yaml": EDITED})
    one.later(minutes=1).sweep()
    two.later(minutes=1).sweep()
    assert find_statuses(one, number) == {"fanout/one": FAILURE, "fanout/two": SUCCESS}
