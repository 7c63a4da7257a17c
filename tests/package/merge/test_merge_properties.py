"""Laws of the three-way merge on generated packages."""

import json
from collections import Counter
from copy import deepcopy
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from fanout.package.dump import Style, block
from fanout.package.manifests import Manifest
from fanout.package.merge.identity import identity_of, is_list, shown
from fanout.package.merge.keys import element_keys
from fanout.package.merge.packages import merge_packages

POD = {
    "serviceAccountName": "web",
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
    "containers": [
        {
            "name": "web",
            "image": "nginx:1.25",
            "args": ["--one", "--two", "--three"],
            "ports": [{"containerPort": 80}, {"containerPort": 443, "protocol": "TCP"}],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "on"}],
            "resources": {"limits": {"cpu": "100m"}},
        },
        {"name": "side", "image": "side:1", "command": []},
    ],
}


def workload(kind, name):
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": 2,
            "template": {"metadata": {"labels": {"app": name}}, "spec": deepcopy(POD)},
        },
    }


OBJECTS = [
    workload("Deployment", "web"),
    workload("StatefulSet", "db"),
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "annotations": {"a/b": "0755"}},
        "spec": {"ports": [{"port": 80, "name": "http"}, {"port": 443}], "type": None},
    },
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "web"},
        "spec": {"rules": [{"host": "a.example"}, {"host": "b.example"}, {"host": "c.example"}]},
    },
    {
        "apiVersion": "example.com/v1",
        "kind": "Database",
        "metadata": {"name": "main"},
        "spec": {"users": [{"id": "x", "role": "r"}, {"id": "y", "role": "w"}], "size": 1},
    },
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "files"},
        "data": {"app.conf": "one\ntwo\nthree\nfour\nfive\n", "mode": "a"},
    },
]
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "databases.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Database"},
        "versions": [
            {
                "name": "v1",
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "properties": {
                            "spec": {
                                "properties": {
                                    "users": {
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["id"],
                                    }
                                }
                            }
                        }
                    }
                },
            }
        ],
    },
}
KPTFILE = {
    "apiVersion": "kpt.dev/v1",
    "kind": "Kptfile",
    "metadata": {"name": "shop"},
    "pipeline": {
        "mutators": [
            {"name": "ns", "image": "set-namespace:v1", "configMap": {"namespace": "x"}},
            {"image": "set-labels:v1"},
        ]
    },
    "info": {"readinessGates": [{"conditionType": "A"}]},
}
FIXED = {("apiVersion",), ("kind",), ("metadata",), ("metadata", "name"), ("spec",)}
LISTS = {
    "containers": lambda n: {"name": f"c{n}", "image": f"i:{n}"},
    "env": lambda n: {"name": f"E{n}", "value": str(n)},
    "ports": lambda n: {"port": n, "containerPort": n},
    "args": lambda n: f"--a{n}",
    "rules": lambda n: {"host": f"h{n}"},
    "users": lambda n: {"id": f"u{n}", "role": "r"},
    "tolerations": lambda n: {"key": f"k{n}"},
    "mutators": lambda n: {"name": f"f{n}", "image": f"f:{n}"},
    "readinessGates": lambda n: {"conditionType": f"G{n}"},
}
KEYS = {
    "containers": ("name",),
    "env": ("name",),
    "ports": None,
    "users": ("id",),
    "readinessGates": ("conditionType",),
}


EDITS = ["set", "set", "add", "add", "remove", "move", "drop", "new", "text"]


def places(value, path=()):
    """All paths of a value, outermost first."""
    yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for part, child in items:
        yield from places(child, (*path, part))


def at(value, path):
    for part in path:
        value = value[part]
    return value


def edit(draw, package, numbers):
    """One random edit of a package in place."""
    path = draw(st.sampled_from(sorted(package)))
    documents = package[path]
    kind = draw(
        st.sampled_from(["set", "set", "add", "add", "remove", "move", "drop", "new", "text"])
    )
    number = next(numbers)
    if kind == "new":
        name = draw(st.sampled_from(["new.yaml", path]))
        if name != "Kptfile":
            package.setdefault(name, []).append(workload("Deployment", f"new{number}"))
        return
    if path == "Kptfile" and kind in ("move", "drop"):
        return
    document = draw(st.sampled_from(documents))
    if kind in ("move", "drop"):
        documents.remove(document)
        if not documents:
            del package[path]
        if kind == "move":
            package.setdefault(draw(st.sampled_from(["moved.yaml", "other.yaml"])), []).append(
                document
            )
        return
    candidates = [p for p in places(document) if p and p not in FIXED]
    if not candidates:
        return
    place = draw(st.sampled_from(candidates))
    value, parent = at(document, place), at(document, place[:-1])
    if kind == "remove":
        del parent[place[-1]]
    elif kind == "text" and isinstance(value, str) and "\n" in value:
        lines = value.splitlines(keepends=True)
        lines.insert(draw(st.integers(0, len(lines))), f"line {number}\n")
        parent[place[-1]] = "".join(lines)
    elif kind == "add" and isinstance(value, dict):
        value[f"key{number}"] = draw(st.sampled_from(["x", 7, {"y": 1}, [1], True]))
    elif kind == "add" and isinstance(value, list) and place[-1] in LISTS:
        value.insert(draw(st.integers(0, len(value))), LISTS[place[-1]](number))
    elif not isinstance(value, dict | list):
        parent[place[-1]] = draw(st.sampled_from([f"v{number}", number, "1", 1, None, True]))


def text_of(documents, style, comments):
    """The documents as a file, with comments at some lines."""
    texts = []
    for document in documents:
        lines = []
        for line in block(document, 0, style):
            word = line.strip().split(":")[0]
            if word in comments and "|" not in line and not line.strip().startswith("line"):
                lines.append(" " * (len(line) - len(line.lstrip())) + f"# about {comments[word]}")
            lines.append(line)
        texts.append("\n".join(lines) + "\n")
    return "---\n".join(texts).encode()


def files_of(package, style, comments):
    return {path: ("100644", text_of(docs, style, comments)) for path, docs in package.items()}


WORDS = ["replicas", "image", "- name", "labels", "env", "spec", "apiVersion", "args", "data"]


@st.composite
def triples(draw):
    """Origin, upstream and local."""
    chosen = draw(st.lists(st.sampled_from(OBJECTS), min_size=1, max_size=3, unique_by=id))
    package = {"Kptfile": [deepcopy(KPTFILE)]}
    for number, document in enumerate(chosen):
        name = draw(st.sampled_from(["a.yaml", f"{number}.yaml"]))
        package.setdefault(name, []).append(deepcopy(document))
    if draw(st.booleans()):
        package["crd.yaml"] = [deepcopy(CRD)]
    style = draw(st.sampled_from([Style(2, 0), Style(2, 2), Style(4, 4)]))
    comments = draw(
        st.dictionaries(st.sampled_from(WORDS), st.sampled_from(["x", "y"]), max_size=2)
    )
    numbers = count(1000)
    sides = [files_of(package, style, comments)]
    for _ in range(2):
        side = deepcopy(package)
        for _ in range(draw(st.integers(0, 3))):
            edit(draw, side, numbers)
        own = dict(comments)
        if draw(st.booleans()):
            own |= draw(st.dictionaries(st.sampled_from(WORDS), st.sampled_from("pq"), max_size=1))
        spelled = draw(st.sampled_from([style, style, Style(4, 2)]))
        sides.append(files_of(side, spelled, own))
    return sides


def objects(files):
    """All objects by identity; fails for one that is there twice."""
    found = {}
    for path, (_, data) in files.items():
        if not path.endswith((".yaml", "Kptfile")):
            continue
        for document in Manifest.parse(data, path).documents:
            assert not is_list(document.value)
            identity = identity_of(document.value)
            assert identity is not None
            assert identity not in found
            found[identity] = document.value
    return found


def facts(value, path=(), name=""):
    """What an object says, each element of a list under its key."""
    if isinstance(value, dict):
        if not value:
            yield (path, "{}")
        for key, child in value.items():
            yield from facts(child, (*path, key), key)
    elif isinstance(value, list):
        keys = KEYS.get(name, ()) or (("port",) if name == "ports" else ())
        names = element_keys(value, keys) if keys else None
        if not value:
            yield (path, "[]")
        for number, child in enumerate(value):
            if names:
                yield from facts(child, (*path, names[number]))
            elif name == "mutators":  # what one is called may change too
                yield from facts(child, (*path, "*"))
            else:
                yield ((*path, "*"), json.dumps(child, sort_keys=True))
    else:
        yield (path, json.dumps(value))


def comments(files):
    """All comments with how often they are there; the packages have no `#` in values."""
    lines = [line for _, data in files.values() for line in data.decode().splitlines()]
    return Counter(line[line.index("#") :] for line in lines if "#" in line)


@given(triples())
def test_what_only_upstream_changed_is_upstream_s_byte_for_byte(sides):
    origin, upstream, _ = sides
    result = merge_packages(origin, upstream, {**origin, "mine.txt": ("100644", b"x")})
    assert result.files == {**upstream, "mine.txt": ("100644", b"x")}
    assert not result.conflicts


@given(triples())
def test_what_only_this_side_changed_stays_byte_for_byte(sides):
    origin, _, local = sides
    result = merge_packages(origin, {**origin, "theirs.txt": ("100644", b"x")}, local)
    assert result.files == {**local, "theirs.txt": ("100644", b"x")}
    assert not result.conflicts


@given(triples())
def test_the_result_has_what_both_sides_said_or_a_conflict(sides):
    origin, upstream, local = sides
    result = merge_packages(origin, upstream, local)
    base, theirs, mine, merged = map(objects, (*sides, result.files))
    disputed = {conflict.object for conflict in result.conflicts}
    for side in (theirs, mine):
        for identity, value in side.items():
            if shown(identity) in disputed or identity[1] in disputed:
                continue
            before = set(facts(base.get(identity)))
            after = set(facts(merged.get(identity)))
            said = set(facts(value))
            if identity in theirs and identity in mine:
                assert {fact for fact in said - before if fact[1] not in ("{}", "[]")} <= after
            if identity in base and identity in merged:
                assert not (before - said) & after


@given(triples())
def test_merging_again_changes_nothing(sides):
    origin, upstream, local = sides
    once = merge_packages(origin, upstream, local)
    assert merge_packages(origin, upstream, once.files).files == once.files


@given(triples())
def test_sides_commute_where_nothing_is_disputed(sides):
    origin, upstream, local = sides
    one = merge_packages(origin, upstream, local)
    other = merge_packages(origin, local, upstream)
    if one.conflicts or other.conflicts:
        return
    first, second = objects(one.files), objects(other.files)
    assert first.keys() == second.keys()
    for identity, value in first.items():
        assert set(facts(value)) == set(facts(second[identity]))


@given(triples())
def test_what_is_left_unread_changes_nothing(sides):
    """A file that cannot be read, and that upstream changed, has all files read."""
    unread = [
        {**side, "zz.yaml": ("100644", text)}
        for side, text in zip(sides, (b"{{", b"{{{", b"{{"), strict=True)
    ]
    result, whole = merge_packages(*sides), merge_packages(*unread)
    assert {**result.files, "zz.yaml": ("100644", b"{{{")} == whole.files
    assert result.conflicts == whole.conflicts


@given(triples())
def test_no_comment_of_this_side_goes_without_a_word(sides):
    origin, upstream, local = sides
    result = merge_packages(origin, upstream, local)
    before, mine, after = map(comments, (origin, local, result.files))
    told = Counter(note.split('"')[1] for note in result.notes if "the comment" in note)
    assert not mine - before - after - told
