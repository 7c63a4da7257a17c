"""starlark on packages: its configuration, what becomes of what a script leaves, failures."""

import pytest
from msgspec.structs import force_setattr
from variants.builders import package, spec
from variants.running import kptfile, rendered, run

from fanout.api.fanout_configuration import Functions
from fanout.errors import InvalidInput
from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.sandbox.function_runner import ProgramRunner
from fanout.sandbox.worker_protocol import WorkerLimits as ScriptLimits
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import FunctionSpec
from fanout.telemetry.metrics import Counters
from fanout.variants.function_registry import STARLARK
from fanout.variants.function_requests import AllowedPrograms, KrmProgram
from fanout.variants.package_preparation import prepare_package
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

WEB = """\
# all about the web
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web # its name
spec:
  replicas: 2 # enough
  template: {spec: {containers: [{name: a, image: "a:1"}]}} # as it is
---
apiVersion: v1
kind: Service
metadata: {name: web}   # as it is
"""
RUN = """\
apiVersion: fn.kpt.dev/v1alpha1
kind: StarlarkRun
metadata:
  name: fn
  annotations: {config.kubernetes.io/local-config: "true"}
params: {replicas: 5}
source: |
"""
SET_REPLICAS = """
for r in ctx.resource_list["items"]:
  if r["kind"] == "Deployment":
    r["spec"]["replicas"] = ctx.resource_list["functionConfig"]["params"]["replicas"]
"""
NAMESPACE = """
def run(items, value):
  for r in items:
    r["metadata"]["namespace"] = value
run(ctx.resource_list["items"], "prod")
"""


def runner():
    return FunctionResultCache(ProgramRunner(Functions(), 2, Counters(), ScriptLimits()))


def starlark_run(source):
    return RUN + "".join(f"  {line}\n" for line in source.splitlines())


def after(files, source, image="starlark:v0.5", **fields):
    entry = f"{{image: {image}, configPath: fn.yaml}}"
    whole = {"Kptfile": kptfile(entry), "fn.yaml": starlark_run(source), **files}
    return run(whole, answering=runner(), **fields)


def test_a_change_of_a_script_is_made_in_the_text():
    changed_files = after({"web.yaml": WEB}, SET_REPLICAS)
    assert changed_files == {"web.yaml": WEB.replace("replicas: 2 #", "replicas: 5 #")}


IMAGES = [
    "starlark",
    "gcr.io/kpt-fn/starlark:v0.4.3",
    "ghcr.io/kptdev/krm-functions-catalog/starlark:latest",
]


@pytest.mark.parametrize("image", IMAGES)
def test_all_images_of_the_catalog_are_this_function(image):
    changed_files = after({"web.yaml": WEB}, SET_REPLICAS, image)
    assert "replicas: 5 # enough" in changed_files["web.yaml"]


def test_a_config_map_in_the_kptfile():
    source = (
        "size = ctx.resource_list['functionConfig']['data']['size']\\n"
        "for r in ctx.resource_list['items']: r['data'] = {'size': size}"
    )
    entry = (
        f'{{image: starlark, configMap: {{size: "7", source: "{source}"}},'
        " selectors: [{kind: ConfigMap, name: m}]}"
    )
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m # it\n"
    item = run({"Kptfile": kptfile(entry), "a.yaml": text}, answering=runner())
    assert item == {"a.yaml": f'{text}data:\n  size: "7"\n'}


def test_a_function_of_the_policy():
    source = "for r in ctx.resource_list['items']: r['metadata']['labels'] = {'a': 'b'}"
    text = "apiVersion: v1\nkind: Service\nmetadata:\n  name: m # it\n"
    function = FunctionSpec("starlark", config={"source": source})
    changed_files = run({"a.yaml": text}, function, answering=runner())
    assert changed_files == {"a.yaml": f"{text}  labels:\n    a: b\n"}


def test_metadata_has_annotations_as_it_has_with_kpt():
    source = 'for r in ctx.resource_list["items"]:\n  r["metadata"]["annotations"]["a"] = "b"'
    changed_files = after(
        {"a.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: m\n"}, source
    )
    assert changed_files["a.yaml"].endswith("  name: m\n  annotations:\n    a: b\n")


def test_objects_come_and_go():
    source = (
        "items = ctx.resource_list['items']\n"
        "ctx.resource_list['items'] = [r for r in items if r['kind'] != 'Service'] + [{\n"
        "  'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'new'}}]"
    )
    changed_files = after({"web.yaml": WEB}, source)
    assert changed_files["web.yaml"] == WEB.partition("---\n")[0]
    assert [path for path in changed_files if path != "web.yaml"] == ["secret_new.yaml"]


def test_variants_are_given_their_own_answers():
    names = (
        "context = [r for r in ctx.resource_list['items']"
        " if r['metadata']['name'] == 'kptfile.kpt.dev'][0]\n"
        "for r in ctx.resource_list['items']:\n"
        "  if r['kind'] == 'Service':\n"
        "    r['spec'] = {'app': context['data']['name']}"
    )
    changed_files = after({"web.yaml": WEB}, names, name="monitoring-eu", path="monitoring-eu")
    assert "app: monitoring-eu" in changed_files["web.yaml"]


FAILURES = [
    ("a script that fails", starlark_run("x = 1\nfail('no image')"),
     "Kptfile:7: Kptfile: pipeline.mutators[0]: starlark: line 2 of the script: no image"),
    ("a script that is missing", RUN.replace("source: |\n", ""), "starlark: source is missing"),
    ("a configuration of another kind", RUN.replace("StarlarkRun", "Run").replace(" |", " x"),
     "starlark: the configuration is of kind Run"),
    ("an object without a name", starlark_run("ctx.resource_list['items'] = [{'kind': 'A'}]"),
     "starlark: items[0] of its output is not an object with a kind and a name"),
    ("items that are no list", starlark_run("ctx.resource_list['items'] = 'a'"),
     "starlark: its output is not a ResourceList: items and results must be lists"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "problem"), [r[1:] for r in FAILURES], ids=[r[0] for r in FAILURES]
)
def test_a_variant_fails_with(config, problem):
    entry = "{image: starlark, configPath: fn.yaml}"
    with pytest.raises(InvalidInput) as caught:
        run({"Kptfile": kptfile(entry), "fn.yaml": config}, answering=runner())
    assert problem in str(caught.value)
    assert caught.value.reason == "RenderFailed"


def test_printed_lines_of_a_script_are_results():
    whole = {"Kptfile": kptfile("{image: starlark, configPath: fn.yaml}"),
             "fn.yaml": starlark_run("print('seen', len(ctx.resource_list['items']))")}  # fmt: skip
    [result] = rendered(whole, answering=runner()).results
    assert (result.severity, result.sentence) == ("info", "starlark: seen 2")


@pytest.fixture
def update_program():
    """Gives the function another version, until the test has ended."""
    program = STARLARK.program
    yield lambda: force_setattr(STARLARK, "program", program._replace(version="next"))
    force_setattr(STARLARK, "program", program)


def test_the_version_of_starlark_is_in_the_digest(update_program):
    def digest(limits=RenderLimits()):  # noqa: B008
        variant = spec(mutators=(FunctionSpec("starlark", config={"source": "x = 1"}),))
        return resolve_inputs(
            prepare_package(package({}), limits), variant, ClusterObjectIndex(())
        ).digest

    before = digest()
    image = "ghcr.io/kptdev/krm-functions-catalog/starlark"
    allowed = AllowedPrograms({}, {image: KrmProgram(image, image, image=True, version=image)})
    assert (
        digest(RenderLimits(programs=allowed)) != before
    )  # an image that is allowed is run as one
    update_program()
    assert digest() != before


def test_an_own_function_s_version_is_in_the_digest(update_program):
    files = {
        "Kptfile": kptfile("{image: starlark, configPath: fn.yaml}"),
        "fn.yaml": starlark_run(""),
    }

    def digest():
        return resolve_inputs(
            prepare_package(package(files), RenderLimits()), spec(), ClusterObjectIndex(())
        ).digest

    before = digest()
    update_program()
    assert digest() != before
