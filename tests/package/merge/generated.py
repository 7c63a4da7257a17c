"""Generated packages and edits of them: what laws of the merge are tried on.

A package is a dictionary of files: a list of documents each, or a text where it is a plain file.
"""

import json
from copy import deepcopy
from itertools import count

from hypothesis import strategies as st

from fanout.package.manifest import Manifest
from fanout.package.merge.merge_keys import element_keys
from fanout.package.merge.merge_units import is_list, object_identity
from fanout.package.yaml_scalars import YamlStyle, block_lines

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
FIXED = {("apiVersion",), ("kind",), ("metadata",), ("spec",)}
FIXED |= {("metadata", "name"), ("metadata", "namespace")}
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
NOTES = "one\ntwo\nthree\nfour\nfive\n"


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


def edit(draw, package, numbers, paths=(), kinds=EDITS):
    """One random edit of a package in place; of one of these paths if there are any."""
    remaining = sorted(path for path in paths or package if path in package)
    if not remaining:
        return
    path = draw(st.sampled_from(remaining))
    number, kind = next(numbers), draw(st.sampled_from(kinds))
    if isinstance(package[path], str):
        edit_text(draw, package, path, number, kind)
    elif kind == "new":
        name = draw(st.sampled_from(["new.yaml", path]))
        if name.endswith(".yaml"):
            package.setdefault(name, []).append(workload("Deployment", f"new{number}"))
    elif kind in ("move", "drop"):
        if path != "Kptfile":
            move(draw, package, path, kind)
    else:
        edit_document(draw, draw(st.sampled_from(package[path])), number, kind)


def edit_text(draw, package, path, number, kind):
    lines = package[path].splitlines(keepends=True)
    if kind == "drop":
        del package[path]
    elif kind == "remove" and lines:
        del lines[draw(st.integers(0, len(lines) - 1))]
        package[path] = "".join(lines)
    else:
        lines.insert(draw(st.integers(0, len(lines))), f"line {number}\n")
        package[path] = "".join(lines)


def move(draw, package, path, kind):
    """Take a document away; it is somewhere else then, or not."""
    documents = package[path]
    document = draw(st.sampled_from(documents))
    documents.remove(document)
    if not documents:
        del package[path]
    if kind == "move":
        other = draw(st.sampled_from(["moved.yaml", "other.yaml"]))
        package.setdefault(other, []).append(document)


def edit_document(draw, document, number, kind):
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
        for line in block_lines(document, 0, style):
            word = line.strip().split(":")[0]
            if word in comments and "|" not in line and not line.strip().startswith("line"):
                lines.append(" " * (len(line) - len(line.lstrip())) + f"# about {comments[word]}")
            lines.append(line)
        texts.append("\n".join(lines) + "\n")
    return "---\n".join(texts).encode()


def files_of(package, style, comments):
    return {path: ("100644", data_of(path, it, style, comments)) for path, it in package.items()}


def data_of(path, content, style, comments):
    if isinstance(content, str):
        return content.encode()
    if path.endswith(".json"):
        return (json.dumps(content[0], indent=style.mapping) + "\n").encode()
    return text_of(content, style, comments)


WORDS = ["replicas", "image", "- name", "labels", "env", "spec", "apiVersion", "args", "data"]
STYLES = [YamlStyle(2, 0), YamlStyle(2, 2), YamlStyle(4, 4)]


@st.composite
def packages(draw):
    """A package; the objects are of kinds with and without a known schema."""
    chosen = draw(st.lists(st.sampled_from(OBJECTS), min_size=1, max_size=3, unique_by=id))
    package = {"Kptfile": [deepcopy(KPTFILE)]}
    for number, document in enumerate(chosen):
        name = draw(st.sampled_from(["a.yaml", f"{number}.yaml", f"{number}.json"]))
        package.setdefault(name, []).append(deepcopy(document))
    if draw(st.booleans()):
        package["crd.yaml"] = [deepcopy(CRD)]
    if draw(st.booleans()):
        package["notes.txt"] = NOTES
    return package


def edited(draw, package, numbers, most=3, **how):
    """A copy with some edits in it."""
    side = deepcopy(package)
    for _ in range(draw(st.integers(0, most))):
        edit(draw, side, numbers, **how)
    return side


@st.composite
def triples(draw):
    """Origin, upstream and local."""
    package = draw(packages())
    style = draw(st.sampled_from(STYLES))
    comments = draw(
        st.dictionaries(st.sampled_from(WORDS), st.sampled_from(["x", "y"]), max_size=2)
    )
    numbers = count(1000)
    sides = [files_of(package, style, comments)]
    for _ in range(2):
        side = edited(draw, package, numbers)
        own = dict(comments)
        if draw(st.booleans()):
            own |= draw(st.dictionaries(st.sampled_from(WORDS), st.sampled_from("pq"), max_size=1))
        spelled = draw(st.sampled_from([style, style, YamlStyle(4, 2)]))
        sides.append(files_of(side, spelled, own))
    return sides


@st.composite
def apart(draw):
    """Origin, upstream and local, whose edits are in different files, and the files with both."""
    package = draw(packages())
    style, numbers = draw(st.sampled_from(STYLES)), count(1000)
    theirs = draw(st.sets(st.sampled_from(sorted(package))))
    sides = [package]
    for paths in (theirs, package.keys() - theirs):
        kinds = ["set", "add", "remove", "text"]
        one = edited(draw, package, numbers, paths=paths, kinds=kinds) if paths else package
        sides.append(one)
    both = {path: sides[1 if path in theirs else 2][path] for path in package}
    return [files_of(side, style, {}) for side in (*sides, both)]


def objects(files):
    """All objects by identity; fails for one that is there twice."""
    losses = {}
    for path, (_, data) in files.items():
        if path.endswith(".txt"):
            continue
        for document in Manifest.parse(data, path).documents:
            assert not is_list(document.value)
            identity = object_identity(document.value)
            assert identity is not None
            assert identity not in losses
            losses[identity] = document.value
    return losses


def facts(value, path=(), name=""):
    """Return the fields of an object, each element of a list under its key."""
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
            # What a function is called may change, and elements without keys merge inside.
            elif name == "mutators" or isinstance(child, dict):
                yield from facts(child, (*path, "*"))
            else:
                yield ((*path, "*"), json.dumps(child, sort_keys=True))
    else:
        yield (path, json.dumps(value))


def lost(base, side, merged):
    """Return facts that one side added or removed and the result does not, by object identity.

    Lists and maps that the merge emptied are no facts.
    """
    base, side, merged = map(objects, (base, side, merged))
    losses = {}
    for identity in base.keys() | side.keys():
        before, changed, after = (set(facts(it.get(identity))) for it in (base, side, merged))
        new = {fact for fact in changed - before if fact[1] not in ("{}", "[]")}
        wrong = new - after
        if identity in side:
            wrong |= (before - changed) & after
        if wrong:
            losses[identity] = wrong
    return losses
