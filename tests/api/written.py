"""Objects as people write them: the examples with other fields, and their errors."""

from pathlib import Path

import yaml

from fanout.api.validators.object_references import cross_check
from fanout.api.validators.object_validation import validate_object

EXAMPLES = {
    path.stem: path.read_text() for path in (Path(__file__).parent / "examples").glob("*.yaml")
}


def faults_of(data):
    return [f"{fault.field}: {fault.problem}; {fault.remedy}" for fault in validate_object(data)[1]]


def made(example, name=None, **spec):
    """The object of an example with other fields in its spec; a new name if wanted."""
    data = yaml.safe_load(EXAMPLES[example])
    data["metadata"] |= {"name": name} if name else {}
    data["spec"] |= spec
    model, faults = validate_object(data)
    assert faults == ()
    return model


def list_errors(*objects, severity="error"):
    """Return the errors of the objects as a set; the repositories that they name are there."""
    repositories = [
        made("repository", name, allowedNamespaces=["platform"])
        for name in ("blueprints", "edge-eu")
    ]
    return [
        f"{item.identity}: {fault.field}: {fault.problem}; {fault.remedy}"
        for item, fault in cross_check([*repositories, *objects])
        if fault.severity == severity
    ]
