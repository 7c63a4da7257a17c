"""Packages in which the file of the package context holds something else."""

import pytest
from variants.builders import package, spec
from variants.running import kptfile, rendered, run

from fanout.errors import InvalidInput
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.variants.package_preparation import prepare_package
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

OTHER = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: package-context # ours
  annotations:
    config.kubernetes.io/local-config: "true"
data:
  namespace: spire
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n"
CONTENTS = [
    ("another ConfigMap", OTHER),
    ("an object of another kind", OTHER.replace("ConfigMap", "Gadget")),
    ("several objects", f"{OTHER}---\n{SERVICE}"),
    ("no object", "just: values\n"),
    ("nothing", ""),
]


@pytest.mark.parametrize("text", [row[1] for row in CONTENTS], ids=[row[0] for row in CONTENTS])
def test_the_file_stays_as_it_is(text):
    files = {"package-context.yaml": text, "a.yaml": SERVICE}
    result = rendered(files)
    before = prepare_package(package(files), RenderLimits()).entries
    for path in files:
        assert result.entries[path] == before[path]


def test_another_package_context_may_configure_a_function():
    entry = "{image: set-namespace, configPath: package-context.yaml}"
    files = {"Kptfile": kptfile(entry), "package-context.yaml": OTHER, "a.yaml": SERVICE}
    assert run(files) == {"a.yaml": f"{SERVICE}  namespace: spire\n"}


@pytest.mark.parametrize(
    "keys", [{"context": {"region": "eu"}}, {"remove_keys": ("region",)}], ids=["set", "removed"]
)
def test_keys_for_it_fail_the_variant(keys):
    with pytest.raises(InvalidInput) as caught:
        rendered({"package-context.yaml": OTHER}, **keys)
    assert caught.value.reason == "RenderFailed"
    assert str(caught.value) == (
        "PackageVariant/monitoring-eu: packageContext: package-context.yaml of the package has no"
        " ConfigMap kptfile.kpt.dev for the keys of packageContext; rename the file upstream, or"
        " remove packageContext"
    )


def test_the_content_of_the_package_context_is_in_the_digest():
    def digest(text):
        prepared = prepare_package(package({"package-context.yaml": text}), RenderLimits())
        return resolve_inputs(prepared, spec(), ClusterObjectIndex(())).digest

    assert digest(OTHER) != digest(OTHER.replace("spire", "other"))
