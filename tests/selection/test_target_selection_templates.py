"""From targets and answers to variants: what is asked, and what becomes of each answer."""

from typing import Any

import pytest

from fanout.api.git_repository import Repository
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.target_selection import TargetInventory, select_targets, usable_repositories
from fanout.selection.template_fields import list_repository_batches, list_variant_batches
from fanout.selection.variant_builder import VariantBuilder
from fanout.selection.variant_spec import ExpressionFailure, TargetFailure, VariantSpec


def repository(name: str, **spec: Any) -> Repository:
    labels = spec.pop("labels", {})
    namespace = spec.pop("namespace", "default")
    meta = {"name": name, "namespace": namespace, "labels": labels}
    return Repository.model_validate(
        {"kind": "Repository", "metadata": meta, "spec": {"url": f"/srv/{name}.git", **spec}}
    )


def policy(*targets: dict[str, Any]) -> UpstreamPolicy:
    return UpstreamPolicy.model_validate(
        {
            "kind": "UpstreamPolicy",
            "metadata": {"name": "web"},
            "spec": {
                "upstream": {
                    "repository": "up",
                    "package": "apps/web",
                    "revision": {"latest": True},
                },
                "targets": list(targets),
                "stages": [{"name": "dev"}],
            },
        }
    )  # fmt: skip


def cluster(name: str, namespace: str = "default", **labels: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "infra.example.com/v1", "kind": "Cluster", "metadata": meta}


def keys(made: UpstreamPolicy, *objects: dict[str, Any], repositories: Any = ()) -> list[str]:
    named = {item.metadata.name: item for item in repositories}
    return [
        target.key
        for target in select_targets(made, TargetInventory(named, ClusterObjectIndex(objects)))[0]
    ]


CLUSTER_KIND = ("infra.example.com", "Cluster")
CLUSTERS = {"objectSelector": {"apiVersion": "infra.example.com/v1", "kind": "Cluster"}}


def test_targets_chosen_before_are_the_same_for_the_same_objects():
    made = policy({"objectSelector": {**CLUSTERS["objectSelector"], "matchLabels": {"tier": "a"}}})
    before = ClusterObjectIndex([cluster("x", tier="a"), cluster("y", tier="a")])
    first, _ = select_targets(made, TargetInventory({}, before))
    changed = [cluster("x", tier="a"), cluster("y", tier="b"), cluster("z", tier="a")]
    after = before.with_objects({CLUSTER_KIND: ClusterObjectIndex(changed).of_kind(*CLUSTER_KIND)})
    previous = {it.key: it for it in first}
    second, _ = select_targets(made, TargetInventory({}, after, previous))
    assert [it.readable for it in second] == ["x", "z"]
    assert second[0] is first[0]


def test_repositories_times_package_names():
    made = policy({"repositories": [{"name": "b", "packageNames": ["y", "x"]}, {"name": "a"}]})
    assert keys(made) == ["Repository/a/apps/web", "Repository/b/x", "Repository/b/y"]


def test_a_repository_selector_chooses_by_label():
    made = policy({"repositorySelector": {"matchLabels": {"tier": "prod"}}})
    repositories = [repository("a", labels={"tier": "prod"}), repository("b")]
    assert keys(made, repositories=repositories) == ["Repository/default/a"]


def test_objects_are_those_of_the_policy_s_namespace_and_those_without_one_in_order():
    objects = [cluster("b"), cluster("a"), cluster("c", ""), cluster("d", "elsewhere")]
    assert keys(policy(CLUSTERS), *objects) == [
        "Cluster.infra.example.com//c",
        "Cluster.infra.example.com/default/a",
        "Cluster.infra.example.com/default/b",
    ]


def test_a_target_that_two_entries_choose_is_the_first_one_s():
    targets, twice = select_targets(
        policy(CLUSTERS, CLUSTERS), TargetInventory({}, ClusterObjectIndex([cluster("a")]))
    )
    assert [target.entry for target in targets] == [0]
    assert twice[0].field == "spec.targets[1]"
    assert "which spec.targets[0] selects already" in twice[0].problem


def test_a_namespace_may_use_its_own_and_lent_repositories():
    own, lent = repository("x"), repository("x", namespace="team", allowedNamespaces=["default"])
    other = repository("y", namespace="team", allowedNamespaces=["default"])
    closed = repository("z", namespace="team")
    assert usable_repositories("default", [lent, other, closed, own]) == {"x": own, "y": other}


TEMPLATE = {
    "stage": "dev",
    "downstream": {"repositoryExpr": "R", "packageExpr": "P"},
    "packageContext": {
        "data": {"a": "1"},
        "dataExprs": [{"keyExpr": "K", "value": "2"}],
        "removeKeyExprs": ["G"],
    },
    "labels": {"one": "1"},
    "labelExprs": [{"key": "one", "valueExpr": "L"}],
}


def answered(answers: dict[str, Any]) -> VariantSpec | TargetFailure | str:
    """The variant of one target, with these answers to its expressions."""
    made = policy(CLUSTERS | {"template": TEMPLATE})
    (target,), _ = select_targets(made, TargetInventory({}, ClusterObjectIndex([cluster("a")])))
    by_entry = {(0, text): {target.key: value} for text, value in answers.items()}
    assembly = VariantBuilder(made, by_entry)
    place = assembly.find_repository(target)
    if isinstance(place, TargetFailure):
        return place
    return assembly.build_variant(target, repository(place, directory="base"))


GOOD = {"R": "edge", "P": "sites/a", "K": "b", "L": "9", "G": "c"}


def test_answers_fill_the_template_and_win_over_what_is_static():
    made = answered(GOOD)
    assert isinstance(made, VariantSpec)
    assert (made.repository, made.path, made.package) == ("edge", "base/sites/a", "a")
    assert made.context == {"a": "1", "b": "2"}
    assert made.labels == {"one": "9"}
    assert made.name.startswith("web-a-")


BAD = [
    ("an expression without a value", {"P": ExpressionFailure("ExpressionError", "no key x")},
     "no key x"),
    ("a number where text is needed", {"P": 7}, "yields a number where a string is needed"),
    ("nothing where text is needed", {"R": None}, "yields nothing where a string is needed"),
    ("a path that leaves the repository", {"P": "../x"}, "'../x'"),
    ("a path with a leading dash", {"P": "-x"}, "'-x'"),
    ("a context key that kpt writes itself", {"K": "package-path"}, "is reserved"),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "answers", "problem"), BAD, ids=[row[0] for row in BAD])
def test_a_bad_answer_fails_its_target_and_says_where(sentence, answers, problem):
    failure = answered(GOOD | answers)
    assert isinstance(failure, TargetFailure)
    assert problem in failure.problem


FIELDS = [
    ("R", "downstream.repositoryExpr"),
    ("P", "downstream.packageExpr"),
    ("K", "packageContext.dataExprs[0].keyExpr"),
    ("G", "packageContext.removeKeyExprs[0]"),
    ("L", "labelExprs[0].valueExpr"),
]


@pytest.mark.parametrize(("expression", "field"), FIELDS, ids=[row[1] for row in FIELDS])
def test_a_failure_names_the_field_of_its_expression(expression, field):
    failure = answered(GOOD | {expression: 7})
    assert isinstance(failure, TargetFailure)
    assert failure.field == f"spec.targets[0].template.{field}"


def test_each_expression_is_asked_once_and_repository_only_in_the_second_round():
    made = policy(CLUSTERS | {"template": TEMPLATE})
    targets, _ = select_targets(
        made, TargetInventory({}, ClusterObjectIndex([cluster("a"), cluster("b")]))
    )
    (first,) = list_repository_batches(made, targets)
    (second,) = list_variant_batches(
        made, targets, {target.key: {"kind": "R"} for target in targets}
    )
    assert first.expressions == ("R",)
    assert sorted(second.expressions) == ["G", "K", "L", "P"]
    assert "repository" not in first.rows[0]
    assert second.rows[0]["repository"] == {"kind": "R"}
    assert first.rows[0]["packageDefault"] == "apps/web"
