"""A package that was cloned, rendered and edited becomes a variant: once, and with every edit."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fleet import POLICY, Fleet

AMS = "sites/ams"
BRANCH = "drafts/default/sites/ams/monitoring"
ADOPTING = POLICY.replace("  stages:\n", "  adoptionPolicy: AdoptExisting\n  stages:\n")
LABELS = "  - image: set-labels\n    configMap: {app: prometheus}\n"
NAMESPACE = "  - image: set-namespace\n    configMap: {namespace: shop}\n"
PREFIX = "  - image: ensure-name-substring\n    configMap: {prepend: eu-}\n"
KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: monitoring\n"
MUTATORS = "pipeline:\n  mutators:\n"
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: prometheus
spec:
  replicas: 2 # enough
  selector:
    matchLabels:
      run: prometheus
  template:
    metadata:
      labels:
        run: prometheus
    spec:
      containers:
      - name: web
        image: web:1
        env:
        # first
        - name: A
          value: "1"
        - name: B
          value: "2"
"""
MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: words
data:
  greeting: hello
  farewell: bye
"""

Package = dict[str, str | None]


def upstream(functions: str) -> Package:
    """The package with this pipeline."""
    pipeline = MUTATORS + functions if functions else ""
    return {"Kptfile": KPTFILE + pipeline, "deployment.yaml": WEB, "map.yaml": MAP}


def fleet_of(root: Path, functions: str) -> Fleet:
    """One site, and on a branch upstream what is cloned; the release after it is v2."""
    fleet = Fleet.build(root / "live", {"ams": ("dev", "edge")})
    fleet.write("policy.yaml", ADOPTING)
    files = {f"monitoring/{path}": text for path, text in upstream(functions).items()}
    fleet.repos["blueprints"].commit("next", files)
    return fleet


def cloned(fleet: Fleet, *, marks: bool, render: bool, functions: str | None = None) -> Path:
    """A directory with what `kpt pkg get`, and `kpt fn render` where wanted, make of upstream."""
    upstream_repo = fleet.repos["blueprints"]
    commit = upstream_repo.refs()["refs/heads/next"]
    package = fleet.root / "clone"
    package.mkdir()
    for name in ("Kptfile", "deployment.yaml", "map.yaml"):
        text = upstream_repo.file("next", f"monitoring/{name}")
        if name == "Kptfile":
            if functions is not None:
                text = KPTFILE + MUTATORS + functions
            git = f"  git: {{repo: {upstream_repo.path}, directory: /monitoring, ref: next"
            text = text.replace("name: monitoring", "name: ams")
            text += f"upstream:\n  type: git\n{git}}}\n  updateStrategy: resource-merge\n"
            text += f"upstreamLock:\n  type: git\n{git}, commit: {commit}}}\n"
        elif marks:
            own = "prometheus" if name == "deployment.yaml" else "words"
            text = text.replace("\nmetadata:\n", f"\nmetadata: # kpt-merge: /{own}\n", 1)
        (package / name).write_text(text, encoding="utf-8")
    if render:
        done = fleet.run("package", "render", str(package), files=False)
        assert done.code == 0, done.err
    return package


def edited(package: Path) -> None:
    """What people did: more replicas, a variable less, a key of the data less."""
    path = package / "deployment.yaml"
    text = path.read_text()
    first = '        # first\n        - name: A\n          value: "1"\n'
    assert first in text
    path.write_text(text.replace("replicas: 2 # enough", "replicas: 7 # hand").replace(first, ""))
    path = package / "map.yaml"
    text = path.read_text()
    assert "  greeting: hello\n" in text
    path.write_text(text.replace("  greeting: hello\n", ""))


def committed(fleet: Fleet, package: Path) -> None:
    inside: Package = {f"{AMS}/{it.name}": it.read_text() for it in sorted(package.iterdir())}
    fleet.repos["edge"].commit("main", inside, "cloned by hand")


def released(fleet: Fleet) -> None:
    """v2 is what was cloned, with a newer image."""
    repo = fleet.repos["blueprints"]
    text = WEB.replace("web:1", "web:2")
    commit = repo.commit("next", {"monitoring/deployment.yaml": text})
    repo.git("update-ref", "refs/tags/monitoring/v2", commit)


def drafted(fleet: Fleet, name: str) -> str:
    return fleet.repos["edge"].file(BRANCH, f"{AMS}/{name}")


def rename(package: Path, old: str, new: str) -> None:
    for path in package.glob("*.yaml"):
        path.write_text(path.read_text().replace(old, new))


CLONES = [
    ("labels, rendered, no marks", LABELS, False, True),
    ("labels, rendered, marks", LABELS, True, True),
    ("a namespace and labels, rendered, no marks", NAMESPACE + LABELS, False, True),
    ("a namespace and labels, rendered, marks", NAMESPACE + LABELS, True, True),
    ("a namespace, rendered, no marks", NAMESPACE, False, True),
    ("other names and labels, rendered, no marks", PREFIX + LABELS, False, True),
    ("other names and a namespace, rendered, marks", PREFIX + NAMESPACE, True, True),
    ("no pipeline, marks", "", True, False),
    ("a namespace and labels, as it came, no marks", NAMESPACE + LABELS, False, False),
    ("a namespace and labels, as it came, marks", NAMESPACE + LABELS, True, False),
]


@pytest.mark.parametrize(
    ("_", "functions", "marks", "render"), CLONES, ids=[it[0] for it in CLONES]
)
def test_every_edit_of_a_clone_is_in_its_draft_and_every_object_once(
    tmp_path: Path, _, functions: str, marks: bool, render: bool
):
    fleet = fleet_of(tmp_path, functions)
    package = cloned(fleet, marks=marks, render=render)
    edited(package)
    committed(fleet, package)
    released(fleet)
    fleet.settle()
    assert fleet.condition(AMS)[0] == "AdoptionAwaits"
    web, words = drafted(fleet, "deployment.yaml"), drafted(fleet, "map.yaml")
    assert web.count("kind: Deployment") == 1
    assert words.count("kind: ConfigMap") == 1
    assert "replicas: 7 # hand" in web
    assert "image: web:2" in web
    assert "name: A" not in web
    assert "greeting" not in words
    assert "farewell: bye" in words
    if NAMESPACE in functions:
        assert "namespace: shop" in web
        assert "namespace: shop" in words
    assert "# conflict" not in fleet.run("diff", AMS).out
    assert "!!" not in fleet.run("diff", AMS, "--three-way").out


def test_an_adopted_package_stays_single_and_edited_in_later_revisions(tmp_path: Path):
    fleet = fleet_of(tmp_path, PREFIX + NAMESPACE + LABELS)
    package = cloned(fleet, marks=True, render=True)
    edited(package)
    committed(fleet, package)
    released(fleet)
    fleet.settle()
    ann = ("--reason", "looks right", "--by", "Ann <ann@example.com>")
    assert fleet.run("promote", "monitoring", "--stage", "dev", "--variant", AMS, *ann).code == 0
    repo = fleet.repos["blueprints"]
    text = WEB.replace("web:1", "web:3")
    commit = repo.commit("next", {"monitoring/deployment.yaml": text})
    repo.git("update-ref", "refs/tags/monitoring/v3", commit)
    fleet.later(minutes=1).settle()
    web = fleet.repos["edge"].file("main", f"{AMS}/deployment.yaml")
    assert fleet.published()[AMS] == "v3"
    assert web.count("kind: Deployment") == 1
    assert "image: web:3" in web
    assert "replicas: 7 # hand" in web
    assert "name: A" not in web


def test_a_pipeline_that_people_changed_is_their_edit_and_so_is_what_it_did(tmp_path: Path):
    fleet = fleet_of(tmp_path, NAMESPACE + LABELS)
    theirs = NAMESPACE.replace("shop", "shop-ams") + LABELS
    package = cloned(fleet, marks=False, render=True, functions=theirs)
    edited(package)
    committed(fleet, package)
    released(fleet)
    fleet.settle()
    web = drafted(fleet, "deployment.yaml")
    assert web.count("kind: Deployment") == 1
    assert "namespace: shop-ams" in web
    assert "namespace: shop-ams" in drafted(fleet, "Kptfile")
    assert "replicas: 7 # hand" in web


def half_rendered(fleet: Fleet, functions: str) -> Path:
    package = cloned(fleet, marks=False, render=True)
    (package / "map.yaml").write_text(MAP)
    return package


def never_rendered(fleet: Fleet, functions: str) -> Path:
    return cloned(fleet, marks=True, render=False)


def renamed_by_their_own_pipeline(fleet: Fleet, functions: str) -> Path:
    theirs = functions.replace("eu-", "us-")
    return cloned(fleet, marks=False, render=True, functions=theirs)


def renamed_and_nobody_can_tell(fleet: Fleet, functions: str) -> Path:
    package = cloned(fleet, marks=False, render=True)
    path = package / "Kptfile"
    path.write_text(
        path.read_text().replace("  mutators:\n", "  mutators:\n  - image: unheard-of\n")
    )
    rename(package, "eu-prometheus", "us-prometheus")
    return package


HELD: list[tuple[str, Callable[[Fleet, str], Path], str]] = [
    ("one that was rendered in part", half_rendered, "ConfigMap/words"),
    ("one whose names only its pipeline gives", never_rendered, "Deployment/prometheus"),
    ("one that a pipeline of its own renamed", renamed_by_their_own_pipeline, "us-prometheus"),
    ("one whose pipeline cannot be run", renamed_and_nobody_can_tell, "unheard-of"),
]


@pytest.mark.parametrize(("_", "make", "words"), HELD, ids=[it[0] for it in HELD])
def test_a_clone_whose_objects_would_not_be_found_again_is_held_by_their_names(
    tmp_path: Path, _, make, words
):
    fleet = fleet_of(tmp_path, PREFIX + LABELS)
    package = make(fleet, PREFIX + LABELS)
    edited_in_part = package / "deployment.yaml"
    edited_in_part.write_text(edited_in_part.read_text().replace("replicas: 2", "replicas: 7"))
    committed(fleet, package)
    released(fleet)
    for _ in range(2):
        swept = fleet.sweep()
        assert swept.code == 3
        assert words in swept.err
    reason, sentence = fleet.condition(AMS)
    assert reason == "AdoptionBaseMissing"
    assert "edge:sites/ams cannot be adopted" in sentence
    assert "kpt fn render" in sentence
    assert fleet.repos["edge"].drafts() == []


def test_a_clone_without_a_pipeline_that_can_be_run_is_adopted_where_nothing_is_renamed(
    tmp_path: Path,
):
    fleet = fleet_of(tmp_path, "  - image: unheard-of\n")
    package = cloned(fleet, marks=False, render=False)
    edited(package)
    committed(fleet, package)
    repo = fleet.repos["blueprints"]
    repo.commit("next", {"monitoring/Kptfile": KPTFILE})
    released(fleet)
    fleet.settle()
    assert fleet.condition(AMS)[0] == "AdoptionAwaits"
    assert "replicas: 7 # hand" in drafted(fleet, "deployment.yaml")


def test_a_pipeline_may_run_a_program_that_is_allowed(tmp_path: Path):
    fleet = fleet_of(tmp_path, "  - exec: longer\n")
    program = fleet.root / "longer"
    program.write_text("#!/bin/sh\nexec sed 's/name: prometheus$/name: prometheus-long/'\n")
    program.chmod(0o755)
    package = cloned(fleet, marks=False, render=False)
    rename(package, "name: prometheus\n", "name: prometheus-long\n")
    edited(package)
    committed(fleet, package)
    released(fleet)
    path = fleet.root / "configuration.yaml"
    path.write_text(
        "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\n"
        f"functions: {{executables: [{{path: {program}}}]}}\n"
    )
    allowed = ("--config", str(path))
    assert fleet.sweep(*allowed).code == 0
    web = drafted(fleet, "deployment.yaml")
    assert web.count("kind: Deployment") == 1
    assert "name: prometheus-long" in web
    assert "replicas: 7 # hand" in web
    assert "image: web:2" in web
    assert "!!" not in fleet.run("diff", AMS, "--three-way", *allowed).out
