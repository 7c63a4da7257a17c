"""set-namespace on custom kinds: declared definitions say which of them have a namespace."""

from pathlib import Path

from companies import company
from fleet import POLICY, Fleet

from fanout.cli.startup import open_program
from fanout.reconcile.execution.plan_execution import run_pass
from fanout.reconcile.pass_scope import PassMode
from fanout.values import replace

GADGET = "apiVersion: example.com/v1\nkind: Gadget\nmetadata:\n  name: g # kept\n"
PLACED = GADGET + "  namespace: old\n"
PIPELINE = "      pipeline: {mutators: [{image: set-namespace, configMap: {namespace: edge}}]}\n"
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: gadgets.example.com}}
spec: {{group: example.com, scope: {}, names: {{kind: Gadget, plural: gadgets}}}}
"""

DRAFTS = PassMode(publish=False)


@company
def fleet(root: Path) -> Fleet:
    made = Fleet.build(root)
    made.release("v2", {"gadget.yaml": GADGET, "placed.yaml": PLACED.replace("name: g", "name: h")})
    made.write("policy.yaml", POLICY.replace("      injectors:", f"{PIPELINE}      injectors:"))
    return made


def namespaces(fleet: Fleet) -> list[bool]:
    """Whether the draft of a variant has the new namespace after a sweep, in both files."""
    assert fleet.sweep("--drafts-only").code == 0
    return read_namespaces(fleet)


def read_namespaces(fleet: Fleet) -> list[bool]:
    """Whether the draft of a variant has the new namespace, in both files."""
    repo = fleet.repos["edge"]
    [draft] = [name for name in repo.drafts() if "/ams/" in name]
    branch = f"refs/heads/drafts/default/{draft}"
    files = [repo.file(branch, f"sites/ams/{file}.yaml") for file in ("gadget", "placed")]
    return ["namespace: edge" in text for text in files]


def test_a_kind_that_nobody_defines_goes_by_its_object(fleet):
    assert namespaces(fleet) == [False, True]


def test_a_declared_definition_says_it_and_drafts_follow(fleet):
    assert namespaces(fleet) == [False, True]
    fleet.write("cluster/gadgets.yaml", DEFINITION.format("Namespaced"))
    assert namespaces(fleet) == [True, True]
    fleet.write("cluster/gadgets.yaml", DEFINITION.format("Cluster"))
    assert namespaces(fleet) == [False, False]


def test_a_process_that_stays_follows_a_corrected_definition(fleet):
    fleet.write("cluster/gadgets.yaml", DEFINITION.format("Cluster"))
    with open_program(fleet.settings(), long_running=True) as program:
        program.sweep(DRAFTS)
        assert read_namespaces(fleet) == [False, False]
        fleet.write("cluster/gadgets.yaml", DEFINITION.format("Namespaced"))
        concerned = program.reconciler.find_concerned(program.read_declared())
        program.sweep(replace(DRAFTS, subjects=concerned))
    assert read_namespaces(fleet) == [True, True]


def test_scopes_that_an_api_server_reports_otherwise_requeue_all_policies(fleet):
    """No object says it where definitions are not listed."""
    with open_program(fleet.settings(), long_running=True) as program:
        program.sweep(DRAFTS)
        served = {("example.com", "Gadget"): True}
        declared = replace(program.read_declared(), served_scopes=served)
        assert ("default", "monitoring") in program.reconciler.find_concerned(declared)
        run_pass(program.world, program.reconciler, declared, fleet.now, DRAFTS)
    assert read_namespaces(fleet) == [True, True]


def test_a_definition_in_the_package_comes_first(fleet):
    fleet.write("cluster/gadgets.yaml", DEFINITION.format("Namespaced"))
    fleet.release("v3", {"definition.yaml": DEFINITION.format("Cluster")})
    assert namespaces(fleet) == [False, False]


def test_a_definition_of_no_kind_of_the_package_changes_no_draft(fleet):
    namespaces(fleet)
    before = fleet.refs()["edge"]
    other = DEFINITION.format("Cluster").replace("Gadget", "Widget")
    fleet.write("cluster/widgets.yaml", other)
    namespaces(fleet)
    assert fleet.refs()["edge"] == before
