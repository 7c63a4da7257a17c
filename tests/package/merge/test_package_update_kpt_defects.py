"""What kpt was measured to do with a merge, and what is done here instead.

Each row is a line of the table in docs/reference/kpt-differences.md, under the same words; a line without a
row, or a row without its line, fails.
"""

# ruff: noqa: E501 - a row of a table is easier to read on few lines

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest
from variants.running import after

from fanout.errors import InvalidInput
from fanout.package.kptfile import find_kptfile, find_kptfile_problems
from fanout.package.manifest import Manifest
from fanout.package.merge.package_update import KptUpdateStrategy, update_package

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "kpt-differences.md"
Files = dict[str, str]


@dataclass(frozen=True)
class Row:
    """Three packages, what they become, and the conflicts, as `object field: cause, winner`."""

    sentence: str
    origin: Files
    upstream: Files
    local: Files
    result: Files
    conflicts: tuple[str, ...] = ()
    notes: int = 0


def thing(body: str, name: str = "a", kind: str = "Thing", group: str = "example.com/v1") -> str:
    return f"apiVersion: {group}\nkind: {kind}\nmetadata:\n  name: {name}\n{dedent(body)}"


def workload(*lines: str) -> str:
    inside = "".join(f"      {line}\n" for line in lines)
    return thing(f"spec:\n  template:\n    spec:\n{inside}", "web", "Deployment", "apps/v1")


def service(*ports: str) -> str:
    lines = "".join(f"  - {port}\n" for port in ports)
    return thing(f"spec:\n  ports:\n{lines}", "web", "Service", "v1")


def kptfile(body: str = "", name: str = "shop") -> str:
    return thing(body, name, "Kptfile", "kpt.dev/v1")


def mutators(*functions: str) -> str:
    return kptfile("pipeline:\n  mutators:\n" + "".join(f"  - {it}\n" for it in functions))


def gates(*names: str) -> str:
    return kptfile(
        "info:\n  readinessGates:\n" + "".join(f"  - conditionType: {it}\n" for it in names)
    )


def json(x: int, y: int) -> str:
    return f'{{"apiVersion": "v1", "kind": "X", "metadata": {{"name": "a"}}, "x": {x}, "y": {y}}}\n'


def rows(sentence: str, *cases: tuple, one: str = "a.yaml") -> list[Row]:
    """Rows about one file: its text on each side, the result, conflicts."""
    return [
        Row(sentence, *({one: text} for text in case[:4]), *case[4:])
        for case in cases
    ]  # fmt: skip


A, A2, A3 = (thing(f"x: {n}\n") for n in (1, 2, 3))
B = thing("x: 1\n", "b")
CRD = thing("""\
    spec:
      group: example.com
      names: {kind: Thing}
      versions:
      - name: v1
        storage: true
        schema:
          openAPIV3Schema:
            properties:
              users: {x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id]}
    """, "things.example.com", "CustomResourceDefinition", "apiextensions.k8s.io/v1")  # fmt: skip
NS, LABELS, LABELS2, MINE = (
    "{image: set-namespace:v1, name: ns}", "image: set-labels:v1", "image: set-labels:v2",
    "{image: mine:v1, name: mine}",
)  # fmt: skip

DEFECTS = [
    *rows("an unrelated change next to a YAML alias", (
        thing("p: &p {k: v}\nq: *p\nx: 1\ny: 1\n"), thing("p: &p {k: v}\nq: *p\nx: 2\ny: 1\n"),
        thing("p: &p {k: v}\nq: *p\nx: 1\ny: 3\n"), thing("p: &p {k: v}\nq: *p\nx: 2\ny: 3\n"))),
    *rows("upstream changes a Service's port number", (
        service("port: 80", "{port: 443, name: tls}"), service("port: 81", "{port: 443, name: tls}"),
        service("port: 80", "{port: 443, name: tls, nodePort: 30443}"),
        service("port: 81", "{port: 443, name: tls, nodePort: 30443}")), (
        service("{port: 80, targetPort: 8080}"), service("{port: 81, targetPort: 8080}"),
        service("{port: 80, targetPort: 8080, nodePort: 30080}"), service("{port: 81, targetPort: 8080}"),
        ("Service/web spec.ports[0]: changed here, deleted there, upstream",))),
    *rows("an element or map deleted here, changed there", (
        workload("containers:", "- name: web", "- {name: side, image: 'a:1', tty: true}"),
        workload("containers:", "- name: web", "- {name: side, image: 'a:2', tty: true}"),
        workload("containers:", "- name: web"),
        workload("containers:", "- name: web", "- {name: side, image: 'a:2', tty: true}"),
        ("Deployment/web spec.template.spec.containers[1]: deleted here, changed there, upstream",)), (
        thing("x: 1\nm: {a: 1, b: 1}\n"), thing("x: 1\nm: {a: 2, b: 1}\n"), thing("x: 1\n"),
        thing("x: 1\nm: {a: 2, b: 1}\n"), ("Thing/a m: deleted here, changed there, upstream",))),
    *rows("a change of only the type", (
        thing("x: '1'\ny: 1\n"), thing("x: 1\ny: 1\n"), thing("x: '1'\ny: 2\n"), thing("x: 1\ny: 2\n"))),
    *rows("scalar to map, map to scalar", (
        thing("x: 1\ny: {k: v}\nz: 1\n"), thing("x: {k: v}\ny: 1\nz: 1\n"),
        thing("x: 1\ny: {k: v}\nz: 2\n"), thing("x: {k: v}\ny: 1\nz: 2\n"))),
    *rows("an unchanged explicit null", (
        thing("n: null\nx: 1\ny: 1\n"), thing("n: null\nx: 2\ny: 1\n"),
        thing("n: null\nx: 1\ny: 3\n"), thing("n: null\nx: 2\ny: 3\n"))),
    *rows("two env entries with one name", (
        workload("containers:", "- name: web", "  env:", "  - {name: A, value: '1'}", "  - {name: A, value: '2'}"),
        workload("containers:", "- name: web", "  env:", "  - {name: A, value: '1'}", "  - {name: A, value: '9'}"),
        workload("containers:", "- name: web", "  env:", "  - {name: A, value: '5'}", "  - {name: A, value: '2'}"),
        workload("containers:", "- name: web", "  env:", "  - {name: A, value: '5'}", "  - {name: A, value: '9'}"))),
    Row("both add an object in different files; upstream moves an object that is edited here",
        {"b.yaml": B}, {"b.yaml": B, "theirs.yaml": A}, {"b.yaml": B, "mine.yaml": A},
        {"b.yaml": B, "mine.yaml": A}),
    Row("both add an object in different files; upstream moves an object that is edited here",
        {"a.yaml": A}, {"new.yaml": A}, {"a.yaml": A2}, {"new.yaml": A2}),
    *rows("upstream changes or adds an unnamed function", (
        mutators(NS, LABELS), mutators(NS, LABELS2), mutators(MINE, NS, LABELS), mutators(MINE, NS, LABELS2)), (
        mutators(NS), mutators(NS, LABELS), mutators(MINE, NS), mutators(MINE, NS, LABELS)), one="Kptfile"),
    *rows("both add readiness gates", (
        gates("a"), gates("a", "theirs"), gates("a", "mine"), gates("a", "theirs", "mine")), one="Kptfile"),
]  # fmt: skip

ANSWERS = [
    *rows("both change a scalar, a list without keys, a block of text", (
        A, A2, A3, A2, ("Thing/a x: both changed, upstream",)), (
        workload("tolerations:", "- key: a", "- key: b", "- key: c"),
        workload("tolerations:", "- {key: a, operator: Exists}", "- key: b", "- key: c"),
        workload("tolerations:", "- key: a", "- key: b", "- key: c", "- key: mine"),
        workload("tolerations:", "- {key: a, operator: Exists}", "- key: b", "- key: c", "- key: mine")), (
        thing("args: [a, b]\n"), thing("args: [a, theirs]\n"), thing("args: [a, mine]\n"),
        thing("args: [a, theirs]\n"), ("Thing/a args: both changed, upstream",)), (
        thing("t: |\n  one\n  two\n  three\n"), thing("t: |\n  ONE\n  two\n  three\n"),
        thing("t: |\n  one\n  two\n  THREE\n"), thing("t: |\n  ONE\n  two\n  THREE\n"))),
    Row("lists of custom resources with `x-kubernetes-list-map-keys`",
        {"a.yaml": thing("users:\n- {id: x, role: r}\n- {id: y, role: r}\n"), "crd.yaml": CRD},
        {"a.yaml": thing("users:\n- {id: x, role: w}\n- {id: y, role: r}\n"), "crd.yaml": CRD},
        {"a.yaml": thing("users:\n- {id: x, role: r}\n- {id: y, role: w}\n"), "crd.yaml": CRD},
        {"a.yaml": thing("users:\n- {id: x, role: w}\n- {id: y, role: w}\n"), "crd.yaml": CRD}),
    *rows("upstream deletes what was edited here", (
        thing("x: 1\ny: 1\n"), thing("y: 1\n"), thing("x: 2\ny: 1\n"), thing("y: 1\n"),
        ("Thing/a x: changed here, deleted there, upstream",))),
    *rows("a key deleted here, changed there", (
        thing("x: 1\ny: 1\n"), thing("x: 2\ny: 1\n"), thing("y: 1\n"), thing("x: 2\ny: 1\n"),
        ("Thing/a x: deleted here, changed there, upstream",))),
    Row("an object deleted upstream, a comment changed here",
        {"a.yaml": A, "b.yaml": B}, {"b.yaml": B}, {"a.yaml": "# mine\n" + A, "b.yaml": B}, {"b.yaml": B}, notes=1),
    Row("the file is part of an object's identity",
        {"a.yaml": A}, {"a.yaml": A2}, {"mine.yaml": A}, {"mine.yaml": A2}),
    Row("an object that upstream renames",
        {"a.yaml": A, "t": "1"}, {"a.yaml": B, "t": "1"}, {"a.yaml": A, "t": "2"}, {"a.yaml": B, "t": "2"}),
    Row("an object that upstream renames",
        {"a.yaml": A}, {"b.yaml": B}, {"a.yaml": A2}, {"a.yaml": A2, "b.yaml": B},
        ("Thing/a: changed here, deleted there, local",)),
    *rows("an object that is put into another namespace", (
        thing("x: 1\n"), thing("x: 1\n").replace("name: a", "name: a\n  namespace: shop"), A2,
        A2.replace("name: a", "name: a\n  namespace: shop"))),
    *rows("plain files that both changed", (
        "a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"), (
        "a\nb\n", "A\nb\n", "x\nb\n", "A\nb\n", ("a.md: both changed, upstream",)), one="a.md"),
    Row("a plain file deleted here",
        {"a.md": "1", "b.md": "1"}, {"a.md": "1", "b.md": "2"}, {"b.md": "1"}, {"b.md": "2"}),
    Row("a plain file deleted here",
        {"a.md": "1", "b.md": "1"}, {"a.md": "2", "b.md": "1"}, {"b.md": "1"}, {"b.md": "1"},
        ("a.md: deleted here, changed there, local",)),
    *rows("JSON manifests", (json(1, 1), json(2, 1), json(1, 3), json(2, 3)), one="a.json"),
    *rows("upstream changes only a comment", (
        thing("x: 1 # old\ny: 1\n"), thing("x: 1 # new\ny: 1\n"), thing("x: 1 # old\ny: 2\n"),
        thing("x: 1 # new\ny: 2\n"))),
    *rows("upstream changes a value with a local comment", (
        thing("x: 1\n"), thing("x: 2\n"), thing("x: 1 # mine\n"), thing("x: 2 # mine\n"))),
    *rows("emptied lists", (
        workload("a: 1", "imagePullSecrets:", "- name: x"), workload("a: 1"),
        workload("a: 2", "imagePullSecrets:", "- name: x"), workload("a: 2"))),
    Row("one malformed file",
        {"a.yaml": A, "bad.yaml": "a: [\nb: 1\nc: 1\n"}, {"a.yaml": A2, "bad.yaml": "a: [\nb: 1\nc: 2\n"},
        {"a.yaml": A, "bad.yaml": "# mine\na: [\nb: 1\nc: 1\n"},
        {"a.yaml": A2, "bad.yaml": "# mine\na: [\nb: 1\nc: 2\n"}, notes=1),
    Row("a subpackage added on both sides",
        {"Kptfile": kptfile()}, {"Kptfile": kptfile(), "s/Kptfile": kptfile(name="s"), "s/a.yaml": A},
        {"Kptfile": kptfile(), "s/Kptfile": kptfile(name="s"), "s/b.yaml": B},
        {"Kptfile": kptfile(), "s/Kptfile": kptfile(name="s"), "s/b.yaml": B}, ("s: both added, local",)),
]  # fmt: skip


def package(files: Files) -> dict[str, tuple[str, bytes]]:
    return {path: ("100644", text.encode()) for path, text in files.items()}


@pytest.mark.parametrize("row", DEFECTS + ANSWERS, ids=lambda row: row.sentence)
def test_a_merge_avoids_the_defect_of_kpt(row: Row):
    sides = map(package, (row.origin, row.upstream, row.local))
    result = update_package(KptUpdateStrategy.RESOURCE_MERGE, *sides)
    assert {path: data.decode() for path, (_, data) in result.files.items()} == row.result
    conflicts = [
        f"{' '.join(filter(None, (it.where.object or it.where.file, it.where.field)))}: {it.cause},"
        f" {it.winner}"
        for it in result.conflicts
    ]
    assert tuple(conflicts) == row.conflicts
    assert len(result.notes) == row.notes


FUNCTION = "an object deleted upstream, to which a function gave a namespace"
KPTFILES = "a Kptfile without a name, with an unknown strategy, in two documents"
FAST_FORWARD = "`fast-forward` and a file added here"
COPY_MERGE = "`copy-merge` and a file edited here, deleted upstream"


@pytest.mark.parametrize("edit", ["", "data: {by: hand}\n"], ids=["untouched", "edited here"])
def test_an_object_that_a_function_put_into_a_namespace_is_removed_with_upstream_s(edit: str):
    """The base is what fanout rendered, so what a function put there is nobody's edit."""
    words, other = (
        after(thing("", name, "ConfigMap", "v1"), "set-namespace", namespace="shop")
        for name in ("words", "other")
    )
    assert "namespace: shop" in words
    origin, local = {"a.yaml": words, "b.yaml": other}, {"a.yaml": words + edit, "b.yaml": other}
    sides = map(package, (origin, {"b.yaml": other}, local))
    result = update_package(KptUpdateStrategy.RESOURCE_MERGE, *sides)
    assert ("a.yaml" in result.files) == bool(edit)
    assert len(result.conflicts) == bool(edit)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (kptfile().replace("name: shop", "labels: {}"), "Kptfile:3: .*metadata.name.*missing"),
        (kptfile("upstream: {updateStrategy: guess}\n"), "Kptfile:5: .*updateStrategy.*'guess'"),
        (kptfile("---\nx: 1\n"), "Kptfile:6: .*more than one document"),
    ],
    ids=["without a name", "with an unknown strategy", "in two documents"],
)
def test_kptfiles_that_kpt_accepts_are_refused_with_file_and_line(text: str, problem: str):
    with pytest.raises(InvalidInput, match=problem):
        raise find_kptfile_problems(find_kptfile(Manifest.parse(text.encode(), "Kptfile")))[0]


def test_fast_forward_refuses_an_added_file_by_name():
    origin = package({"Kptfile": kptfile()})
    with pytest.raises(InvalidInput, match=r"mine\.txt changed locally"):
        update_package(
            KptUpdateStrategy.FAST_FORWARD, origin, origin, {**origin, **package({"mine.txt": ""})}
        )


def test_copy_merge_reports_what_it_deletes():
    origin, local = package({"a.txt": "1", "b.txt": "1"}), package({"a.txt": "2", "b.txt": "1"})
    result = update_package(KptUpdateStrategy.COPY_MERGE, origin, package({"b.txt": "1"}), local)
    assert (result.files, result.dropped) == (package({"b.txt": "1"}), ("a.txt",))


def test_the_page_has_a_line_for_each_row_and_no_other():
    text = PAGE.read_text(encoding="utf-8")
    lines = [match[1] for match in re.finditer(r"^\| (.+?) \| .+ \| .+ \|$", text, re.MULTILINE)]
    named = {row.sentence for row in DEFECTS + ANSWERS}
    assert sorted(lines[1:]) == sorted(named | {FUNCTION, KPTFILES, FAST_FORWARD, COPY_MERGE})
