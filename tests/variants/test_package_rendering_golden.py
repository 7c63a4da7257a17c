"""Every folder in fixtures/render is a case: a package, a variant, and the files that it gets."""

from pathlib import Path

import pytest
from variants.builders import by, package, spec

from fanout.package.manifest import Manifest
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import FunctionSpec
from fanout.variants.package_preparation import prepare_package
from fanout.variants.package_rendering import render_variant
from fanout.variants.render_model import RenderLimits
from fanout.variants.variant_digest import resolve_inputs

FIXTURES = Path(__file__).parents[2] / "fixtures"
CASES = sorted(path for path in (FIXTURES / "render").iterdir() if path.is_dir())


def files_below(folder):
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def render_case(case):
    """The variant's files by path, as bytes."""
    text = (case / "input/spec.yaml").read_bytes()
    (wanted,) = (document.value for document in Manifest.parse(text, "spec.yaml").documents)
    upstream, variant = wanted["upstream"], wanted["variant"]
    named = upstream.get("package")
    folder = FIXTURES / "packages" / named if named else case / "input/upstream"
    source = package(
        {path: data.decode() for path, data in files_below(folder).items()},
        name=upstream["revision"],
        directory=upstream.get("directory", named),
    )
    target = spec(
        **{
            **variant,
            "mutators": tuple(FunctionSpec(**item) for item in variant.get("mutators", ())),
            "injectors": tuple(by(**item) for item in variant.get("injectors", ())),
            "remove_keys": tuple(variant.get("remove_keys", ())),
        }
    )
    prepared = prepare_package(source, RenderLimits())
    inputs = resolve_inputs(prepared, target, ClusterObjectIndex(wanted["objects"]))
    rendered = render_variant(prepared, target, inputs)
    blobs = {entry.oid: data for entry, data in source.files.values()} | dict(rendered.blobs)
    return {path: blobs[entry.oid] for path, entry in rendered.entries.items()}


def write(folder, files):
    for path in files_below(folder):
        (folder / path).unlink()
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(case, update_golden):
    files = render_case(case)
    if update_golden:
        write(case / "expected", files)
    assert {path: data.decode() for path, data in files.items()} == {
        path: data.decode() for path, data in files_below(case / "expected").items()
    }
