"""Which kinds policies read, and whether with the status of their objects."""

from typing import Any

import pytest

from fanout.api.upstream_policy import UpstreamPolicy
from fanout.declared.required_kinds import (
    KindReference,
    RequiredKind,
    list_references,
    merge_references,
)

CLUSTER = {"apiVersion": "infra.example.com/v1", "kind": "Cluster"}
HEALTH = {"apiVersion": "infra.example.com/v1", "kind": "Health"}


def policy(
    template: dict[str, Any] | None = None, cel: str = "object.spec.ready", **entry: Any
) -> UpstreamPolicy:
    revision = {"semver": ">=1"}
    check = {"name": "up", "object": {**HEALTH, "nameExpr": "target.metadata.name", "cel": cel}}
    target = {"objectSelector": CLUSTER, "template": template or {}, **entry}
    spec = {
        "upstream": {"repository": "up", "package": "web", "revision": revision},
        "targets": [target],
        "stages": [{"name": "dev", "verification": [check]}],
    }
    meta = {"name": "web", "namespace": "default"}
    return UpstreamPolicy.model_validate({"kind": "UpstreamPolicy", "metadata": meta, "spec": spec})


def read_status(*policies: UpstreamPolicy) -> dict[str, bool]:
    references = [it for policy in policies for it in list_references(policy)]
    return {it.kind: it.reads_status for it in merge_references(references)}


def test_a_policy_requires_targets_sources_and_checks():
    injector = {"kind": "ConfigMap", "group": "", "version": "v1", "name": "a"}
    made = policy({"stage": "dev", "injectors": [{"name": "a"}, injector]})
    target = ("spec", "targets", 0)
    assert list_references(made) == (
        KindReference(
            RequiredKind("Cluster", "infra.example.com", "v1"),
            (*target, "objectSelector", "apiVersion"),
        ),
        KindReference(
            RequiredKind("ConfigMap", "", "v1"), (*target, "template", "injectors", 1, "version")
        ),
        KindReference(
            RequiredKind("Health", "infra.example.com", "v1"),
            ("spec", "stages", 0, "verification", 0, "object", "apiVersion"),
        ),
    )


@pytest.mark.parametrize(
    ("expression", "is_read"),
    [
        ("target.metadata.labels.tier", False),
        ('target["metadata"].labels.tier', False),
        ("target.spec.status", False),
        ("variant.target", False),
        ("size(target.data) > 1 ? 'a' : 'b'", False),
        ("target.status.phase", True),
        ("has(target.status) ? 'a' : 'b'", True),
        ("target['status'].phase", True),
        ('target["sta" + "tus"].phase', True),
        (r'target["\x73tatus"].phase', True),
        ("target .status.phase", True),
        ("[target].map(it, it.status.phase)[0]", True),
        ("target.size() > 1 ? 'a' : 'b'", True),
        ("target == {} ? 'a' : 'b'", True),
    ],
)
def test_a_status_is_read_where_an_expression_may_read_it(expression: str, is_read: bool):
    made = policy({"stageExpr": expression})
    assert read_status(made) == {"Cluster": is_read, "Health": False}


def test_a_status_that_a_condition_of_a_target_reads_is_read():
    assert read_status(policy(offlineWhen="target.status.phase == 'Lost'"))["Cluster"]


def test_a_check_reads_the_status_of_its_object_alone():
    assert read_status(policy(cel="object.status.phase == 'Up'")) == {
        "Cluster": False,
        "Health": True,
    }


def test_a_single_reader_of_a_status_suffices():
    readers = policy({"stageExpr": "target.status.tier"}), policy({"stage": "dev"})
    for policies in (readers, readers[::-1]):
        assert read_status(*policies)["Cluster"]
