"""Small packages, variants and cluster objects for the tests of this package."""

import pytest

from fanout.package.revision import Revision
from fanout.package.tree_ids import TreeEntry, blob_id, tree_id
from fanout.selection.variant_spec import InjectorSpec, VariantSpec
from fanout.variants.render_model import UpstreamPackage

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: blueprint\n"


def point(kind="ConfigMap", api_version="v1", name="settings", mark="required"):
    return (
        f"apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: {name}\n"
        f"  annotations:\n    kpt.dev/config-injection: {mark}\n"
    )


def listed(*texts, head="apiVersion: v1\nkind: List\nitems:\n"):
    """A List with these objects as its items."""
    return head + "".join("- " + text.replace("\n", "\n  ").rstrip(" ") for text in texts)


def package(files, commit="c" * 40, name="v1", **fields):
    content = {
        path: (TreeEntry("100644", blob_id(text.encode())), text.encode())
        for path, text in {"Kptfile": KPTFILE, **files}.items()
    }
    tree = tree_id({path: entry for path, (entry, _) in content.items()})
    defaults = {"repository": "https://git.example.com/blueprints.git", "directory": "monitoring"}
    return UpstreamPackage(
        **{**defaults, **fields},
        revision=Revision(name, commit, 1700000000),
        tree=tree,
        files=content,
    )


def spec(**fields):
    defaults = {
        "name": "monitoring-eu",
        "namespace": "platform",
        "policy": "monitoring",
        "stage": "dev",
        "target": "Cluster/platform/eu",
        "upstream_repository": "blueprints",
        "upstream_package": "monitoring",
        "repository": "edge-eu",
        "path": "clusters/eu/monitoring",
    }
    return VariantSpec(**{**defaults, **fields})


def config_map(name, namespace="platform", **rest):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        **rest,
    }


def site(name, namespace="platform", **rest):
    return {
        "apiVersion": "example.com/v1",
        "kind": "Site",
        "metadata": {"name": name, "namespace": namespace},
        **rest,
    }


def rows(table):
    """Parameters named by the sentence that each row begins with."""
    return [pytest.param(*row[1:], id=row[0]) for row in table]


def by(name, **fields):
    return InjectorSpec(name, **fields)
