"""What `fanout validate` refuses, a real kube-apiserver refuses, or it is in `NOT_REFUSED`."""

import copy
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest
import yaml
from api import (
    test_function_catalog,
    test_package_variant_dependencies,
    test_stages,
    test_stages_checks,
    test_unsupported_fields,
)
from api.test_object_validation import MISTAKES, example
from cli.test_validate_broken_files import ROWS, break_example
from kube.mutations import find_values, general_path, mutate_all, read_complete_objects
from kube.objects import Named, refusal_of, sent
from kube_server import KubeServer

from fanout.api.crd_schemas import build_crds
from fanout.api.package_variant import PackageVariant
from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.api.validators.object_references import cross_check
from fanout.api.validators.object_validation import is_fanout_object, validate_object
from fanout.api.validators.unsupported_fields import UNSUPPORTED_FIELDS
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.schedule_errors import find_schedule_errors
from fanout.reconcile.validation.expression_validation import (
    find_function_findings,
    validate_expressions,
)
from fanout.sandbox.evaluator import ProcessSandbox
from fanout.sandbox.worker_protocol import WorkerLimits
from fanout.telemetry.metrics import Counters

pytestmark = pytest.mark.kube
Error = tuple[str, str]  # field, with [] for any entry of a list, and problem


class Category(NamedTuple):
    """Errors that the API server does not report, with one example.

    An error belongs to the category if its whole field matches, and a part of its problem.
    """

    reason: str
    field: str
    problem: str
    example: tuple[str, str, Any]  # name of a complete object, field, value


_POLICY, _CHECKS, _PROMOTION = "UpstreamPolicy/complete", "UpstreamPolicy/complete-stages", (
    "PromotionPolicy/complete"
)  # fmt: skip
_VARIANT, _REPOSITORY = "PackageVariant/complete", "Repository/complete"
_PIPELINE = r".*\.pipeline\.(mutators|validators)\[\]"
_PROBE = r"spec\.stages\[\]\.(verification|requires)\[\]\.(http\.url|prometheus\.address)"
NOT_REFUSED = {
    "null": Category(
        "the API server drops a field without a value before any rule",
        r".*",
        r"^has no value$|got nothing$|^history is not supported yet",
        (_VARIANT, "spec.dependsOn", None),
    ),
    "keys": Category(
        "JSON has no keys but strings: kubectl quotes the key",
        r".*",
        r"expected a string as key",
        (_VARIANT, "spec.labels", {True: "a"}),
    ),
    "cycles": Category(
        "a rule has no recursion",
        r"spec\.stages\[\]\.after\.stages\[\]",
        r"^stages form a cycle",
        (_CHECKS, "spec.stages.0.after", {"stages": ["prod"]}),
    ),
    "references": Category(
        "a rule sees one object",
        r".*",
        r"^there is no (Repository|UpstreamPolicy|PackageVariant) |^no PromotionPolicy ",
        (_VARIANT, "spec.dependsOn", [{"variant": "nobody"}]),
    ),
    "expressions": Category(
        "a rule has no parser of expressions",
        r"spec\..*(Exprs?|\.cel|\.observedRevision|\.propagateWhen\[\]|\.offlineWhen"
        r"|\.removeKeyExprs\[\])",
        r"syntax error|is not a variable here|1024 are allowed|has no field|no such|unsupported",
        (_POLICY, "spec.targets.0.offlineWhen", "1 +"),
    ),
    "literals": Category(
        "an expression is a string to a rule",
        r"spec\.targets\[\]\.template\.stageExpr",
        r"^there is no stage |is a controlFlow stage",
        (_POLICY, "spec.targets.2.template.stageExpr", "'nowhere'"),
    ),
    "templates": Category(
        "a rule has no parser of templates",
        r"spec\.(commitTemplate|pullRequest\.(title|body)Template)",
        r"syntax error|is not a variable here|1024 are allowed",
        (_PROMOTION, "spec.commitTemplate", "{{ a"),
    ),
    "functions": Category(
        "functions and their settings are those of the program, and change with it",
        rf"{_PIPELINE}\.(image|configPath|configMap)",
        r"^there is no function|needs a configuration object$|^[a-z-]+: ",
        (_VARIANT, "spec.pipeline.mutators.0.image", "set-lables"),
    ),
    "schedules": Category(
        "a rule has no parser of cron lines",
        r"spec\.(schedule|windows\[\]\.(allow|deny)\.(schedule|until))",
        r"^schedule '",
        (_PROMOTION, "spec.schedule", "61 * * * *"),
    ),
    "time zones": Category(
        "the time zones are those of the machine",
        r"spec\.(windows\[\]\.(allow|deny)\.)?timeZone",
        r"^there is no time zone",
        (_PROMOTION, "spec.timeZone", "Europe/Olso"),
    ),
    "version ranges": Category(
        "a rule has no parser of version ranges",
        r"spec\.upstream\.revision\.semver",
        r"",
        (_VARIANT, "spec.upstream.revision.semver", "abc"),
    ),
    "revisions": Category(
        "the code that reads tags says what a version is, and the kinds do not import it",
        r"spec\.upstream\.revision\.tag|spec\.stages\[\]\.pin",
        r"is not a revision$",
        (_CHECKS, "spec.stages.0.pin", "newest"),
    ),
    "approvers": Category(
        "an identity has the syntax of Git, of forges and of clusters together",
        r"spec\.approvers\[\]\.subjects\[\]",
        r"is not an identity|is a team|is not a group",
        (_PROMOTION, "spec.approvers", [{"group": "sre", "subjects": ["ann"]}]),
    ),
    "addresses": Category(
        "a rule has no parser of addresses, which have many spellings",
        _PROBE,
        r"is a link-local|, a link-local|metadata service",
        (_CHECKS, "spec.stages.0.verification.6.http.url", "http://169.254.169.254/"),
    ),
    "secrets in URLs of checks": Category(
        "the rule is estimated at more than the budget, because it is multiplied by all checks",
        _PROBE,
        r"carries a secret in its query",
        (_CHECKS, "spec.stages.0.verification.6.http.url", "https://x/?token=a"),
    ),
    "secrets in unusual spelling": Category(
        "a rule does not decode names, and does not split words in camelCase",
        r"spec\.url",
        r"carries a secret in its query",
        (_REPOSITORY, "spec.url", "https://x/?to%6ben=a"),
    ),
    "names of headers in two spellings": Category(
        "the rule is estimated at more than the budget, because it is multiplied by all checks",
        r".*\.http\.headers",
        r"differ only in case",
        (_CHECKS, "spec.stages.0.verification.6.http.headers", {"Accept": "a", "accept": "a"}),
    ),
    "paths in lists of lists": Category(
        "the smallest rule is estimated at more than the budget: 500 targets, 1,000 repositories,"
        " 1,000 packages",
        r"spec\.targets\[\]\.repositories\[\]\.packageNames\[\]",
        r"^the path ",
        (_POLICY, "spec.targets.0.repositories.0.packageNames", ["con"]),
    ),
    "keys of selectors of functions": Category(
        "the rule is estimated at more than the budget: a selector in a function in a target",
        rf"{_PIPELINE}\.(selectors|exclude)\[\]\.(labels|annotations)(\.|\[).*",
        r"is not a valid label key",
        (_VARIANT, "spec.pipeline.mutators.0.selectors", [{"labels": {"a b": "c"}}]),
    ),
    "keys of settings of functions": Category(
        "the rule is estimated at more than the budget: 1,000 settings in a function in a target",
        r"spec\.targets\[\]\.template\.pipeline\.(mutators|validators)\[\]\.configMap(\.|\[).*",
        r"^is empty$|^is longer than",
        (_POLICY, "spec.targets.0.template.pipeline.mutators.0.configMap", {"": "a"}),
    ),
    "paths that return": Category(
        "a rule cannot normalize a path: a/../b is a file of the package, and a/../../b is not",
        rf"{_PIPELINE}\.configPath",
        r"is outside the package$",
        (_VARIANT, "spec.pipeline.mutators.1.configPath", "a/../../x"),
    ),
    "fields of fanout": Category(
        "fanout itself writes it: an admission policy refuses it from others",
        r"spec\.(policyRef|stage)",
        r"only fanout sets it",
        (_VARIANT, "spec.stage", "dev"),
    ),
}


def find_categories(error: Error) -> list[str]:
    """Return the names of the categories of an error."""
    return [
        name
        for name, it in NOT_REFUSED.items()
        if re.fullmatch(it.field, error[0]) and re.search(it.problem, error[1])
    ]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessSandbox]:
    sandbox = ProcessSandbox(WorkerLimits(), Counters())
    yield sandbox
    sandbox.close()


def find_errors(data: dict[str, Any], sandbox: ProcessSandbox) -> list[Error]:
    """Return the errors of `fanout validate` about one object."""
    parsed, errors = validate_object(data)
    problems = [(it.field, it.problem) for it in errors]
    if parsed is not None:
        problems = [(it.field, it.problem) for it in find_schedule_errors(parsed)]
        problems += [
            (it.field, it.problem) for _, it in cross_check([parsed]) if it.severity == "error"
        ]
        declared = DeclaredObjects(
            policies=(parsed,) if isinstance(parsed, UpstreamPolicy) else (),
            variants=(parsed,) if isinstance(parsed, PackageVariant) else (),
            promotions=(parsed,) if isinstance(parsed, PromotionPolicy) else (),
        )
        findings = (*validate_expressions(declared, sandbox), *find_function_findings(declared))
        problems += [(it.where.field, it.problem) for it in findings if it.severity == "error"]
    return [(re.sub(r"\[\d+\]", "[]", field), problem) for field, problem in problems]


def broken_objects() -> Iterator[Named]:
    """Yield each object of the tests' tables of mistakes."""
    for row in MISTAKES:
        yield row["sentence"], example(row["kind"], row["text"], row["instead"])
    for sentence, data, _ in test_stages.MISTAKES:
        yield sentence, data
    for sentence, check, _ in test_stages_checks.WRONG:
        yield sentence, test_stages_checks.with_check(check)
    for sentence, pipeline, _ in test_function_catalog.REFUSED:
        data = copy.deepcopy(test_function_catalog.VARIANT)
        data["spec"]["pipeline"] = pipeline
        yield sentence, data
    for sentence, entry, _ in test_package_variant_dependencies.DEPENDENCIES:
        yield sentence, test_package_variant_dependencies.waiting(entry)
    for row in UNSUPPORTED_FIELDS:
        for value in row.values or (test_unsupported_fields.VALUES[row.path.rpartition(".")[2]],):
            data = copy.deepcopy(test_unsupported_fields.EXAMPLES[row.kind])
            test_unsupported_fields.place(data, row.path, value)
            yield f"{row.kind}: {row.path}: {value}", data
    for row in ROWS:
        try:
            documents = [*yaml.safe_load_all(break_example(row))]
        except yaml.YAMLError:
            continue  # no objects
        for data in filter(is_fanout_object, documents):
            yield f"{row['description']} ({data.get('kind')})", data


def find_unexplained(
    cases: list[Named], server: KubeServer, namespace: str, sandbox: ProcessSandbox
) -> tuple[list[str], int]:
    """Return a line for each error of an accepted object that has no or several categories.

    And how many of the objects the server accepted.
    """

    def is_accepted(case: Named) -> bool:
        return not refusal_of(server, sent(case[1], namespace))

    with ThreadPoolExecutor(4) as pool:  # each waits for the server
        accepted = [it for it, ok in zip(cases, pool.map(is_accepted, cases), strict=True) if ok]
    lines = [
        f"{name}: {error[0]}: {error[1]}: {find_categories(error)}"
        for name, data in accepted
        for error in find_errors(data, sandbox)
        if len(find_categories(error)) != 1
    ]
    return lines, len(accepted)


def test_the_server_refuses_what_validation_refuses(server, kube_namespace, sandbox):
    cases = [
        (name, data)
        for name, data in broken_objects()
        if data.get("kind") not in ("FanoutConfiguration", "Scenario")
    ]
    unexplained, accepted = find_unexplained(cases, server, kube_namespace, sandbox)
    assert not unexplained, "\n".join(unexplained)
    assert len(cases) - accepted > 150


def test_the_server_refuses_generated_mistakes(server, kube_namespace, sandbox):
    """Every field with wrong types, and with text that another field refuses."""
    cases = [*mutate_all(read_complete_objects())]
    unexplained, accepted = find_unexplained(cases, server, kube_namespace, sandbox)
    assert not unexplained, "\n".join(unexplained)
    assert len(cases) - accepted > 1_000


@pytest.mark.parametrize("name", NOT_REFUSED)
def test_a_category_has_an_example(server, kube_namespace, sandbox, name):
    target, field, value = NOT_REFUSED[name].example
    objects = {f"{it['kind']}/{it['metadata']['name']}": it for it in read_complete_objects()}
    data: Any = objects[target]
    *steps, last = (int(it) if it.isdigit() else it for it in field.split("."))
    parent = data
    for step in steps:
        parent = parent[step]
    if last == "semver":
        parent.clear()
    parent[last] = value
    assert refusal_of(server, sent(data, kube_namespace)) == ""
    categories = [find_categories(it) for it in find_errors(data, sandbox)]
    assert [name] in categories
    assert all(len(it) == 1 for it in categories)


def list_schema_paths(schema: dict[str, Any], path: tuple[str | int, ...]) -> Iterator[Any]:
    yield path
    for field, inner in schema.get("properties", {}).items():
        yield from list_schema_paths(inner, (*path, field))
    if "items" in schema:
        yield from list_schema_paths(schema["items"], (*path, 0))


# In lists whose entries have the type of another list.
_SAME_TYPE = re.compile(r"\.(requires|validators)\.0\.")
_UNSUPPORTED = re.compile(
    r"verification\.0\.approval|objectSelector\.namespace|PackageVariant\.spec\.(policyRef|stage)"
)


def test_the_complete_objects_are_valid_and_have_every_field(sandbox):
    objects = read_complete_objects()
    for data in objects:
        errors = [it for it in find_errors(data, sandbox) if find_categories(it) != ["references"]]
        assert errors == [], data["metadata"]["name"]
    present = {
        (data["kind"], *general_path(path)) for data in objects for path, _ in find_values(data)
    }
    fields = {
        ".".join(map(str, path))
        for crd in build_crds()
        for path in list_schema_paths(
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"],
            (crd["spec"]["names"]["kind"], "spec"),
        )
        if path not in present
    }
    assert {it for it in fields if not (_SAME_TYPE.search(it) or _UNSUPPORTED.search(it))} == set()
