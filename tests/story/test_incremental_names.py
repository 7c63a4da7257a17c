"""Names when some files changed: as if all were named anew, and only what changed is asked."""

from collections.abc import Callable
from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet

from fanout.cluster.file_cluster import FileCluster
from fanout.reconcile.selection.policy_resolution import resolve_policies

SITES = {"ams": ("dev", "edge"), "ber": ("prod", "core"), "cph": ("prod", "edge")}
KEPT = {"ams", "ber", "cph"}


@company
def fleet(root: Path) -> Fleet:
    """Three sites and a policy; nothing was swept."""
    return Fleet.build(root, SITES)


def nothing(fleet: Fleet) -> None:
    fleet.write("more.yaml", "# nothing in it\n")


def a_new_site(fleet: Fleet) -> None:
    fleet.site("dub", "dev", "core")


def another_stage(fleet: Fleet) -> None:
    fleet.site("ams", "prod", "edge")


def another_repository(fleet: Fleet) -> None:
    fleet.site("ams", "dev", "core")


def an_unknown_repository(fleet: Fleet) -> None:
    fleet.site("ams", "dev", "nowhere")


def a_site_less(fleet: Fleet) -> None:
    fleet.remove("site-ams.yaml")


def only_its_config(fleet: Fleet) -> None:
    fleet.site("ams", "dev", "edge", retention="9d")


def the_policy(fleet: Fleet) -> None:
    fleet.write("policy.yaml", POLICY.replace("'sites/' +", "'places/' +"))


def a_broken_expression(fleet: Fleet) -> None:
    fleet.write("policy.yaml", POLICY.replace("target.spec.repository", "target.spec.repo"))


def a_directory(fleet: Fleet) -> None:
    path = fleet.root / fleet.policies / "repository-edge.yaml"
    path.write_text(path.read_text().replace("spec: {", "spec: {directory: base, "))


def a_repository_less(fleet: Fleet) -> None:
    fleet.remove("repository-edge.yaml")


CHANGES: list[tuple[Callable[[Fleet], None], set[str]]] = [
    (nothing, KEPT),
    (a_new_site, KEPT),
    (another_stage, KEPT - {"ams"}),
    (another_repository, KEPT - {"ams"}),
    (an_unknown_repository, KEPT - {"ams"}),
    (a_site_less, KEPT - {"ams"}),
    (only_its_config, KEPT),
    (the_policy, set()),
    (a_broken_expression, set()),
    (a_directory, {"ber"}),
    (a_repository_less, {"ber"}),
]


@pytest.mark.parametrize(
    ("change", "kept"), CHANGES, ids=lambda it: getattr(it, "__name__", "").replace("_", " ")
)
def test_names_are_as_if_all_were_asked(
    fleet: Fleet, change: Callable[[Fleet], None], kept: set[str]
):
    with fleet.opened() as program:
        sandbox, cluster = program.world.sandbox, program.inventory
        before = resolve_policies(cluster.read(), sandbox)
        change(fleet)
        after = resolve_policies(cluster.read(), sandbox, before)
        anew = FileCluster([fleet.root / fleet.policies]).read()
        assert after == resolve_policies(anew, sandbox)
    old = {id(spec) for named in before for spec in named.variants}
    same = {spec.path.partition("/")[2] for it in after for spec in it.variants if id(spec) in old}
    assert same == kept


def test_a_target_without_a_result_is_evaluated_again(fleet: Fleet):
    fleet.write("site-ams.yaml", "apiVersion: infra.example.com/v1\nkind: Cluster\n"
                "metadata: {name: ams}\nspec: {repository: edge}\n")  # fmt: skip
    with fleet.opened() as program:
        sandbox = program.world.sandbox
        before = resolve_policies(program.inventory.read(), sandbox)
        [failure] = before[0].failures
        nothing(fleet)
        after = resolve_policies(program.inventory.read(), sandbox, before)
    assert after[0].failures == (failure,)
