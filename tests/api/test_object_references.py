"""What only several objects together can get wrong."""

from pathlib import Path

import pytest
import yaml

from fanout.api.promotion_policy import governs_policy
from fanout.api.validators.object_references import (
    InvalidObjects,
    cross_check,
    find_shared_names,
)
from fanout.api.validators.object_validation import validate_object

EXAMPLES = {
    data["kind"]: data
    for path in sorted((Path(__file__).parent / "examples").glob("*.yaml"))
    for data in (yaml.safe_load(path.read_text()),)
}


def made(kind, name=None, **spec):
    data = EXAMPLES[kind]
    data = data | {"metadata": data["metadata"] | ({"name": name} if name else {})}
    model, faults = validate_object(data | {"spec": data["spec"] | spec})
    assert faults == ()
    return model


def repository(name, namespace="platform", allowed=()):
    data = EXAMPLES["Repository"]
    metadata = {"name": name, "namespace": namespace}
    spec = data["spec"] | {"allowedNamespaces": list(allowed)}
    model, faults = validate_object(data | {"metadata": metadata, "spec": spec})
    assert faults == ()
    return model


def list_errors(*objects, severity="error"):
    return [
        f"{item.identity}: {fault.field}: {fault.problem}; {fault.remedy}"
        for item, fault in cross_check(objects)
        if fault.severity == severity
    ]


def declared_objects(**promotion):
    return (
        repository("blueprints"),
        repository("edge-eu"),
        made("UpstreamPolicy"),
        made("PackageVariant"),
        made("PromotionPolicy", **promotion),
    )


def test_the_examples_fit_together():
    assert list_errors(*declared_objects()) == []


def test_a_stage_that_verifies_nothing_is_warned_about():
    assert list_errors(*declared_objects(), severity="warning") == [
        (
            "UpstreamPolicy/monitoring: spec.stages[3].verification: stage prod has no checks: "
            "a variant is ready as soon as it is published; add a check if the variant "
            "can be checked"
        )
    ]


def test_targets_in_no_stage_are_warned_about():
    entry = {"repositories": [{"name": "edge-eu"}]}
    policy = made("UpstreamPolicy", targets=[entry])
    objects = (repository("blueprints"), repository("edge-eu"), policy, made("PromotionPolicy"))
    assert [line for line in list_errors(*objects, severity="warning") if "no stage" in line] == [
        (
            "UpstreamPolicy/monitoring: spec.targets[0].template.stage: the targets of this entry "
            "have no stage: their drafts are never published; add stage or stageExpr"
        )
    ]


def test_two_objects_of_one_name_are_an_error_of_the_second():
    first, second = repository("blueprints"), repository("blueprints")
    other = repository("blueprints", namespace="edge")
    findings = cross_check([first, other, second])
    assert [(item is second, fault.field) for item, fault in findings] == [(True, "metadata.name")]


SHARED = [
    ("of one namespace", {}, {}, "PackageVariant"),
    ("of two namespaces", {}, {"namespace": "other"}, None),
    ("the variant is being deleted", {}, {"deletionTimestamp": "2026-03-02T09:00:00Z"},
     "UpstreamPolicy"),
    ("the policy is being deleted", {"deletionTimestamp": "2026-03-02T09:00:00Z"}, {},
     "PackageVariant"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "policy", "variant", "refused"), SHARED, ids=[it[0] for it in SHARED]
)
def test_a_policy_and_a_variant_of_one_name(_, policy, variant, refused):
    objects = [
        validate_object(data | {"metadata": data["metadata"] | {"name": "one"} | more})[0]
        for data, more in (
            (EXAMPLES["UpstreamPolicy"], policy),
            (EXAMPLES["PackageVariant"], variant),
        )
    ]
    findings = [(item.kind, it.problem) for item, it in find_shared_names(objects[:1], objects[1:])]
    other = {"PackageVariant": "UpstreamPolicy", "UpstreamPolicy": "PackageVariant"}
    problem = f"{other.get(refused)} one in namespace platform has the same name"
    assert findings == ([(refused, problem)] if refused else [])


def test_a_variant_with_the_name_of_a_policy_that_is_unusable_is_refused():
    variant = made("PackageVariant", "one")
    unusable = InvalidObjects(frozenset({("UpstreamPolicy", "platform", "one")}))
    assert [item is variant for item, _ in find_shared_names([], [variant], unusable)] == [True]
    assert [*find_shared_names([], [variant], InvalidObjects(has_unreadable_files=True))] == []


def test_records_without_a_name_are_not_two_of_one_name():
    record, faults = validate_object(EXAMPLES["Evidence"])
    assert faults == ()
    assert cross_check([record, record]) == []


def test_an_unknown_repository_names_the_nearest():
    objects = declared_objects()
    assert list_errors(repository("blueprint"), *objects[1:]) == [
        (
            "UpstreamPolicy/monitoring: spec.upstream.repository: there is no Repository "
            "blueprints that namespace platform may use; did you mean blueprint?"
        ),
        (
            "PackageVariant/site: spec.upstream.repository: there is no Repository "
            "blueprints that namespace platform may use; did you mean blueprint?"
        ),
    ]


def test_a_repository_of_another_namespace_must_be_allowed():
    objects = declared_objects()
    foreign = repository("blueprints", namespace="central")
    assert list_errors(foreign, *objects[1:3], objects[4]) == [
        (
            "UpstreamPolicy/monitoring: spec.upstream.repository: Repository blueprints of "
            "namespace central does not allow platform; add platform to its spec.allowedNamespaces"
        )
    ]
    allowed = repository("blueprints", namespace="central", allowed=["platform"])
    assert list_errors(allowed, *objects[1:]) == []


def test_repositories_of_target_entries_must_exist_unless_the_template_chooses_another():
    entry = {"repositories": [{"name": "edge-us"}], "template": {"stage": "dev"}}
    objects = (repository("blueprints"), made("PromotionPolicy"))
    [error] = list_errors(made("UpstreamPolicy", targets=[entry]), *objects)
    assert error.split(": ")[1] == "spec.targets[0].repositories[0].name"
    entry["template"]["downstream"] = {"repositoryExpr": "'blueprints'"}
    assert list_errors(made("UpstreamPolicy", targets=[entry]), *objects) == []


def test_a_group_that_nobody_is_in_can_never_approve():
    assert list_errors(
        *declared_objects(approvers=[{"group": "sres", "subjects": ["ann@example.com"]}])
    ) == [
        (
            "UpstreamPolicy/monitoring: spec.stages[3].requires[0].approval.from[0]: no "
            "PromotionPolicy for this policy has approvers sre; did you mean sres?"
        )
    ]


def test_a_promotion_policy_names_policies_stages_and_variants_that_exist():
    objects = declared_objects(
        policies=["monitoring", "logging"],
        variants=["sitee"],
        autoPromotion={"stages": ["devv", "prod"]},
    )
    assert list_errors(*objects) == [
        (
            "PromotionPolicy/production: spec.policies[1]: there is no UpstreamPolicy logging in "
            "this namespace; declare it, or remove the name"
        ),
        (
            "PromotionPolicy/production: spec.autoPromotion.stages[0]: no stage of the selected "
            "policies matches devv; did you mean dev?"
        ),
        (
            "PromotionPolicy/production: spec.variants[0]: there is no PackageVariant sitee in "
            "this namespace; did you mean site?"
        ),
    ]


def test_a_pattern_that_fits_nothing_is_only_doubtful():
    objects = declared_objects(
        policies=["monitoring", "log-*"], autoPromotion={"stages": ["canary-*"]}
    )
    assert list_errors(*objects) == []
    assert len([line for line in list_errors(*objects, severity="warning") if "-*" in line]) == 2


def test_a_configuration_among_the_objects_is_not_read():
    configuration, _ = validate_object(EXAMPLES["FanoutConfiguration"])
    assert list_errors(configuration) == [
        (
            "FanoutConfiguration/fanout: kind: a FanoutConfiguration among the manifests is "
            "ignored; move it elsewhere, and pass it with --config"
        )
    ]


def test_only_a_promotion_policy_of_the_same_namespace_governs():
    policy, promotion = made("UpstreamPolicy"), made("PromotionPolicy")
    data = EXAMPLES["PromotionPolicy"]
    elsewhere, _ = validate_object(data | {"metadata": {"name": "p", "namespace": "edge"}})
    assert governs_policy(promotion, policy)
    assert not governs_policy(elsewhere, policy)


# ---- what is declared and has faults of its own --------------------------------------------------

LOST = [
    ("a Repository is there", ("Repository", "platform", "blueprints"), True),
    ("one of another namespace is there", ("Repository", "edge", "blueprints"), True),
    ("an object of a misspelt kind is there", ("Repositry", "platform", "blueprints"), True),
    ("a PackageVariant of the name is none", ("PackageVariant", "platform", "blueprints"), False),
    ("a Repository of another name is none", ("Repository", "platform", "blueprint"), False),
]


@pytest.mark.parametrize(("_", "lost", "is_silent"), LOST, ids=[row[0] for row in LOST])
def test_only_undeclared_objects_are_reported_missing(_, lost, is_silent):
    _, *others = declared_objects()
    findings = cross_check(others, InvalidObjects(frozenset({lost})))
    missing = [item.kind for item, fault in findings if "blueprints" in fault.problem]
    assert missing == ([] if is_silent else ["UpstreamPolicy", "PackageVariant"])


def test_a_promotion_policy_may_name_what_has_faults():
    promotion = made("PromotionPolicy", policies=["broken"], variants=["site-1"])
    lost = {("UpstreamPolicy", "platform", "broken"), ("PackageVariant", "platform", "site-1")}
    assert cross_check([promotion], InvalidObjects(frozenset(lost))) == []
    elsewhere = {(kind, "edge", name) for kind, _, name in lost}
    assert len(cross_check([promotion], InvalidObjects(frozenset(elsewhere)))) == 2


def test_a_policy_with_faults_may_have_the_stages_that_are_named():
    promotion = {"policies": ["*"], "autoPromotion": {"stages": ["canary"]}}
    assert any("canary" in line for line in list_errors(*declared_objects(**promotion)))
    lost = InvalidObjects(frozenset({("UpstreamPolicy", "platform", "other")}))
    findings = cross_check(declared_objects(**promotion), lost)
    assert [fault for _, fault in findings if fault.severity == "error"] == []


def test_a_promotion_policy_with_faults_may_have_the_approvers():
    *others, _ = declared_objects()
    assert any("approvers sre" in line for line in list_errors(*others))
    lost = InvalidObjects(frozenset({("PromotionPolicy", "platform", "production")}))
    findings = cross_check(others, lost)
    assert [fault for _, fault in findings if fault.severity == "error"] == []


def test_a_file_that_cannot_be_read_may_declare_anything():
    findings = cross_check(
        [made("UpstreamPolicy"), made("PromotionPolicy")], InvalidObjects(has_unreadable_files=True)
    )
    assert [fault for _, fault in findings if fault.severity == "error"] == []


# ---- approvals -----------------------------------------------------------------------------------

PEOPLE = [
    ("as many as are asked for", ["ann@example.com", "Bob <bob@example.com>"], True),
    ("fewer than are asked for", ["ann@example.com"], False),
    ("one person in two spellings", ["ann@example.com", "Ann <Ann@example.com>"], False),
    ("one person with an address and a login", ["ann@example.com git.example.com/ann"], False),
    ("two people of whom one has a login alone", ["ann@example.com", "git.example.com/bob"], True),
    (
        "one person in two subjects",
        ["git.example.com/ann", "Ann <ann@example.com> git.example.com/ann"],
        False,
    ),
]


@pytest.mark.parametrize(("_", "subjects", "enough"), PEOPLE, ids=[row[0] for row in PEOPLE])
def test_a_group_has_as_many_people_as_must_approve(_, subjects, enough):
    expected = (
        "UpstreamPolicy/monitoring: spec.stages[3].requires[0].approval.atLeast: 2 people can "
        "never approve: sre has 1 member; lower it, or have an administrator add people"
    )
    errors = list_errors(*declared_objects(approvers=[{"group": "sre", "subjects": subjects}]))
    assert errors == ([] if enough else [expected])


def test_an_approver_without_a_commit_address_is_warned_about_under_separation():
    subjects = ["git.example.com/ann", "bob@example.com git.example.com/bob"]
    approvers = [{"group": "sre", "subjects": subjects}]
    before, after = (
        list_errors(
            *declared_objects(approvers=approvers, requiresSeparation=it), severity="warning"
        )
        for it in (False, True)
    )
    [warning] = [it for it in after if it not in before]
    assert warning.startswith(
        "PromotionPolicy/production: spec.approvers[0].subjects[0]: the subject has no address"
        " to compare with authors of commits"
    )
