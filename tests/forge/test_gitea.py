"""Every call of the client for Gitea, on a real one: what it reads, and what it changes there."""

import base64
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest
from forge_proxy import Fault, ForgeProxy, proxying
from gitea_server import ADMIN, Gitea, await_condition

from fanout.api.promotion_policy import MergeStyle
from fanout.errors import Conflict, Denied, Unavailable
from fanout.forge.forge_http import ForgeHttp, HostAccess
from fanout.forge.gitea import GiteaForge
from fanout.plan.observation.branch_rules import BranchFacts, RequiredStatus
from fanout.plan.observation.merge_outcome import Merged, MergeOutcome, RefusalKind, Refused
from fanout.plan.observation.observed_request import (
    ChangedPaths,
    CommitStatus,
    GuardedMerge,
    ObservedRequest,
    RepositoryName,
    RequestDraft,
    RequestEdit,
    RequestState,
    ReviewVerdict,
    StatusState,
)
from fanout.ports import Credentials

pytestmark = pytest.mark.forge

BOT = "fanout-bot"
HEAD = "drafts/default/_stages/platform.monitoring/prod"
NUMBERS = itertools.count(1)
Value = TypeVar("Value")


@dataclass
class Place:
    """A repository of its own for one test; `bot` and ann may write to it, bob may not."""

    gitea: Gitea
    forge: GiteaForge
    name: RepositoryName

    @property
    def path(self) -> str:
        return f"/repos/{self.name}"

    def commit(self, branch: str, file: str, text: str, *, by: str = BOT) -> str:
        """Commit a new file, on a new branch if there is none of this name; return the commit."""
        branches = {it["name"] for it in self.gitea.get(f"{self.path}/branches") or ()}
        where = {"branch": branch} if branch in branches or not branches else {}
        change = {
            "content": base64.b64encode(text.encode()).decode(),
            "message": f"Add {file}",
            **(where or {"branch": "main", "new_branch": branch}),
        }
        answer = self.gitea.post(f"{self.path}/contents/{file}", change, by=by)
        return str(answer["commit"]["sha"])

    def open(self, *, head: str = HEAD, is_draft: bool = False) -> ObservedRequest:
        """Open a request of the bot from a branch that it has committed to."""
        self.commit(head, f"{head.replace('/', '-')}.yaml", "a: 1\n")
        draft = RequestDraft(head, "main", "Release v1 to prod", "What changes.", is_draft)
        return self.forge.open_request(self.name, draft)

    def of_head(self) -> list[ObservedRequest]:
        """Return the open requests from the branch that `open` takes."""
        return [it for it in self.forge.open_requests(self.name) if it.head_branch == HEAD]

    def seen(self, request: ObservedRequest) -> ObservedRequest:
        """Return the request as it is now."""
        observed = self.forge.request(self.name, request.number)
        assert observed is not None
        return observed

    def asked(self, request: ObservedRequest) -> set[str]:
        """Return the people and teams whose review is asked for."""
        answer = self.gitea.get(f"{self.path}/pulls/{request.number}")
        teams = {f"team/{it['name']}" for it in answer["requested_reviewers_teams"] or ()}
        return teams | {it["login"] for it in answer["requested_reviewers"] or ()}

    def merge(self, request: ObservedRequest, **options: object) -> MergeOutcome:
        """Merge as soon as the server has found out whether it can be merged."""
        self.gitea.await_checks(self.name.owner)
        return self.forge.merge_request(self.name, merge_of(request, **options))

    def protect(self, **rules: object) -> None:
        rule = {"rule_name": "main", "enable_push": True, **rules}
        self.gitea.post(f"{self.path}/branch_protections", rule)


def merge_of(request: ObservedRequest, **options) -> GuardedMerge:
    values = {
        "number": request.number,
        "head_commit": request.head_commit,
        "head_branch": request.head_branch,
        "style": MergeStyle.MERGE,
        "subject": "Publish v1",
        "body": "Fanout-Policy: monitoring",
        **options,
    }
    return GuardedMerge(**values)


def refusal_of(place: Place, request: ObservedRequest, **options: object) -> Refused:
    """Return what the host says of a merge that it refuses."""
    outcome = place.merge(request, **options)
    assert isinstance(outcome, Refused)
    return outcome


@pytest.fixture(scope="session")
def forge_with(gitea: Gitea) -> Iterator[Callable[[str], GiteaForge]]:
    """Return a function from a token to a client with it; all are closed in the end."""
    clients = []

    def make(token: str) -> GiteaForge:
        access = HostAccess(gitea.host, gitea.api, Credentials(password=token), "gitea-token")
        clients.append(ForgeHttp(access))
        return GiteaForge(clients[-1])

    yield make
    for http in clients:
        http.close()


@pytest.fixture(scope="session")
def bot(gitea: Gitea, forge_with: Callable[[str], GiteaForge]) -> GiteaForge:
    gitea.add_person(BOT)
    return forge_with(gitea.tokens[BOT])


@pytest.fixture
def place(gitea: Gitea, bot: GiteaForge) -> Place:
    name = f"edge-{next(NUMBERS)}"
    gitea.repository(name, writers=(BOT, "ann"))
    made = Place(gitea, bot, RepositoryName(ADMIN, name))
    made.commit("main", "README.md", "# Edge\n", by=ADMIN)
    return made


# ---- who and where -----------------------------------------------------------------------------


def test_the_account_is_known_by_its_login(bot):
    assert bot.login() == BOT
    assert bot.for_policy("platform/monitoring").login() == BOT


def test_a_repository_shows_its_settings_and_rights(place):
    facts = place.forge.repository(place.name)
    assert facts.name == place.name
    assert not facts.is_archived
    assert facts.merge_styles == {MergeStyle.MERGE, MergeStyle.SQUASH, MergeStyle.REBASE}


def test_settings_and_rights_that_an_administrator_changes(place, forge_with):
    place.gitea.ask("PATCH", place.path, {"archived": True, "allow_squash_merge": False})
    facts = place.forge.repository(place.name)
    assert facts.is_archived
    assert facts.merge_styles == {MergeStyle.MERGE, MergeStyle.REBASE}
    reader = forge_with(place.gitea.tokens["bob"])
    seen = reader.branch(place.name, "main")
    assert seen is not None
    assert not seen.may_push


def test_a_hidden_repository_is_denied_by_every_read(place, forge_with):
    place.gitea.ask("PATCH", place.path, {"private": True})
    outsider = forge_with(place.gitea.tokens["bob"])
    for call in (
        lambda: outsider.repository(place.name),
        lambda: outsider.request(place.name, 1),
        lambda: outsider.branch(place.name, "main"),
        lambda: outsider.open_requests(place.name),
        lambda: outsider.open_request(place.name, RequestDraft(HEAD, "main", "T", "", False)),
    ):
        with pytest.raises(Denied, match=str(place.name)) as failure:
            call()
        assert failure.value.reason == "ForgeDenied"


def test_a_renamed_repository_is_reported_with_its_new_address(place):
    place.gitea.ask("PATCH", place.path, {"name": f"{place.name.name}-moved"})
    with pytest.raises(Unavailable) as failure:
        place.forge.repository(place.name)
    assert failure.value.reason == "ForgeUnavailable"
    address = f"{place.gitea.api}/repos/{place.name}-moved"
    assert f"has moved GET /repos/{place.name} to {address}; correct" in str(failure.value)


# ---- the life of a request ---------------------------------------------------------------------


def test_a_request_is_observed_as_it_was_opened(place):
    opened = place.open()
    head = place.gitea.get(f"{place.path}/branches/{HEAD}")["commit"]["id"]
    assert place.seen(opened) == opened
    assert (opened.state, opened.is_draft) == (RequestState.OPEN, False)
    assert (opened.title, opened.text) == ("Release v1 to prod", "What changes.")
    assert (opened.head_branch, opened.head_commit, opened.base_branch) == (HEAD, head, "main")
    assert (opened.author, opened.head_repository) == (BOT, place.name)
    assert opened.labels == frozenset()
    assert abs(datetime.now(UTC) - opened.updated) < timedelta(minutes=5)
    assert (opened.closed, opened.merged_by, opened.merged_commit) == (None, "", "")


def test_a_draft_is_marked_ready_and_back(place):
    opened = place.open(is_draft=True)
    assert (opened.is_draft, opened.title) == (True, "Release v1 to prod")
    assert place.gitea.get(f"{place.path}/pulls/{opened.number}")["title"].startswith("WIP: ")
    place.forge.edit_request(place.name, opened, RequestEdit(is_draft=False))
    ready = place.seen(opened)
    assert (ready.is_draft, ready.title) == (False, "Release v1 to prod")
    place.forge.edit_request(place.name, ready, RequestEdit(title="Release v2", is_draft=True))
    again = place.seen(opened)
    assert (again.is_draft, again.title, again.text) == (True, "Release v2", "What changes.")


def test_a_second_request_for_the_same_branches_is_a_conflict(place):
    opened = place.open()
    with pytest.raises(Conflict, match="has an open pull request"):
        place.forge.open_request(place.name, RequestDraft(HEAD, "main", "Again", "", False))
    assert [it.number for it in place.of_head()] == [opened.number]


def test_a_branch_that_is_missing_is_a_conflict(place):
    with pytest.raises(Conflict, match="one of the branches is missing"):
        place.forge.open_request(place.name, RequestDraft("nothing", "main", "T", "", False))


def test_requests_of_a_head_to_every_base_and_of_nobody_else(place):
    opened = place.open()
    place.commit("release", "release.yaml", "a: 1\n")
    other = {"head": HEAD, "base": "release", "title": "Mine"}
    to_release = place.gitea.post(f"{place.path}/pulls", other, by="ann")["number"]
    place.commit("feature", "feature.yaml", "a: 1\n", by="ann")
    feature = {"head": "feature", "base": "main", "title": "Feature"}
    place.gitea.post(f"{place.path}/pulls", feature, by="ann")
    requests = place.of_head()
    assert {it.number: it.base_branch for it in requests} == {
        opened.number: "main",
        to_release: "release",
    }
    place.forge.close_request(place.name, opened.number)
    assert [it.number for it in place.of_head()] == [to_release]


def test_lists_are_read_page_by_page(place, monkeypatch):
    monkeypatch.setattr(place.forge._client, "_page_size", ("limit", 2))
    oldest = place.open()
    for number in range(2, 4):
        place.open(head=f"drafts/default/{number}")
    assert [it.number for it in place.of_head()] == [oldest.number]
    for context in ("a", "b", "c"):
        ci = {"context": context, "state": "success"}
        place.gitea.post(f"{place.path}/statuses/{oldest.head_commit}", ci, by="ann")
    contexts = [it.context for it in place.forge.statuses(place.name, oldest.head_commit)]
    assert contexts == ["c", "b", "a"]


def test_a_text_that_a_person_changed_meanwhile_is_not_overwritten(place):
    opened = place.open()
    theirs = {"body": "What changes. Ask me before lunch."}
    place.gitea.ask("PATCH", f"{place.path}/pulls/{opened.number}", theirs, by="ann")
    with pytest.raises(Conflict, match="not as observed"):
        place.forge.edit_request(place.name, opened, RequestEdit(text="What changes now."))
    seen = place.seen(opened)
    assert seen.text == theirs["body"]
    place.forge.edit_request(place.name, seen, RequestEdit(text=f"{seen.text} And more."))
    assert place.seen(opened).text == f"{theirs['body']} And more."


def test_closing_and_reopening_say_who_closed(place):
    opened = place.open()
    assert place.forge.closed_by(place.name, opened) == ""
    place.forge.close_request(place.name, opened.number)
    closed = place.seen(opened)
    assert closed.state is RequestState.CLOSED
    assert closed.closed is not None
    assert place.forge.closed_by(place.name, closed) == BOT
    path = f"{place.path}/pulls/{opened.number}"
    place.gitea.ask("PATCH", path, {"state": "open"}, by="ann")
    assert place.seen(opened).state is RequestState.OPEN
    state = {"state": "closed"}
    place.gitea.ask("PATCH", f"{place.path}/pulls/{opened.number}", state, by="ann")
    assert place.forge.closed_by(place.name, place.seen(opened)) == "ann"


def test_a_deleted_branch_closes_its_request(place):
    opened = place.open()
    place.gitea.ask("DELETE", f"{place.path}/branches/{HEAD}", by="ann")
    closed = retried_until(lambda: place.seen(opened), lambda it: it.state is RequestState.CLOSED)
    assert place.forge.closed_by(place.name, closed) == "ann"
    assert closed.head_branch == HEAD
    # The server goes on writing to the request of a deleted branch: its `updated` moves.
    listed = retried_until(
        lambda: list(place.forge.closed_requests(place.name, BOT)),
        lambda it: it == [place.seen(opened)],
    )
    assert [it.number for it in listed] == [opened.number]


def test_closed_requests_have_the_heads_that_they_were_closed_with(place):
    first = place.open()
    place.forge.close_request(place.name, first.number)
    place.commit(HEAD, "later.yaml", "a: 1\n")
    draft = RequestDraft(HEAD, "main", "Again", "", False)
    second = place.forge.open_request(place.name, draft)
    place.merge(second)
    place.commit(HEAD, "last.yaml", "a: 1\n")
    theirs = {"head": HEAD, "base": "main", "title": "Mine"}
    number = place.gitea.post(f"{place.path}/pulls", theirs, by="ann")["number"]
    place.gitea.ask("PATCH", f"{place.path}/pulls/{number}", {"state": "closed"}, by="ann")
    closed = list(place.forge.closed_requests(place.name, BOT))
    assert {it.number: (it.state, it.head_commit) for it in closed} == {
        first.number: (RequestState.CLOSED, first.head_commit),
        second.number: (RequestState.MERGED, second.head_commit),
    }
    assert [place.seen(it).head_commit for it in closed] == [it.head_commit for it in closed]


def retried_until(look: Callable[[], Value], condition: Callable[[Value], bool]) -> Value:
    values: list[Value] = []

    def is_so() -> bool:
        values[:] = [look()]
        return condition(values[0])

    await_condition(is_so, "the server does not come to it")
    return values[0]


def test_a_request_that_there_is_not(place):
    assert place.forge.request(place.name, 4711) is None


# ---- labels, reviewers, reviews ----------------------------------------------------------------


def test_labels_are_created_and_those_of_people_stay(place):
    opened = place.open()
    place.gitea.post(f"{place.path}/labels", {"name": "urgent", "color": "#ff0000"})
    theirs = {"labels": ["urgent"]}
    place.gitea.post(f"{place.path}/issues/{opened.number}/labels", theirs, by="ann")
    place.forge.add_labels(place.name, opened, {"fanout", "stage/prod"})
    labeled = place.seen(opened)
    assert labeled.labels == {"urgent", "fanout", "stage/prod"}
    place.forge.add_labels(place.name, labeled, {"fanout"})
    assert place.seen(opened).labels == {"urgent", "fanout", "stage/prod"}
    names = [it["name"] for it in place.gitea.get(f"{place.path}/labels")]
    assert sorted(names) == ["fanout", "stage/prod", "urgent"]


def test_a_label_of_the_repository_is_not_created_again(place):
    place.gitea.post(f"{place.path}/labels", {"name": "fanout", "color": "#ff0000"})
    opened = place.open()
    place.forge.add_labels(place.name, opened, {"fanout"})
    assert [it["color"] for it in place.gitea.get(f"{place.path}/labels")] == ["ff0000"]
    assert place.seen(opened).labels == {"fanout"}


def test_reviewers_are_asked_and_who_cannot_be_is_returned(place):
    opened = place.open()
    assert place.forge.request_reviews(place.name, opened.number, ()) == ()
    assert place.forge.request_reviews(place.name, opened.number, {"ann"}) == ()
    unknown = place.forge.request_reviews(place.name, opened.number, {"ada", "nobody"})
    assert unknown == ["nobody"]
    assert place.asked(opened) == {"ann", "ada"}


def test_teams_are_asked_and_labels_of_an_organization_are_used(gitea, bot):
    org = f"teams-{next(NUMBERS)}"
    gitea.post("/orgs", {"username": org})
    gitea.post(f"/orgs/{org}/repos", {"name": "edge"})
    gitea.post(f"/orgs/{org}/labels", {"name": "fanout", "color": "#00ff00"})
    rights = {"permission": "write", "units": ["repo.code", "repo.pulls"]}
    team = gitea.post(
        f"/orgs/{org}/teams", {"name": "sre", "includes_all_repositories": True} | rights
    )
    for login in (BOT, "ann"):
        gitea.ask("PUT", f"/teams/{team['id']}/members/{login}")
    place = Place(gitea, bot, RepositoryName(org, "edge"))
    place.commit("main", "README.md", "# Edge\n", by=ADMIN)
    opened = place.open()
    asked = {"team/sre", "team/nobody", "ann"}
    assert bot.request_reviews(place.name, opened.number, asked) == ["team/nobody"]
    bot.add_labels(place.name, opened, {"fanout"})
    seen = place.seen(opened)
    assert place.asked(opened) == {"team/sre", "ann"}
    assert seen.labels == {"fanout"}
    assert gitea.get(f"{place.path}/labels") == []


def review(place: Place, number: int, by: str, event: str, commit: str) -> int:
    body = {"event": event, "body": "seen", "commit_id": commit}
    return int(place.gitea.post(f"{place.path}/pulls/{number}/reviews", body, by=by)["id"])


def test_reviews_with_the_commit_that_each_is_about(place):
    opened = place.open()
    first = opened.head_commit
    approval = review(place, opened.number, "ann", "APPROVED", first)
    second = place.commit(HEAD, "more.yaml", "b: 1\n")
    review(place, opened.number, "bob", "COMMENT", second)
    review(place, opened.number, "ada", "REQUEST_CHANGES", second)
    place.forge.request_reviews(place.name, opened.number, {"bob"})
    observed = place.forge.reviews(place.name, opened.number)
    assert {it.reviewer: (it.verdict, it.commit, it.is_dismissed) for it in observed} == {
        "ann": (ReviewVerdict.APPROVED, first, False),
        "bob": (ReviewVerdict.COMMENTED, second, False),
        "ada": (ReviewVerdict.CHANGES_REQUESTED, second, False),
    }
    assert [it.instant for it in observed] == sorted(it.instant for it in observed)
    dismissal = f"{place.path}/pulls/{opened.number}/reviews/{approval}/dismissals"
    place.gitea.post(dismissal, {"message": "outdated"})
    observed = place.forge.reviews(place.name, opened.number)
    assert [it.is_dismissed for it in observed if it.reviewer == "ann"] == [True]


# ---- statuses and branches ---------------------------------------------------------------------


def test_the_newest_status_of_each_context_and_creator_counts(place):
    commit = place.open().head_commit
    assert place.forge.statuses(place.name, commit) == []
    pending = CommitStatus("fanout", StatusState.PENDING, "", datetime.now(UTC), "soak", "")
    place.forge.set_status(place.name, commit, pending)
    done = CommitStatus("fanout", StatusState.SUCCESS, "", datetime.now(UTC), "merge it", "")
    place.forge.set_status(place.name, commit, done)
    for state in ("pending", "failure"):
        ci = {"context": "ci/e2e", "state": state, "target_url": "https://ci.example.com/1"}
        place.gitea.post(f"{place.path}/statuses/{commit}", ci, by="ann")
    impostor = {"context": "fanout", "state": "error"}
    place.gitea.post(f"{place.path}/statuses/{commit}", impostor, by="ann")
    observed = place.forge.statuses(place.name, commit)
    assert {(it.context, it.creator): (it.state, it.description, it.url) for it in observed} == {
        ("fanout", BOT): (StatusState.SUCCESS, "merge it", ""),
        ("ci/e2e", "ann"): (StatusState.FAILURE, "", "https://ci.example.com/1"),
        ("fanout", "ann"): (StatusState.FAILURE, "", ""),
    }


@pytest.mark.parametrize("state", ["warning", "skipped", "error", "failure", "pending"])
def test_no_other_state_is_a_success(place, state):
    commit = place.open().head_commit
    ci = {"context": "ci", "state": state}
    place.gitea.post(f"{place.path}/statuses/{commit}", ci, by="ann")
    [status] = place.forge.statuses(place.name, commit)
    assert status.state is not StatusState.SUCCESS


def test_rules_of_a_branch_are_read_by_a_plain_writer(place):
    plain = place.forge.branch(place.name, "main")
    assert plain is not None
    assert plain == BranchFacts(is_protected=False, may_push=True)
    place.protect(
        enable_status_check=True,
        status_check_contexts=["fanout", "ci/e2e"],
        required_approvals=2,
        enable_push=False,
        enable_merge_whitelist=True,
        merge_whitelist_usernames=["ann"],
    )
    facts = place.forge.branch(place.name, "main")
    assert facts is not None
    assert facts == BranchFacts(
        is_protected=True,
        required_statuses=frozenset(map(RequiredStatus, ("fanout", "ci/e2e"))),
        required_approvals=2,
        may_push=False,
        requires_signatures=None,
    )


def test_contexts_of_a_check_that_is_switched_off_are_not_required(place):
    place.protect(enable_status_check=False, status_check_contexts=["fanout"])
    facts = place.forge.branch(place.name, "main")
    assert facts is not None
    assert facts.required_statuses == frozenset()


def test_a_check_without_contexts_requires_every_status(place):
    place.protect(enable_status_check=True, status_check_contexts=[])
    facts = place.forge.branch(place.name, "main")
    assert facts is not None
    assert facts.required_statuses == {RequiredStatus("*")}
    opened = place.open()
    place.gitea.post(
        f"{place.path}/statuses/{opened.head_commit}", {"context": "x", "state": "failure"}
    )
    assert "status checks" in refusal_of(place, opened).words


def test_a_branch_that_there_is_not(place):
    assert place.forge.branch(place.name, "drafts/default/nothing") is None


# ---- merging -----------------------------------------------------------------------------------


def test_a_request_is_merged_with_its_message_and_its_branch_is_deleted(place):
    opened = place.open()
    assert place.merge(opened) == Merged()
    merged = place.seen(opened)
    assert (merged.state, merged.merged_by) == (RequestState.MERGED, BOT)
    head = place.gitea.get(f"{place.path}/branches/main")["commit"]["id"]
    assert merged.merged_commit == head
    commit = place.gitea.get(f"{place.path}/git/commits/{head}")
    assert commit["commit"]["message"] == "Publish v1\n\nFanout-Policy: monitoring\n"
    assert len(commit["parents"]) == 2
    assert place.forge.branch(place.name, HEAD) is None


@pytest.mark.parametrize(("style", "parents"), [(MergeStyle.SQUASH, 1), (MergeStyle.REBASE, 1)])
def test_a_squash_or_rebase_makes_a_commit_with_a_single_parent(place, style, parents):
    opened = place.open()
    place.merge(opened, style=style)
    commit = place.gitea.get(f"{place.path}/git/commits/{place.seen(opened).merged_commit}")
    assert len(commit["parents"]) == parents
    assert place.forge.branch(place.name, HEAD) is None


def test_a_head_that_was_not_evaluated_is_not_merged(place):
    opened = place.open()
    place.commit(HEAD, "later.yaml", "b: 1\n", by="ann")
    retried_until(lambda: place.seen(opened), lambda it: it.head_commit != opened.head_commit)
    with pytest.raises(Conflict, match="head out of date"):
        place.merge(opened)
    assert place.seen(opened).state is RequestState.OPEN


def test_a_draft_is_not_merged(place):
    opened = place.open(is_draft=True)
    refused = refusal_of(place, opened)
    assert refused.words.startswith("Work in progress")
    assert (refused.kind, refused.reason) == (RefusalKind.NOT_NOW, "ForgeRefuses")


def test_a_request_under_branch_protection_is_not_merged(place):
    place.protect(required_approvals=1)
    opened = place.open()
    assert refusal_of(place, opened).reason == "ForgeRefuses"
    review(place, opened.number, "ada", "APPROVED", opened.head_commit)
    place.merge(opened)
    assert place.seen(opened).state is RequestState.MERGED


def test_a_style_that_the_repository_forbids(place):
    place.gitea.ask("PATCH", place.path, {"allow_squash_merge": False})
    opened = place.open()
    refused = refusal_of(place, opened, style=MergeStyle.SQUASH)
    assert (refused.kind, refused.reason) == (RefusalKind.STYLE_FORBIDDEN, "MergeStyleForbidden")


def test_a_merge_that_gitea_would_have_to_sign_and_cannot(place):
    place.protect(require_signed_commits=True)
    refused = refusal_of(place, place.open())
    assert (refused.kind, refused.reason) == (RefusalKind.SIGNATURE_REQUIRED, "SignatureRequired")
    assert "sign" in refused.words


def test_conflicts_are_not_merged(place):
    opened = place.open()
    place.commit("main", f"{HEAD.replace('/', '-')}.yaml", "a: 2\n", by=ADMIN)
    refused = refusal_of(place, opened)
    assert (refused.reason, refused.is_retryable) == ("ForgeRefuses", False)
    assert place.seen(opened).state is RequestState.OPEN


def test_merging_or_closing_a_finished_request_is_a_conflict(place):
    opened = place.open()
    place.merge(opened)
    with pytest.raises(Conflict, match="not as observed"):
        place.merge(opened)
    with pytest.raises(Conflict, match="already merged"):
        place.forge.close_request(place.name, opened.number)
    second = place.open(head="drafts/default/other")
    place.forge.close_request(place.name, second.number)
    with pytest.raises(Conflict, match="not open any more"):
        place.merge(second)


def test_an_archived_repository_takes_no_writes(place):
    opened = place.open()
    place.gitea.ask("PATCH", place.path, {"archived": True})
    with pytest.raises(Unavailable, match="is archived; unarchive the repository") as failure:
        place.forge.merge_request(place.name, merge_of(opened))
    assert failure.value.reason == "ForgeUnavailable"


# ---- faults between fanout and the host --------------------------------------------------------


@pytest.fixture
def proxied(place: Place) -> Iterator[tuple[Place, ForgeProxy]]:
    """The place with a proxy between fanout and the host."""
    with proxying(place.gitea.url) as proxy:
        secret = Credentials(password=place.gitea.tokens[BOT])
        http = ForgeHttp(HostAccess(place.gitea.host, proxy.api, secret, "gitea-token"))
        yield Place(place.gitea, GiteaForge(http), place.name), proxy
        http.close()


LOST = Fault(method="POST", forwards=True, resets=True)


def test_a_request_whose_answer_was_lost_is_found_and_not_opened_again(proxied):
    place, proxy = proxied
    proxy.fail(LOST)
    with pytest.raises(Unavailable) as failure:
        place.open()
    assert failure.value.reason == "ForgeUnavailable"
    [request] = place.of_head()
    assert request.title == "Release v1 to prod"
    with pytest.raises(Conflict):
        place.forge.open_request(place.name, RequestDraft(HEAD, "main", "Again", "", False))


def test_a_merge_whose_answer_was_lost_is_seen(proxied):
    place, proxy = proxied
    opened = place.open()
    path = f"{place.path}/pulls/{opened.number}"
    retried_until(lambda: place.gitea.get(path), lambda it: it["mergeable"])
    proxy.fail(LOST)
    with pytest.raises(Unavailable):
        place.forge.merge_request(place.name, merge_of(opened))
    merged = retried_until(lambda: place.seen(opened), lambda it: it.state is RequestState.MERGED)
    assert merged.merged_by == BOT
    with pytest.raises(Conflict):
        place.merge(opened)


def test_reads_survive_one_fault_each(proxied):
    place, proxy = proxied
    opened = place.open()
    faults = (Fault(502), Fault(503), Fault(missing=5), Fault(body=b"<html>"), Fault(resets=True))
    for fault in faults:
        proxy.fail(fault)
        assert place.seen(opened) == opened


@pytest.mark.parametrize("body", [b"[]", b'"text"', b'{"number": "1"}', b"{}", b"null"])
def test_answers_of_another_form(proxied, body):
    place, proxy = proxied
    for call in (
        place.forge.login,
        lambda: place.forge.repository(place.name),
        lambda: place.forge.request(place.name, 1),
        lambda: place.forge.branch(place.name, "main"),
    ):
        proxy.fail(Fault(body=body))
        with pytest.raises(Unavailable, match="gave no usable answer") as failure:
            call()
        assert failure.value.reason == "ForgeUnavailable"
    proxy.fail(Fault(body=b"[1]"))
    with pytest.raises(Unavailable, match="gave no usable answer"):
        place.forge.reviews(place.name, 1)


def test_a_revoked_token_is_denied(place, forge_with):
    place.gitea.add_person(login := f"guest-{next(NUMBERS)}")
    forge = forge_with(place.gitea.tokens[login])
    assert forge.login() == login
    place.gitea.revoke_tokens(login)
    with pytest.raises(Denied, match="renew the secret gitea-token"):
        forge.login()


def test_a_token_without_a_scope_is_denied_with_its_name(place, forge_with):
    place.gitea.add_person(login := f"guest-{next(NUMBERS)}")
    forge = forge_with(place.gitea.add_token(login, "read:user"))
    with pytest.raises(Denied, match="repository") as failure:
        forge.repository(place.name)
    assert failure.value.reason == "ForgeDenied"


# ---- search ------------------------------------------------------------------------------------


def test_a_single_search_lists_changed_requests_of_all_repositories(gitea, bot):
    """It is one call, however many repositories there are."""
    places = []
    for _ in range(2):
        name = f"edge-{next(NUMBERS)}"
        gitea.repository(name, writers=(BOT, "ann"))
        made = Place(gitea, bot, RepositoryName(ADMIN, name))
        made.commit("main", "README.md", "# Edge\n", by=ADMIN)
        places.append(made)
    start = wait_for_next_second(bot)
    assert bot.search_requests(start).matches == ()
    requests = [made.open() for made in places]
    places[0].commit("drafts/default/by-ann", "a.yaml", "a: 1\n", by="ann")
    opening = {"head": "drafts/default/by-ann", "base": "main", "title": "By another person"}
    gitea.post(f"{places[0].path}/pulls", opening, by="ann")
    before = len(gitea.calls(BOT))
    search = bot.search_requests(start)
    [call] = gitea.calls(BOT)[before:]
    assert call.startswith("GET /repos/issues/search?")
    assert {it.repository: it.number for it in search.matches} == {
        made.name: request.number for made, request in zip(places, requests, strict=True)
    }
    since = wait_for_next_second(bot)
    assert bot.search_requests(since).matches == ()
    review(places[1], requests[1].number, "ann", "APPROVED", requests[1].head_commit)
    assert [it.repository for it in bot.search_requests(since).matches] == [places[1].name]
    places[0].merge(requests[0])
    assert {it.repository for it in bot.search_requests(since).matches} == {
        made.name for made in places
    }


def wait_for_next_second(forge: GiteaForge) -> datetime:
    """Return an instant of the host before which everything was changed that was changed."""

    def ask() -> datetime:
        instant = forge.search_requests(datetime(9999, 1, 1, tzinfo=UTC)).instant
        assert instant is not None
        return instant

    first = ask()
    return retried_until(ask, lambda instant: instant > first)


def test_a_commit_that_is_not_there_has_no_statuses(place):
    assert place.forge.statuses(place.name, "a" * 40) == []


def test_paths_of_a_request_are_of_its_head(place: Place):
    request = place.open()
    path = f"{HEAD.replace('/', '-')}.yaml"
    changed = place.forge.changed_paths(place.name, request.number)
    assert changed == ChangedPaths(request.head_commit, frozenset({path}))


def test_a_request_that_changes_nothing_has_no_paths(place: Place):
    branch = {"new_branch_name": HEAD, "old_ref_name": "main"}
    place.gitea.post(f"{place.path}/branches", branch)
    draft = RequestDraft(HEAD, "main", "Nothing", "", is_draft=False)
    request = place.forge.open_request(place.name, draft)
    assert place.forge.changed_paths(place.name, request.number) == ChangedPaths("", frozenset())
