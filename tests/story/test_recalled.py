"""A process that stays answers as one that was started this moment, whatever changed."""

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, PROMOTION, Fleet
from msgspec.structs import force_setattr

from fanout.cli.startup import Program, open_program
from fanout.reconcile.pass_scope import PassMode

SITES = {"ams": ("dev", "edge"), "ber": ("prod", "core"), "cph": ("prod", "edge")}


@company
def fleet(root: Path) -> Fleet:
    """Dev is published and passed; prod has drafts and waits for the soak."""
    made = Fleet.build(root, SITES)
    made.settle()
    made.report("dev", "v1")
    made.settle()
    return made.later(minutes=5)


def nothing(_: Fleet) -> None:
    """Time alone goes on."""


def a_release(fleet: Fleet) -> None:
    fleet.release("v2")


def what_is_injected(fleet: Fleet) -> None:
    fleet.site("ber", "prod", "core", retention="30d")


def what_is_injected_everywhere(fleet: Fleet) -> None:
    for name, (tier, repository) in SITES.items():
        fleet.site(name, tier, repository, retention="31d")


def another_stage(fleet: Fleet) -> None:
    fleet.site("cph", "dev", "edge")


def a_move(fleet: Fleet) -> None:
    fleet.site("ams", "dev", "core")


def a_target_less(fleet: Fleet) -> None:
    fleet.remove("site-cph.yaml")


def a_new_target(fleet: Fleet) -> None:
    fleet.site("dub", "dev", "core")


def other_paths(fleet: Fleet) -> None:
    fleet.write("policy.yaml", POLICY.replace("'sites/' +", "'places/' +"))


def another_policy_for_the_same_paths(fleet: Fleet) -> None:
    fleet.write("policy-other.yaml", POLICY.replace("name: monitoring}", "name: other}"))


def adoption(fleet: Fleet) -> None:
    spec = "spec:\n  adoptionPolicy: AdoptExisting\n"
    fleet.write("policy.yaml", POLICY.replace("spec:\n", spec, 1))


def conflicts_held(fleet: Fleet) -> None:
    fleet.write("policy.yaml", POLICY.replace("spec:\n", "spec:\n  onConflict: LocalWins\n", 1))


def a_failure_reported(fleet: Fleet) -> None:
    assert fleet.report("dev", "v1", "failed").code == 0


def suspension(fleet: Fleet) -> None:
    assert fleet.run("suspend", "monitoring", "--stage", "prod", "--reason", "why").code == 0


def promotion_by_hand(fleet: Fleet) -> None:
    result = fleet.run(
        "promote", "monitoring", "--stage", "prod", "--override", "soak", "--reason", "why"
    )
    assert result.code == 0, result.err


def automation_off(fleet: Fleet) -> None:
    fleet.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', "stages: [dev]"))


def a_person_s_edit(fleet: Fleet) -> None:
    text = fleet.repos["edge"].git("show", "main:sites/ams/deployment.yaml")
    edited = text.replace("replicas: 1", "replicas: 5")
    fleet.repos["edge"].commit("main", {"sites/ams/deployment.yaml": edited})


def a_package_removed(fleet: Fleet) -> None:
    files = fleet.repos["edge"].git("ls-tree", "-r", "--name-only", "main", "sites/ams").split()
    fleet.repos["edge"].commit("main", dict.fromkeys(files))


def a_draft_merged(fleet: Fleet) -> None:
    [ref] = [ref for ref in fleet.repos["core"].refs() if "/drafts/" in ref]
    fleet.repos["core"].git("update-ref", "refs/heads/main", ref)


def a_commit_on_a_draft(fleet: Fleet) -> None:
    [ref] = [ref for ref in fleet.repos["core"].refs() if "/drafts/" in ref]
    branch = ref.removeprefix("refs/heads/")
    fleet.repos["core"].commit(branch, {"sites/ber/notes.txt": "mine\n"})


def a_draft_less(fleet: Fleet) -> None:
    [ref] = [ref for ref in fleet.repos["core"].refs() if "/drafts/" in ref]
    fleet.repos["core"].git("update-ref", "-d", ref)


def the_branch_of_renderings_less(fleet: Fleet) -> None:
    fleet.repos["edge"].git("update-ref", "-d", "refs/heads/fanout/default/rendered")


def another_tag(fleet: Fleet) -> None:
    fleet.repos["edge"].git("update-ref", "refs/tags/sites/ams/v7", "refs/heads/main")


def a_repository_away(fleet: Fleet) -> None:
    path = fleet.repos["core"].path
    path.rename(path.with_name("away"))


def the_revision_s_tag_less(fleet: Fleet) -> None:
    fleet.repos["blueprints"].git("update-ref", "-d", "refs/tags/monitoring/v1")


def a_fault(fleet: Fleet) -> None:
    fleet.write("policy.yaml", POLICY.replace("stageExpr: target", "stageExpr: targett"))


Change = Callable[[Fleet], None]
CHANGES: list[Change] = [
    nothing, a_release, what_is_injected, what_is_injected_everywhere, another_stage, a_move,
    a_target_less, a_new_target, other_paths, another_policy_for_the_same_paths, adoption,
    conflicts_held, a_failure_reported, suspension, promotion_by_hand, automation_off,
    a_person_s_edit, a_package_removed, a_draft_merged, a_commit_on_a_draft, a_draft_less,
    the_branch_of_renderings_less, another_tag, a_repository_away, the_revision_s_tag_less, a_fault,
]  # fmt: skip
PAIRS = [
    (what_is_injected, a_move),
    (a_person_s_edit, a_release),
    (a_release, what_is_injected),
    (a_draft_merged, what_is_injected_everywhere),
    (another_stage, suspension),
    (a_commit_on_a_draft, a_release),
    (other_paths, nothing),
    (a_move, a_new_target),
    (a_package_removed, a_release),
]


def results_of(program: Program) -> list[object]:
    """All that a pass of the program comes to, now."""
    seen = program.observe(PassMode())
    return [
        [str(problem) for problem in (it.error for it in seen.policies) if problem],
        [it.resolved_policy for it in seen.policies],
        [it.decision for it in seen.policies],
        [it.facts.variants for it in seen.policies if it.facts is not None],
        seen.plan,
        seen.changes,
        seen.warnings,
        [str(it) for it in seen.problems],
    ]


def same(fleet: Fleet, changes: tuple[Change, ...]) -> None:
    with open_program(fleet.settings(), long_running=True) as staying:
        staying.observe(PassMode())
        for change in changes:
            change(fleet)
            fleet.later(minutes=1)
            with fleet.opened() as other:
                anew = results_of(other)
            force_setattr(staying, "settings", fleet.settings())
            assert results_of(staying) == anew, change.__name__
            assert results_of(staying) == anew, f"{change.__name__}, and once more"


@pytest.mark.parametrize("change", CHANGES, ids=lambda it: it.__name__.replace("_", " "))
def test_after_a_change(fleet: Fleet, change: Change):
    same(fleet, (change,))


@pytest.mark.parametrize(
    "changes",
    [order for pair in PAIRS for order in permutations(pair)],
    ids=lambda it: ", then ".join(change.__name__.replace("_", " ") for change in it),
)
def test_after_one_change_and_another(fleet: Fleet, changes: tuple[Change, ...]):
    same(fleet, changes)
