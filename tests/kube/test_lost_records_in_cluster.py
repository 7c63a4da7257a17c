"""Records of a cluster that are lost, without a backup, or restored from an old one."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kube.record_fleet import Company, build_intake, decision
from kube.twin import Twin, open_twin
from kube_server import KubeServer

from fanout.controller.cluster_operation import PolicyErrorMemo
from fanout.git.mirror import create_bare

pytestmark = pytest.mark.kube


@pytest.fixture
def twin(server: KubeServer, tmp_path: Path) -> Iterator[Twin]:
    with open_twin(server, tmp_path) as twin:
        yield twin


def test_a_sweep_over_exported_objects_begins_records_again(twin: Twin, tmp_path: Path):
    records = twin.fleet.records().path
    twin.fleet.run("sweep", "-n", twin.namespace)
    before = twin.ask("plan").out
    shutil.rmtree(records)
    for caches in ("state", "other"):  # else they know records that are missing now
        shutil.rmtree(twin.fleet.root / caches)
    create_bare(records)
    lost = twin.ask("plan")
    assert "run `fanout sweep --new-records --drafts-only -f EXPORTED_OBJECTS -n " in lost.err
    exported = tmp_path / "exported"
    exported.mkdir()
    kinds = "repositories.fanout.dev,upstreampolicies,promotionpolicies,clusters,configmaps"
    text = twin.server.kubectl("get", kinds, "-o", "yaml", namespace=twin.namespace).stdout
    (exported / "objects.yaml").write_text(text)
    own = twin.server.kubectl(
        *("get", "packagevariants.fanout.dev", "-o", "yaml"),
        *("--field-selector", "spec.policyRef.name="),
        namespace=twin.namespace,
    ).stdout
    (exported / "variants.yaml").write_text(own)
    begun = twin.fleet.run(
        "sweep", "--new-records", "--drafts-only", "-f", str(exported), "--records", str(records),
        files=False,
    )  # fmt: skip
    assert begun.code == 0, begun.err
    after = twin.ask("plan")
    assert (after.code, after.out) == (0, before)


def test_variants_without_a_policy_are_exported_alone(server: KubeServer, kube_namespace: str):
    def variant(name: str, **policy: object) -> dict[str, object]:
        spec = {
            "upstream": {"repository": "blueprints", "package": "web", "revision": {"tag": "v1"}},
            "downstream": {"repository": "edge", "package": name},
            **policy,
        }
        meta = {"name": name, "namespace": kube_namespace}
        return {
            "apiVersion": "fanout.dev/v1alpha1",
            "kind": "PackageVariant",
            "metadata": meta,
            "spec": spec,
        }

    server.create(variant("own"))
    server.create(variant("made", policyRef={"name": "web"}))
    names = server.kubectl(
        *("get", "packagevariants.fanout.dev", "-o", "name"),
        *("--field-selector", "spec.policyRef.name="),
        namespace=kube_namespace,
    ).stdout
    assert names.split() == ["packagevariant.fanout.dev/own"]


def restored(company: Company) -> tuple[str, dict[str, Any]]:
    """Put the records back to before a suspension, for a process that has never read them.

    Return the newest head, and a decision that somebody records now.
    """
    company.run("sweep")
    before = head(company)
    company.create(decision(company.namespace))
    company.take_in()
    company.run("sweep")  # which names the suspension in the repositories
    newest = head(company)
    assert newest != before
    set_head(company, before)
    shutil.rmtree(company.fleet.root / company.fleet.state / "heads")
    return newest, company.create(decision(company.namespace, stage="dev"))


def head(company: Company) -> str:
    return company.records().head


def set_head(company: Company, commit: str) -> None:
    records = company.fleet.records()
    (branch,) = (it for it in records.refs() if it.endswith("/monitoring"))
    records.git("update-ref", branch, commit)


def test_no_record_follows_on_restored_records(company: Company):
    newest, waiting = restored(company)
    with company.opened() as (program, connection):
        # Of a process that has just begun: no pass has compared the records with repositories.
        unsure = build_intake(program, connection, PolicyErrorMemo())
        assert unsure.take_in(company.fleet.now).problems
    assert company.condition(waiting)["status"] == "False"
    result = company.take_in()
    condition = company.condition(waiting)
    assert condition["reason"] == "RecordsRewound", result
    assert "fanout accept-records monitoring" in condition["message"]
    assert company.actions() == []
    # The records that were lost are found again, and the decision follows on them.
    set_head(company, newest)
    assert company.take_in(timedelta(minutes=1)).problems == ()
    assert [action for _, action in company.actions()] == ["Suspend", "Suspend"]


def test_records_that_waited_for_an_acceptance_bind_after_it(company: Company):
    restored(company)
    company.create(decision(company.namespace, "AcceptRecords"))
    company.take_in()
    assert [action for _, action in company.actions()] == ["AcceptRecords"]
    company.take_in(timedelta(minutes=1))
    assert [action for _, action in company.actions()] == ["AcceptRecords", "Suspend"]
