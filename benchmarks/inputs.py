"""The world that is measured: an upstream package, repositories, cluster objects and a policy.

The same numbers give the same bytes, whenever and wherever it is made.
"""

import random
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import WHO, git

FEW, ALL = 3, 8  # how many of the eight files differ from target to target
PACKAGE = "monitoring"
NAMESPACE = "platform"
UPSTREAM, REMOTES = "blueprints.git", "remotes"  # where they are, below one directory
OTHERS = 250  # packages that are on every branch already: 2,000 files, one wide directory
OBJECT_SIZE = 1000  # bytes of a cluster object
NOW = "2026-02-01T12:00:00Z"
_WHEN = 1_760_000_000  # of the commits that are there before

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
    """Size of a measured world."""

    targets: int
    repositories: int
    files: int  # that differ: FEW or ALL

    @property
    def changed(self) -> int:
        """One per cent of the targets."""
        return max(1, self.targets // 100)

    def repository(self, target: int) -> int:
        """Return the number of the repository of a target's variant."""
        return target % self.repositories

    def edited(self) -> list[int]:
        """A tenth of the targets, as many in each repository."""
        rows = range(self.targets)
        return [it for it in rows if it // self.repositories % 10 == self.repository(it) % 10]

    def in_one(self) -> range:
        """One per cent of the targets, as far as they fit, in the first repository."""
        return range(0, self.targets, self.repositories)[: self.changed]


def target_name(target: int) -> str:
    """The cluster's name."""
    return f"edge-{target:05d}"


def package_path(target: int) -> str:
    """The path of a target's variant."""
    return f"clusters/{target_name(target)}"


def package_files(revision: int) -> dict[str, str]:
    """Eight files of 10 kB together."""
    chance = random.Random(1)
    files = {
        "Kptfile": _KPTFILE.format(revision=revision),
        "package-context.yaml": _CONTEXT,
        "settings.yaml": _SETTINGS,
    }
    for number in range(5):
        variables = {f"VAR_{row}": str(chance.randrange(1 << 30)) for row in range(27)}
        files[f"app-{number}.yaml"] = deployment(number, revision if number == 0 else 0, variables)
    return files


def deployment(number: int, revision: int, variables: Mapping[str, str], replicas: int = 2) -> str:
    """A Deployment with comments; its image has the revision."""
    lines = (f"        - name: {name}\n          value: '{it}'" for name, it in variables.items())
    return _DEPLOYMENT.format(
        number=number, revision=revision, replicas=replicas, variables="\n".join(lines)
    )


# ---- repositories ------------------------------------------------------------------------------


def make_upstream(place: Path) -> None:
    """A bare repository with the package at v1."""
    _init(place)
    release(place, 1)


def release(place: Path, revision: int) -> None:
    """Commit a revision of the package and tag it."""
    files = {f"{PACKAGE}/{name}": text for name, text in package_files(revision).items()}
    parent = "refs/heads/main^0" if revision > 1 else ""
    tag = f"reset refs/tags/{PACKAGE}/v{revision}\nfrom refs/heads/main\n\n"
    _import(place, _commit(files, f"v{revision}", parent, _WHEN + revision) + tag)


def make_seed(place: Path) -> None:
    """A bare repository as a team has it: a page, and packages that are none of fanout's."""
    _init(place)
    files = {"README.md": "Configuration of the clusters.\n"}
    for number in range(OTHERS):
        package = package_files(0).items()
        files |= {f"clusters/other-{number:03d}/{name}": text for name, text in package}
    _import(place, _commit(files, "seed", "", _WHEN))


def copy_seed(seed: Path, place: Path, count: int) -> None:
    """`count` repositories as the seed, in an empty directory."""
    shutil.rmtree(place, ignore_errors=True)
    for number in range(count):
        shutil.copytree(seed, place / repository_name(number))


def repository_name(number: int) -> str:
    """The directory of a downstream repository."""
    return f"fleet-{number:03d}.git"


def _init(place: Path) -> None:
    place.mkdir(parents=True)
    git(place, "init", "--quiet", "--bare", "--initial-branch=main", "--template=")
    for name, value in (("receive.autogc", "false"), ("gc.auto", "0")):
        git(place, "config", name, value)


def _commit(files: Mapping[str, str], message: str, parent: str, when: int) -> str:
    head = f"commit refs/heads/main\ncommitter {WHO} {when} +0000\n{_data(message)}"
    start = f"from {parent}\n" if parent else ""
    return head + start + "".join(f"M 644 inline {p}\n{_data(t)}" for p, t in files.items())


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


def _import(place: Path, stream: str) -> None:
    path = place / "seed.stream"
    path.write_text(stream)
    git(place, "-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", stdin=path)
    path.unlink()


# ---- objects -----------------------------------------------------------------------------------


def write_objects(place: Path, size: Size, above: str, drafts: str = "Auto") -> None:
    """Policy, Repositories and cluster objects, in an empty directory.

    `above` is the directory or the URL with upstream and the remotes in it; `drafts` is `draftPer`.
    """
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    (place / "policy.yaml").write_text(_policy(size.files, drafts))
    names = {"blueprints": f"{above}/{UPSTREAM}"}
    for number in range(size.repositories):
        names[f"fleet-{number:03d}"] = f"{above}/{REMOTES}/{repository_name(number)}"
    (place / "repositories.yaml").write_text(_documents(map(_repository, names.items())))
    for number in range(size.repositories):
        write_clusters(place, size, number, {})


def write_clusters(place: Path, size: Size, number: int, retention: Mapping[int, str]) -> None:
    """Return the objects of the targets of one repository, and of one cluster never selected.

    `retention` replaces the first value in the ConfigMaps of some targets.
    """
    targets = range(number, size.targets, size.repositories)
    documents = [text for target in targets for text in target_objects(target, size, retention)]
    idle = _cluster(f"idle-{number:03d}", number, 0, "off")
    (place / f"clusters-{number:03d}.yaml").write_text(_documents([*documents, idle]))


def _documents(texts: Iterable[str]) -> str:
    return "---\n".join(texts)


def target_objects(target: int, size: Size, retention: Mapping[int, str]) -> Iterator[str]:
    """Yield the Cluster of a target, and the ConfigMap that is injected into its variant."""
    name, number = target_name(target), size.repository(target)
    yield _cluster(name, number, target // size.repositories, "on")
    kept = retention.get(target, f"{target % 30 + 1}d")
    yield (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {NAMESPACE}}}\n"
        f"data:\n  cluster: {name}\n  retention: {kept}\n"
    )


def _cluster(name: str, repository: int, row: int, chosen: str) -> str:
    text = (
        "apiVersion: infra.example.com/v1\nkind: Cluster\nmetadata:\n"
        f"  name: {name}\n  namespace: {NAMESPACE}\n  labels:\n    monitoring: '{chosen}'\n"
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


def _repository(item: tuple[str, str]) -> str:
    name, url = item
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


def _policy(files: int, drafts: str) -> str:
    return f"""apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {{name: monitoring, namespace: {NAMESPACE}}}
spec:
  upstream: {{repository: blueprints, package: {PACKAGE}, revision: {{semver: ">=1 <9"}}}}
  draftPer: {drafts}
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
