"""A verb that is run again after it was killed: one record, and the answer of the first run."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from companies import company, copy_tree
from editing import conflict, one_site
from fleet import POLICY, Fleet
from killing import killer
from returning import BER, CPH, OFF, STAGES, WITHOUT_EXPRESSIONS, two_sites

from fanout.cli.startup import Program

WHY = ("--reason", "it is meant", "--by", "Ann <ann@example.com>")
ONE_CHECKED = POLICY.replace(
    STAGES, "  stages:\n  - {name: prod, verification: [{name: e2e, report: {}}]}\n"
)
APPROVED = POLICY.replace(
    STAGES,
    "  stages:\n  - {name: prod, requires: [{name: ok, approval: {atLeast: 1, from: [sre]}}]}\n",
)
Line = tuple[str, ...]


@company
def at_v2(root: Path) -> Fleet:
    return two_sites(root, WITHOUT_EXPRESSIONS).later(minutes=5)


@company
def failed(root: Path) -> Fleet:
    """Two sites in prod at v1, one of which has failed."""
    made = Fleet.build(root, {"ber": ("prod", "edge"), "cph": ("prod", "core")})
    made.write("policy.yaml", ONE_CHECKED)
    made.settle()
    made.later(minutes=5).report("prod", "v1", "failed", "--variant", BER)
    made.settle()
    return made.later(minutes=5)


@company
def drafted(root: Path) -> Fleet:
    """Two sites at v2, with drafts of v3 that nobody but a person publishes."""
    made = two_sites(root, WITHOUT_EXPRESSIONS)
    made.write("promotion.yaml", OFF)
    made.release("v3")
    made.later(minutes=5).settle()
    return made.later(minutes=5)


@company
def released(root: Path) -> Fleet:
    """As `drafted`, without the drafts: no pass has been made since the release."""
    made = two_sites(root)
    made.write("promotion.yaml", OFF)
    made.release("v3")
    return made.later(minutes=5)


@company
def asking(root: Path) -> Fleet:
    """Two sites with drafts of v1 that wait for an approval."""
    made = Fleet.build(root, {"ber": ("prod", "edge"), "cph": ("prod", "core")})
    made.write("policy.yaml", APPROVED)
    made.settle()
    return made.later(minutes=5)


@company
def in_conflict(root: Path) -> Fleet:
    made = one_site(root)
    conflict(made)
    return made.later(minutes=5)


@company
def with_an_orphan(root: Path) -> Fleet:
    """Two sites of which one has no target any more."""
    made = two_sites(root)
    made.write("promotion.yaml", OFF)
    made.remove("site-ber.yaml")
    return made.later(minutes=5)


PROD = ("monitoring", "--stage", "prod")
#   fixture, line
VERBS: dict[str, tuple[str, Line]] = {
    "rollback": ("at_v2", ("rollback", "--yes", *PROD, *WHY)),
    "rollback of a variant": ("at_v2", ("rollback", "--yes", *PROD, "--variant", BER, *WHY)),
    "promote": ("drafted", ("promote", *PROD, *WHY)),
    "promote without drafts": ("released", ("promote", *PROD, *WHY)),
    "skip": ("failed", ("skip", *PROD, "--variant", BER, *WHY)),
    "retry": ("failed", ("retry", *PROD, *WHY)),
    "report": ("failed", ("report", *PROD, "--check", "e2e", "--status", "passed", "--revision",
                          "v1", "--by", "Ci <ci@example.com>")),
    "approve": ("asking", ("approve", *PROD, "--revision", "v1", *WHY[2:])),
    "suspend": ("at_v2", ("suspend", *PROD, *WHY)),
    "resolve": ("in_conflict", ("resolve", "monitoring", "--take", "local", *WHY)),
    "remove": ("with_an_orphan", ("remove", "monitoring", "--all-gone", "--edited", *WHY)),
}  # fmt: skip


def records(fleet: Fleet) -> list[str]:
    items = fleet.run("get", "records", "-o", "json").items
    return [item["metadata"]["name"] for item in items]


def read_outcome(fleet: Fleet) -> object:
    """What is there when all is done that follows: contents of branches, tags, states, records."""
    fleet.settle()
    trees = {
        name: {ref: repo.object_id(f"{ref}^{{tree}}") for ref in repo.refs()}
        for name, repo in fleet.repos.items()
    }
    return trees, fleet.states(), records(fleet)


class Killed(BaseException):
    """Ends a command as nothing that it catches does."""


@contextmanager
def killed_after_its_record(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within: a process ends before the first pass or removal that follows its record."""

    def end(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Program, "sweep", end)
        patch.setattr("fanout.cli.verbs.remove.remove_by_level", end)
        yield


@pytest.mark.parametrize("case", VERBS)
def test_killed_after_its_record_it_answers_as_undisturbed(
    case: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
):
    name, line = VERBS[case]
    fleet: Fleet = request.getfixturevalue(name)
    kept = fleet.root.with_name(f"{fleet.root.name}-kept")
    copy_tree(str(fleet.root), str(kept))
    first = fleet.run(*line)
    assert first.code == 0, first.err
    wanted = read_outcome(fleet)
    shutil.rmtree(fleet.root)
    copy_tree(str(kept), str(fleet.root))
    before = records(fleet)
    with killed_after_its_record(monkeypatch), suppress(Killed):
        fleet.run(*line)
    assert len(records(fleet)) == len(before) + 1
    again = fleet.run(*line)
    assert again.code == 0, again.err
    assert "already" in again.out + again.err
    assert read_outcome(fleet) == wanted
    shutil.rmtree(kept)


@pytest.mark.parametrize("case", [it for it in VERBS if not it.startswith("promote")])
def test_run_again_after_it_was_done_it_answers_the_same(case: str, request: pytest.FixtureRequest):
    name, line = VERBS[case]
    fleet: Fleet = request.getfixturevalue(name)
    assert fleet.run(*line).code == 0
    recorded = records(fleet)
    again = fleet.later(minutes=2).run(*line)
    assert again.code == 0, again.err
    assert "already" in again.out + again.err
    assert records(fleet) == recorded


def test_a_promotion_that_is_carried_out_leaves_nothing_to_do(drafted: Fleet):
    line = VERBS["promote"][1]
    assert drafted.run(*line).code == 0
    recorded = records(drafted)
    again = drafted.later(minutes=2).run(*line)
    assert (again.code, records(drafted)) == (0, recorded)
    assert drafted.published() == {BER: "v3", CPH: "v3"}


@pytest.mark.diagonal
@pytest.mark.parametrize("case", ["rollback", "promote", "suspend"])
def test_killed_anywhere_and_run_again_it_comes_to_the_same(
    case: str, request: pytest.FixtureRequest
):
    """With `kill -9`, before each git process and each pack."""
    name, line = VERBS[case]
    fleet: Fleet = request.getfixturevalue(name)
    driver = killer(fleet)
    assert driver.everywhere(list(line), lambda: read_outcome(fleet)) > 5


#   what is said in between, how many minutes pass, the line that is new then
NEW: dict[str, tuple[str, tuple[Line, ...], int, str]] = {
    "another reason": ("drafted", (("suspend", *PROD, *WHY), ("promote", *PROD, "--reason", "x",
                                   *WHY[2:])), 0, "promote"),
    "a promotion after a rollback": ("drafted", (("suspend", *PROD, *WHY), VERBS["promote"][1],
                                     VERBS["rollback"][1]), 0, "promote"),
    "a report after a later one": ("failed", (VERBS["report"][1], ("report", *PROD, "--check",
        "e2e", "--status", "failed", "--revision", "v1", "--by", "Ci <ci@example.com>")), 0,
        "report"),
    "a report ten minutes later": ("failed", (VERBS["report"][1],), 11, "report"),
    "a report after a retry": ("failed", (("retry", *PROD, *WHY),), 0, "report"),
    "a skip after a retry": ("failed", (VERBS["skip"][1], ("retry", *PROD, "--variant", BER,
                             *WHY)), 0, "skip"),
}  # fmt: skip


@pytest.mark.parametrize("case", NEW)
def test_a_command_that_may_change_a_state_is_recorded_anew(
    case: str, request: pytest.FixtureRequest
):
    name, lines, minutes, verb = NEW[case]
    fleet: Fleet = request.getfixturevalue(name)
    for line in lines:
        fleet.run(*line)
        fleet.later(minutes=1)
    before = records(fleet)
    result = fleet.later(minutes=minutes).run(*VERBS[verb][1])
    assert "already recorded" not in result.out, result.out
    assert len(records(fleet)) == len(before) + 1
