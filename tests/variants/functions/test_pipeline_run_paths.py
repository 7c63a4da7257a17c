"""Paths with `..` that stay inside the package are the files that they lead to."""

import pytest
import yaml
from variants.builders import rows
from variants.programs import NEW, changed
from variants.running import configured_by, kptfile, run

from fanout.api.field_errors import InvalidValue
from fanout.api.text_fields import check_file, normalize_inside
from fanout.selection.variant_spec import FunctionSpec

TEXT = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {}\n"
WORDS = TEXT.format("words") + "data:\n  owner: eu\n"
NOTED = "  annotations:\n    owner: eu\n"

PATHS = [
    ("a file", "words.yaml", "words.yaml"),
    ("beside the Kptfile", "./words.yaml", "words.yaml"),
    ("there and back", "./sub/../words.yaml", "words.yaml"),
    ("through a directory that is not there", "a/b/../../c/../words.yaml", "words.yaml"),
    ("in a directory", "sub/./x/../words.yaml", "sub/words.yaml"),
    ("two slashes", "sub//words.yaml", "sub/words.yaml"),
    ("a hidden file", ".words.yaml", ".words.yaml"),
    ("out of it", "../words.yaml", ""),
    ("out of it by a way through it", "sub/../../words.yaml", ""),
    ("out of it and in again", "../package/words.yaml", ""),
    ("absolute", "/words.yaml", ""),
    ("the package itself", "sub/..", ""),
    ("nothing", "", ""),
]


@pytest.mark.parametrize(("path", "inside"), rows(PATHS))
def test_a_path_inside_a_package_is(path, inside):
    assert normalize_inside(path) == inside


@pytest.mark.parametrize(("path", "inside"), rows(PATHS))
def test_a_policy_names_only_files_of_the_package(path, inside):
    if inside:
        assert check_file(path) == path
    else:
        with pytest.raises(InvalidValue, match="is outside the package"):
            check_file(path)


INSIDE = [row for row in PATHS if row[2] == "words.yaml"]


@pytest.mark.parametrize(("path", "_"), rows(INSIDE))
def test_a_kptfile_is_configured_by(path, _):
    files = {"Kptfile": configured_by("set-annotations", path), "words.yaml": WORDS,
             "a.yaml": TEXT.format("a")}  # fmt: skip
    assert run(files)["a.yaml"] == TEXT.format("a") + NOTED


@pytest.mark.parametrize(("path", "_"), rows(INSIDE))
def test_a_policy_is_configured_by(path, _):
    function = FunctionSpec("set-annotations", config_path=path)
    assert run({"words.yaml": WORDS, "a.yaml": TEXT.format("a")}, function)["a.yaml"].endswith(
        NOTED
    )


def test_a_subpackage_is_configured_by_a_file_below_it():
    own = kptfile("{image: set-annotations, configPath: x/../words.yaml}")
    files = {"sub/Kptfile": own, "sub/words.yaml": WORDS, "sub/a.yaml": TEXT.format("a")}
    assert run(files)["sub/a.yaml"].endswith(NOTED)


def test_upsert_resource_puts_the_object_where_its_path_leads():
    target = "  annotations:\n    config.kubernetes.io/target-path: x/../b.yaml\n"
    files = {"Kptfile": configured_by("upsert-resource"), "config.yaml": TEXT.format("b") + target}
    assert run(files)["b.yaml"] == TEXT.format("b")


def test_a_program_puts_an_object_where_its_path_leads():
    def work(whole):
        item = yaml.safe_load(TEXT.format("b"))
        item["metadata"]["annotations"] = {f"{NEW}path": "./x/../b.yaml", f"{NEW}index": "0"}
        whole["items"].append(item)

    assert changed({"a.yaml": TEXT.format("a")}, work) == {"b.yaml": TEXT.format("b")}
