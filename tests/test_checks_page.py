"""The checks on the page about checks can be copied."""

import re
from pathlib import Path

import yaml

from fanout.api.validators.object_validation import validate_object

DOCS = Path(__file__).parents[1] / "docs" / "concepts"
EXAMPLE = Path(__file__).parent / "api" / "examples" / "upstream-policy.yaml"
CHECKS, STATUSES, NAMESPACES, SECRETS = (
    yaml.safe_load(block)
    for block in re.findall(r"```yaml\n(.*?)```", (DOCS / "checks.md").read_text(), re.DOTALL)
)


def test_the_checks_are_valid_in_a_policy():
    data = yaml.safe_load(EXAMPLE.read_text())
    data["spec"]["stages"][0]["verification"] = CHECKS
    assert validate_object(data)[1] == ()


def test_the_checks_by_statuses_are_valid_in_a_stage():
    data = yaml.safe_load(EXAMPLE.read_text())
    data["spec"]["stages"][0] |= STATUSES
    assert validate_object(data)[1] == ()


def test_namespaces_of_the_checks_are_readable():
    configuration, faults = validate_object(NAMESPACES)
    assert faults == ()
    named = [
        check["object"]["namespace"] for check in CHECKS if "namespace" in check.get("object", {})
    ]
    assert set(named) <= set(configuration.checks.namespaces)


def test_secrets_of_the_checks_are_lent():
    configuration, faults = validate_object(SECRETS)
    assert faults == ()
    named = [check["prometheus"]["secretRef"]["name"] for check in CHECKS if "prometheus" in check]
    assert [it.name for it in configuration.check_secrets] == named
