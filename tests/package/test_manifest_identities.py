"""Identity of objects is by package, with one answer in edits, validation, merge and rendering."""

from package.merge.test_package_update import kptfile, merge, package, thing
from variants.running import rendered

from fanout.cli.verbs.package import PackageFunctions, validate_package
from fanout.package.merge.kpt_clone import find_identities
from fanout.package.package_patch import mask_secrets
from fanout.plan.edits.draft_damage import find_new_faults
from fanout.reconcile.function_result_cache import FunctionResultCache
from fanout.variants.function_requests import AllowedPrograms

RUNTIME = PackageFunctions(AllowedPrograms({}, {}), FunctionResultCache(None))
A, A2, A3 = thing("a"), thing("a", 2), thing("a", 3)
SUB = {
    "Kptfile": kptfile(),
    "one/Kptfile": kptfile("one"),
    "one/a.yaml": A,
    "two/Kptfile": kptfile("two"),
    "two/a.yaml": A,
}
LOCAL = "  annotations:\n    config.kubernetes.io/local-config: 'true'\n"
KUSTOMIZED = {
    "Kptfile": kptfile(),
    "base/kustomization.yaml": "resources: [a.yaml]\n",
    "base/a.yaml": A,
    "prod/kustomization.yaml": "resources: [../base]\npatches: [{path: patch.yaml}]\n",
    "prod/patch.yaml": A2,
}


def faults(files, reference):
    return [str(it) for it in find_new_faults(package(files), [package(reference)], "p")]


def validated(files):
    report = validate_package(package(files), RUNTIME)
    return [str(it) for it in report.errors], [it.sentence for it in report.warnings]


def rendering_warnings(files):
    return [it.sentence for it in rendered(files).results if it.severity == "warning"]


def test_objects_of_one_name_in_two_subpackages_may_both_be_edited():
    edited = {**SUB, "one/a.yaml": A2, "two/a.yaml": A3}
    assert faults(edited, SUB) == []
    assert validated(edited) == ([], [])
    assert rendering_warnings(edited) == []


def test_an_object_of_the_package_and_its_namesake_in_a_subpackage_may_both_be_edited():
    files = {"Kptfile": kptfile(), "a.yaml": A, "one/Kptfile": kptfile("one"), "one/a.yaml": A}
    assert faults({**files, "a.yaml": A2, "one/a.yaml": A3}, files) == []


def test_a_subpackage_inside_another_is_one_of_its_own():
    files = {**SUB, "one/in/Kptfile": kptfile("in"), "one/in/a.yaml": A}
    assert faults({**files, "one/a.yaml": A2, "one/in/a.yaml": A3}, files) == []
    assert validated(files) == ([], [])


def test_a_subpackage_whose_kptfile_cannot_be_read_is_one():
    broken = {**SUB, "one/Kptfile": "{{"}
    edited = {**broken, "one/a.yaml": A2, "two/a.yaml": A3}
    assert faults(edited, broken) == []
    assert not any("also at" in it for it in validated(edited)[0])


def test_twice_in_one_subpackage_is_a_fault_also_where_another_has_it_already():
    published = {**SUB, "one/b.yaml": A}
    [fault] = faults({**published, "two/b.yaml": A}, published)
    assert "two/b.yaml" in fault
    assert "also at two/a.yaml:1" in fault


def test_an_edit_that_removes_a_kptfile_joins_two_packages():
    edited = {path: text for path, text in SUB.items() if not path.endswith("/Kptfile")}
    [fault] = faults(edited, SUB)
    assert "also at one/a.yaml:1" in fault


def test_a_patch_of_kustomize_is_a_warning_for_everybody():
    warning = "prod/patch.yaml:1: ConfigMap/a: the object is also at base/a.yaml:1"
    errors, warnings = validated(KUSTOMIZED)
    assert errors == []
    assert len(warnings) == 1
    assert warnings[0].startswith(warning)
    assert rendering_warnings(KUSTOMIZED) == warnings
    before = {path: text for path, text in KUSTOMIZED.items() if not path.startswith("prod/")}
    assert faults(KUSTOMIZED, before) == []


def test_two_that_no_kustomization_explains_are_a_warning_of_the_rendering():
    files = {"Kptfile": kptfile(), "a.yaml": A, "b.yaml": A2}
    assert len(validated(files)[0]) == 1
    assert len(rendering_warnings(files)) == 1


def test_a_local_config_object_is_another_object_for_everybody():
    local = A2.replace("\ndata:", f"\n{LOCAL}data:")
    origin = {"Kptfile": kptfile(), "a.yaml": A, "fn.yaml": local}
    assert validated(origin) == ([], [])
    assert rendering_warnings(origin) == []
    upstream = {**origin, "b.yaml": f"{A}", "fn.yaml": local.replace("2", "5")}
    del upstream["a.yaml"]
    files, conflicts = merge(origin, upstream, {**origin, "a.yaml": A3})
    assert files == {**upstream, "b.yaml": A3}
    assert conflicts == []


def test_a_local_config_mark_that_one_side_sets_makes_no_other_object():
    local = A.replace("\ndata:", f"\n{LOCAL}data:")
    files, conflicts = merge({"a.yaml": A}, {"a.yaml": local}, {"a.yaml": A3})
    assert files == {"a.yaml": local.replace("1\n", "3\n", 2).replace("v3", "v1")}
    assert conflicts == []


def test_items_of_lists_have_identities_too():
    text = f"apiVersion: v1\nkind: List\nitems:\n- {A.replace(chr(10), chr(10) + '  ')}\n"
    identities = find_identities(package({"one/Kptfile": kptfile(), "one/l.yaml": text}))
    assert identities == {("one", ("", "ConfigMap", "", "a"))}


def test_secrets_of_one_name_in_two_subpackages_are_masked_apart():
    def secret(value):
        return f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\nstringData:\n  x: {value}\n"

    sides = [
        package({**SUB, "one/s.yaml": secret(one), "two/s.yaml": secret("same")})
        for one in ("old", "new")
    ]
    before, after = mask_secrets(sides, ["before", "after"])
    assert before["one/s.yaml"] != after["one/s.yaml"]
    assert before["two/s.yaml"] == after["two/s.yaml"]
