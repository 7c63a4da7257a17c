"""What cannot be read or used holds what it could concern, by kind and namespace, and no more."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from fanout.cluster.file_cluster import FileCluster
from fanout.controller.sweep_schedule import build_timetable
from fanout.reconcile.removal.orphaned_variants import find_removal_doubt
from fanout.reconcile.selection.policy_resolution import are_all_promotions_read, resolve_policies
from fanout.reconcile.validation.declaration_findings import (
    find_unmatched_dependencies,
    find_unmatched_repositories,
    find_unmatched_selectors,
)
from fanout.sandbox.evaluator import ProcessSandbox
from fanout.sandbox.worker_protocol import WorkerLimits
from fanout.telemetry.metrics import Counters

POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  upstream: {{repository: blueprints, package: monitoring, revision: {{latest: true}}}}
  targets: [{target}]
  stages: [{{name: dev}}]
"""
CLUSTERS = (
    "{objectSelector: {apiVersion: example.com/v1, kind: Cluster, matchLabels: {a: b}},"
    " template: {downstream: {repository: edge}}}"
)
REPOSITORIES = "{repositorySelector: {matchLabels: {a: b}}}"
POLICIES = [  # namespace, name, target
    ("a", "clusters", CLUSTERS),
    ("a", "repositories", REPOSITORIES),
    ("b", "clusters", CLUSTERS),
    ("b", "repositories", REPOSITORIES),
]
OWN = "apiVersion: fanout.dev/v1alpha1\n"
REPOSITORY = f"{OWN}kind: Repository\nmetadata: {{name: x, namespace: a}}\n"
CLUSTER = "apiVersion: example.com/v1\nkind: Cluster\nmetadata: {name: x, namespace: b}\n"
ALL = {f"{namespace}/{name}" for namespace, name, _ in POLICIES}
IN_A = {"a/clusters", "a/repositories"}
# What the file declares; the policies whose removals are held; the namespaces whose automation is;
# the policies of whose selectors it is not said that they match nothing.
ROWS = [
    ("nothing wrong", "", set(), "", set()),
    ("a file that is no YAML", "{", ALL, "ab", ALL),
    (
        "a broken PromotionPolicy",
        f"{OWN}kind: PromotionPolicy\nmetadata: {{name: x, namespace: a}}\nspec: {{no: 1}}",
        set(),
        "a",
        set(),
    ),
    (
        "a PromotionPolicy without a name",
        f"{OWN}kind: PromotionPolicy\nmetadata: {{namespace: a}}\nspec: {{}}",
        set(),
        "a",
        set(),
    ),
    (
        "a misspelled kind, which may be any of fanout's",
        f"{OWN}kind: PromotionPolice\nmetadata: {{name: x, namespace: a}}\nspec: {{}}",
        IN_A,
        "a",
        {"a/repositories"},
    ),
    (
        "a broken UpstreamPolicy",
        f"{OWN}kind: UpstreamPolicy\nmetadata: {{name: x, namespace: a}}\nspec: {{no: 1}}",
        set(),
        "",
        set(),
    ),
    ("a broken Repository", f"{REPOSITORY}spec: {{no: 1}}", IN_A, "", {"a/repositories"}),
    (
        "a broken Repository that another namespace may name",
        f"{REPOSITORY}spec: {{no: 1, allowedNamespaces: [b]}}",
        ALL,
        "",
        {"a/repositories", "b/repositories"},
    ),
    (
        "a broken Repository that any namespace may have been meant to name",
        f"{REPOSITORY}spec: {{url: x, allowedNamespace: [c]}}",
        ALL,
        "",
        {"a/repositories", "b/repositories"},
    ),
    (
        "a target object without a name",
        "apiVersion: example.com/v1\nkind: Cluster\nmetadata: {namespace: a}",
        {"a/clusters"},
        "",
        {"a/clusters"},
    ),
    ("a target object twice", f"{CLUSTER}---\n{CLUSTER}", {"b/clusters"}, "", {"b/clusters"}),
    (
        "an object of a kind that nobody selects",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: a}",
        set(),
        "",
        set(),
    ),
    ("an object without a kind", "metadata: {namespace: a}", IN_A, "a", IN_A),
    ("a document that is no object", "just text", ALL, "ab", ALL),
]


@pytest.mark.parametrize(
    ("text", "held_removals", "held_automation", "unjudged_selectors"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_an_unusable_declaration_holds_the_policies_it_could_concern(
    tmp_path, text, held_removals, held_automation, unjudged_selectors
):
    for namespace, name, target in POLICIES:
        policy = POLICY.format(namespace=namespace, name=name, target=target)
        (tmp_path / f"{namespace}-{name}.yaml").write_text(policy)
    (tmp_path / "x.yaml").write_text(text)
    declared = FileCluster([tmp_path]).read()
    assert len(declared.policies) == len(POLICIES)
    assert {
        f"{it.metadata.namespace}/{it.metadata.name}"
        for it in declared.policies
        if find_removal_doubt(declared, it, datetime.now(UTC))
    } == held_removals
    assert [it for it in "ab" if not are_all_promotions_read(declared, it)] == [*held_automation]
    assert {it.namespace for it in build_timetable(declared).sweep_only} == {*held_automation}
    warnings = (
        *find_unmatched_selectors(declared, declared.policies),
        *find_unmatched_repositories(declared),
    )
    names = {Path(it.where.file).stem.replace("-", "/") for it in warnings}
    assert names == ALL - unjudged_selectors


DEPENDENT = f"""{OWN}kind: PackageVariant
metadata: {{name: dependent, namespace: a}}
spec:
  upstream: {{repository: blueprints, package: monitoring, revision: {{latest: true}}}}
  downstream: {{repository: edge, package: x}}
  dependsOn: [{{policy: clusters, target: nowhere}}]
"""


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_dependency_is_unmatched_only_if_its_policy_can_have_no_such_target(tmp_path, row):
    _, text, held_removals, *_ = row
    policy = POLICY.format(namespace="a", name="clusters", target=CLUSTERS)
    for name, content in (("policy", policy), ("variant", DEPENDENT), ("x", text)):
        (tmp_path / f"{name}.yaml").write_text(content)
    declared = FileCluster([tmp_path]).read()
    assert len(declared.variants) == 1
    is_told = bool(list(find_unmatched_dependencies(declared)))
    assert is_told == ("a/clusters" not in held_removals)


BROKEN = [
    ("of its own namespace", "a", "no: 1", True),
    ("that it was allowed to use", "hidden", "no: 1, allowedNamespaces: [a]", True),
    ("that others were allowed to use", "hidden", "no: 1, allowedNamespaces: [b]", False),
    ("of another namespace", "hidden", "no: 1", False),
]


@pytest.mark.parametrize(
    ("namespace", "spec", "is_told"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN]
)
def test_a_broken_repository_is_reported_to_its_possible_users_alone(
    tmp_path, namespace, spec, is_told
):
    metadata = f"{{name: edge, namespace: {namespace}}}"
    repository = f"{OWN}kind: Repository\nmetadata: {metadata}\nspec: {{{spec}}}\n"
    for name, content in (("variant", DEPENDENT), ("edge", repository)):
        (tmp_path / f"{name}.yaml").write_text(content.replace("blueprints", "edge"))
    with ProcessSandbox(WorkerLimits(), Counters()) as sandbox:
        [resolved_policy] = resolve_policies(FileCluster([tmp_path]).read(), sandbox)
    problem = str(resolved_policy.error)
    assert ("Repository edge has errors" in problem) == is_told
    assert ("there is no Repository edge that namespace a may use" in problem) != is_told
    assert "hidden" not in problem
