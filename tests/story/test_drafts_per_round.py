"""`draftsPerRound`: a policy with many outdated drafts does not keep the others waiting."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep

import pytest
from companies import company
from fleet import POLICY, Fleet

from fanout.cli.startup import open_program
from fanout.cli.verbs.run import build_dependencies
from fanout.controller import run_loop
from fanout.controller.run_loop import RunLoop
from fanout.plan.changes.next_drafts import DraftLimit
from fanout.reconcile.pass_results import PassReport
from fanout.reconcile.pass_scope import PassMode
from fanout.values import replace

SITES = ("ams", "ber", "cph", "dub", "esp")
PATIENCE = 60  # seconds, for a slow machine
STAGE = "stageExpr: target.metadata.labels.tier\n"
PRIORITY = """\
      priorityExpr: "target.metadata.name == 'esp' ? 2 : target.metadata.name == 'ams' ? 1 : 0"
"""


@company
def fleet(root: Path) -> Fleet:
    return Fleet.build(root, dict.fromkeys(SITES, ("dev", "edge")))


@company
def mixed(root: Path) -> Fleet:
    """A fleet over two repositories, in turn."""
    return Fleet.build(
        root, {it: ("dev", ("edge", "core")[place % 2]) for place, it in enumerate(SITES)}
    )


@contextmanager
def running(fleet: Fleet) -> Iterator[None]:
    """Serve the fleet as `fanout run` does, two drafts in a round."""
    configuration = fleet.root / "fanout.yaml"
    configuration.write_text(
        "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\ndraftsPerRound: 2\n"
    )
    settings = replace(fleet.settings(), config=configuration)
    with open_program(settings, long_running=True) as program:
        limit = program.configuration.drafts_per_round
        loop = RunLoop(build_dependencies(program), timedelta(hours=1), "", limit)
        thread = threading.Thread(target=loop.run)
        thread.start()
        try:
            yield
        finally:
            loop.stop()
            thread.join(PATIENCE)


def drafts(fleet: Fleet) -> set[str]:
    """Return the sites with a draft."""
    return {it.split("/")[-2] for it in fleet.repos["edge"].drafts()}


def make_round(fleet: Fleet, *, limit: int, publish: bool = False) -> PassReport:
    """Make one pass as `fanout run` does."""
    with fleet.opened() as program:
        return program.sweep(PassMode(draft_limit=DraftLimit(limit), publish=publish))


def test_a_policy_writes_no_more_than_its_share_and_goes_on_in_the_next_round(fleet: Fleet):
    written = []
    for _ in range(4):
        report = make_round(fleet, limit=2)
        assert report.fix_count == 0
        written.append((len(drafts(fleet)), len(report.outcomes)))
    assert written == [(2, 2), (4, 2), (5, 1), (5, 0)]
    assert fleet.plan("--drafts-only", "--detailed-exitcode").code == 0  # nothing is left to write


def test_the_first_drafts_are_those_of_the_highest_priority(fleet: Fleet):
    fleet.write("policy.yaml", POLICY.replace(STAGE, STAGE + PRIORITY))
    make_round(fleet, limit=2)
    assert drafts(fleet) == {"ams", "esp"}


def test_a_share_is_in_few_repositories(mixed: Fleet):
    make_round(mixed, limit=3)
    assert {name: len(mixed.repos[name].drafts()) for name in ("core", "edge")} == {
        "core": 2,
        "edge": 1,
    }


def test_a_repository_that_takes_no_push_does_not_keep_the_others_waiting(mixed: Fleet):
    """Its drafts, which are the first, would take the whole share in every round."""
    mixed.repos["core"].hook("pre-receive", "exit 1")
    with running(mixed):
        await_packages(mixed, "edge", 3)
    assert not mixed.repos["core"].drafts()


def test_an_outdated_draft_is_not_published_while_it_waits_to_be_written_again(fleet: Fleet):
    make_round(fleet, limit=5)
    fleet.site("dub", "dev", "edge", retention="30d")
    report = make_round(fleet, limit=0, publish=True)
    held = {it.subject: it.reason for it in report.pass_plan.problems}
    assert [reason for name, reason in held.items() if "dub" in name] == ["NoDraft"]
    assert drafts(fleet) == {"dub"}  # those of the others are published
    make_round(fleet, limit=1, publish=True)
    make_round(fleet, limit=1, publish=True)
    published = fleet.repos["edge"].file("main", "sites/dub/Kptfile")
    assert "monitoring" in published


def test_a_variant_that_waited_for_its_round_is_not_held_in_it(mixed: Fleet):
    """Facts of variants are kept between the rounds of one process."""
    postponed = "its policy has written 2 drafts in this round (draftsPerRound)"
    with open_program(mixed.settings(), long_running=True) as program:
        # First the two in core: nothing changes about those in edge until their own round.
        for waiting in (3, 1, 0):
            report = program.sweep(PassMode(draft_limit=DraftLimit(2)))
            [policy] = report.pass_plan.policies
            assert policy.decision is not None
            holds = [hold for it in policy.decision.variants.values() for hold in it.holds]
            assert sum(it.message == postponed for it in holds) == waiting


def test_drafts_that_variants_share_are_not_counted(fleet: Fleet):
    """They are one commit, whatever is in them."""
    fleet.write("policy.yaml", POLICY.replace("spec:\n", "spec:\n  draftPer: Stage\n", 1))
    make_round(fleet, limit=1, publish=True)
    edge = fleet.repos["edge"]
    [draft] = edge.refs("refs/heads/drafts/").values()
    assert sum(it.endswith("/Kptfile") for it in edge.files(draft)) == len(SITES)


def test_fanout_run_writes_all_of_them_round_by_round(fleet: Fleet):
    with running(fleet):
        await_packages(fleet, "edge", len(SITES))


def test_the_bound_of_follow_ups_is_none_of_the_rounds_that_all_drafts_take(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    """Else a policy with more drafts than 32 shares would wait for the interval in between."""
    monkeypatch.setattr(run_loop, "MAX_FOLLOW_UPS", 0)
    with running(fleet):
        await_packages(fleet, "edge", len(SITES))


def await_packages(fleet: Fleet, repository: str, number: int) -> None:
    """Wait until so many packages are published."""
    deadline = monotonic() + PATIENCE
    while sum(it.endswith("/Kptfile") for it in fleet.repos[repository].files()) < number:
        assert monotonic() < deadline
        sleep(0.05)
