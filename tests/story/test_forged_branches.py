"""A tenant pushes branches to its own repository that look like those of other policies."""

from pathlib import Path

import pytest
from fleet import PLAIN, PROMOTION, Fleet, Repo

REPOSITORY = """\
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{url: {url}}}
"""
DRAFT = """\
Draft monitoring v1

Fanout-Install: default
Fanout-Policy: a/monitoring
Fanout-Variant: monitoring-ams-047978a1d8
Fanout-Stage: dev
Fanout-Revision: v1
Fanout-Commit: {commit}
Fanout-Digest: {commit}
Fanout-Onto: none
Fanout-Tree: {tree}
Fanout-Conflicts: none
Fanout-Rendered: {tree}
"""
VENDOR, TRACES = "refs/heads/fanout/default/rendered", "refs/heads/fanout/default/_records"
TRACE = '{"at":"2026-03-02T09:00:00Z","record":"20260302t090000z-09f2014137a0"}\n'


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """Policies of namespaces a and b, each with a repository of its own to publish to."""
    fleet = Fleet(tmp_path)
    blueprints = fleet.repository("blueprints", declare=False)
    fleet.release("v1")
    for namespace in ("a", "b"):
        edge = fleet.repository(f"edge-{namespace}", declare=False)
        documents = [
            REPOSITORY.format(name="blueprints", namespace=namespace, url=blueprints.path),
            REPOSITORY.format(name="edge", namespace=namespace, url=edge.path),
            PLAIN.replace("{name: monitoring}", f"{{name: monitoring, namespace: {namespace}}}"),
            PROMOTION.replace("{name: ", f"{{namespace: {namespace}, name: ", 1),
        ]
        fleet.write(f"{namespace}.yaml", "---\n".join(documents))
    return fleet


def forge_draft(edge: Repo) -> None:
    main, tree = (edge.git("rev-parse", it).strip() for it in ("main", "main^{tree}"))
    text = DRAFT.format(commit="0" * 40, tree=tree)
    commit = edge.git("commit-tree", tree, "-p", main, "-m", text).strip()
    edge.git("update-ref", "refs/heads/drafts/default/sites/ams/monitoring", commit)


def forge_vendor(edge: Repo) -> None:
    edge.git("update-ref", VENDOR, "main")


def forge_blob(edge: Repo) -> None:
    blob = edge.git("rev-parse", f"{forge_file(edge)}:a/monitoring").strip()
    ref = edge.path / VENDOR
    ref.parent.mkdir(parents=True)
    ref.write_text(f"{blob}\n")


def forge_file(edge: Repo) -> str:
    edge.commit("other", {"a/monitoring": TRACE}, "a trace")
    commit = edge.git("rev-parse", "refs/heads/other").strip()
    edge.git("update-ref", "-d", "refs/heads/other")
    return commit


def forge_trace(edge: Repo) -> None:
    forge_draft(edge)
    edge.git("update-ref", TRACES, forge_file(edge))


FORGERIES = {
    "a draft": forge_draft,
    "renderings": forge_vendor,
    "a blob": forge_blob,
    "a draft and a trace": forge_trace,
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=list(FORGERIES))
def test_branches_of_one_tenant_do_not_stop_the_policy_of_another(fleet: Fleet, forge):
    forge(fleet.repos["edge-b"])
    for _ in range(2):
        result = fleet.later(minutes=1).sweep()
        assert "a/monitoring" not in result.err, result
    assert len(fleet.repos["edge-a"].drafts()) + len(fleet.repos["edge-a"].tags()) > 0
    assert fleet.run("explain", "monitoring", "-n", "a").code == 0
    status = fleet.run("get", "policies", "-n", "a", "-o", "json").out
    assert "edge-b" not in status
    assert "RecordsLost" not in status


def test_a_policy_of_lost_records_is_stopped_alone(fleet: Fleet):
    forge_vendor(fleet.repos["edge-b"])
    result = fleet.sweep()
    assert result.code == 3
    assert "b/monitoring: there is no records repository" in result.err
    assert len(fleet.repos["edge-a"].drafts()) == 2
    assert fleet.repos["edge-b"].drafts() == []


def test_a_pass_of_lost_policies_alone_ends_as_invalid_input(fleet: Fleet):
    forge_vendor(fleet.repos["edge-b"])
    result = fleet.run("sweep", "-n", "b")
    assert result.code == 2
    assert "has branch fanout/default/rendered of this installation" in result.err
