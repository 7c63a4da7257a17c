"""Each option that verbs share changes what each verb does that has it; other verbs refuse it."""

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from fleet import PACKAGE, PLAIN, PROMOTION, Fleet

from fanout.cli.input.options import SharedOption
from fanout.cli.main import cli, run_arguments

TARGETS = "[{name: edge, packageNames: [sites/ams, sites/ber]}]"
BY = ("--by", "Ann <ann@example.com>", "--dry-run")
WHY = ("--reason", "as agreed", *BY)
STAGE = ("monitoring", "--stage", "dev")
INIT = ("shop", "--upstream", "/u", "--package", "app", "--downstream", "/d")
ORIGIN = ("--origin", "{package}")
SIDES = ("--upstream", "{package}", "--local", "{linked}")
AWAY = """\
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {name: away}
spec: {url: "https://git.invalid/away.git", secretRef: {name: token}}
"""
OPEN = """\
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: open}
spec: {policies: ["*"]}
---
apiVersion: fanout.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: noon}
spec: {policies: ["*"], windows: [{deny: {schedule: "0 12 * * *", duration: 1h}}]}
"""
SCENARIO = """\
apiVersion: fanout.dev/v1alpha1
kind: Scenario
metadata: {name: first}
spec:
  policy: monitoring
  now: 2026-03-02T09:00:00Z
  revisions: [v1]
  variants: [{name: ams, stage: dev}]
  expect: [{stages: [{stage: dev, candidate: v1}]}]
"""
WAREHOUSE = """\
apiVersion: kargo.akuity.io/v1alpha1
kind: Warehouse
metadata: {name: images}
spec: {subscriptions: [{image: {repoURL: example.com/app}}]}
"""
PORCH = """\
apiVersion: config.porch.kpt.dev/v1alpha1
kind: Repository
metadata: {name: edge}
spec: {type: git, deployment: true, git: {repo: "https://git.example.com/edge.git"}}
"""

# Arguments of each verb. `{package}` and other names are directories of the fleet.
LINES: dict[str, Sequence[str]] = {
    "status": (),
    "validate": (),
    "get": ("variants",),
    "plan": (),
    "explain": ("monitoring",),
    "forecast": ("monitoring",),
    "graph": ("monitoring",),
    "history": ("monitoring",),
    "diff": ("edge-0",),
    "render": ("edge-0",),
    "sweep": ("--dry-run",),
    "promote": (*STAGE, *WHY),
    "rollback": ("--yes", *STAGE, "--revision", "v1", *WHY),
    "skip": (*STAGE, "--variant", "edge-0", *WHY),
    "retry": (*STAGE, *WHY),
    "remove": ("monitoring", "--all-gone", *WHY),
    "controller": ("--kubeconfig", "none"),  # which does not exist
    "run": ("--listen", "nowhere"),  # which is no address, so that it ends before its first pass
    "report": (*STAGE, "--check", "e2e", "--status", "passed", "--revision", "v1", *BY),
    "approve": (*STAGE, "--revision", "v2", *BY),
    "revoke": ("monitoring", "nothing", *BY),
    "withdraw": ("monitoring", "nothing", *WHY),
    "accept-records": ("monitoring", *WHY),
    "suspend": ("monitoring", *WHY),
    "resume": ("monitoring", *WHY),
    "resolve": (*STAGE, *WHY),
    "init": (*INIT, "--dry-run", "-o", "yaml"),
    "create repository": ("edge", "--url", "/edge"),
    "create policy": ("web", "--upstream", "u", "--package", "app", "--downstream", "dev=edge"),
    "create promotion-policy": ("automatic",),
    "package merge": (*ORIGIN, *SIDES, "--to", "{package}"),
    "package render": ("{package}",),
    "package diff": SIDES,
    "package validate": ("{package}",),
    "test": ("{scenarios}",),
    "schedule next": ("61 * * * *",),
    "schedule windows": ("open", "noon"),
    "schema": ("Nothing",),
    "crds": (),
    "import porch": ("-f", "{porch}"),
    "import kargo": ("-f", "{kargo}"),
    "docs": ("nothing",),
    "version": (),
    "completion": ("bash",),
    "help": (),
}
# What makes a line fail that does not fail by itself, and cannot with a file that does not exist.
FAILURES = {
    "init": ("--stages", "Dev"),
    "crds": ("--service-account", "a/b"),
    "create repository": ("--label", "x"),
    "create policy": ("--stages", "dev"),
    "create promotion-policy": ("--approver", "x"),
}
# Verbs that take -f and need none.
WITHOUT_INPUT = ("create ", "import ")

MISSING = "none"  # a path that does not exist
RECORDS = ("--records", "other.git")
# What each option is compared with: arguments of both lines, environment of both, and arguments of
# one of them.
EFFECTS: dict[str, tuple[Sequence[str], Mapping[str, str], Sequence[str]]] = {
    "files": ((), {}, ("-f", MISSING)),
    "context": ((), {}, ("--context", MISSING)),
    "kubeconfig": ((), {}, ("--kubeconfig", MISSING)),
    "namespace": ((), {}, ("--namespace", "elsewhere")),
    "all_namespaces": ((), {"FANOUT_NAMESPACE": "elsewhere"}, ("-A",)),
    "config": ((), {}, ("--config", MISSING)),
    "state_dir": ((), {}, ("--state-dir", "other")),
    "records": ((), {}, RECORDS),
    "new_records": (RECORDS, {}, ("--new-records",)),
    "verbosity": ((), {}, ("-v",)),
    "quiet": ((), {}, ("-q",)),
    "color": ((), {}, ("--color", "always")),
}


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and the files that it left in its directory."""

    code: int
    out: str
    err: str
    files: frozenset[str]


class TerminalText(io.StringIO):
    """Text that is written to what looks like a terminal."""

    def isatty(self) -> bool:
        return True


def list_commands(
    group: click.Group = cli, words: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from list_commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


def shared_options(command: click.Command) -> list[str]:
    return [str(it.name) for it in command.params if isinstance(it, SharedOption) and not it.hidden]


COMMANDS = dict(list_commands())
# Of a verb that does nothing without an API server: tests/kube/test_controller.py has them.
ON_A_SERVER = {("controller", it) for it in ("context", "kubeconfig", "state_dir", "quiet")}
ROWS = [
    (verb, option)
    for verb, it in COMMANDS.items()
    for option in shared_options(it)
    if (verb, option) not in ON_A_SERVER
]


def build_company(root: Path, count: int) -> Fleet:
    """Return variants in so many repositories, published at v1; v2 is released."""
    made = Fleet(root)
    repositories = [f"edge-{number}" for number in range(count)]
    for name in ("blueprints", *repositories):
        made.repository(name)
    made.release("v1")
    targets = ", ".join(f"{{name: {name}}}" for name in repositories)
    made.write("policy.yaml", PLAIN.replace(TARGETS, f"[{targets}]"))
    made.write("promotion.yaml", PROMOTION)
    made.settle()
    made.release("v2")
    made.write("away.yaml", AWAY)
    made.write("promotion-more.yaml", OPEN)
    for name, text in (("porch", PORCH), ("kargo", WAREHOUSE), ("scenarios", SCENARIO)):
        (made.root / name).mkdir()
        (made.root / name / "objects.yaml").write_text(text)
    for name in ("package", "linked"):
        (made.root / name).mkdir()
        (made.root / name / "Kptfile").write_text(PACKAGE["Kptfile"])
    (made.root / "linked" / "link").symlink_to("Kptfile")
    (made.root / made.state / "secrets").mkdir()
    (made.root / made.state / "secrets" / "token").write_text("t")
    return made


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """A company of one repository, because each new state directory gets mirrors of all."""
    return build_company(tmp_path_factory.mktemp("company"), 1)


@pytest.fixture(scope="module")
def wide_fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """A company of eight repositories: a task of eight steps has a progress bar."""
    return build_company(tmp_path_factory.mktemp("wide"), 8)


@pytest.fixture
def run(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run one command line in an empty directory, with stderr on a terminal if `terminal`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FANOUT_STATE_DIR", str(fleet.root / fleet.state))

    def run_line(line: Sequence[str], *, terminal: bool = False) -> Outcome:
        if line[0] not in ("run", "controller"):  # which refuses another time than the present one
            monkeypatch.setenv("FANOUT_NOW", fleet.now.isoformat())
        out, err = io.StringIO(), TerminalText() if terminal else io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_arguments(line)
        files = frozenset(str(it.relative_to(tmp_path)) for it in tmp_path.rglob("*"))
        return Outcome(code, out.getvalue(), err.getvalue(), files)

    return run_line


@pytest.fixture(scope="module")
def outcomes() -> dict[tuple[str, ...], Outcome]:
    """What lines came to so far; most options of a verb are compared with the same line."""
    return {}


def build_line(fleet: Fleet, verb: str, option: str) -> list[str]:
    """The arguments of a verb; for options of errors, of a line that fails."""
    names = {it.name: str(it) for it in fleet.root.iterdir()}
    line = [*verb.split(), *(it.format(**names) for it in LINES[verb])]
    options = shared_options(COMMANDS[verb])
    if "files" in options and not verb.startswith(WITHOUT_INPUT):
        line += ["-f", names["policies"]]
    if option not in ("verbosity", "color"):
        return line
    default = ("-f", MISSING) if "files" in options else ("--config", MISSING)
    return [*line, *FAILURES.get(verb, default if {"files", "config"} & {*options} else ())]


def test_every_command_has_a_line():
    assert LINES.keys() == COMMANDS.keys()


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_line_that_is_run_again_prints_the_same(fleet, run, outcomes, verb: str):
    line = build_line(fleet, verb, "")
    outcomes[*line] = run(line)
    assert run(line) == outcomes[*line]


CHANGES = [row for row in ROWS if row[1] != "quiet"]


@pytest.mark.parametrize(("verb", "option"), CHANGES, ids=[" ".join(row) for row in CHANGES])
def test_an_option_changes_what_the_verb_does(
    fleet, run, outcomes, monkeypatch, verb: str, option: str
):
    both, environment, only = EFFECTS[option]
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    line = [*build_line(fleet, verb, option), *both]
    key = (*line, *environment)
    if key not in outcomes:
        outcomes[key] = run(line)
    assert run([*line, *only]) != outcomes[key]


@pytest.mark.parametrize("verb", [verb for verb, option in ROWS if option == "quiet"])
def test_quiet_takes_away_what_is_no_result(wide_fleet, run, monkeypatch, verb: str):
    monkeypatch.setenv("FANOUT_STATE_DIR", str(wide_fleet.root / wide_fleet.state))
    line = build_line(wide_fleet, verb, "quiet")
    loud, quiet = (run([*line, *flag], terminal=True) for flag in ((), ("-q",)))
    assert (quiet.code, quiet.out) == (loud.code, loud.out)
    assert len(quiet.err) < len(loud.err)


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_verb_refuses_the_options_that_it_does_not_have(fleet, run, verb: str):
    for option in EFFECTS.keys() - {*shared_options(COMMANDS[verb])}:
        flag = EFFECTS[option][2]
        refused = run([*build_line(fleet, verb, ""), *flag])
        assert (refused.code, refused.out) == (1, ""), flag
        assert f"No such option '{flag[0]}'" in refused.err


OF_A_CLUSTER = ("context", "kubeconfig")
WITH_FILES = [verb for verb, it in COMMANDS.items() if "files" in shared_options(it)]
ON_CLUSTERS = [verb for verb in WITH_FILES if "context" in shared_options(COMMANDS[verb])]


@pytest.mark.parametrize("verb", ON_CLUSTERS)
def test_options_of_a_cluster_may_stand_before_the_verb(run, verb: str):
    for option in OF_A_CLUSTER:
        flag = EFFECTS[option][2]
        words = [*verb.split(), *LINES[verb]]
        before = run([*flag, *words])
        assert before.code != 0
        assert before == run([*words, *flag])


@pytest.mark.parametrize("verb", [it for it in WITH_FILES if it not in ON_CLUSTERS])
def test_a_verb_of_files_alone_ignores_no_option_of_a_cluster(fleet, run, verb: str):
    for option in OF_A_CLUSTER:
        flag = EFFECTS[option][2]
        line = build_line(fleet, verb, "")
        refused = run([*flag, *line])
        assert (refused.code, refused.out) == (1, "")
        assert f"No such option '{flag[0]}'" in refused.err


@pytest.mark.parametrize("verb", [it for it in COMMANDS if it not in (*WITH_FILES, "controller")])
def test_a_verb_without_objects_has_no_use_for_a_cluster(fleet, run, verb: str):
    line = build_line(fleet, verb, "")
    assert run(["--context", MISSING, *line]) == run(line)


@pytest.mark.parametrize("option", ["--context", "--kubeconfig"])
@pytest.mark.parametrize(
    ("verb", "counterpart"),
    [
        ("sweep", "fanout controller"),
        ("run", "fanout controller"),
        ("validate", "kubectl apply --dry-run=server"),
    ],
)
def test_a_verb_of_files_names_what_does_it_on_a_cluster(run, verb, counterpart, option):
    refused = run([verb, option, "x"])
    assert (refused.code, refused.out) == (1, "")
    message = " ".join(refused.err.split())
    assert f"No such option '{option}'. `{counterpart}" in message
    assert "Did you mean" not in message
