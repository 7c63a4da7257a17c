"""Branches that remove packages: when they are written."""

from fanout.api.results import Hold
from fanout.plan.changes.branch_changes import plan_branches
from fanout.plan.changes.package_removal import PackageRemoval
from fanout.plan.changes.planned_sets import SetOwner, plan_removal_sets
from fanout.plan.commit_statement import parse_message
from fanout.plan.observation.repository_state import (
    PathState,
    Remote,
    RepositoryState,
    SetState,
)
from fanout.values import replace

OWNER = SetOwner("default", "team", "web")
REF = OWNER.find_ref("prod")
HELD = Hold("SweepAwaited", "later")


def state(*present: str, draft: SetState | None = None) -> RepositoryState:
    return RepositoryState(
        remote=Remote("https://git.example.com/team/edge.git"),
        branch="refs/heads/main",
        refs={REF: draft.commit} if draft else {},
        head="4ead",
        head_time=7,
        path_states={it: PathState(f"tree of {it}") for it in present},
        sets={REF: draft} if draft else {},
    )


def draft(*removed: str, edited: bool = False) -> SetState:
    return SetState(
        ref=REF,
        commit="t1p",
        timestamp=9,
        base="ba5e",
        policy="team/web",
        stage="prod",
        removed_trees={it: f"tree of {it}" for it in removed},
        is_edited=edited,
    )


def plan(observed: RepositoryState, *wanted: str, held: tuple[str, ...] = ()):
    removals = [
        PackageRemoval(
            variant=f"variant {it}",
            stage="prod",
            repository="edge",
            repository_state=observed,
            path=it,
            tree=f"tree of {it}",
            reason="its target is gone",
            hold=HELD if it in held else None,
        )
        for it in (*wanted, *held)
    ]
    return plan_removal_sets(OWNER, {"edge": observed}, removals)


def test_at_most_sixteen_packages_are_in_a_commit():
    names = [f"sites/{number:02}" for number in range(40)]
    [planned] = plan(state(*names), *names)
    assert planned.write is not None
    assert [len(it.dropped_paths) for it in planned.write.commits] == [16, 16, 8]
    assert (planned.write.parent, planned.hold) == ("4ead", None)
    read = [parse_message(it.message) for it in planned.write.commits]
    assert [path for it in read if it for path in it.removed] == names
    assert {it.timestamp for it in planned.write.commits} == {7}


def test_a_draft_that_removes_what_is_to_go_is_left_as_it_is():
    [planned] = plan(state("a", "b", draft=draft("a", "b")), "a", "b")
    assert (planned.write, planned.is_removed) == (None, False)
    assert [it.path for it in planned.removals] == ["a", "b"]


def test_a_held_removal_stays_in_its_draft_and_joins_no_draft():
    [planned] = plan(state("a", "b", draft=draft("a")), held=("a", "b"))
    assert (planned.write, planned.hold) == (None, HELD)
    assert [it.path for it in planned.removals] == ["a"]
    assert plan(state("a"), held=("a",)) == ()


def test_a_draft_whose_packages_all_stay_is_removed():
    [planned] = plan(state("a", draft=draft("a")))
    assert (planned.write, planned.is_removed) == (None, True)


def test_a_package_that_was_changed_since_is_removed_anew():
    observed = state("a", draft=draft("a"))
    removals = [replace(it, tree="new") for it in plan(observed, "a")[0].removals]
    [planned] = plan_removal_sets(OWNER, {"edge": observed}, removals)
    assert planned.write is not None
    assert planned.write.parent == "4ead"


def test_drafts_of_other_policies_are_left_alone():
    other = replace(draft("a"), policy="team/other")
    assert plan(state("a", draft=other)) == ()


def test_a_branch_that_two_owners_of_one_name_give_up_is_removed_once():
    """A policy may have the name of a variant written by hand."""
    observed = state("a", draft=draft("a"))
    changes = plan_branches(observed, (), (), (), [*plan(observed), *plan(observed)])
    assert changes.removed_refs == (REF,)
