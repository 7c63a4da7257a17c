"""Odd content on either side of a bump: merged, or refused by name; what is published stays.

One company with a policy per row and two sites each: at `ams` a maintainer has changed the package,
at `ber` nobody has.
"""

import hashlib
import subprocess
from dataclasses import dataclass, field

import pytest
from fleet import PACKAGE, RULE, Content, Fleet, Repo, stored

KPTFILE = PACKAGE["Kptfile"]


def config_map(name: str = "a", **data: object) -> str:
    lines = "".join(f"  {key}: {value}\n" for key, value in data.items())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n{lines}"


def workload(*lines: str) -> str:
    inside = "".join(f"        {line}\n" for line in lines)
    return (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 1\n"
        f"  template:\n    spec:\n      containers:\n      - name: web\n{inside}"
    )


def crd(words: str) -> str:
    """A definition of 10 MB, most of it descriptions."""
    fields = "".join(
        f"              field{n}:\n                type: string\n"
        f"                description: {words} {'word ' * 1600}end\n"
        for n in range(1250)
    )
    return (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        "metadata:\n  name: things.example.com\nspec:\n  group: example.com\n"
        "  names: {kind: Thing, plural: things}\n  scope: Namespaced\n  versions:\n"
        "  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n"
        "        type: object\n        properties:\n          spec:\n"
        f"            properties:\n{fields}"
    )


def thing(x: int, y: int) -> str:
    return f'{{"apiVersion": "v1", "kind": "X", "metadata": {{"name": "a"}}, "x": {x}, "y": {y}}}\n'


A1, A2, A3 = config_map(x=1, y=1), config_map(x=2, y=1), config_map(x=1, y=3)
A23 = config_map(x=2, y=3)
LONG = "v" * 300_000
Files = dict[str, Content]


@dataclass(frozen=True)
class Row:
    """What upstream has, has next, and what a maintainer made of it; then what the draft holds."""

    sentence: str
    before: Files
    after: Files
    edit: Files = field(default_factory=dict)
    drafted: Files = field(default_factory=dict)
    refused: tuple[str, ...] = ()  # reason, words of the sentence; at both sites

    @property
    def name(self) -> str:
        return "p" + hashlib.sha256(self.sentence.encode()).hexdigest()[:8]


MERGED = [
    Row("an edit beside two objects with one identity stays with its own",
        {"a.yaml": A1, "b.yaml": A1}, {"a.yaml": A2, "b.yaml": A1}, {"b.yaml": A3},
        {"a.yaml": A2, "b.yaml": A3}),
    Row("two variables of one name keep their values",
        {"a.yaml": workload("env:", "- {name: A, value: '1'}", "- {name: A, value: '2'}")},
        {"a.yaml": workload("env:", "- {name: A, value: '1'}", "- {name: A, value: '3'}")},
        {"a.yaml": workload("env:", "- {name: A, value: '9'}", "- {name: A, value: '2'}")},
        {"a.yaml": workload("env:", "- {name: A, value: '9'}", "- {name: A, value: '3'}")}),
    Row("a list whose elements lack their key is merged by place",
        {"a.yaml": workload("env:", "- {value: '1'}", "- {value: '2'}", "- {value: '3'}")},
        {"a.yaml": workload("env:", "- {value: '1'}", "- {value: '2'}", "- {value: '4'}")},
        {"a.yaml": workload("env:", "- {value: '0'}", "- {value: '2'}", "- {value: '3'}")},
        {"a.yaml": workload("env:", "- {value: '0'}", "- {value: '2'}", "- {value: '4'}")}),
    Row("a list that becomes a map arrives",
        {"a.yaml": "apiVersion: x/v1\nkind: T\nmetadata: {name: a}\nspec:\n  l: [a]\n  m: 1\n"},
        {"a.yaml": "apiVersion: x/v1\nkind: T\nmetadata: {name: a}\nspec:\n  l: {k: a}\n  m: 1\n"},
        {"a.yaml": "apiVersion: x/v1\nkind: T\nmetadata: {name: a}\nspec:\n  l: [a]\n  m: 2\n"},
        {"a.yaml": "apiVersion: x/v1\nkind: T\nmetadata: {name: a}\nspec:\n  l: {k: a}\n  m: 2\n"}),
    Row("an explicit null stays",
        {"a.yaml": config_map(n="null", x=1, y=1)}, {"a.yaml": config_map(n="null", x=2, y=1)},
        {"a.yaml": config_map(n="null", x=1, y=3)}, {"a.yaml": config_map(n="null", x=2, y=3)}),
    Row("anchors and aliases stay",
        {"a.yaml": config_map(p="&p one", q="*p", x=1, y=1)},
        {"a.yaml": config_map(p="&p one", q="*p", x=2, y=1)},
        {"a.yaml": config_map(p="&p one", q="*p", x=1, y=3)},
        {"a.yaml": config_map(p="&p one", q="*p", x=2, y=3)}),
    Row("markers and empty documents stay",
        {"a.yaml": f"---\n{A1}---\n---\n{config_map('b', z=1)}---\n"},
        {"a.yaml": f"---\n{A2}---\n---\n{config_map('b', z=1)}---\n"},
        {"a.yaml": f"---\n{A1}---\n---\n{config_map('b', z=4)}---\n"},
        {"a.yaml": f"---\n{A2}---\n---\n{config_map('b', z=4)}---\n"}),
    Row("a maintainer's CRLF stay",
        {"a.yaml": A1}, {"a.yaml": A2}, {"a.yaml": A3.replace("\n", "\r\n")},
        {"a.yaml": A23.replace("\n", "\r\n")}),
    Row("a maintainer's byte order mark stays",
        {"a.yaml": A1}, {"a.yaml": A2}, {"a.yaml": "\ufeff" + A3}, {"a.yaml": "\ufeff" + A23}),
    Row("spaces at the end of lines stay",
        {"a.yaml": A1}, {"a.yaml": A2}, {"a.yaml": A3.replace("data:", "data:  ")},
        {"a.yaml": A23.replace("data:", "data:  ")}),
    Row("very long lines stay",
        {"a.yaml": config_map(l=LONG, x=1, y=1)}, {"a.yaml": config_map(l=LONG, x=2, y=1)},
        {"a.yaml": config_map(l=LONG, x=1, y=3)}, {"a.yaml": config_map(l=LONG, x=2, y=3)}),
    Row("JSON manifests merge by field",
        {"a.json": thing(1, 1)},
        {"a.json": thing(2, 1)},
        {"a.json": thing(1, 3)},
        {"a.json": thing(2, 3)}),
    Row("an empty file may be filled upstream",
        {"a.yaml": "", "b.txt": "1"}, {"a.yaml": A1}, {"b.txt": "2"}, {"a.yaml": A1, "b.txt": "2"}),
    Row("a binary file arrives, and one that a maintainer changed stays",
        {"a.bin": b"\0\1", "b.bin": b"\0\1"}, {"a.bin": b"\0\2"}, {"b.bin": b"\0\3\xff"},
        {"a.bin": b"\0\2", "b.bin": b"\0\3\xff"}),
    Row("an executable file stays one",
        {"run.sh": ("100755", b"#!/bin/sh\n"), "x.txt": "1"},
        {"run.sh": ("100755", b"#!/bin/sh\ntrue\n")}, {"x.txt": "2"},
        {"run.sh": ("100755", b"#!/bin/sh\ntrue\n"), "x.txt": "2"}),
    Row("what a maintainer made executable stays so",
        {"run.sh": "#!/bin/sh\n"}, {"run.sh": "#!/bin/sh\ntrue\n"},
        {"run.sh": ("100755", b"#!/bin/sh\n")}, {"run.sh": ("100755", b"#!/bin/sh\ntrue\n")}),
    Row("a name that changes its case alone is a new name",
        {"readme.md": "a", "x.txt": "1"}, {"readme.md": None, "README.md": "a"}, {"x.txt": "2"},
        {"readme.md": None, "README.md": "a", "x.txt": "2"}),
    Row("a file upstream takes the place of a maintainer's directory",
        {"x.txt": "1"}, {"d": "file"}, {"d/a.txt": "mine", "x.txt": "2"},
        {"d": "file", "d/a.txt": None, "x.txt": "2"}),
    Row("a directory upstream takes the place of a maintainer's file",
        {"x.txt": "1"}, {"d/a.txt": "theirs"}, {"d": "mine"}, {"d/a.txt": "theirs"}),
    Row("keys that are numbers stay numbers",
        *({"a.yaml": config_map(**{"1": v, "on": w})} for v, w in ("ab", "xb", "ay", "xy"))),
    Row("a Kptfile without a name is given one",
        {"Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\n", "a.yaml": A1}, {"a.yaml": A2},
        {"a.yaml": A3}, {"a.yaml": A23}),
    Row("on and 0755 keep their spelling",
        {"a.yaml": config_map(o="on", m="0755", x=1, y=1)},
        {"a.yaml": config_map(o="on", m="0755", x=2, y=1)},
        {"a.yaml": config_map(o="on", m="0755", x=1, y=3)},
        {"a.yaml": config_map(o="on", m="0755", x=2, y=3)}),
    Row("a definition of 10 MB is no trouble",
        {"crd.yaml": crd("old"), "a.yaml": A1}, {"crd.yaml": crd("new")}, {"a.yaml": A3},
        {"crd.yaml": crd("new"), "a.yaml": A3}),
    Row("fields of a Kptfile that nobody knows stay",
        {"Kptfile": KPTFILE + "extra:\n  by: upstream\n", "a.yaml": A1}, {"a.yaml": A2},
        {"a.yaml": A3}, {"a.yaml": A23}),
]  # fmt: skip
REFUSED = [
    Row("a symbolic link upstream", {"a.yaml": A1}, {"link": ("120000", b"a.yaml")},
        refused=("InvalidPackage", "link: is a symbolic link", "use a file")),
    Row("a key that is no text", {"a.yaml": A1}, {"a.yaml": A1 + "? [1]\n: 2\n"},
        refused=("InvalidManifest", "a.yaml:8", "quote the key")),
    Row("a Kptfile in two documents", {"a.yaml": A1}, {"Kptfile": f"{KPTFILE}---\nx: 1\n"},
        refused=("InvalidPackage", "Kptfile:", "more than one document")),
    Row("a Kptfile that is none", {"a.yaml": A1}, {"Kptfile": "kind: Other\n"},
        refused=("InvalidPackage", "Kptfile", "kpt.dev/v1")),
    Row("more files than the limit", {"a.yaml": A1}, {f"f{n}.txt": "x" for n in range(1001)},
        refused=("LimitExceeded", "1,000")),
    Row("a function without what it needs", {"a.yaml": A1},
        {"Kptfile": f"{KPTFILE}pipeline:\n  mutators:\n  - image: set-namespace\n"},
        refused=("RenderFailed", "Kptfile:", "namespace")),
    Row("a function that is not there", {"a.yaml": A1},
        {"Kptfile": f"{KPTFILE}pipeline:\n  mutators:\n  - image: fly-to-the-moon:v1\n"},
        refused=("FunctionUnavailable", "Kptfile:", "fly-to-the-moon")),
]  # fmt: skip
ROWS = [*MERGED, *REFUSED]


def read(repo: Repo, revision: str, path: str) -> tuple[str, bytes] | None:
    line = repo.git("ls-tree", revision, path)
    if not line:
        return None
    data = subprocess.run(
        ["git", "show", f"{revision}:{path}"], cwd=repo.path, check=True, capture_output=True
    )
    return line.split()[0], data.stdout


@dataclass(frozen=True)
class Story:
    """What happened; `trees` are those of the published packages before and after the bump."""

    fleet: Fleet
    trees: list[dict[str, str]]
    targets: dict[tuple[str, str], dict]


def published(fleet: Fleet) -> dict[str, str]:
    paths = [f"{row.name}/{site}" for row in ROWS for site in ("ams", "ber")]
    trees = fleet.repos["edge"].git("rev-parse", *(f"main:{path}" for path in paths))
    return dict(zip(paths, trees.splitlines(), strict=True))


def tagged(upstream: Repo, revision: str) -> None:
    """The packages of all rows have this revision."""
    lines = [f"update refs/tags/{row.name}/{revision} main\n" for row in ROWS]
    upstream.git("update-ref", "--stdin", input="".join(lines))


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    root = tmp_path_factory.mktemp("company")
    fleet = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    upstream, edge = fleet.repos["blueprints"], fleet.repos["edge"]
    fleet.remove("policy.yaml")
    first: Files = {}
    for row in ROWS:
        fleet.policy(row.name, (RULE, f"package: {row.name}, revision: {{latest: true}}"))
        first |= {f"{row.name}/{p}": text for p, text in {"Kptfile": KPTFILE, **row.before}.items()}
    upstream.commit("main", first)
    tagged(upstream, "v1")
    fleet.settle()
    edge.commit("main", {f"{row.name}/ams/{p}": to for row in ROWS for p, to in row.edit.items()})
    upstream.commit("main", {f"{row.name}/{p}": to for row in ROWS for p, to in row.after.items()})
    tagged(upstream, "v2")
    before = published(fleet)
    assert fleet.later(minutes=1).sweep("--drafts-only").code == 3
    views = fleet.run("get", "targets", "-o", "json").views
    targets = {(item["policy"], item["target"].rpartition("/")[2]): item for item in views}
    return Story(fleet, [before, published(fleet)], targets)


def test_published_packages_are_untouched(story: Story):
    assert story.trees[0] == story.trees[1]
    story.fleet.repos["edge"].fsck()


@pytest.mark.parametrize("row", MERGED, ids=lambda row: row.sentence)
def test_an_odd_package_is_merged(story: Story, row: Row):
    edge = story.fleet.repos["edge"]
    draft = f"drafts/default/{row.name}/ams/{row.name}"
    drafted = {path: read(edge, draft, f"{row.name}/ams/{path}") for path in row.drafted}
    wanted = {p: None if to is None else stored(to) for p, to in row.drafted.items()}
    assert drafted == wanted
    untouched = f"drafts/default/{row.name}/ber/{row.name}"
    for path, to in row.after.items():
        kept = read(edge, untouched, f"{row.name}/ber/{path}")
        assert kept == (None if to is None else stored(to))


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.sentence)
def test_an_unusable_package_is_refused_by_name(story: Story, row: Row):
    for site in ("ams", "ber"):
        target = story.targets[row.name, site]
        [hold] = target["holds"]
        assert (target["state"], hold["reason"]) == ("Failed", row.refused[0])
        assert all(word in hold["message"] for word in row.refused[1:]), hold["message"]
