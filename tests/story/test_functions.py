"""Validators and programs in whole passes: what fails is one variant's, and says by what."""

import os
from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet

from fanout.cli.settings import Settings
from fanout.cli.startup import open_program
from fanout.reconcile.pass_scope import PassMode

SHOUT = """\
#!/bin/sh
# puts the configured text in place of SHORT; fails, warns or lingers where the package says so
list=$(cat)
case "$list" in *"retention: fail"*) echo "too short" >&2; exit 3;; esac
case "$list" in *"retention: hang"*) sleep 60;; esac
case "$list" in *"retention: loud"*) exec yes;; esac
case "$list" in *"retention: babble"*) echo 'kind: [of'; exit;; esac
case "$list" in *"retention: silent"*) exit;; esac
moved() { printf '%s\\n' "$list" | sed "s#/path: $1#/path: $2#"; exit; }
case "$list" in *"retention: roam"*) moved map.yaml ../map.yaml;; esac
case "$list" in *"retention: twice"*) moved '.*' one.yaml;; esac
text=$(printf '%s\\n' "$list" | sed -n 's/^    text: //p' | tail -n 1)
printf '%s\\n' "$list" | sed "s/SHORT/$text/"
case "$list" in *'retention: "7d"'*)
  printf 'results:\\n- {message: a week is short, severity: warning}\\n';;
esac
"""
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m # kept\ndata:\n  text: SHORT # kept\n"
PIPELINE = "      pipeline:\n"
SELECTED = "selectors: [{kind: ConfigMap, name: settings}, {kind: ConfigMap, name: m}]"
MUTATOR = PIPELINE + f"        mutators: [{{exec: shout, configMap: {{text: loud}}, {SELECTED}}}]\n"
VALIDATOR = PIPELINE + "        validators: [{image: kubeconform, configMap: {strict: 'true'}}]\n"
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: prometheus}
spec:
  replicas: 1
  selector: {matchLabels: {a: b}}
  template: {spec: {containers: [{name: a, image: "a:1"}]}}
"""


@company
def fleet(root: Path) -> Fleet:
    made = Fleet.build(root)
    made.release("v2", {"deployment.yaml": WEB, "map.yaml": MAP})
    return made


def with_pipeline(fleet, pipeline):
    fleet.write("policy.yaml", POLICY.replace("      injectors:", f"{pipeline}      injectors:"))


def program(fleet, script=SHOUT, name="shout"):
    path = fleet.root / "programs" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)
    return path


def configured(fleet, functions):
    """`--config` with these functions."""
    path = fleet.root / "configuration.yaml"
    path.write_text(
        f"apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\nfunctions: {functions}\n"
    )
    return ("--config", str(path))


def allowed(fleet, more=""):
    return configured(fleet, f"{{executables: [{{path: {program(fleet)}}}]{more}}}")


def drafted(fleet, site, file, repository="edge"):
    repo = fleet.repos[repository]
    [draft] = [name for name in repo.drafts() if f"/{site}/" in name]
    return repo.file(f"refs/heads/drafts/default/{draft}", f"sites/{site}/{file}")


def test_a_program_that_is_allowed_changes_what_it_changes_and_nothing_else(fleet):
    with_pipeline(fleet, MUTATOR)
    swept = fleet.sweep("--drafts-only", *allowed(fleet))
    assert swept.code == 0
    assert drafted(fleet, "ams", "map.yaml") == MAP.replace("SHORT", "loud")
    assert drafted(fleet, "ams", "deployment.yaml") == WEB
    kptfile = drafted(fleet, "ams", "Kptfile")
    assert "  - exec: shout\n" in kptfile
    assert "    selectors:\n    - kind: ConfigMap\n      name: settings\n" in kptfile


def test_warnings_of_a_program_are_reported_once_for_all_variants(fleet):
    with_pipeline(fleet, MUTATOR)
    swept = fleet.sweep("--drafts-only", *allowed(fleet))
    [line] = [line for line in swept.err.splitlines() if "a week is short" in line]
    assert line.startswith("warning: monitoring: shout: a week is short (monitoring-")


BROKEN = [
    ("fails", "", "shout: it ended with status 3: too short"),
    ("hangs", ", wallSeconds: 1", "shout: it took longer than 1 s"),
    ("is endless", ", outputMiB: 1", "shout: its output is longer than 1,048,576 bytes"),
    ("prints garbage", "", "shout: its output cannot be read: YAML syntax"),
    ("prints nothing", "", "shout: its output is not a ResourceList"),
    ("writes outside the package", "", "shout: ConfigMap/m: the path '../map.yaml'"),
    ("returns two objects at one index", "", "shout: it returns two objects at one.yaml, index 0"),
]
WORDS = dict(
    zip(
        [row[0] for row in BROKEN],
        ["fail", "hang", "loud", "babble", "silent", "roam", "twice"],
        strict=True,
    )
)
BREAKS = pytest.mark.parametrize(
    ("word", "limits", "problem"),
    [(WORDS[row[0]], *row[1:]) for row in BROKEN],
    ids=[f"one that {row[0]}" for row in BROKEN],
)


@BREAKS
def test_a_program_that_breaks_for_one_target_is_that_target_s_failure(
    fleet, word, limits, problem
):
    with_pipeline(fleet, MUTATOR)
    fleet.site("ber", "dev", "edge", retention=word)
    swept = fleet.sweep("--drafts-only", *allowed(fleet, limits), "-o", "json")
    [failed] = swept.json["failedVariants"]
    assert failed["reason"] == "RenderFailed"
    assert problem in failed["message"]
    assert "pipeline.mutators[0]" in failed["message"]
    assert drafted(fleet, "ams", "map.yaml") == MAP.replace("SHORT", "loud")
    assert not [name for name in fleet.repos["edge"].drafts() if "/ber/" in name]


def test_a_program_that_breaks_leaves_what_is_published_as_it_was(fleet):
    with_pipeline(fleet, MUTATOR)
    config = allowed(fleet)
    for _ in range(2):
        assert fleet.sweep(*config).code == 0
    before = fleet.published()
    assert before
    for word in ("fail", "babble", "roam", "twice"):
        fleet.site("ams", "dev", "edge", retention=word)
        swept = fleet.sweep(*config, "-o", "json")
        assert [failed["reason"] for failed in swept.json["failedVariants"]] == ["RenderFailed"]
        assert fleet.published() == before
    fleet.site("ams", "dev", "edge", retention="30d")
    for _ in range(2):
        assert fleet.sweep(*config).code == 0
    assert "30d" in fleet.repos["edge"].file("main", "sites/ams/settings.yaml")


def test_an_error_of_a_validator_fails_the_variant_and_explain_names_the_place(fleet):
    with_pipeline(fleet, VALIDATOR)
    fleet.release("v3", {"deployment.yaml": WEB.replace("replicas: 1", "replicas: one")})
    swept = fleet.sweep("--drafts-only", "-o", "json")
    problem = (
        "kubeconform: deployment.yaml:5: Deployment/prometheus: spec.replicas: 'one' is not a whole"
    )
    assert len(swept.json["failedVariants"]) == 3
    assert all(problem in failed["message"] for failed in swept.json["failedVariants"])
    assert fleet.repos["edge"].drafts() == []
    assert problem in fleet.run("explain", "monitoring/dev").out
    fleet.release("v4", {"deployment.yaml": WEB})
    assert fleet.sweep("--drafts-only").code == 0
    assert "  validators:\n  - image: kubeconform\n" in drafted(fleet, "ams", "Kptfile")


UNAVAILABLE = [
    ("an executable that nobody allowed", "exec: other", "the executable other is not allowed"),
    ("an image that nobody allowed", "image: gatekeeper", "gatekeeper is not available"),
]


@pytest.mark.parametrize(
    ("function", "problem"), [row[1:] for row in UNAVAILABLE], ids=[row[0] for row in UNAVAILABLE]
)
def test_an_unavailable_function_is_a_reason_and_other_policies_are_served(
    fleet, function, problem
):
    with_pipeline(fleet, f"{PIPELINE}        mutators: [{{{function}}}]\n")
    fleet.policy("second")
    swept = fleet.sweep("--drafts-only", *allowed(fleet), "-o", "json")
    assert {failed["reason"] for failed in swept.json["failedVariants"]} == {"FunctionUnavailable"}
    assert all(problem in failed["message"] for failed in swept.json["failedVariants"])
    assert all("/second" in draft for draft in fleet.repos["edge"].drafts())
    assert fleet.repos["edge"].drafts()


def test_an_image_is_run_by_the_runtime_that_is_configured(fleet, monkeypatch):
    """With a stand-in for podman: it is the function itself."""
    script = SHOUT.replace("list=$(cat)", 'echo "$*" >> "$HOME/told"\nlist=$(cat)')
    runtime = program(fleet, script, "podman")
    home = fleet.root / "home"
    home.mkdir()
    monkeypatch.setenv("PATH", f"{runtime.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(home))
    with_pipeline(fleet, MUTATOR.replace("exec: shout", "image: example.com/shout, tag: v1"))
    config = configured(fleet, '{images: ["example.com/shout:v1"], containerRuntime: podman}')
    assert fleet.sweep("--drafts-only", *config).code == 0
    assert drafted(fleet, "ams", "map.yaml") == MAP.replace("SHORT", "loud")
    arguments = (home / "told").read_text().splitlines()
    assert len(arguments) <= 3
    assert all("--network=none" in line and "--read-only" in line for line in arguments)


def test_programs_run_only_where_pipelines_name_them_and_only_for_what_is_rendered(fleet):
    path = program(fleet)
    config = fleet.root / "configuration.yaml"
    configured(fleet, f"{{executables: [{{path: {path}}}]}}")
    settings = Settings(
        files=(fleet.root / fleet.policies,),
        state_dir=fleet.root / fleet.state,
        config=config,
        now_override=fleet.now,
    )

    def counted():
        with open_program(settings) as opened:
            opened.sweep(PassMode(publish=False))
            counts = opened.world.counters.read()
            return counts["programs"], counts["renders"]

    assert counted() == (0, 3)
    with_pipeline(fleet, MUTATOR)
    assert counted() == (3, 3)
    assert counted() == (0, 0)
    path.write_text(SHOUT + "# changed\n")
    assert counted() == (3, 3)
