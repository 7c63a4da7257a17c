"""The rules of the kinds on a real kube-apiserver: valid and stored objects, messages, statuses."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from api import test_stages, test_stages_checks
from api.test_object_validation import MISTAKES, example
from kube.mutations import mutate_all, read_complete_objects
from kube.objects import Named, refusal_of, sent
from kube.record_fleet import wait_until
from kube.samples import read_samples
from kube.tenants import await_kinds
from kube_server import KubeError, KubeServer

from fanout.api.crd_schemas import build_crds
from fanout.api.validators.object_validation import validate_object

pytestmark = pytest.mark.kube


def valid_objects() -> Iterator[Named]:
    """Yield each object of the tests' tables that is valid, beside the samples."""
    for sentence, data in test_stages.RIGHT:
        yield sentence, data
    for sentence, check in test_stages_checks.RIGHT:
        for group in ("verification", "requires"):
            yield f"{sentence} ({group})", test_stages_checks.with_check(check, group)


def test_the_server_takes_what_validation_takes(server: KubeServer, kube_namespace: str):
    refusals = {
        name: refusal_of(server, sent(data, kube_namespace)) for name, data in valid_objects()
    }
    assert {name: text for name, text in refusals.items() if text} == {}


def defaulted_objects() -> Iterator[Named]:
    """Yield valid objects, also with optional fields dropped, so that defaults are written."""
    yield from read_samples()
    yield from valid_objects()
    complete = read_complete_objects()
    yield from ((it["metadata"]["name"], it) for it in complete)
    yield from (it for it in mutate_all(complete) if it[0].endswith((": dropped", ": empty")))


def test_defaults_of_the_server_change_no_meaning(server: KubeServer, kube_namespace: str):
    """A default beside a field that it has no effect with would make the stored object invalid."""
    compared = 0
    for name, data in defaulted_objects():
        manifest = sent(data, kube_namespace)
        before, errors = validate_object(manifest)
        if errors or refusal_of(server, manifest):
            continue
        after, errors = validate_object(server.create(manifest, dry_run=True))
        assert [(it.field, it.problem) for it in errors] == [], name
        assert before is not None
        assert after is not None
        assert after.spec == before.spec, name  # type: ignore[attr-defined]
        compared += 1
    assert compared > 300


READABLE = [row for row in MISTAKES if "server" in row]


@pytest.mark.parametrize("row", READABLE, ids=[row["sentence"] for row in READABLE])
def test_a_refusal_names_the_mistake(server, kube_namespace, row):
    data = example(row["kind"], row["text"], row["instead"])
    assert row["server"] in refusal_of(server, sent(data, kube_namespace))


def loosened(schema: Any) -> Any:
    """Return a schema without bounds and rules, and with any status.

    No release had such definitions. They stand for those of an earlier one, whose rules were fewer.
    """
    bounds = {"maxItems", "maxLength", "maxProperties", "pattern", "x-kubernetes-validations"}
    bounds.add("selectableFields")  # of a status that has no schema there
    if isinstance(schema, list):
        return [loosened(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    loose = {key: loosened(value) for key, value in schema.items() if key not in bounds}
    if "observedGeneration" in schema.get("status", {}).get("properties", {}):
        loose["status"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return loose


def samples_in(namespace: str) -> Iterator[dict[str, Any]]:
    """Yield each sample object of the repository under a name of its own."""
    for number, (_, data) in enumerate(read_samples()):
        manifest = sent(data, namespace)
        manifest["metadata"].pop("generateName", None)
        yield {**manifest, "metadata": {**manifest["metadata"], "name": f"sample-{number}"}}


def test_objects_of_looser_definitions_stay_readable_and_writable(server, kube_namespace):
    samples = [*samples_in(kube_namespace)]
    long = copy.deepcopy(next(it for it in samples if it["kind"] == "UpstreamPolicy"))
    long["metadata"]["name"] = "long"
    long["spec"]["targets"][0]["template"] = {"stage": "nowhere", "labels": {"a": "b" * 100}}
    samples.append(long)
    # a record's spec is not sent again: only its labels may change
    label = {"metadata": {"labels": {"seen": "yes"}}}
    try:
        install(server, [loosened(crd) for crd in build_crds()])
        wait_until(lambda: not refusal_of(server, sent(long, kube_namespace)), "rules are in force")
        stored = [server.create(it) for it in samples]
    finally:
        install(server, build_crds())
        await_kinds(server)
    wait_until(
        lambda: bool(refusal_of(server, {**long, "metadata": {**long["metadata"], "name": "x"}})),
        "the rules are not in force",
    )
    for before in stored:
        after = server.get(before)
        assert (after["spec"], after["metadata"]["uid"]) == (
            before["spec"],
            before["metadata"]["uid"],
        )
        assert server.patch(before, label)["spec"] == before["spec"]
    with pytest.raises(KubeError, match=r"labels\.a: Too long"):
        server.patch(long, {"spec": {"targets": long["spec"]["targets"] * 2}})


def install(server: KubeServer, definitions: list[dict[str, Any]]) -> None:
    for definition in definitions:
        server.apply(definition)


def test_an_object_that_is_applied_again_stays_as_it_is(server, kube_namespace):
    for manifest in samples_in(kube_namespace):
        applied = server.apply(manifest)
        again = server.apply(manifest)
        assert again["metadata"]["resourceVersion"] == applied["metadata"]["resourceVersion"]


READY = {
    "type": "Ready",
    "status": "False",
    "reason": "GateClosed",
    "message": "waits for prod",
    "lastTransitionTime": "2030-01-31T16:00:00Z",
    "observedGeneration": 1,
}


def with_status(manifest: dict[str, Any], **status: Any) -> dict[str, Any]:
    meta = {key: manifest["metadata"][key] for key in ("name", "namespace")}
    base = {"observedGeneration": 1, "conditions": [READY]}
    kept = {key: manifest[key] for key in ("apiVersion", "kind")}
    return {**kept, "metadata": meta, "status": base | status}


VARIANT_STATUS = {
    "state": "Drafted",
    "stage": "prod",
    "revision": "v2",
    "draft": {"revision": "v2", "branch": "drafts/a", "commit": "c" * 40, "tree": "d" * 40},
    "published": {"revision": "v1", "tag": "site/monitoring/v1", "commit": "e" * 40},
    "holds": [{"reason": "WindowClosed", "message": "until Monday"}],
    "moreHolds": 3,
    "next": "2030-02-01T08:00:00Z",
}


def test_a_status_is_shown_and_waited_for(server, kube_namespace):
    created = server.create(sent(example("PackageVariant"), kube_namespace))
    status = with_status(created, **VARIANT_STATUS)
    assert server.apply(status, subresource="status")["status"] == status["status"]
    shown = server.kubectl("get", "pvar", namespace=kube_namespace).stdout.split("\n")
    heads = "NAME READY REASON REPOSITORY PACKAGE STAGE STATE PUBLISHED DRAFT AGE"
    assert shown[0].split() == heads.split()
    assert shown[1].split()[-4:-1] == ["Drafted", "v1", "v2"]
    wide = server.kubectl("get", "pvar", "-o", "wide", namespace=kube_namespace).stdout
    assert "drafts/a" in wide
    assert server.get(created)["metadata"]["generation"] == 1
    server.kubectl("wait", "--for=condition=Ready=false", "pvar/site", namespace=kube_namespace)


STATUSES = [
    ("a condition without a time", {"conditions": [{**READY, "lastTransitionTime": None}]}),
    ("a reason of two words", {"conditions": [{**READY, "reason": "Gate closed"}]}),
    ("two conditions of one type", {"conditions": [READY, READY]}),
    ("six holds", {"holds": [{"reason": "A", "message": "b"}] * 6}),
    ("a commit that is none", {"published": {"commit": "main"}}),
]


@pytest.mark.parametrize("status", [row[1] for row in STATUSES], ids=[row[0] for row in STATUSES])
def test_a_status_is_typed(server, kube_namespace, status):
    created = server.create(sent(example("PackageVariant"), kube_namespace))
    with pytest.raises(KubeError):
        server.apply(with_status(created, **(VARIANT_STATUS | status)), subresource="status")


def test_a_stage_of_a_policy_has_a_status(server, kube_namespace):
    created = server.create(sent(example("UpstreamPolicy"), kube_namespace))
    stage = {"name": "dev", "candidate": "v2", "verdict": "Pending", "gate": "Passed"}
    status = with_status(created, stages=[stage], counts={"Ready": 3})
    assert server.apply(status, subresource="status")["status"] == status["status"]
