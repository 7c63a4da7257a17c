"""Inputs of the benchmarks: an upstream package, repositories, cluster objects and a policy.

The same size gives the same bytes on every machine and at every time.
"""

import random
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import IDENTITY, git

FEW, ALL = 3, 8  # files of the eight that differ between targets
PACKAGE = "monitoring"
NAMESPACE = "platform"
UPSTREAM, REMOTES = "blueprints.git", "remotes"  # repository, and directory of repositories
OTHERS = 250  # other packages on every main branch: 2,000 files in one wide directory
OBJECT_SIZE = 1000  # bytes of a cluster object
NOW = "2026-02-01T12:00:00Z"
_COMMIT_TIME = 1_760_000_000  # of the first commits

_KPTFILE = """apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: monitoring
  annotations:
    config.kubernetes.io/local-config: "true"
info:
  description: a package to measure with # revision {revision}
"""
_CONTEXT = """apiVersion: v1
kind: ConfigMap
metadata:
  name: kptfile.kpt.dev
  annotations:
    config.kubernetes.io/local-config: "true"
data:
  name: example
"""
_SETTINGS = """# What is true of one cluster only; it is filled in from the cluster's own ConfigMap.
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: monitoring
  annotations:
    kpt.dev/config-injection: required
data:
  cluster: example
  retention: 15d
"""
_DEPLOYMENT = """# Workload {number}; this comment is to stay.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-{number}
  namespace: monitoring # one for each cluster
  labels:
    app: app-{number}
spec:
  replicas: {replicas}
  selector:
    matchLabels:
      app: app-{number}
  template:
    metadata:
      labels:
        app: app-{number}
    spec:
      containers:
      - name: main
        image: registry.example.com/app-{number}:1.{revision}.0
        env:
{variables}
        resources:
          requests: {{cpu: 100m, memory: 64Mi}}
"""


@dataclass(frozen=True, slots=True)
class Size:
    """Number of targets, repositories and differing files of a benchmark."""

    targets: int
    repositories: int
    files: int  # differing files: FEW or ALL

    @property
    def changed(self) -> int:
        """Number of targets that are one per cent of all, at least 1."""
        return max(1, self.targets // 100)

    def repository(self, target: int) -> int:
        """Return the number of the repository of a target's variant."""
        return target % self.repositories

    def by_repository(self, targets: Iterable[int]) -> dict[int, list[int]]:
        """Return the targets by the number of their repository."""
        grouped: dict[int, list[int]] = {}
        for target in targets:
            grouped.setdefault(self.repository(target), []).append(target)
        return grouped

    def edited(self) -> list[int]:
        """Return a tenth of the targets, evenly distributed over the repositories."""
        rows = range(self.targets)
        return [it for it in rows if it // self.repositories % 10 == self.repository(it) % 10]

    def in_one(self) -> range:
        """Return targets of the first repository: one per cent of all targets if it has so many."""
        return range(0, self.targets, self.repositories)[: self.changed]


def target_name(target: int) -> str:
    """Return the name of a target's cluster."""
    return f"edge-{target:05d}"


def package_path(target: int) -> str:
    """Return the path of a target's variant."""
    return f"clusters/{target_name(target)}"


def package_files(revision: int) -> dict[str, str]:
    """Return the eight files of the package, together 10 kB, by name."""
    generator = random.Random(1)
    files = {
        "Kptfile": _KPTFILE.format(revision=revision),
        "package-context.yaml": _CONTEXT,
        "settings.yaml": _SETTINGS,
    }
    for number in range(5):
        variables = {f"VAR_{row}": str(generator.randrange(1 << 30)) for row in range(27)}
        files[f"app-{number}.yaml"] = deployment(number, revision if number == 0 else 0, variables)
    return files


def deployment(number: int, revision: int, variables: Mapping[str, str], replicas: int = 2) -> str:
    """Return a Deployment with comments and the revision in its image."""
    lines = (f"        - name: {name}\n          value: '{it}'" for name, it in variables.items())
    return _DEPLOYMENT.format(
        number=number, revision=revision, replicas=replicas, variables="\n".join(lines)
    )


# ---- repositories ------------------------------------------------------------------------------


def make_upstream(directory: Path) -> None:
    """Create the bare upstream repository with the package at v1."""
    _init(directory)
    release(directory, 1)


def release(directory: Path, revision: int) -> None:
    """Commit a revision of the package and tag it."""
    files = {f"{PACKAGE}/{name}": text for name, text in package_files(revision).items()}
    parent = "refs/heads/main^0" if revision > 1 else ""
    tag = f"reset refs/tags/{PACKAGE}/v{revision}\nfrom refs/heads/main\n\n"
    _import(directory, _commit(files, f"v{revision}", parent, _COMMIT_TIME + revision) + tag)


def make_seed(directory: Path) -> None:
    """Create a bare repository with a README and packages that fanout does not manage."""
    _init(directory)
    files = {"README.md": "Configuration of the clusters.\n"}
    for number in range(OTHERS):
        package = package_files(0).items()
        files |= {f"clusters/other-{number:03d}/{name}": text for name, text in package}
    _import(directory, _commit(files, "seed", "", _COMMIT_TIME))


def copy_seed(seed: Path, directory: Path, count: int) -> None:
    """Replace the directory with `count` copies of the seed repository."""
    shutil.rmtree(directory, ignore_errors=True)
    for number in range(count):
        shutil.copytree(seed, directory / repository_name(number))


def repository_name(number: int) -> str:
    """Return the directory name of a downstream repository."""
    return f"fleet-{number:03d}.git"


def _init(directory: Path) -> None:
    directory.mkdir(parents=True)
    git(directory, "init", "--quiet", "--bare", "--initial-branch=main", "--template=")
    for name, value in (("receive.autogc", "false"), ("gc.auto", "0")):
        git(directory, "config", name, value)


def _commit(files: Mapping[str, str], message: str, parent: str, time: int) -> str:
    head = f"commit refs/heads/main\ncommitter {IDENTITY} {time} +0000\n{_data(message)}"
    parent_line = f"from {parent}\n" if parent else ""
    return head + parent_line + "".join(f"M 644 inline {p}\n{_data(t)}" for p, t in files.items())


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


def _import(directory: Path, stream: str) -> None:
    path = directory / "seed.stream"
    path.write_text(stream)
    git(directory, "-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", stdin=path)
    path.unlink()


# ---- objects -----------------------------------------------------------------------------------


def write_objects(directory: Path, size: Size, base_url: str, draft_per: str = "Auto") -> None:
    """Replace the directory with a policy, Repositories and cluster objects.

    `base_url` is the directory or URL below which all repositories are.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / "policy.yaml").write_text(_policy(size.files, draft_per))
    urls = {"blueprints": f"{base_url}/{UPSTREAM}"}
    for number in range(size.repositories):
        urls[f"fleet-{number:03d}"] = f"{base_url}/{REMOTES}/{repository_name(number)}"
    (directory / "repositories.yaml").write_text(
        "---\n".join(_repository(*it) for it in urls.items())
    )
    for number in range(size.repositories):
        write_clusters(directory, size, number, {})


def write_clusters(directory: Path, size: Size, number: int, retention: Mapping[int, str]) -> None:
    """Write the objects of one repository's targets, and a Cluster that is not selected.

    `retention` has the values of changed ConfigMaps by target.
    """
    targets = range(number, size.targets, size.repositories)
    documents = [text for target in targets for text in target_objects(target, size, retention)]
    idle = _cluster(f"idle-{number:03d}", number, 0, "off")
    (directory / f"clusters-{number:03d}.yaml").write_text("---\n".join([*documents, idle]))


def target_objects(target: int, size: Size, retention: Mapping[int, str]) -> Iterator[str]:
    """Yield the Cluster of a target, and the ConfigMap that is injected into its variant."""
    name, number = target_name(target), size.repository(target)
    yield _cluster(name, number, target // size.repositories, "on")
    value = retention.get(target, f"{target % 30 + 1}d")
    yield (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {NAMESPACE}}}\n"
        f"data:\n  cluster: {name}\n  retention: {value}\n"
    )


def _cluster(name: str, repository: int, row: int, monitoring: str) -> str:
    text = (
        "apiVersion: infra.example.com/v1\nkind: Cluster\nmetadata:\n"
        f"  name: {name}\n  namespace: {NAMESPACE}\n  labels:\n    monitoring: '{monitoring}'\n"
        f"    tier: {'dev' if row % 2 else 'prod'}\n    region: region-{row % 17}\n"
        f"    site: site-{name}\nspec:\n  repositoryRef:\n    name: fleet-{repository:03d}\n"
        "  nodes:\n"
    )
    number = 0
    while len(text) < OBJECT_SIZE:
        text += (
            f"  - name: node-{number}\n    address: 10.0.{row % 250}.{number}\n    ready: true\n"
        )
        number += 1
    return text


def _repository(name: str, url: str) -> str:
    return (
        "apiVersion: fanout.dev/v1alpha1\nkind: Repository\n"
        f"metadata: {{name: {name}, namespace: {NAMESPACE}}}\nspec: {{url: {url}}}\n"
    )


_FUNCTIONS = """      pipeline:
        mutators:
        - image: set-namespace
          configMapExprs: [{key: namespace, valueExpr: target.metadata.name}]
        - image: set-labels
          configMapExprs: [{key: site, valueExpr: target.metadata.labels.site}]
"""


def _policy(files: int, draft_per: str) -> str:
    return f"""apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {{name: monitoring, namespace: {NAMESPACE}}}
spec:
  upstream: {{repository: blueprints, package: {PACKAGE}, revision: {{semver: ">=1 <9"}}}}
  draftPer: {draft_per}
  targets:
  - objectSelector:
      apiVersion: infra.example.com/v1
      kind: Cluster
      matchLabels: {{monitoring: "on"}}
    template:
      stageExpr: target.metadata.labels.tier
      downstream:
        repositoryExpr: target.spec.repositoryRef.name
        packageExpr: "'clusters/' + target.metadata.name"
      injectors: [{{kind: ConfigMap, nameExpr: target.metadata.name}}]
      packageContext:
        dataExprs:
        - {{key: region, valueExpr: target.metadata.labels.region}}
        - {{key: site, valueExpr: target.metadata.labels.site}}
{_FUNCTIONS if files == ALL else ""}\
  stages:
  - name: dev
  - name: prod
---
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {{name: automatic, namespace: {NAMESPACE}}}
spec:
  policies: ["*"]
  autoPromotion: {{stages: [dev, prod]}}
"""
