"""What variants that people wrote may wait for."""

from operator import itemgetter

import pytest
import yaml
from api.written import EXAMPLES, faults_of, list_errors, made

from fanout.api.validators.object_references import InvalidObjects, cross_check


def waiting(*entries):
    data = yaml.safe_load(EXAMPLES["package-variant"])
    data["spec"]["dependsOn"] = list(entries)
    return data


DEPENDENCIES = [
    ("one that is none", {}, ["[0]: policy or variant is missing; add it"]),
    (
        "one that is two",
        {"policy": "monitoring", "target": "Cluster/a/b", "variant": "base"},
        ["[0]: policy and variant exclude each other; keep one of them"],
    ),
    (
        "a policy without the target",
        {"policy": "monitoring"},
        [
            (
                "[0].target: a dependency on policy monitoring needs a target; add the"
                " target's key, as `fanout get targets` shows it"
            )
        ],
    ),
    (
        "a target without the policy",
        {"variant": "base", "target": "Cluster/a/b"},
        ["[0].policy: a target needs a policy; add the name of the policy"],
    ),
    ("itself", {"variant": "site"}, ["[0].variant: the variant depends on itself; remove it"]),
]


@pytest.mark.parametrize(
    ("_", "entry", "sentences"), DEPENDENCIES, ids=map(itemgetter(0), DEPENDENCIES)
)
def test_a_variant_refuses_a_malformed_dependency(_, entry, sentences):
    assert faults_of(waiting(entry)) == [f"spec.dependsOn{sentence}" for sentence in sentences]


def test_a_variant_waits_for_another_once():
    both = waiting({"variant": "base"}, {"variant": "base"})
    assert faults_of(both) == ["spec.dependsOn[1]: duplicate entry; remove one of them"]


def linked(name, *others, package=None):
    downstream = {"repository": "edge-eu", "package": package or f"{name}/monitoring"}
    return made("package-variant", name, downstream=downstream, dependsOn=list(others))


def test_a_dependency_on_an_undeclared_object_is_named():
    declared = [made("upstream-policy")]
    assert list_errors(
        *declared,
        made("promotion-policy"),
        linked("base"),
        linked("site", {"variant": "bases"}, {"policy": "monitor", "target": "Cluster/platform/a"}),
        linked("other", {"variant": "monitoring-a-0123456789"}, {"variant": "base"}),
    ) == [
        (
            "PackageVariant/site: spec.dependsOn[0].variant: there is no PackageVariant bases in"
            " this namespace; did you mean base?"
        ),
        (
            "PackageVariant/site: spec.dependsOn[1].policy: there is no UpstreamPolicy monitor in"
            " this namespace; did you mean monitoring?"
        ),
    ]


def test_an_invalid_object_is_not_missing_for_its_dependents():
    named = {
        ("PackageVariant", "platform", "base"),
        ("UpstreamPolicy", "platform", "monitoring"),
        ("Repository", "platform", "blueprints"),
        ("Repository", "platform", "edge-eu"),
    }
    site = linked("site", {"variant": "base"}, {"policy": "monitoring", "target": "Cluster/a/b"})
    assert cross_check([site], InvalidObjects(frozenset(named))) == []


def test_variants_that_wait_for_each_other_are_refused_with_the_circle():
    circle = [
        linked("a", {"variant": "b"}),
        linked("b", {"variant": "c"}),
        linked("c", {"variant": "a"}),
        linked("d", {"variant": "a"}),
    ]
    assert list_errors(*circle) == [
        (
            "PackageVariant/a: spec.dependsOn[0].variant: variants form a cycle: a → c → b →"
            " a; remove one of these dependencies"
        )
    ]
