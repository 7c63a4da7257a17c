"""A shell is offered what files declare; nothing is written for it, and no repository is asked."""

from operator import itemgetter
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from fleet import Fleet

from fanout.api.kind_registry import CUSTOM_RESOURCES
from fanout.api.object_meta import KRMObject
from fanout.cli.completion_index import read_index
from fanout.cli.input.completion import ALIASES, RESOURCE_TYPES
from fanout.cli.main import cli

HAND_WRITTEN = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: lone}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {tag: v1}}
  downstream: {repository: core, package: lone}
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    made = Fleet.build(tmp_path_factory.mktemp("company"))
    made.policy("logging")
    made.write("lone.yaml", HAND_WRITTEN)
    made.write("broken.yaml", "a: [\n")
    return made


OFFERED = [
    ("verbs", ["pl"], "plan"),
    ("nouns", ["get", ""], " ".join(RESOURCE_TYPES)),
    ("policies for records", ["get", "records", "l"], "logging lone"),
    ("nouns that begin so", ["get", "s"], "stages"),
    ("short names of kinds", ["get", "pv"], "pvar"),
    ("names of kinds", ["get", "up"], "upol upstreampolicy upstreampolicies"),
    ("types before other names", ["get", "p"], "policies publications"),
    ("policies", ["get", "policies", ""], "logging monitoring"),
    ("policies by a short name", ["get", "upol", "m"], "monitoring"),
    ("repositories by a short name", ["get", "frepo", "c"], "core"),
    ("stages", ["get", "stages", "l"], "logging/dev logging/prod"),
    ("repositories", ["get", "repositories", ""], "blueprints core edge"),
    ("variants written by hand", ["get", "variants", ""], "lone"),
    ("no targets, which are not declared", ["get", "targets", ""], ""),
    ("what can be planned", ["plan", ""], "logging monitoring lone"),
    ("what can be swept", ["sweep", "monitoring", "l"], "logging lone"),
    ("what can be explained", ["explain", "mon"], "monitoring"),
    ("whose drafts are approved", ["approve", "l"], "logging lone"),
    ("the stage of that policy", ["promote", "logging", "--stage", ""], "dev prod"),
    ("no stage of no policy", ["promote", "nothing", "--stage", ""], ""),
    ("its stages behind a slash", ["explain", "monitoring/"], "monitoring/dev monitoring/prod"),
]


@pytest.mark.parametrize(("_", "words", "offered"), OFFERED, ids=map(itemgetter(0), OFFERED))
@pytest.mark.parametrize("before", [True, False], ids=["files first", "files from the environment"])
def test_offered(
    fleet: Fleet,
    monkeypatch: pytest.MonkeyPatch,
    before: bool,
    _: str,
    words: list[str],
    offered: str,
):
    files = str(fleet.root / "policies")
    *args, incomplete = words
    if before:
        args = ["-f", files, *args]
    else:
        monkeypatch.setenv("FANOUT_FILES", files)
    monkeypatch.chdir(fleet.root)
    paths = sorted(fleet.root.rglob("*"))
    shell = ShellComplete(cli, {}, "fanout", "_FANOUT_COMPLETE")
    assert [it.value for it in shell.get_completions(args, incomplete)] == offered.split()
    assert sorted(fleet.root.rglob("*")) == paths


@pytest.mark.parametrize("kind", CUSTOM_RESOURCES, ids=lambda it: it.__name__)
def test_each_kind_that_is_listed_has_its_names_of_a_cluster(kind: type[KRMObject]):
    names = (kind.__name__.lower(), kind.PLURAL, *kind.SHORT_NAMES)
    types = {it if it in RESOURCE_TYPES else ALIASES.get(it) for it in names}
    # PromotionPolicies are shown by none.
    assert len(types) == 1
    assert (None in types) == (kind.__name__ == "PromotionPolicy")


def test_a_folder_without_declarations_completes_no_name(tmp_path: Path):
    shell = ShellComplete(cli, {}, "fanout", "_FANOUT_COMPLETE")
    completions = shell.get_completions(["plan", "-f", str(tmp_path / "nowhere")], "")
    assert [it.value for it in completions] == []


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """A pass has seen three variants, of which one is published, and two revisions."""
    made = Fleet.build(tmp_path_factory.mktemp("observed"))
    made.sweep()
    made.release("v2")
    made.sweep()
    return made


OBSERVED = [
    ("variants of all policies", ["get", "variants", ""],
     "monitoring/ams monitoring/ber monitoring/cph"),
    ("generated names once one is begun", ["diff", "monitoring-b"], "monitoring-ber-928771694f"),
    ("variants to compare", ["diff", "monitoring/b"], "monitoring/ber"),
    ("variants to render", ["render", "monitoring/c"], "monitoring/cph"),
    ("targets", ["get", "targets", "monitoring/a"], "monitoring/ams"),
    ("variants of the policy", ["skip", "monitoring", "--variant", ""], "ams ber cph"),
    ("of its stage", ["skip", "monitoring", "--stage", "prod", "--variant", ""], "ber cph"),
    ("of no such policy", ["skip", "nothing", "--variant", ""], ""),
    ("stages and variants", ["explain", "monitoring/"],
     "monitoring/dev monitoring/prod monitoring/ams monitoring/ber monitoring/cph"),
    ("revisions, newest first", ["promote", "monitoring", "--revision", ""], "v2 v1"),
    ("checks of the stage", ["report", "monitoring", "--stage", "dev", "--check", ""], "e2e"),
    ("checks of all stages", ["approve", "monitoring", "--check", "e"], "e2e"),
    ("formats", ["get", "variants", "-o", "j"], "json jsonpath="),
]  # fmt: skip


@pytest.mark.parametrize(("_", "words", "offered"), OBSERVED, ids=map(itemgetter(0), OBSERVED))
def test_names_that_a_pass_observed_are_completed(
    observed: Fleet, _: str, words: list[str], offered: str
):
    *args, incomplete = words
    options = ["-f", str(observed.root / "policies"), "--state-dir", str(observed.root / "state")]
    shell = ShellComplete(cli, {}, "fanout", "_FANOUT_COMPLETE")
    words_offered = [it.value for it in shell.get_completions([*options, *args], incomplete)]
    assert words_offered == offered.split()


def test_a_damaged_index_offers_nothing(observed: Fleet, tmp_path: Path):
    (tmp_path / "completion.json").write_text("[")
    options = ["-f", str(observed.root / "policies"), "--state-dir", str(tmp_path)]
    shell = ShellComplete(cli, {}, "fanout", "_FANOUT_COMPLETE")
    assert shell.get_completions([*options, "diff"], "") == []


def test_a_policy_that_is_not_declared_any_more_is_forgotten(tmp_path: Path):
    made = Fleet.build(tmp_path)
    made.policy("logging")
    made.plan()
    assert "logging" in read_index(tmp_path / "state")
    made.plan("monitoring")
    assert set(read_index(tmp_path / "state")) == {"logging", "monitoring"}
    made.remove("policy-logging.yaml")
    made.plan()
    assert set(read_index(tmp_path / "state")) == {"monitoring"}
