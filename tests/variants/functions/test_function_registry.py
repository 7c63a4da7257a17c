"""Every folder in fixtures/functions is a package whose pipeline has that function."""

from pathlib import Path

import pytest
from variants.builders import package
from variants.running import OURS, rendered
from variants.test_package_rendering_golden import files_below, write

from fanout.variants.function_registry import FUNCTIONS_BY_NAME

FIXTURES = Path(__file__).parents[3] / "fixtures/functions"


def rendered_files(folder):
    files = {path: data.decode() for path, data in files_below(folder).items()}
    result = rendered(files)
    blobs = {entry.oid: data for entry, data in package(files).files.values()}
    blobs |= dict(result.blobs)
    return {path: blobs[entry.oid] for path, entry in result.entries.items() if path not in OURS}


@pytest.mark.parametrize("name", sorted(FUNCTIONS_BY_NAME))
def test_golden(name, update_golden):
    case = FIXTURES / name
    files = rendered_files(case / "input")
    if update_golden:
        write(case / "expected", files)
    assert {path: data.decode() for path, data in files.items()} == {
        path: data.decode() for path, data in files_below(case / "expected").items()
    }


def test_every_function_has_a_case():
    assert {path.name for path in FIXTURES.iterdir()} == FUNCTIONS_BY_NAME.keys()
