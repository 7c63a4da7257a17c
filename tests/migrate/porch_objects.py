"""Porch's objects for tests: small ones, and for each kind one that has every field."""

import copy

from fanout.api.field_errors import format_path
from fanout.api.validators.object_validation import validate_object
from fanout.migrate.porch_import import PORCH_GROUP, import_porch_objects


def judge(data):
    return validate_object(data)[1]


def porch(kind, spec, name="one", **metadata):
    version = "v1alpha2" if kind == "PackageVariantSet" else "v1alpha1"
    meta = {"name": name, **metadata}
    return {"apiVersion": f"{PORCH_GROUP}/{version}", "kind": kind, "metadata": meta, "spec": spec}


UP = {"repo": "blueprints", "package": "base", "revision": 1}
DOWN = {"repo": "edge", "package": "base"}
REPOSITORIES = {"repositories": [{"name": "edge"}]}


def variant(**spec):
    return porch("PackageVariant", {"upstream": UP, "downstream": DOWN, **spec})


def policy(*targets, **spec):
    return porch("PackageVariantSet", {"upstream": UP, "targets": list(targets), **spec})


def one(item, by=judge):
    """The only object of the answer, or None, and the remarks on it as (field, lost)."""
    answer = import_porch_objects([item], by)
    remarks = [(format_path(remark.path), remark.is_lost) for _, remark in answer.remarks]
    return (answer.objects[0] if answer.objects else None), remarks


def lost(item, by=judge):
    return [field for field, is_lost in one(item, by)[1] if is_lost]


WHOLE = {
    "Repository": porch(
        "Repository",
        {
            "description": "d",
            "type": "git",
            "content": "Package",
            "deployment": True,
            "sync": {"schedule": "@daily"},
            "oci": {"registry": "r"},
            "mutators": [{}],
            "validators": [{}],
            "upstream": {"type": "git"},
            "git": {
                "repo": "https://git.example.com/r.git",
                "branch": "b",
                "directory": "d",
                "secretRef": {"name": "s"},
                "createBranch": True,
                "author": "a",
                "email": "e",
            },
        },
    )
}
ADDITIONS = {
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
    "packageContext": {"data": {"a": "b"}, "removeKeys": ["c"]},
    "pipeline": {
        kind: [
            {"image": "set-labels", "name": "n", "configMap": {"a": "b"}, "tag": "v1"},
            {
                "exec": "./run",
                "configPath": "c.yaml",
                "selectors": [{"kind": "A"}],
                "exclude": [{"kind": "B"}],
            },
        ]
        for kind in ("mutators", "validators")
    },
    "injectors": [{"group": "", "version": "v1", "kind": "ConfigMap", "name": "n"}],
}
WHOLE["PackageVariant"] = variant(
    **ADDITIONS,
    adoptionPolicy="adoptExisting",
    deletionPolicy="orphan",
    upstream={**UP, "workspaceName": "w"},
)
PAIRS = [{"key": "k", "valueExpr": "target.name"}, {"keyExpr": "target.name", "value": "v"}]
TEMPLATE = {
    **copy.deepcopy(ADDITIONS),
    "adoptionPolicy": "adoptExisting",
    "deletionPolicy": "orphan",
    "downstream": {"repoExpr": "target.name", "packageExpr": "target.name"},
    "labelExprs": PAIRS,
    "annotationExprs": PAIRS,
}
TEMPLATE["packageContext"] |= {"dataExprs": PAIRS, "removeKeyExprs": ["target.name"]}
TEMPLATE["injectors"].append({"kind": "A", "nameExpr": "target.name"})
for functions in TEMPLATE["pipeline"].values():
    functions[0]["configMapExprs"] = PAIRS
CLUSTERS = {"objectSelector": {"apiVersion": "v1", "kind": "A", "name": "n"}, "template": TEMPLATE}
FIXED = {"repo": "edge", "package": "fixed"}
WHOLE["PackageVariantSet"] = policy(
    CLUSTERS,
    {"repositorySelector": {"matchLabels": {"a": "b"}}, "template": {"downstream": FIXED}},
    {"repositories": [{"name": "edge", "packageNames": ["a", "b"]}]},
    upstream={**UP, "workspaceName": "w"},
)
