"""What `fanout validate` says to somebody who has mistaken something: whole commands on files."""

import io
import json
from pathlib import Path

import pytest
from fleet import POLICY, PROMOTION, Fleet

TEMPLATE = "spec.targets[0].template."
STAGE_EXPR = "stageExpr: target.metadata.labels.tier"


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return Fleet.build(tmp_path_factory.mktemp("company"))


def lines(fleet: Fleet, name: str, text: str) -> list[str]:
    """What validate says about one more file beside the sound ones, from the line number on."""
    path = fleet.write(name, text)
    try:
        result = fleet.run("validate")
        matching = [line for line in result.out.splitlines() if str(path) in line]
        errors = [line for line in matching if not line.startswith("warning: ")]
        assert result.code == (2 if errors else 0), result.err
        return [line.partition(f"{path}:")[2] for line in errors]
    finally:
        fleet.remove(name)


def edited(*edits: tuple[str, str]) -> str:
    """One more policy, beside the company's own."""
    text = POLICY.replace("name: monitoring", "name: other").replace("sites/", "other/")
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def test_a_sound_directory_has_no_faults(company: Fleet):
    assert lines(company, "other.yaml", edited()) == []


EXPRESSIONS = [
    ("a variable that there is not", "stageExpr", "cluster.metadata.labels.tier",
     "cluster is not a variable here; "),
    ("a misspelt variable", "stageExpr", "targt.metadata.labels.tier",
     "targt is not a variable here; did you mean target? there are packageDefault, "),
    ("text without its quotes", "stageExpr", "prod",
     "prod is not a variable here; if it is a string, write \"'prod'\", with both quotes; "),
    ("a name with a dash without its quotes", "stageExpr", "staging-eu",
     "eu and staging are not variables here; if it is a string, write \"'staging-eu'\", with both"),
    ("the repository where it is chosen", "downstream.repositoryExpr", "repository.metadata.name",
     "repository is not a variable here: this expression chooses the repository; there are "),
    ("a function that there is not", "downstream.packageExpr", "lower(target.metadata.name)",
     "there is no function 'lower' (column 1); use one of bool(), bytes(), double(), "),
    ("a method that there is not", "downstream.packageExpr", "target.metadata.name.split('-')[1]",
     "there is no function 'split' (column 22); use one of all(), contains(), endsWith(), "),
    ("a misspelt method", "stageExpr", "target.metadata.name.startswith('a') ? 'dev' : 'prod'",
     "there is no function 'startswith' (column 22); did you mean startsWith?"),
    ("a label whose key is no name", "stageExpr", "target.metadata.labels.example.com/tier",
     "tier is not a variable here; write such keys in brackets, as labels['a/b']; there"),
    ("a template's braces", "downstream.packageExpr", "sites/{{ target.metadata.name }}",
     ("syntax error at column 31: unexpected '}'; CEL is not a template language: join strings"
     " with +")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "field", "text", "problem"), EXPRESSIONS, ids=[row[0] for row in EXPRESSIONS]
)
def test_an_expression_that_can_give_nothing(
    company: Fleet, _, field: str, text: str, problem: str
):
    old = {
        "stageExpr": STAGE_EXPR,
        "downstream.repositoryExpr": "repositoryExpr: target.spec.repository",
        "downstream.packageExpr": "packageExpr: \"'other/' + target.metadata.name\"",
    }[field]
    new = f"{field.rpartition('.')[2]}: {json.dumps(text)}"
    [line] = lines(company, "other.yaml", edited((old, new)))
    assert f": UpstreamPolicy/other: {TEMPLATE}{field}: {text}: {problem}" in f": {line}"


SOUND = [
    ("a name that a macro binds", "['a'].filter(one, one != 'b')[0] + target.metadata.name"),
    ("the name of a type", "type(target.metadata.name) == string ? 'dev' : 'prod'"),
    ("all variables", "upstream.package + repoDefault + packageDefault + repository.metadata.name"),
]


def test_the_expressions_of_a_policy_that_has_other_faults_are_reported_in_the_same_run(
    company: Fleet,
):
    text = edited(
        (STAGE_EXPR, "stageExpr: traget.metadata.labels.tier"),
        ("packageExpr:", "packageExpr: [1]\n        foo:"),
        ("soak: 1h", "soak: 1 day"),
    )
    findings = lines(company, "other.yaml", text)
    assert [line.split(": ")[2].removeprefix(TEMPLATE) for line in findings] == [
        "stageExpr", "downstream.packageExpr", "downstream.foo", "spec.stages[1].after.soak",
    ]  # fmt: skip
    assert "did you mean target?" in findings[0]


@pytest.mark.parametrize(("_", "text"), SOUND, ids=[row[0] for row in SOUND])
def test_an_expression_may_name_declared_fields(company: Fleet, _, text: str):
    findings = lines(company, "other.yaml", edited((STAGE_EXPR, f"stageExpr: {json.dumps(text)}")))
    assert [line for line in findings if "the policy has no stage" not in line] == []


TEMPLATES = [
    ("of all its variables",
     "{{ namespace }}{{ policy }}{{ stage }}{{ revision }}{{ variants }}{{ range(3) | list }}", ""),
    ("of names of its own",
     "{% set x = 1 %}{{ x }}{% for one in variants %}{{ one.name }}{{ loop.index }}{% endfor %}",
     ""),
    ("of a variable that there is not", "{{ policy }} in {{ stag }}",
     "stag is not a variable here; did you mean stage? there are namespace, policy, "),
    ("of CEL's variables", "{{ target.metadata.name }}",
     "target is not a variable here; "),
]  # fmt: skip


@pytest.mark.parametrize(("_", "text", "problem"), TEMPLATES, ids=[row[0] for row in TEMPLATES])
def test_a_commit_template(company: Fleet, _, text: str, problem: str):
    promotion = PROMOTION.replace("everything", "other") + f"  commitTemplate: {json.dumps(text)}\n"
    findings = lines(company, "other.yaml", promotion)
    field = "8: PromotionPolicy/other: spec.commitTemplate: "
    assert [line.startswith(f"{field}{text}: {problem}") for line in findings] == [True] * bool(
        problem
    )


REQUEST_TEMPLATES = [
    ("titleTemplate", "{{ title }}{{ branch }}{{ headBranch }}{{ install }}{{ revision }}", ""),
    ("bodyTemplate", "{{ text }}{{ holds }}{{ checks }}{{ changes }}{{ conflicts }}", ""),
    ("titleTemplate", "{{ text }}", "text is not a variable here; "),
    ("bodyTemplate", "{{ hold }}", "hold is not a variable here; did you mean holds? "),
]


@pytest.mark.parametrize(("field", "text", "problem"), REQUEST_TEMPLATES)
def test_a_template_of_pull_requests(company: Fleet, field: str, text: str, problem: str):
    promotion = PROMOTION.replace("everything", "other") + f"  pullRequest: {{{field}: '{text}'}}\n"
    findings = lines(company, "other.yaml", promotion)
    where = f"8: PromotionPolicy/other: spec.pullRequest.{field}: {text}: "
    assert [line.startswith(where + problem) for line in findings] == [True] * bool(problem)


FUNCTIONS = [
    ("a key that it does not have", "{image: set-namespace, configMap: {namespce: web}}",
     "set-namespace: unknown field namespce; did you mean namespace?"),
    ("a key too many", "{image: set-namespace, configMap: {namespace: web, force: 'true'}}",
     "set-namespace: unknown field force; use namespace, namespaceMatcher"),
    ("no configuration at all", "{image: set-labels}",
     "set-labels: no labels are given; add at least one label"),
    ("a configuration where none is asked for",
     "{image: 'gcr.io/kpt-fn/remove-local-config-resources:v0.1', configMap: {all: 'true'}}",
     "remove-local-config-resources: unknown field all; remove it"),
    ("a value that cannot be", "{image: set-namespace, configMap: {namespace: Web.}}",
     ("set-namespace: 'Web.' is not a valid namespace name; use at most 63 lower case letters,"
      " digits and dashes")),
    ("no script", "{image: 'starlark:v0.5', configMap: {a: b}}",
     "starlark: source is missing or not a string; write the script there"),
    ("an expression's key that it does not have",
     "{image: set-image, configMapExprs: [{key: nam, valueExpr: target.metadata.name}]}",
     "set-image: unknown field nam; did you mean name?"),
]  # fmt: skip


@pytest.mark.parametrize(("_", "entry", "problem"), FUNCTIONS, ids=[row[0] for row in FUNCTIONS])
def test_a_function_s_configuration_with(company: Fleet, _, entry: str, problem: str):
    pipeline = f"stageExpr: target.metadata.labels.tier\n      pipeline: {{mutators: [{entry}]}}"
    [line] = lines(company, "other.yaml", edited((STAGE_EXPR, pipeline)))
    field = "spec.targets[0].template.pipeline.mutators[0].configMap: "
    assert f"10: UpstreamPolicy/other: {field}{problem}" in line


def test_function_values_from_expressions_are_not_evaluated_yet(company: Fleet):
    entry = "{image: set-namespace, configMapExprs: [{keyExpr: \"'namespace'\", value: web}]}"
    pipeline = f"stageExpr: target.metadata.labels.tier\n      pipeline: {{mutators: [{entry}]}}"
    assert lines(company, "other.yaml", edited((STAGE_EXPR, pipeline))) == []


def test_a_variant_s_functions_are_read_too(company: Fleet):
    variant = (
        "apiVersion: fanout.dev/v1alpha1\nkind: PackageVariant\nmetadata: {name: web}\nspec:\n"
        "  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}\n"
        "  downstream: {repository: edge, package: web}\n"
        "  pipeline: {mutators: [{image: set-image, configMap: {tag: v1}}]}\n"
    )
    [line] = lines(company, "variant.yaml", variant)
    assert line.startswith(
        "7: PackageVariant/web: spec.pipeline.mutators[0].configMap: set-image: "
    )


def test_a_directory_that_is_not_there_is_a_wrong_command_line(company: Fleet):
    missing = company.root / "polices"
    for verb in ("validate", "sweep", "plan"):
        result = company.run(verb, "-f", str(missing))
        assert (result.code, result.out) == (1, "")
        assert result.err == (
            f"there is no file or directory {missing}; check -f and FANOUT_FILES\n"
        )


EMPTY = [
    ("nothing at all", {}, "no objects"),
    ("files of other names", {"policy.yaml.txt": POLICY, "README.md": "# none"}, "no objects"),
    ("empty documents", {"a.yaml": "---\n---\n"}, "no objects"),
    ("cluster objects alone", {"a.yaml": "apiVersion: v1\nkind: A\nmetadata: {name: a}\n"},
     "1 object, none of fanout's kinds"),
]  # fmt: skip


@pytest.mark.parametrize(("_", "files", "reason"), EMPTY, ids=[row[0] for row in EMPTY])
@pytest.mark.parametrize("output", ["table", "json"])
def test_a_directory_without_objects_of_fanout_is_an_error(
    tmp_path: Path, _, files: dict[str, str], reason: str, output: str
):
    fleet = Fleet(tmp_path, policies="elsewhere")
    (tmp_path / "elsewhere").mkdir()
    for name, text in files.items():
        fleet.write(name, text)
    result = fleet.run("validate", "-o", output)
    assert (result.code, result.out) == (1, "" if output == "table" else "[]\n")
    assert result.err == (
        f"{tmp_path / 'elsewhere'}: nothing to validate: {reason}; check"
        " -f; files end in .yaml, .yml or .json\n"
    )


def test_a_reference_to_an_invalid_object_is_no_error(company: Fleet):
    path = company.root / company.policies
    promotion = PROMOTION.replace("everything", "narrow").replace('["*"]', "[broken]", 1)
    path.joinpath("narrow.yaml").write_text(promotion.replace('["*"]', "[dev, canary]"))
    path.joinpath("tabs.yaml").write_text("")
    try:
        broken = edited(("name: other", "name: broken"), ("  stages:", "  stage:"))
        [first, *_] = findings = lines(company, "broken.yaml", broken)
        assert "UpstreamPolicy/broken: spec.stage: unknown field; did you mean stages?" in first
        assert not any("there is no UpstreamPolicy" in line for line in findings)
        result = company.run("validate")
        assert "narrow.yaml:5: PromotionPolicy/narrow: spec.policies[0]: there is no" in result.out
        company.write("tabs.yaml", "a:\n\t- b\n")
        result = company.run("validate")
        assert "tabs.yaml" in result.out
        assert "there is no UpstreamPolicy" not in result.out
    finally:
        company.remove("narrow.yaml")
        company.remove("tabs.yaml")


def warned(fleet: Fleet) -> list[str]:
    result = fleet.run("validate")
    assert result.code == 0, result.out
    return [line for line in result.out.splitlines() if "spec.targets[0].objectSelector: " in line]


NOTHING_MATCHES = [
    ("a label that no object has", ("kind: Cluster}", "kind: Cluster, matchLabels: {tier: x}}"),
     "0 of 3 Cluster objects match, so no variant is created; compare its labels and name"),
    ("a name that no object has", ("kind: Cluster}", "kind: Cluster, name: amss}"),
     "0 of 3 Cluster objects match, so no variant is created; "),
    ("a kind that there is not", ("kind: Cluster}", "kind: Clusters}"),
     "there is no Clusters.infra.example.com in namespace default and none without a namespace; "),
    ("a group that there is not", ("infra.example.com/v1", "infra.example.org/v1"),
     "there is no Cluster.infra.example.org in namespace default and none without a namespace; "),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "edit", "words"), NOTHING_MATCHES, ids=[row[0] for row in NOTHING_MATCHES]
)
def test_a_selector_that_chooses_nothing_is_reported(
    tmp_path: Path, _: str, edit: tuple[str, str], words: str
):
    fleet = Fleet.build(tmp_path)
    assert warned(fleet) == []
    path = fleet.write("policy.yaml", POLICY.replace(*edit, 1))
    [line] = warned(fleet)
    place = f"warning: {path}:7: UpstreamPolicy/monitoring: spec.targets[0].objectSelector: "
    assert line.startswith(f"{place}{words}")
    assert line in fleet.plan().err.splitlines()


def test_the_version_of_a_selector_does_not_count(tmp_path: Path):
    fleet = Fleet.build(tmp_path)
    fleet.write("policy.yaml", POLICY.replace("infra.example.com/v1", "infra.example.com/v2", 1))
    assert warned(fleet) == []
    assert len(fleet.targets()) == 3


def test_policies_without_any_object_beside_them_are_validated_all_the_same(tmp_path: Path):
    fleet = Fleet.build(tmp_path)
    for name in ("ams", "ber", "cph"):
        fleet.remove(f"site-{name}.yaml")
    assert warned(fleet) == []


def test_an_approval_that_expires_after_nothing_expires_never_and_is_reported(company: Fleet):
    check = "{name: ok, approval: {from: [sre], expires: 0s}}"
    text = edited(("{name: dev, ", f"{{name: dev, requires: [{check}], "))
    path = company.write("other.yaml", text)
    result = company.run("validate")
    company.remove("other.yaml")
    assert result.code == 0
    place = "UpstreamPolicy/other: spec.stages[0].requires[0].approval.expires"
    assert f"warning: {path}:15: {place}: 0 means no limit: approvals never expire; " in (
        result.out
    )


def test_a_dash_is_standard_input(company: Fleet, monkeypatch: pytest.MonkeyPatch):
    def piped(text: str, *more: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        findings = company.run("validate", "-f", "-", *more, files=False)
        return findings.code, findings.out + findings.err

    code, output = piped(POLICY.replace("kind: Cluster}", "kinds: Cluster}"))
    assert code == 2
    assert output.startswith(
        "-:7: UpstreamPolicy/monitoring: spec.targets[0].objectSelector.kinds: "
    )
    code, output = piped("")
    assert code == 1
    assert "nothing to validate: no objects" in output
    code, output = piped(edited(), "-f", str(company.root / company.policies))
    assert code == 0, output
    code, output = piped(POLICY, "-f", str(company.root / company.policies))
    assert code == 2
    assert "UpstreamPolicy/monitoring: metadata.name: " in output
    assert "-:3" in output


CONFIGURATION = """\
apiVersion: fanout.dev/v1alpha1
kind: FanoutConfiguration
forges:
- {host: git.example.com, type: gitea, secretRef: {name: token}, webhookSecretRef: {name: hook}}
checkSecrets:
- {name: metrics, addresses: ["https://prometheus.example.com"]}
notifications:
- {name: chat, url: "https://chat.example.com", secretRef: {name: chat},
   policies: [monitoring, monitorng]}
- {name: log, url: "https://log.example.com", secretRef: {name: key}}
"""


def test_secrets_and_policies_that_the_configuration_names(company: Fleet, monkeypatch):
    for name, content in (("TOKEN", "bot:x"), ("KEY", "-----BEGIN OPENSSH PRIVATE KEY-----\nx")):
        monkeypatch.setenv(f"FANOUT_SECRET_{name}", content)
    (company.root / "fanout.yaml").write_text(CONFIGURATION)
    config = f"{company.root}/fanout.yaml"
    where = f"warning: {config}:{{}}: FanoutConfiguration/fanout: {{}}: {{}}".format

    def missing(name: str) -> str:
        path = company.root / company.state / "secrets" / name
        variable = f"FANOUT_SECRET_{name.upper()}"
        return (
            f"secret '{name}' was not found; set the environment variable {variable}, or write the"
            f" file {path}"
        )

    result = company.run("validate", "--config", config)
    assert [it for it in result.out.splitlines() if "FanoutConfiguration" in it] == [
        where(4, "forges[0].webhookSecretRef.name", missing("hook")),
        where(6, "checkSecrets[0].name", missing("metrics")),
        where(8, "notifications[0].secretRef.name", missing("chat")),
        where(
            9,
            "notifications[0].policies[1]",
            "there is no UpstreamPolicy or PackageVariant monitorng; did you mean monitoring?",
        ),
        where(
            10,
            "notifications[1].secretRef.name",
            "secret 'key' has no text to sign with; write a token to it, not an SSH key",
        ),
    ]
    assert result.code == 0


def test_strict_refuses_warnings_but_for_secrets_that_another_machine_may_have(tmp_path):
    fleet = Fleet.build(tmp_path)

    def validate(*options: str) -> tuple[int, str]:
        result = fleet.run("validate", *options)
        return result.code, result.out.splitlines()[-1]

    fleet.write("policy.yaml", POLICY)  # with a stage without checks
    assert validate("--strict") == (2, "1 warning refused by --strict")
    assert validate() == (0, "11 objects are valid, with 1 warning")
    checked = "soak: 1h}, verification: [{name: e2e, report: {}}]"
    fleet.write("policy.yaml", POLICY.replace("soak: 1h}", checked))
    repository = (
        "kind: Repository\nmetadata: {name: far}\nspec: {url: https://git.example.com/far.git"
    )
    text = f"apiVersion: fanout.dev/v1alpha1\n{repository}, secretRef: {{name: far}}}}\n"
    fleet.write("far.yaml", text)
    assert validate("--strict") == (0, "12 objects are valid, with 1 warning")
