"""What a Kptfile may say."""

import pytest

from fanout.package.kptfile import find_kptfile, find_kptfile_problems
from fanout.package.manifest import Manifest

HEAD = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: x}\n"


def faults(text):
    document = find_kptfile(Manifest.parse(text.encode(), "Kptfile"))
    return [f"{f.where.line} {f.where.field}: {f.problem}" for f in find_kptfile_problems(document)]


def test_a_kptfile_with_everything_in_it_is_right():
    text = HEAD.replace(
        "{name: x}", "{name: x, namespace: s, labels: {a: b}, annotations: {a: b}}"
    ) + (
        """upstream:
  type: git
  git: {repo: https://git.example.com/x.git, directory: /x, ref: v1}
  updateStrategy: copy-merge
upstreamLock:
  type: git
  git: {repo: https://git.example.com/x.git, directory: /x, ref: v1, commit: abc}
info:
  site: s
  emails: [a@example.com]
  license: l
  licenseFile: f
  description: d
  keywords: [k]
  man: m
  readinessGates:
  - conditionType: t
pipeline:
  mutators:
  - image: ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2
    name: first
    configPath: sub/config.yaml
    selectors:
    - {apiVersion: v1, kind: K, name: web, namespace: s, labels: {a: b}, annotations: {a: b}}
    exclude: [{kind: K}]
  - image: set-labels
    tag: ">=0.1"
    configMap: {a: b}
  - exec: ./run
  validators: []
inventory: {namespace: s, name: i, inventoryID: i, labels: {a: b}, annotations: {a: b}}
status:
  conditions:
  - {type: t, status: "True", reason: r, message: m}
  renderStatus: {mutationSteps: [], anything: 1}
"""
    )
    assert faults(text) == []


ROWS = [
    ("", []),
    ("info:\n", []),  # null is as good as not there
    ("extra: 1\n", ["4 extra: unknown field"]),
    ("info: {sight: x}\n", ["4 info.sight: unknown field"]),
    ("info: [x]\n", ["4 info: a list is not a map"]),
    ("info: {emails: x}\n", ["4 info.emails: 'x' is not a list"]),
    ("info: {emails: [1]}\n", ["4 info.emails[0]: 1 is not a string"]),
    ("info: {readinessGates: [{}]}\n",
     ["4 info.readinessGates[0].conditionType: required field is missing"]),
    ("upstream: {type: svn}\n", ["4 upstream.type: unsupported value 'svn'"]),
    ("upstream: {updateStrategy: x}\n", ["4 upstream.updateStrategy: unsupported value 'x'"]),
    ("upstream:\n  git:\n    repo: x\n", ["5 upstream.git.ref: required field is missing"]),
    ("upstreamLock: {git: {branch: x}}\n", ["4 upstreamLock.git.branch: unknown field"]),
    ("status: {conditions: [{type: a, status: Good}]}\n",
     ["4 status.conditions[0].status: unsupported value 'Good'"]),
    ("pipeline: {mutators: {image: x}}\n", ["4 pipeline.mutators: a map is not a list"]),
    ("pipeline: {mutators: [x]}\n", ["4 pipeline.mutators[0]: 'x' is not a map"]),
    ("pipeline: {generators: []}\n", ["4 pipeline.generators: unknown field"]),
    ("pipeline:\n  validators:\n  - name: x\n",
     ["6 pipeline.validators[0]: one function is required"]),
    ("pipeline: {mutators: [{image: x, exec: ./run}]}\n",
     ["4 pipeline.mutators[0]: one function is required"]),
    ("pipeline: {mutators: [{image: x, configMap: {a: b}, configPath: c.yaml}]}\n",
     ["4 pipeline.mutators[0]: configMap and configPath exclude each other"]),
    ("pipeline: {mutators: [{image: x, configMap: {a: 1}}]}\n",
     ["4 pipeline.mutators[0].configMap.a: 1 is not a string"]),
    ("pipeline: {mutators: [{image: x, configPath: a/../../b}]}\n",
     ["4 pipeline.mutators[0].configPath: 'a/../../b' is outside the package"]),
    ("pipeline: {mutators: [{image: x, configPath: /b}]}\n",
     ["4 pipeline.mutators[0].configPath: '/b' is outside the package"]),
    ("pipeline: {mutators: [{image: x, configRef: c.yaml}]}\n",
     ["4 pipeline.mutators[0].configRef: unknown field"]),
    ("pipeline: {mutators: [{image: x, selectors: [{label: {a: b}}]}]}\n",
     ["4 pipeline.mutators[0].selectors[0].label: unknown field"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ROWS, ids=[row[0].strip() for row in ROWS])
def test_every_breach_is_reported_with_its_line(text, expected):
    assert faults(HEAD + text) == expected


@pytest.mark.parametrize("metadata", ["{}", "{name: ''}", "{name: null}"])
def test_a_kptfile_has_a_name(metadata):
    text = HEAD.replace("{name: x}", metadata)
    assert faults(text) == ["3 metadata.name: required field is missing"]


IMAGES = [
    ("set-labels", True),
    ("set-labels:v0.1.5", True),
    ("registry.example.com:5000/team/set_labels:latest", True),
    ("x@sha256:" + "0" * 64, True),
    ("x:v1@sha256:" + "0" * 64, True),
    ("Set-Labels", False),
    ("set labels", False),
    ("set-labels:", False),
    ("/set-labels", False),
    ("a//b", False),
    ("x@sha256:123", False),
    ("https://example.com/x", False),
    ("-x", False),
    ("a" * 1000, False),
]


@pytest.mark.parametrize(("image", "right"), IMAGES, ids=[row[0][:50] for row in IMAGES])
def test_an_image_is_a_reference(image, right):
    assert (faults(f"{HEAD}pipeline:\n  mutators:\n  - image: {image!r}\n") == []) is right
