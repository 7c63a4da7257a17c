"""`fanout package validate` on real directories: every fault, each with its place."""

import json
import os
from pathlib import Path

import pytest
from cli.packages import KPTFILE, config_map, deployment, pipeline, put

from fanout.cli.main import run_arguments

FIXTURES = Path(__file__).parents[2] / "fixtures"
GOOD = {"Kptfile": KPTFILE, "web.yaml": deployment(), "values.yaml": "a: 1\n", "logo.png": b"\0"}


def marked(name, mark):
    return config_map(name, f"  annotations:\n    kpt.dev/config-injection: {mark}\n")


@pytest.fixture
def validate(tmp_path, capsys):
    """Answer exit status and the lines, with the package's own directory left out."""

    def run(files, spoil=lambda _: None):
        directory = put(tmp_path / "package", files)
        spoil(directory)
        status = run_arguments(["package", "validate", str(directory)])
        return status, capsys.readouterr().out.replace(str(directory), ".").splitlines()

    return run


@pytest.mark.parametrize("package", ["packages/monitoring", "functions/set-labels/input"])
def test_a_good_package_has_no_faults(package, capsys):
    assert run_arguments(["package", "validate", str(FIXTURES / package)]) == 0
    assert capsys.readouterr().out == "the package is valid\n"


FAULTS = [
    (
        "no Kptfile",
        {"web.yaml": deployment()},
        [".: there is no Kptfile"],
    ),
    (
        "every fault of every file that cannot be read",
        {**GOOD, "a.yaml": "a: 1\na: 2\nb: 1\nb: 2\n", "b.json": "{", "c.yaml": b"\xff"},
        ["./a.yaml:2: ", "./a.yaml:4: ", "./b.json:1: ", "./c.yaml:1: byte 1 is not UTF-8"],
    ),
    (
        "two documents in a Kptfile",
        {**GOOD, "Kptfile": f"{KPTFILE}---\n{KPTFILE}"},
        ["./Kptfile:6: the Kptfile has more than one document"],
    ),
    (
        "every breach of a Kptfile's rules, those of subpackages too",
        {
            **GOOD,
            "Kptfile": KPTFILE + "upsteam: {}\nupstream:\n  updateStrategy: merge\n",
            "sub/Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\n",
        },
        [
            "./Kptfile:5: Kptfile: upsteam: unknown field",
            "./Kptfile:7: Kptfile: upstream.updateStrategy: unsupported value 'merge'",
            "./sub/Kptfile:1: Kptfile: metadata: required field is missing",
        ],
    ),
    (
        "every function that is not there or wrongly configured",
        {
            **GOOD,
            "Kptfile": pipeline(
                "{image: gatekeeper}",
                "{image: set-labels, configMap: {a: b}}",
                "{image: set-labels, configPath: none.yaml}",
                "{image: set-image, configMap: {nam: x}}",
                "{image: set-labels, selectors: [{names: x}]}",
            ),
        },
        [
            "./Kptfile:7: Kptfile: pipeline.mutators[0]: the function gatekeeper is not available",
            "./Kptfile:9: Kptfile: pipeline.mutators[2]: none.yaml, the configuration ",
            "./Kptfile:10: Kptfile: pipeline.mutators[3]: set-image: unknown field data.nam",
            "./Kptfile:11: Kptfile: pipeline.mutators[4].selectors[0].names: unknown field",
        ],
    ),
    (
        "names that are no text, and marks that are none, in the items of a List",
        {
            **GOOD,
            "all.json": json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "List",
                    "items": [
                        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": 1}},
                        {
                            "apiVersion": "v1",
                            "kind": "ConfigMap",
                            "metadata": {
                                "name": "a",
                                "annotations": {"kpt.dev/config-injection": "sometimes"},
                            },
                        },
                    ],
                },
                indent=1,
            ),
        },
        [
            "./all.json:9: ConfigMap: metadata.name: 1 is not a string",
            "./all.json:18: ConfigMap/a: metadata.annotations[kpt.dev/config-injection]: ",
        ],
    ),
    (
        "one object twice, in two files, in one, and in a List",
        {
            **GOOD,
            "a.yaml": config_map("x") + "---\n" + config_map("z") + "---\n" + config_map("x"),
            "b.json": json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMapList",
                    "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "z"}}],
                }
            ),
        },
        [
            "./a.yaml:11: ConfigMap/x: the object is also at a.yaml:1",
            "./b.json:1: ConfigMap/z: the object is also at a.yaml:6",
        ],
    ),
    (
        "marks that are no injection points, and points of one name",
        {
            **GOOD,
            "a.yaml": marked("x", "maybe") + "---\n" + marked("two", "required"),
            "b.yaml": marked("z", "yes"),
            "c.yaml": marked("two", "optional").replace("v1", "example.com/v1"),
        },
        [
            "./a.yaml:6: ConfigMap/x: metadata.annotations[kpt.dev/config-injection]: ",
            "./b.yaml:6: ConfigMap/z: ",
            "./c.yaml:6: ConfigMap/two: injection point ConfigMap.two is also at a.yaml:13",
        ],
    ),
    (
        "what shows only when the package is rendered",
        {
            **GOOD,
            "Kptfile": pipeline("{image: set-image, configPath: image.yaml}"),
            "image.yaml": config_map("image", "data:\n  nam: web\n"),
        },
        ["./Kptfile:7: Kptfile: pipeline.mutators[0]: set-image: unknown field data.nam"],
    ),
    (
        "names that YAML takes for something else",
        {
            **GOOD,
            "a.yaml": config_map("on"),
            "b.yaml": config_map("1e3"),
            "c.yaml": "apiVersion: 1\nkind: 2\nmetadata: {name: c, namespace: no}\n",
            "values.yaml": "kind: 3\nname: 1\n",
        },
        [
            "./a.yaml:4: ConfigMap: metadata.name: true is not a string",
            "./b.yaml:4: ConfigMap: ",
            "./c.yaml:1: 2: apiVersion: 1 is not a string",
            "./c.yaml:2: 2: kind: 2 is not a string",
            "./c.yaml:3: 2: metadata.namespace: false is not a string",
        ],
    ),
]


@pytest.mark.parametrize(("files", "lines"), [r[1:] for r in FAULTS], ids=[r[0] for r in FAULTS])
def test_every_fault_is_reported_with_its_place(validate, files, lines):
    status, problems = validate(files)
    assert status == 2
    assert len(problems) == len(lines), problems
    assert [f for f, line in zip(problems, lines, strict=True) if not f.startswith(line)] == []


TOOLS = '  annotations: {config.kubernetes.io/local-config: "true"}\n'
FREE = [
    (
        "one object in a package and in its subpackage",
        {"a/Kptfile": KPTFILE, "a/web.yaml": deployment()},
    ),
    (
        "an object for tools that is called like another",
        {"b.yaml": config_map("x"), "c.yaml": config_map("x", TOOLS)},
    ),
    (
        "objects of one name in other groups, kinds and namespaces",
        {
            "b.yaml": deployment().replace("apps/v1", "example.com/v1"),
            "c.yaml": config_map("web"),
            "d.yaml": config_map("web", "  namespace: shop\n"),
        },
    ),
    ("empty files and documents", {"b.yaml": "", "c.yaml": "---\n---\n", "d.json": ""}),
]


@pytest.mark.parametrize("files", [row[1] for row in FREE], ids=[row[0] for row in FREE])
def test_allowed_files_are_no_error(validate, files):
    assert validate({**GOOD, **files}) == (0, ["the package is valid"])


def links(directory):
    (directory / "link").symlink_to("web.yaml")
    os.mkfifo(directory / "pipe")


def many(directory):
    put(directory, {f"{n}.txt": "" for n in range(1000)})


SPOILED = [
    (
        "links and pipes are named beside the other faults",
        links,
        ["./link: is a symbolic link", "./pipe: is a pipe", "./x.yaml:2: "],
    ),
    ("of a package that is too large nothing else is said", many, [".: has more than 1,000 files"]),
]


@pytest.mark.parametrize(("spoil", "lines"), [r[1:] for r in SPOILED], ids=[r[0] for r in SPOILED])
def test_forbidden_content_of_a_package_is_reported(validate, spoil, lines):
    status, problems = validate({**GOOD, "x.yaml": "a: 1\na: 2\n"}, spoil)
    assert status == 2
    assert len(problems) == len(lines), problems
    assert [f for f, line in zip(problems, lines, strict=True) if not f.startswith(line)] == []


def test_faults_are_data_too(tmp_path, capsys):
    directory = put(tmp_path, {**GOOD, "Kptfile": f"{KPTFILE}more: 1\n"})
    assert run_arguments(["package", "validate", str(directory), "-o", "json"]) == 2
    (fault,) = json.loads(capsys.readouterr().out)
    assert fault.pop("remedy").startswith("use apiVersion, ")
    assert fault == {
        "file": f"{directory}/Kptfile", "line": 5, "object": "Kptfile", "field": "more",
        "problem": "unknown field", "severity": "error",
    }  # fmt: skip
