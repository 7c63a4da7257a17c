"""No function, injection or program changes a sealed object: the rendering fails by name."""

import pytest
from variants.builders import by, config_map, point
from variants.programs import changed
from variants.running import after, configured_by, run

from fanout.api.fanout_configuration import Functions
from fanout.errors import InvalidInput
from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.sandbox.function_runner import ProgramRunner
from fanout.sandbox.worker_protocol import WorkerLimits
from fanout.selection.variant_spec import FunctionSpec
from fanout.telemetry.metrics import Counters

SEALED = (
    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  namespace: shop\n"
    "stringData:\n  a: ENC[AES256_GCM,data:eA==]\n"
    "sops:\n  lastmodified: '2026-01-01T00:00:00Z'\n  mac: ENC[AES256_GCM,data:eQ==]\n"
)
SIGNED = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  namespace: shop\n  annotations:\n"
    "    cosign.sigstore.dev/signature: eA==\ndata:\n  a: ENC[AES256_GCM,data:eA==]\n"
)
REPLACEMENTS = """\
apiVersion: fn.kpt.dev/v1alpha1
kind: ApplyReplacements
metadata:
  name: r
replacements:
- source: {kind: Secret, fieldPath: metadata.namespace}
  targets:
  - select: {kind: Secret}
    fieldPaths: [stringData.a]
"""
FUNCTIONS = [
    ("set-namespace", {"namespace": "edge"}),
    ("set-labels", {"tier": "db"}),
    ("set-annotations", {"tier": "db"}),
    ("search-replace", {"by-value-regex": "ENC.*", "put-value": "x"}),
    ("ensure-name-substring", {"prepend": "a-"}),
]


@pytest.mark.parametrize("text", [SEALED, SIGNED], ids=["sops", "cosign"])
@pytest.mark.parametrize(("name", "config"), FUNCTIONS, ids=[row[0] for row in FUNCTIONS])
def test_a_function_that_would_change_it_fails_by_name(name, config, text):
    with pytest.raises(InvalidInput) as failure:
        after(text, name, **config)
    sentence = str(failure.value)
    assert "a.yaml" in sentence
    assert name in sentence
    assert "sealed by" in sentence
    assert "exclude" in failure.value.remedy


def test_a_function_that_changes_nothing_in_it_runs():
    assert after(SEALED, "set-namespace", namespace="shop") == SEALED
    assert after(SEALED, "set-image", name="x", newTag="2") == SEALED


def test_an_excluded_object_is_left_alone():
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n"
    namespace = FunctionSpec(
        "set-namespace", config={"namespace": "edge"}, exclude=({"kind": "Secret"},)
    )
    assert run({"a.yaml": SEALED, "b.yaml": other}, namespace) == {
        "b.yaml": f"{other}  namespace: edge\n"
    }


def refused(attempt):
    with pytest.raises(InvalidInput) as failure:
        attempt()
    assert "sealed by SOPS" in str(failure.value)
    return str(failure.value)


def test_a_script_or_a_program_that_changes_it_fails_by_name():
    runner = FunctionResultCache(ProgramRunner(Functions(), 2, Counters(), WorkerLimits()))
    script = "ctx.resource_list['items'][0]['metadata']['labels'] = {'a': 'b'}\n"
    starlark = FunctionSpec("starlark", config={"source": script})
    assert "starlark: " in refused(lambda: run({"a.yaml": SEALED}, starlark, answering=runner))

    def label(whole):
        for item in whole["items"]:
            item["metadata"]["labels"] = {"a": "b"}

    sentence = refused(lambda: changed({"a.yaml": SEALED}, label))
    assert "fn: a.yaml: Secret/db: " in sentence


def test_a_program_may_return_or_remove_it():
    assert changed({"a.yaml": SEALED}, lambda whole: None) == {}
    assert changed({"a.yaml": SEALED}, lambda whole: whole["items"].clear()) == {"a.yaml": None}


def test_values_copied_or_put_into_it_fail_by_name():
    files = {
        "Kptfile": configured_by("apply-replacements"),
        "config.yaml": REPLACEMENTS,
        "a.yaml": SEALED,
    }
    assert "apply-replacements" in refused(lambda: run(files))
    setters = SEALED.replace("shop", "shop # kpt-set: ${ns}")
    assert "apply-setters" in refused(lambda: after(setters, "apply-setters", ns="edge"))
    upsert = {
        "Kptfile": configured_by("upsert-resource"),
        "config.yaml": SEALED.replace("eA==", "eB=="),
        "a.yaml": SEALED,
    }
    assert "upsert-resource" in refused(lambda: run(upsert))


def test_an_injection_into_it_fails_by_name():
    seal = SEALED[SEALED.index("sops:") :]
    sentence = refused(
        lambda: run(
            {"a.yaml": point(mark="optional") + f"data:\n  a: old\n{seal}"},
            objects=[config_map("eu", data={"a": "new"})],
            injectors=(by("eu"),),
        )
    )
    assert "a.yaml" in sentence
    assert "injection" in sentence
