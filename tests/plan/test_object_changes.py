"""The line of a pull request that says what changes in objects and files."""

import pytest

from fanout.plan.pull_requests.object_changes import compare_packages
from fanout.plan.pull_requests.request_layout import format_difference

WEB = "registry.example.com/shop/web"


def deployment(name="web", images=(f"{WEB}:1.0.0",), replicas="2", version="", kind="Deployment"):
    containers = "".join(f"      - {{name: c{n}, image: '{it}'}}\n" for n, it in enumerate(images))
    labels = f"  labels: {{app.kubernetes.io/version: '{version}'}}\n" if version else ""
    return (
        f"apiVersion: apps/v1\nkind: {kind}\nmetadata:\n  name: {name}\n{labels}"
        f"spec:\n  replicas: {replicas}\n  template:\n    spec:\n      containers:\n{containers}"
    )


def config(name, value):
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: '{value}'}}\n"


CRON = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: backup}
spec:
  jobTemplate: {spec: {template: {spec: {initContainers: [{name: a, image: 'tool:%s'}]}}}}
"""
SCALER = """\
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {minReplicas: 1, maxReplicas: %s}
"""
CHART = "kind: Service\nmetadata: {name: web, labels: {helm.sh/chart: web-%s}}\n"
SECRET = "kind: Secret\nmetadata: {name: s}\nstringData: {replicas: '%s'}\nspec: {replicas: x}\n"
DIGESTS = "sha256:" + "0" * 64, "sha256:" + "1" * 64

# Files before and after; None: the file is not there.
CHANGES = [
    (
        "image, replicas and files",
        {"d.yaml": deployment(), "a.txt": None, "b.txt": None},
        {"d.yaml": deployment(images=[f"{WEB}:1.1.0"], replicas="3"), "a.txt": "a", "b.txt": "b"},
        "image `1.0.0` → `1.1.0`, replicas 2 → 3, 2 files added, 1 file changed, 1 object changed",
    ),
    (
        "several images have their names",
        {"d.yaml": deployment(images=["web:1", "proxy:7"])},
        {"d.yaml": deployment(images=["web:2", "proxy:8"])},
        "image of `web` 1 → 2, image of `proxy` 7 → 8, 1 file changed, 1 object changed",
    ),
    (
        "an equal change of several images is said once",
        {"d.yaml": deployment(images=["web:1", "api:1"]) + "---\n" + deployment("b", ["web:1"])},
        {"d.yaml": deployment(images=["web:2", "api:2"]) + "---\n" + deployment("b", ["web:2"])},
        "image 1 → 2, 1 file changed, 2 objects changed",
    ),
    (
        "another registry",
        {"d.yaml": deployment(images=["a.example:5000/web:1"])},
        {"d.yaml": deployment(images=["b.example/web:1"])},
        "image `a.example:5000/web:1` → `b.example/web:1`, 1 file changed, 1 object changed",
    ),
    (
        "a port is no tag",
        {"d.yaml": deployment(images=["a.example:5000/web"])},
        {"d.yaml": deployment(images=["a.example:5000/web:2"])},
        "image `no tag` → 2, 1 file changed, 1 object changed",
    ),
    (
        "digests of one tag",
        {"d.yaml": deployment(images=[f"web:1@{DIGESTS[0]}"])},
        {"d.yaml": deployment(images=[f"web:1@{DIGESTS[1]}"])},
        "image `sha256:000000000000` → `sha256:111111111111`, 1 file changed, 1 object changed",
    ),
    (
        "another container",
        {"d.yaml": deployment(images=["web:1"])},
        {"d.yaml": deployment(images=["web:1", "proxy:7"])},
        "image `proxy:7` added, 1 file changed, 1 object changed",
    ),
    (
        "one container less",
        {"d.yaml": deployment(images=["web:1", "proxy:7"])},
        {"d.yaml": deployment(images=["web:1"])},
        "image `proxy:7` removed, 1 file changed, 1 object changed",
    ),
    (
        "containers at any depth",
        {"c.yaml": CRON % "v1"},
        {"c.yaml": CRON % "v2"},
        "image `v1` → `v2`, 1 file changed, 1 object changed",
    ),
    (
        "limits of replicas",
        {"s.yaml": SCALER % 3},
        {"s.yaml": SCALER % 5},
        "maxReplicas 3 → 5, 1 file changed, 1 object changed",
    ),
    (
        "different replicas have the names of their objects",
        {"d.yaml": deployment("a") + "---\n" + deployment("b", replicas="4")},
        {"d.yaml": deployment("a", replicas="3") + "---\n" + deployment("b", replicas="5")},
        "replicas of `a` 2 → 3, replicas of `b` 4 → 5, 1 file changed, 2 objects changed",
    ),
    (
        "replicas that are no number are not named",
        {"d.yaml": deployment(replicas="'2'")},
        {"d.yaml": deployment(replicas="'3'")},
        "1 file changed, 1 object changed",
    ),
    (
        "replicas that were left to others",
        {"d.yaml": deployment(replicas="null")},
        {"d.yaml": deployment(replicas="3")},
        "replicas 3 added, 1 file changed, 1 object changed",
    ),
    (
        "a version label that says more than the image",
        {"d.yaml": deployment(version="1.0")},
        {"d.yaml": deployment(version="1.1")},
        "version `1.0` → `1.1`, 1 file changed, 1 object changed",
    ),
    (
        "a version label that says what the image says",
        {"d.yaml": deployment(version="v1.0.0")},
        {"d.yaml": deployment(images=[f"{WEB}:1.1.0"], version="v1.1.0")},
        "image `1.0.0` → `1.1.0`, 1 file changed, 1 object changed",
    ),
    (
        "chart",
        {"s.yaml": CHART % "1.0.0"},
        {"s.yaml": CHART % "1.1.0"},
        "chart `web-1.0.0` → `web-1.1.0`, 1 file changed, 1 object changed",
    ),
    (
        "objects that come and go",
        {"a.yaml": config("a", 1) + "---\n" + config("b", 1), "c.yaml": config("c", 1)},
        {"a.yaml": config("a", 2), "d.yaml": config("d", 1) + "---\n" + config("e", 1)},
        (
            "1 file added, 1 file removed, 1 file changed,"
            " 2 objects added, 2 objects removed, 1 object changed"
        ),
    ),
    (
        "an object in another file is the same",
        {"a.yaml": config("a", 1)},
        {"b.yaml": config("a", 1)},
        "1 file added, 1 file removed",
    ),
    (
        "values of Secrets are not shown",
        {"s.yaml": SECRET % "one"},
        {"s.yaml": SECRET % "two"},
        "1 file changed, 1 object changed",
    ),
    (
        "a file that is no YAML is a file",
        {"a.yaml": config("a", 1), "b.yaml": "a: b"},
        {"a.yaml": "a: [", "b.yaml": "- 1"},
        "2 files changed",
    ),
    (
        "Kptfile and context say nothing",
        {"Kptfile": "kind: Kptfile\n", "package-context.yaml": config("kptfile.kpt.dev", 1)},
        {"Kptfile": "kind: Kptfile\na: b\n", "package-context.yaml": config("kptfile.kpt.dev", 2)},
        "nothing but Kptfile and package context",
    ),
    (
        "hostile values are code",
        {"d.yaml": deployment(images=["web:1"])},
        {"d.yaml": deployment(images=["@ann/fixes #1"])},
        "image `web:1` → `@ann/fixes #1`, 1 file changed, 1 object changed",
    ),
]


def side(files):
    return {path: ("100644", text.encode()) for path, text in files.items() if text is not None}


@pytest.mark.parametrize(
    ("old", "new", "expected"), [it[1:] for it in CHANGES], ids=[it[0] for it in CHANGES]
)
def test_line(old, new, expected):
    before, after = side(old), side(new)
    changes = compare_packages(before.keys(), after.keys(), before, after)
    assert format_difference(changes) == expected


def test_many_fields_are_counted():
    images = [[f"image{n}:{version}{n}" for n in range(30)] for version in (1, 2)]
    before, after = (side({"d.yaml": deployment(images=it)}) for it in images)
    line = format_difference(compare_packages(before.keys(), after.keys(), before, after))
    assert line.count("image of ") == 12
    assert line.endswith(", 18 more fields, 1 file changed, 1 object changed")


def test_files_that_are_not_compared_are_counted():
    names = [f"{number}.yaml" for number in range(9)]
    assert format_difference(compare_packages([], names, {}, {})) == "9 files added"
