"""One life of a branch that removes a package, whether an approval or a merge lets it go."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from companies import Companies
from fleet import PROMOTION, Fleet
from removal_branches import (
    AMS,
    BER,
    CLOSED,
    CPH,
    REMOVAL,
    approve,
    automation_is_off,
    build_with_approval,
    build_with_forge,
    head,
    merge,
    package_is_edited,
    packages,
    policy_is_suspended,
    serve_repositories,
    target_comes_back,
)


def approval_company(root: Path) -> Fleet:
    return build_with_approval(root)


def merge_company(root: Path) -> Fleet:
    return build_with_forge(root)


@dataclass(frozen=True)
class Setting:
    """What a branch waits for: the company that it is in, and what a person does to let it go."""

    build: Callable[[Path], Fleet]
    let_go: Callable[[Fleet], object]
    stays_on_record: bool  # the approval is on record, and what comes later does not end it


SETTINGS = {
    "an approval": Setting(approval_company, approve, True),
    "a merge": Setting(merge_company, merge, False),
}
ENDS = [target_comes_back, policy_is_suspended, package_is_edited, automation_is_off]


@pytest.fixture(scope="module", autouse=True)
def host() -> Iterator[None]:
    with serve_repositories():
        yield


@pytest.fixture(params=SETTINGS.values(), ids=SETTINGS)
def setting(request: pytest.FixtureRequest) -> Setting:
    chosen: Setting = request.param
    return chosen


@pytest.fixture
def fleet(setting: Setting, companies: Companies) -> Fleet:
    """Three sites of one stage, one of which has no target any more and is on the branch."""
    fleet = companies.begin(setting.build)
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    assert packages(fleet) - packages(fleet, REMOVAL) == {AMS}
    return fleet


def sweep(fleet: Fleet, *options: str) -> str:
    swept = fleet.later(minutes=1).sweep(*options)
    assert swept.code in (0, 3), swept.err
    return swept.out


@pytest.mark.parametrize("happens", ENDS)
def test_a_removal_that_ends_takes_its_branch_away(fleet: Fleet, setting: Setting, happens):
    if setting.stays_on_record:
        setting.let_go(fleet)
    happens(fleet)
    main = head(fleet, "main")
    sweep(fleet)
    assert head(fleet, REMOVAL) == ""
    assert head(fleet, "main") == main
    assert AMS in packages(fleet)


def test_a_delayed_removal_keeps_its_branch_and_its_approval(fleet: Fleet, setting: Setting):
    if setting.stays_on_record:
        setting.let_go(fleet)
    branch = head(fleet, REMOVAL)
    sweep(fleet, "--drafts-only")
    fleet.write("promotion.yaml", PROMOTION + CLOSED)
    sweep(fleet)
    fleet.write("promotion.yaml", PROMOTION + "  windows: here\n")
    fleet.later(minutes=1).sweep()
    assert (head(fleet, REMOVAL), AMS in packages(fleet)) == (branch, True)
    fleet.write("promotion.yaml", PROMOTION)
    if not setting.stays_on_record:
        setting.let_go(fleet)
    sweep(fleet)
    assert packages(fleet) == {BER, CPH}
    sweep(fleet)
    assert fleet.repos["edge"].drafts() == []
