"""What a pass sees of the pull requests on a real Gitea."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from forge_fleet import SCOPES, ForgeFleet
from forge_proxy import Fault, proxying
from gitea_server import Gitea, await_condition

from fanout.cli.startup import Program
from fanout.errors import Denied, RateLimited, Unavailable
from fanout.plan.observation.observed_request import RequestState, ReviewVerdict, StatusState
from fanout.plan.observation.repository_state import RepositoryState
from fanout.reconcile.pass_scope import PassMode

pytestmark = pytest.mark.forge

STAGES = "drafts/default/_stages/default.monitoring"
HEAD = f"{STAGES}/dev"
REF = f"refs/heads/{HEAD}"


@pytest.fixture
def fleet(gitea: Gitea, tmp_path) -> ForgeFleet:
    """A company whose first drafts are written and have their request."""
    made = ForgeFleet.on(
        gitea, tmp_path / "fleet", {"ams": ("dev", "edge"), "ber": ("dev", "edge")}
    )
    assert made.sweep().code == 0
    return made


@pytest.fixture
def program(fleet: ForgeFleet) -> Iterator[Program]:
    with fleet.opened() as opened:
        yield opened


def number_of(fleet: ForgeFleet) -> int:
    """Number of fanout's one request."""
    return int(fleet.only_request("edge")["number"])


def read_state(program: Program) -> RepositoryState:
    """The state of the one downstream repository in a pass of a long-running program."""
    now = datetime.now(UTC).replace(microsecond=0)
    planned = program.reconciler.plan_pass(program.read_declared(), now, PassMode())
    (state,) = {id(it): it for it in planned.policies[0].repository_states}.values()
    return state


def read_forge(program: Program) -> Any:
    forge = read_state(program).forge
    assert forge is not None
    assert forge.failure is None
    return forge


def test_a_stage_shares_a_draft_where_there_is_a_forge(fleet):
    assert fleet.repos["edge"].drafts() == [HEAD.removeprefix("drafts/default/")]


def test_the_state_of_a_forge_has_its_host_and_login(fleet, program):
    forge = read_forge(program)
    assert (forge.host, forge.account.login) == (fleet.gitea.host, fleet.bot)


def test_a_request_its_reviews_and_the_reviewed_packages(fleet, program):
    number = number_of(fleet)
    reviewed = fleet.repos["edge"].refs()[REF]
    fleet.review("edge", number, "ann")
    pushed = fleet.repos["edge"].commit(HEAD, {"sites/ams/note.txt": "by ann\n"}, by="ann")
    fleet.review("edge", number, "bob", "REQUEST_CHANGES")
    forge = read_forge(program)
    facts = forge.requests[REF]
    assert (facts.request.number, facts.request.state) == (number, RequestState.OPEN)
    assert [(it.reviewer, it.verdict, it.commit) for it in facts.reviews] == [
        ("ann", ReviewVerdict.APPROVED, reviewed),
        ("bob", ReviewVerdict.CHANGES_REQUESTED, pushed),
    ]
    repo = fleet.repos["edge"]
    assert facts.reviewed_trees == {
        commit: {
            path: repo.git("rev-parse", f"{commit}:{path}").strip()
            for path in ("sites/ams", "sites/ber")
        }
        for commit in (reviewed, pushed)
    }
    assert forge.branch.may_push
    assert not forge.repository.is_archived


def test_a_closed_request_has_its_closer_and_a_reopened_request_is_open(fleet, program):
    number = number_of(fleet)
    fleet.close("edge", number, "ann")
    facts = read_forge(program).requests[REF]
    assert (facts.request.state, facts.closed_by) == (RequestState.CLOSED, "ann")
    fleet.reopen("edge", number, "ann")
    assert read_forge(program).requests[REF].request.number == number


def test_a_request_to_another_branch_is_foreign(fleet, program):
    """It is seen with the next change of fanout's own, which the search shows."""
    number = number_of(fleet)
    wait_until_quiet(fleet, program)
    fleet.repos["edge"].commit("other", {"a.txt": "a\n"}, by="ann")
    opening = {"head": HEAD, "base": "other", "title": "Another"}
    foreign = fleet.gitea.post(f"{fleet.path('edge')}/pulls", opening, by="ann")["number"]
    fleet.label("edge", number, "seen")
    forge = read_forge(program)
    assert forge.requests[REF].request.number == number
    assert [it.number for it in forge.foreign_requests[REF]] == [foreign]
    fleet.close("edge", foreign)
    assert read_forge(program).foreign_requests == {}


def test_equal_observations_are_the_same_object(fleet, program):
    number = number_of(fleet)
    first = read_state(program)
    assert read_state(program) is first
    fleet.label("edge", number, "fanout/hold")
    second = read_state(program)
    assert second is not first
    assert second.forge is not None
    assert second.forge.requests[REF].request.labels == {"fanout/hold"}


def wait_until_quiet(fleet: ForgeFleet, program: Program) -> list[str]:
    """Observe until nothing is read again that changed a moment ago; answers the last calls."""
    calls: list[str] = []

    def is_quiet() -> bool:
        fleet.calls()
        state = read_state(program)
        assert state.forge is not None
        assert state.forge.failure is None
        calls[:] = fleet.calls()
        return len(calls) == 1

    await_condition(is_quiet, "there is always something to read again", pause=0.5)
    return calls


def is_search(call: str) -> bool:
    return call.startswith("GET /repos/issues/search?") and call.endswith(" 200")


def test_a_pass_without_changes_makes_a_single_search(fleet, program):
    number = number_of(fleet)
    fleet.review("edge", number, "ann")
    [call] = wait_until_quiet(fleet, program)
    assert is_search(call)
    facts = read_forge(program).requests[REF]
    assert [it.reviewer for it in facts.reviews] == ["ann"]
    assert len(facts.reviewed_trees) == 1


CHANGES = [
    (
        "a review",
        lambda fleet, number: fleet.review("edge", number, "ann"),
        lambda facts: [it.reviewer for it in facts.reviews] == ["ann"],
    ),
    (
        "a label",
        lambda fleet, number: fleet.label("edge", number, "fanout/hold"),
        lambda facts: facts.request.labels == {"fanout/hold"},
    ),
    (
        "its text",
        lambda fleet, number: fleet.rewrite("edge", number, "by ann"),
        lambda facts: facts.request.text == "by ann",
    ),
    (
        "closing",
        lambda fleet, number: fleet.close("edge", number, "bob"),
        lambda facts: facts.closed_by == "bob",
    ),
    (
        "a push",
        lambda fleet, number: fleet.repos["edge"].commit(HEAD, {"n.txt": "n\n"}, by="ann"),
        lambda facts: facts is not None,
    ),
    (
        "the name of its target branch",
        lambda fleet, number: fleet.rename_branch("edge", "main", "trunk"),
        lambda facts: facts is None,
    ),
]


@pytest.mark.parametrize(
    ("change", "is_shown"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES]
)
def test_a_changed_request_is_read_again(fleet, program, change, is_shown):
    number = number_of(fleet)
    wait_until_quiet(fleet, program)
    change(fleet, number)
    forge = read_forge(program)
    assert is_shown(forge.requests.get(REF))
    heads = [it.request.head_commit for it in forge.requests.values()]
    assert heads in ([], [fleet.repos["edge"].refs()[REF]])


def test_another_process_knows_what_was_read(fleet):
    number = number_of(fleet)
    with fleet.opened() as program:
        wait_until_quiet(fleet, program)
        first = read_forge(program)
    fleet.calls()
    with fleet.opened() as program:
        assert read_forge(program) == first
    assert len(fleet.calls()) == 1
    fleet.label("edge", number, "fanout/hold")
    with fleet.opened() as program:
        assert read_forge(program).requests[REF].request.labels == {"fanout/hold"}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def blank(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [Path.unlink, cut, blank], ids=lambda it: it.__name__)
def test_the_cache_may_be_damaged_at_any_time(fleet, damage):
    with fleet.opened() as program:
        first = read_forge(program)
    [path] = (fleet.root / fleet.state / "forges").iterdir()
    damage(path)
    with fleet.opened() as program:
        assert read_forge(program) == first


def test_another_account_does_not_get_what_was_read_by_the_first(fleet):
    with fleet.opened() as program:
        read_forge(program)
    fleet.gitea.add_token(fleet.bot, *SCOPES)
    fleet.calls()
    with fleet.opened() as program:
        read_forge(program)
    assert "GET /user 200" in fleet.calls()
    names = [it.name for it in (fleet.root / fleet.state / "forges").iterdir()]
    assert len(names) == 2


def with_status_check(fleet: ForgeFleet) -> ForgeFleet:
    policy = fleet.root / fleet.policies / "policy.yaml"
    text = policy.read_text(encoding="utf-8")
    requires = "requires: [{name: ci, commitStatus: {context: ci, by: [ann]}}], verification:"
    policy.write_text(text.replace("verification:", requires, 1), encoding="utf-8")
    return fleet


def test_statuses_that_checks_wait_for_are_read_in_each_pass(gitea, tmp_path):
    fleet = with_status_check(ForgeFleet.on(gitea, tmp_path / "fleet", {"ams": ("dev", "edge")}))
    assert fleet.sweep().code == 0
    with fleet.opened() as program:
        forge = read_forge(program)
        head = forge.requests[REF].request.head_commit
        assert list(forge.statuses) == [head]
        fleet.status("edge", head, "ci", "failure", by="bob")
        fleet.status("edge", head, "ci", "success", by="ann")
        statuses = read_forge(program).statuses[head]
        assert [(it.creator, it.state) for it in statuses if it.context == "ci"] == [
            ("ann", StatusState.SUCCESS),
            ("bob", StatusState.FAILURE),
        ]


def has_nothing_to_do(fleet: ForgeFleet) -> bool:
    """Whether a new process answers from the snapshot of a pass without work."""
    with fleet.opened() as program:
        return program.find_noop_result(PassMode()) is not None


def settle_until_skipped(fleet: ForgeFleet) -> None:
    """Sweep until the next sweep is skipped."""
    await_condition(
        lambda: has_nothing_to_do(fleet) or fleet.sweep().code != 0,
        "there is always something to do",
        pause=0.5,
    )
    assert has_nothing_to_do(fleet)
    fleet.calls()


@pytest.fixture
def without_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the warning about local records; a pass that has one to repeat is never skipped."""
    monkeypatch.setattr("fanout.cli.startup._find_remote_repositories", lambda *_: [])


@pytest.mark.usefixtures("without_warning")
def test_a_pass_is_skipped_only_while_the_search_shows_nothing_new(fleet):
    promotion = fleet.root / fleet.policies / "promotion.yaml"
    text = promotion.read_text(encoding="utf-8").rstrip()
    promotion.write_text(f"{text}\n  merge: Manual\n", encoding="utf-8")
    settle_until_skipped(fleet)
    assert has_nothing_to_do(fleet)
    [call] = fleet.calls()
    assert is_search(call)
    fleet.label("edge", number_of(fleet), "fanout/hold")
    assert not has_nothing_to_do(fleet)
    # Another process that reads the change must not make it look like nothing new.
    assert fleet.plan().code == 0
    assert not has_nothing_to_do(fleet)
    settle_until_skipped(fleet)
    with proxying(fleet.gitea.url) as proxy:
        fleet.configure(api=proxy.api)
        settle_until_skipped(fleet)
        proxy.fail(*[Fault(status=502)] * 9)
        assert not has_nothing_to_do(fleet)


@pytest.mark.usefixtures("without_warning")
def test_no_pass_is_skipped_while_a_check_waits_for_a_status(gitea, tmp_path):
    fleet = with_status_check(ForgeFleet.on(gitea, tmp_path / "fleet", {"ams": ("dev", "edge")}))
    for _ in range(3):
        assert fleet.sweep().code == 0
        assert not has_nothing_to_do(fleet)


FAILURES = [
    ("the right is missing", 403, Denied, "ForgeDenied", "grant the permission"),
    ("the token has expired", 401, Denied, "ForgeDenied", "renew the secret gitea"),
    ("a 404 for a repository that Git lists", 404, Denied, "ForgeDenied", "access"),
    ("too many calls", 429, RateLimited, "RateLimited", ""),
    ("an error of the server", 502, Unavailable, "ForgeUnavailable", ""),
    ("it moved elsewhere", 301, Unavailable, "ForgeUnavailable", "correct the URL"),
]


@pytest.mark.parametrize(
    ("status", "family", "reason", "remedy"),
    [row[1:] for row in FAILURES],
    ids=[row[0] for row in FAILURES],
)
def test_a_failed_call_is_the_failure_of_the_forge(gitea, tmp_path, status, family, reason, remedy):
    """Git is served, so drafts and publications are seen as ever."""
    with proxying(gitea.url) as proxy:
        fleet = ForgeFleet.on(gitea, tmp_path / "fleet", {"ams": ("dev", "edge")}, api=proxy.api)
        assert fleet.sweep().code == 0
        with fleet.opened() as program:
            # Without it, the next call is held for a minute.
            headers = {"Retry-After": "1"} if status == 429 else {}
            proxy.fail(*[Fault(status=status, headers=headers)] * 9)
            state = read_state(program)
            assert state.failure is None
            assert set(state.sets) == {REF}
            assert state.forge is not None
            failure = state.forge.failure
            assert isinstance(failure, family)
            assert failure.reason == reason
            assert remedy in failure.remedy


def test_an_archived_repository_is_held(fleet):
    fleet.gitea.ask("PATCH", fleet.path("edge"), {"archived": True})
    with fleet.opened() as program:
        state = read_state(program)
    assert state.forge is not None
    failure = state.forge.failure
    assert isinstance(failure, Unavailable)
    assert failure.reason == "ForgeUnavailable"
    assert all(name in str(failure) for name in (fleet.gitea.host, f"{fleet.owner}/edge"))


def test_a_host_that_nobody_lists_is_refused_by_the_name_of_the_repository(fleet):
    config = fleet.root / "config.yaml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text[: text.index("forges:")], encoding="utf-8")
    before = fleet.refs()
    fleet.release("v2")
    swept = fleet.sweep()
    assert fleet.refs()["edge"] == before["edge"]
    reason, sentence = fleet.condition("sites/ams")
    assert reason == "RepositoryUnavailable", swept.err
    assert f"Repository/edge: spec.url: the host {fleet.gitea.host} is not" in sentence
    checked = fleet.run("validate", *fleet.options)
    path = fleet.root / fleet.policies / "repository-edge.yaml"
    assert checked.code == 2
    assert f"{path}:5: Repository/edge: spec.url: the host {fleet.gitea.host} is not" in checked.out


def test_a_denied_forge_holds_only_variants_that_need_it(gitea, tmp_path):
    """Records, drafts and publications stay, and other repositories are served."""
    with proxying(gitea.url) as proxy:
        sites = {"ams": ("dev", "edge"), "ber": ("dev", "core")}
        fleet = ForgeFleet.on(gitea, tmp_path / "fleet", sites, api=proxy.api)
        core = fleet.root / fleet.policies / "repository-core.yaml"
        core.write_text(core.read_text(encoding="utf-8").replace("type: gitea", "type: none"))
        assert fleet.sweep().code == 0
        before = fleet.repos["edge"].refs()
        proxy.fail(*[Fault(status=403)] * 50)
        for _ in range(3):
            fleet.later(minutes=1).sweep()
        assert fleet.states()["sites/ber"] != "Proposed"
        assert fleet.repos["edge"].refs() == before
        reason, sentence = fleet.condition("sites/ams")
        assert (reason, "forbids" in sentence) == ("ForgeDenied", True)
        proxy.faults.clear()
        assert fleet.later(minutes=1).sweep().code == 0
        assert fleet.condition("sites/ams")[0] != "ForgeDenied"
