"""Law: the same objects give the same plan from files and from an API server, apart from places."""

import contextlib
import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fleet import PACKAGE, Fleet, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from kube_server import KubeError, KubeServer
from repositories import bare, below

pytestmark = pytest.mark.kube

ROOT = Path(__file__).parents[2]
CASES = ROOT / "fixtures" / "cases"
SAMPLES = {
    **{name: (ROOT / "policies" / f"{name}.yaml",) for name in ("clusters", "waves", "tenants")},
    "by-hand": (ROOT / "policies" / "by-hand.yaml",),
    "object-selector": tuple(
        sorted((CASES / "object-selector" / "input").rglob("policies/*.yaml"))
    ),
    "repository-selector": (CASES / "repository-selector" / "input" / "policies" / "all.yaml",),
    "two-policies": (Path(__file__).with_name("two_policies.yaml"),),
}
# Of each sample: a third of what the profile asks for, because a server is asked for each.
EXAMPLES = settings().max_examples // 3
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{group}}}
spec:
  group: {group}
  scope: {scope}
  names: {{kind: {kind}, plural: {plural}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
    subresources: {{status: {{}}}}
"""
KINDS = (
    ("infra.example.com", "Storage", "storages", "Namespaced"),
    ("infra.example.com", "Place", "places", "Cluster"),
    ("kustomize.toolkit.fluxcd.io", "Kustomization", "kustomizations", "Namespaced"),
)
TARGETS = ("Cluster", "Place")
# What no schema catches: it is left out, and holds its namespace.
BROKEN: dict[str, Any] = {
    "apiVersion": "fanout.dev/v1alpha1",
    "kind": "PromotionPolicy",
    "metadata": {"name": "broken"},
    "spec": {"policies": ["*"], "schedule": "61 * * * *"},
}
CLUSTER_LABELS = {
    "tier": ["dev", "prod", "lab", "nowhere"],
    "region": ["eu", "us"],
    "monitoring": ["on", "off"],
    "canary": ["true"],
}
REPOSITORY_LABELS = {"ring": ["early", "internal", "late"], "frozen": ["yes"], "plan": ["small"]}
STATUSES = [None, {"phase": "Online"}, {"phase": "Offline"}]
Object = dict[str, Any]

READER_OPTIONS = re.compile(r" (-A|(-f|-n|--(context|kubeconfig|records|state-dir)) [^`\s]+)")


class World:
    """The objects of a sample, in files and in an API server, and the repositories of both."""

    def __init__(self, server: KubeServer, root: Path, sample_name: str) -> None:
        self.server = server
        self.fleet = Fleet(root)
        texts = [path.read_text(encoding="utf-8") for path in SAMPLES[sample_name]]
        objects = [item for text in texts for item in yaml.safe_load_all(text) if item]
        self.objects: list[Object] = [self._locate(it) for it in objects]
        policy, *_ = (it for it in self.objects if it["kind"] == "UpstreamPolicy")
        self.namespace: str = policy["metadata"]["namespace"]
        repositories = [it for it in self.objects if it["kind"] == "Repository"]
        repos = {it["metadata"]["name"]: bare(Path(it["spec"]["url"])) for it in repositories}
        self.repos = repos.values()
        for repo in self.repos:
            repo.commit("main", {"README.md": "hello\n"}, "first commit")
        upstream = policy["spec"]["upstream"]
        package, source = upstream["package"], CASES / sample_name / "input" / "upstream" / "v1"
        files = {f"{package}/{path}": text for path, text in PACKAGE.items()}
        repo = repos[upstream["repository"]]
        commit = repo.commit("main", below(source) or files, f"{package} v1")
        repo.git("update-ref", f"refs/tags/{package}/v1", commit)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        self.server.apply(namespace)
        meta = {**BROKEN["metadata"], "namespace": self.namespace}
        self.broken: Object = {**BROKEN, "metadata": meta}

    def _locate(self, item: Object) -> Object:
        if item["kind"] != "Place":
            item["metadata"].setdefault("namespace", "default")
        if item["kind"] == "Repository":
            item["spec"]["url"] = str(self.fleet.root / item["spec"]["url"])
        return item

    def declare(self, objects: list[Object]) -> None:
        """Make the objects of the files and those of the API server these."""
        self.fleet.write("all.yaml", yaml.safe_dump_all(objects))
        # Without them, kinds of files are in namespaces.
        self.fleet.write("definitions.yaml", define_kinds())
        self.remove()
        for item in objects:
            self.server.create({name: it for name, it in item.items() if name != "status"})
            if "status" in item and item["kind"] in TARGETS:
                self.server.apply(item, subresource="status")

    def remove(self) -> None:
        """Delete all objects of the sample from the API server."""
        for item in (*self.objects, self.broken):
            with contextlib.suppress(KubeError):
                self.server.delete(item)

    def plan(self) -> Result:
        """Plan from files."""
        return self.fleet.run("plan", "-o", "json")

    def plan_cluster(self) -> Result:
        """Plan from the API server."""
        line = ["--state-dir", str(self.fleet.root / "other"), "--now", self.fleet.now.isoformat()]
        line += ["--kubeconfig", str(self.server.kubeconfig), "--context", "admin", "-A"]
        records = ["--records", str(self.fleet.root / self.fleet.state / "records.git")]
        return self.fleet.run("plan", "-o", "json", *line, *records, files=False)

    def without_places(self, text: str) -> str:
        """Return what a command printed with neither files and lines nor namespaces of objects.

        The commands that it advises have the options of their reader.
        """
        text = READER_OPTIONS.sub("", text)
        text = re.sub(rf"{re.escape(str(self.fleet.root))}/policies/all\.yaml:\d+(: )?", "", text)
        return text.replace(f"/{self.namespace}/", "/")


def define_kinds() -> str:
    """Return the definitions of the kinds of the samples."""
    fields = ("group", "kind", "plural", "scope")
    definitions = [DEFINITION.format(**dict(zip(fields, it, strict=True))) for it in KINDS]
    return "\n---\n".join(definitions)


@pytest.fixture(scope="module")
def sample_server(server: KubeServer) -> Iterator[KubeServer]:
    """The server with the kinds of the samples."""
    server.kubectl("apply", "-f", "-", stdin=define_kinds())
    server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    yield server
    server.kubectl("delete", "-f", "-", stdin=define_kinds())


@pytest.fixture(scope="module", params=SAMPLES)
def installation(
    request: pytest.FixtureRequest,
    sample_server: KubeServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    made = World(sample_server, tmp_path_factory.mktemp(request.param), request.param)
    made.declare(made.objects)
    assert made.plan().json["actions"], "nothing would be compared"
    # Some of it is published, and some drafted.
    for _ in range(2):
        assert made.fleet.sweep().code in (0, 3)
    assert any(repo.drafts() or len(repo.files()) > 1 for repo in made.repos)
    yield made
    made.remove()


def changed_labels(labels: dict[str, str], values: dict[str, list[str]]) -> st.SearchStrategy[Any]:
    """Labels of which some are gone, others have another value, and some were added."""
    changes = st.fixed_dictionaries(
        {}, optional={name: st.sampled_from([None, *it]) for name, it in values.items()}
    )
    return changes.map(
        lambda it: {key: value for key, value in {**labels, **it}.items() if value is not None}
    )


@st.composite
def variations(draw: st.DrawFn, objects: list[Object], broken: Object) -> list[Object]:
    """Some of the objects, with other labels, content and statuses, and perhaps a broken one."""
    drawn: list[Object] = []
    for original in objects:
        item = copy.deepcopy(original)
        kind, meta = item["kind"], item["metadata"]
        # One of each kind stays: without any object, files cannot tell whether the kind exists, and
        # warn of that.
        is_only = kind not in {it["kind"] for it in drawn}
        is_rule = kind in ("UpstreamPolicy", "PromotionPolicy")
        if not is_only and not is_rule and draw(st.integers(0, 9)) == 9:
            continue
        if kind in (*TARGETS, "Repository"):
            values = REPOSITORY_LABELS if kind == "Repository" else CLUSTER_LABELS
            meta["labels"] = draw(changed_labels(meta.get("labels", {}), values))
        if kind in TARGETS and (status := draw(st.sampled_from(STATUSES))) is not None:
            item["status"] = status
        if kind == "ConfigMap":
            item["data"] = draw(st.sampled_from([item["data"], {"retention": "90d"}, {}]))
        drawn.append(item)
    return [*drawn, broken] if draw(st.integers(0, 3)) == 3 else drawn


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_a_plan_from_an_api_server_is_the_plan_from_files(installation: World, data: st.DataObject):
    installation.declare(data.draw(variations(installation.objects, installation.broken)))
    files, cluster = installation.plan(), installation.plan_cluster()
    assert cluster.code == files.code, (files.err, cluster.err)
    assert installation.without_places(cluster.out) == installation.without_places(files.out)
    lines = (installation.without_places(it.err).splitlines() for it in (files, cluster))
    assert sorted(next(lines)) == sorted(next(lines))
