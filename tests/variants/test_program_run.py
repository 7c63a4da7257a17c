"""Functions that are programs: what they are shown, and what becomes of what they return."""

import pytest
import yaml
from variants.builders import package, rows, spec
from variants.programs import LIMITS, NEW, OLD, PROGRAM, Shop, after, changed
from variants.running import kptfile, rendered, run

from fanout.errors import InvalidInput
from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import FunctionSpec
from fanout.variants.function_requests import (
    AllowedPrograms,
    KrmProgram,
    ProgramOutput,
    ResponseError,
)
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
  containers:
  - {name: a, image: "a:1"} # first
  - name: b
    image: b:1 # second
---
apiVersion: v1
kind: Service
metadata: {name: web}   # as it is
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\n"


def nothing(whole):
    """Return everything as it came."""


def places(whole):
    return [
        (note[f"{NEW}path"], note[f"{NEW}index"], note[f"{OLD}path"], note[f"{OLD}index"])
        for note in (item["metadata"]["annotations"] for item in whole["items"])
    ]


def test_a_program_gets_all_objects_with_their_places_and_its_configuration():
    files = {"web.yaml": WEB, "sub/map.yaml": MAP.format("m"), "notes.txt": "x"}
    entry = "{exec: /opt/fn, configMap: {team: shop}}"
    _, [seen] = after(files, nothing, entry)
    assert (seen["apiVersion"], seen["kind"]) == ("config.kubernetes.io/v1", "ResourceList")
    shown = {(item["kind"], item["metadata"]["name"]) for item in seen["items"]}
    assert shown == {("Deployment", "web"), ("Service", "web"), ("ConfigMap", "m"),
                     ("ConfigMap", "kptfile.kpt.dev")}  # fmt: skip
    assert ("web.yaml", "1", "web.yaml", "1") in places(seen)
    assert seen["functionConfig"]["data"] == {"team": "shop"}


def test_names_of_booleans_and_numbers_as_keys_are_text_to_it_and_stay():
    text = MAP.format("m") + "data:\n  on:   a\n  n: b\n  0755: c\n"
    files = {"m.yaml": text}
    changed_files, [seen] = after(files, nothing, "exec: fn")
    [item] = [item for item in seen["items"] if item["metadata"]["name"] == "m"]
    assert item["data"] == {"on": "a", "n": "b", "0755": "c"}
    assert changed_files == {}

    def move(whole):
        for item in whole["items"]:
            if item["metadata"]["name"] == "m":
                item["metadata"]["annotations"][f"{NEW}path"] = "n.yaml"

    moved = {"0755": "c", "n": "b", "on": "a"}
    assert yaml.safe_load(changed(files, move)["n.yaml"])["data"] == moved


def test_a_program_may_be_configured_by_an_object_of_the_package():
    config = "apiVersion: fn.example.com/v1\nkind: Team\nmetadata: {name: t}\nspec: {owner: a}\n"
    files = {"team.yaml": config, "web.yaml": WEB}
    _, [seen] = after(files, nothing, "{exec: fn, configPath: team.yaml}")
    assert seen["functionConfig"]["spec"] == {"owner": "a"}


def test_unchanged_objects_keep_every_byte():
    assert changed({"web.yaml": WEB, "m.yaml": MAP.format("m")}, nothing) == {}


def test_only_changed_lines_are_rewritten():
    def work(whole):
        web = next(item for item in whole["items"] if item["kind"] == "Deployment")
        web["spec"]["replicas"] = 3
        web["spec"]["containers"][1]["image"] = "b:2"
        web["metadata"]["annotations"]["note"] = "on"

    expected = WEB.replace("2 # enough", "3 # enough").replace("b:1 # second", "b:2 # second")
    expected = expected.replace("# its name\n", '# its name\n  annotations:\n    note: "on"\n')
    assert changed({"web.yaml": WEB, "m.yaml": MAP.format("m")}, work) == {"web.yaml": expected}


def test_an_omitted_object_is_deleted_and_a_file_with_its_last_object():
    def work(whole):
        whole["items"] = [item for item in whole["items"] if item["metadata"]["name"] != "web"]

    files = {"web.yaml": WEB, "m.yaml": MAP.format("m")}
    assert changed(files, work) == {"web.yaml": None}


ARRIVALS = [
    ("a file by its name", {}, "configmap_new.yaml", MAP.format("new")),
    ("the file that it says", {f"{NEW}path": "a/b.yaml"}, "a/b.yaml", MAP.format("new")),
    ("the file that it says in the old way", {f"{OLD}path": "b.yaml"}, "b.yaml",
     MAP.format("new")),
    ("the end of a file that is there", {f"{NEW}path": "m.yaml", f"{NEW}index": "7"}, "m.yaml",
     MAP.format("m") + "---\n" + MAP.format("new")),
]  # fmt: skip


@pytest.mark.parametrize(("notes", "file", "text"), rows(ARRIVALS))
def test_a_new_object_goes_to(notes, file, text):
    def work(whole):
        item = yaml.safe_load(MAP.format("new"))
        item["metadata"]["annotations"] = notes
        whole["items"].append(item)

    assert changed({"m.yaml": MAP.format("m")}, work) == {file: text}


def test_an_object_with_another_path_moves():
    def work(whole):
        for item in whole["items"]:
            if item["metadata"]["name"] == "m":
                item["metadata"]["annotations"][f"{NEW}path"] = "there/n.yaml"

    changed_files = changed({"m.yaml": MAP.format("m")}, work)
    assert changed_files == {"m.yaml": None, "there/n.yaml": MAP.format("m")}


def test_a_program_sees_earlier_results_and_later_functions_see_its_own():
    def work(whole):
        for item in whole["items"]:
            if item["metadata"]["name"] == "m":
                item["data"] = {"labels": str(item["metadata"]["labels"])}

    last = "{image: search-replace, configMap: {by-path: data.labels, put-value: done}}"
    entries = ("{image: set-labels, configMap: {team: shop}}", "exec: fn", last)
    changed_files, _ = after({"m.yaml": MAP.format("m")}, work, *entries)
    assert changed_files == {
        "m.yaml": MAP.format("m") + "  labels:\n    team: shop\ndata:\n  labels: done\n"
    }


CHOICES = ["selectors: [{kind: Service}]", "exclude: [{kind: ConfigMap}, {kind: Deployment}]"]


@pytest.mark.parametrize("entry", CHOICES)
def test_selected_objects_alone_are_shown_and_the_others_stay(entry):
    def work(whole):
        assert [item["kind"] for item in whole["items"]] == ["Service"]
        whole["items"] = []

    changed_files = changed(
        {"web.yaml": WEB, "m.yaml": MAP.format("m")}, work, f"{{exec: fn, {entry}}}"
    )
    assert changed_files == {"web.yaml": WEB.partition("---\n")[0]}


def test_a_subpackage_s_program_sees_its_own_files_by_their_paths_in_it():
    def work(whole):
        assert [place[0] for place in places(whole)] == ["m.yaml"]
        item = yaml.safe_load(MAP.format("new"))
        whole["items"].append(item)

    files = {"sub/Kptfile": kptfile("exec: fn"), "sub/m.yaml": MAP.format("m"), "web.yaml": WEB}
    changed_files, _ = after(files, work)
    assert changed_files == {"sub/configmap_new.yaml": MAP.format("new")}


def test_policies_may_use_programs_and_files_of_the_package_too():
    functions = (
        FunctionSpec("", exec="fn", config_path="m.yaml", selectors=({"kind": "Service"},)),
    )
    changed_files, [seen] = after(
        {"m.yaml": MAP.format("m"), "web.yaml": WEB}, nothing, policy=functions
    )
    assert changed_files == {}
    assert seen["functionConfig"]["metadata"]["name"] == "m"
    assert [item["kind"] for item in seen["items"]] == ["Service"]


def test_objects_returned_by_a_validator_are_dropped():
    def work(whole):
        whole["items"] = []

    changed_files, _ = after(
        {"m.yaml": MAP.format("m")}, work, validators=(FunctionSpec("", exec="fn"),)
    )
    assert changed_files == {}


def test_a_program_runs_once_for_the_same_objects():
    shop = Shop(nothing)
    answering = FunctionResultCache(shop)
    for _ in range(2):
        run({"Kptfile": kptfile("exec: fn"), "web.yaml": WEB}, answering=answering, limits=LIMITS)
    assert len(shop.seen) == 1


def test_an_error_that_is_not_final_is_requested_again_in_the_next_pass():
    answers = [ResponseError("slow", is_final=False), ResponseError("broken"), None]
    shop = Shop(lambda whole: answers.pop(0))
    answering = FunctionResultCache(shop)
    for problem in ("slow", "slow"):
        with pytest.raises(InvalidInput, match=problem):
            run({"Kptfile": kptfile("exec: fn"), "w.yaml": WEB}, answering=answering, limits=LIMITS)
    for _ in range(2):
        answering.begin_pass()
        with pytest.raises(InvalidInput, match="broken"):
            run({"Kptfile": kptfile("exec: fn"), "w.yaml": WEB}, answering=answering, limits=LIMITS)
    assert len(shop.seen) == 2


# ---- results -------------------------------------------------------------------------------------


def with_results(*results, status=0, stderr=""):
    """A program that returns everything as it came, with these results."""

    def work(whole):
        whole["results"] = list(results)
        return ProgramOutput(status, yaml.safe_dump(whole).encode(), stderr)

    return work


ODD = {
    "message": "odd",
    "severity": "warning",
    "field": {"path": "spec.containers[1].image"},
    "file": {"path": "web.yaml", "index": 0},
}


def test_a_warning_says_where_and_is_handed_on():
    shop = FunctionResultCache(Shop(with_results(ODD)))
    files = {"Kptfile": kptfile("exec: fn"), "web.yaml": WEB}
    [result] = rendered(files, answering=shop, limits=LIMITS).results
    assert result.severity == "warning"
    assert result.sentence == "fn: web.yaml:11: spec.containers[1].image: odd"


def test_an_object_that_a_result_names_is_found():
    reference = {"kind": "Service", "name": "web"}
    work = with_results({"message": "odd", "resourceRef": reference, "severity": "error"})
    with pytest.raises(InvalidInput, match=r"^fn: web.yaml:13: Service/web: odd$"):
        changed({"web.yaml": WEB}, work)


BAD = {"message": "all\nis bad", "severity": "error"}
FAILURES = [
    ("an error among its results", with_results(ODD, BAD), "fn: all is bad"),
    ("errors, and a status", with_results(BAD, status=1, stderr="trace"), "fn: all is bad"),
    ("a result of no known severity", with_results({"message": "x", "severity": "grave"}), "fn: x"),
    ("a status alone", with_results(status=4, stderr="it\nhurts"),
     "fn: it ended with status 4: it hurts"),
    ("a status and no words", with_results(status=4), "fn: it ended with status 4"),
    ("garbage", lambda _: ProgramOutput(0, b"a: [", ""), "fn: its output cannot be read:"),
    ("bytes", lambda _: ProgramOutput(0, b"\xff\xfe\x00", ""), "fn: its output cannot be read:"),
    ("nothing", lambda _: ProgramOutput(0, b"", ""), "fn: its output is not a ResourceList"),
    ("another object", lambda _: ProgramOutput(0, MAP.format("m").encode(), ""),
     "fn: its output is not a ResourceList"),
    ("two documents", lambda _: ProgramOutput(0, b"a: 1\n---\nb: 1\n", ""),
     "fn: its output is not a ResourceList"),
    ("items that are no list", lambda whole: whole.update(items={"a": 1}),
     "fn: its output is not a ResourceList: items and results must be lists"),
    ("what is no object", lambda whole: whole["items"].append({"kind": "X"}),
     r"fn: items\[\d\] of its output is not an object with a kind and a name"),
    ("what cannot be run", lambda _: ResponseError("it took longer than 60 s"),
     "fn: it took longer than 60 s"),
]  # fmt: skip


@pytest.mark.parametrize(("work", "problem"), rows(FAILURES))
def test_an_unusable_output_of_a_program_fails_the_rendering(work, problem):
    with pytest.raises(InvalidInput, match=problem):
        changed({"web.yaml": WEB}, work)


def put_at(path, index="0"):
    def work(whole):
        item = yaml.safe_load(MAP.format("new"))
        item["metadata"]["annotations"] = {f"{NEW}path": path, f"{NEW}index": index}
        whole["items"].append(item)

    return work


PLACES = [
    ("outside the package", put_at("../up.yaml"), r"the path '\.\./up\.yaml'"),
    ("outside by a way through it", put_at("a/../../up.yaml"), "the path 'a/../../up.yaml'"),
    ("at an absolute path", put_at("/etc/passwd.yaml"), "begins or ends with a slash"),
    ("in a file that is no YAML", put_at("notes.txt"), "notes.txt is not the name of a YAML file"),
    ("in a Kptfile", put_at("Kptfile"), "Kptfile is not the name of a YAML file"),
    ("in a file that differs in case alone", put_at("Web.yaml"),
     "web.yaml differs from Web.yaml only in case"),
    ("inside a file", put_at("web.yaml/b.yaml"), "web.yaml is a file, and web.yaml/b.yaml is ins"),
    ("at a number of 5,000 digits", put_at("b.yaml", "9" * 5000), "has the index '999"),
    ("where another one is", put_at("web.yaml"),
     "it returns two objects at web.yaml, index 0"),
    ("where one is that it was not shown", put_at("m.yaml"),
     "it returns another object than before at m.yaml, index 0"),
    ("at no number", put_at("b.yaml", "first"), "of its output has the index 'first'"),
]  # fmt: skip


@pytest.mark.parametrize(("work", "problem"), rows(PLACES))
def test_no_object_may_be_put(work, problem):
    files = {"web.yaml": WEB, "m.yaml": MAP.format("m"), "notes.txt": "x"}
    with pytest.raises(InvalidInput, match=problem) as caught:
        changed(files, work, "{exec: fn, exclude: [{name: m}]}")
    assert str(caught.value).count("fn: ") == 1


# ---- what is not allowed -------------------------------------------------------------------------

REFUSED = [
    ("an executable that nobody allowed", "exec: other", "the executable other is not allowed"),
    ("a path beside an allowed one", "exec: /opt/../opt/fn", "the executable /opt/../opt/fn"),
    ("arguments of an allowed one", "exec: /opt/fn -x", "the executable /opt/fn -x is not"),
    ("an image that nobody allowed", "image: example.com/fn:v1",
     "the function example.com/fn:v1 is not available; ask an administrator to allow it"),
    ("another tag of an allowed image", "image: example.com/known:v2",
     "the function example.com/known:v2 is not available"),
    ("an image without a runtime", "image: example.com/known:v1",
     "the function example.com/known:v1 cannot be run: podman is not on the PATH"),
    ("gatekeeper", "image: gatekeeper:v1", "check the policies where the package is published"),
    ("a chart", "image: render-helm-chart", "render the chart upstream"),
]  # fmt: skip
KNOWN = KrmProgram("x", "example.com/known:v1", image=True, missing="podman is not on the PATH")


@pytest.mark.parametrize(("entry", "problem"), rows(REFUSED))
def test_refused_by_name_is(entry, problem):
    limits = RenderLimits(programs=AllowedPrograms({"/opt/fn": PROGRAM}, {KNOWN.command: KNOWN}))
    with pytest.raises(InvalidInput) as caught:
        prepare_package(package({"Kptfile": kptfile(entry)}), limits)
    assert problem in str(caught.value)
    assert (caught.value.reason, caught.value.where.line) == ("FunctionUnavailable", 7)


def test_the_program_is_in_the_digest():
    def digest(version, **fields):
        program = PROGRAM._replace(version=version)
        limits = RenderLimits(programs=AllowedPrograms({"fn": program}, {"a/b:1": program}))
        prepared = prepare_package(package(fields.pop("files", {})), limits)
        return resolve_inputs(prepared, spec(**fields), ClusterObjectIndex(())).digest

    function = (FunctionSpec("", exec="fn"),)
    own = {"Kptfile": kptfile("exec: fn")}
    digests = [
        digest(version, **fields)
        for version in ("1", "2")
        for fields in (
            {"mutators": function},
            {"validators": function},
            {"files": own},
            {"mutators": (FunctionSpec("a/b", tag="1"),)},
            {"mutators": (FunctionSpec("", exec="fn", selectors=({"kind": "Pod"},)),)},
        )
    ]
    assert len(set(digests)) == len(digests)
