"""The calls of GitHub's REST API that the tests' GitHub answers, each with what it needs."""

import re
import shlex
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlencode

from github_answers import Answers, instant
from github_description import Call, complete
from github_limits import Limits
from github_repository import CommitStatus, Pull, Repository
from github_state import TOKEN_LIFE, Credential, Refusal, State

MOST_FILES, MOST_FILES_COMPARED, MOST_RESULTS = 3_000, 300, 1_000
MOST_STATUSES = 1_000  # of one commit and context
MOST_BODY = 65_536


@dataclass
class Request:
    """A call with whose it is, and the repository and request that its path names."""

    call: Call
    queries: dict[str, str]
    body: Any
    url: str  # without queries
    credential: Credential
    repository: Repository = field(init=False)
    pull: Pull = field(init=False)


@dataclass
class Answer:
    """An answer; a body of None is none."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[["Calls", Request], Answer]
HANDLERS: dict[str, Handler] = {}
PERMISSIONS: dict[str, dict[str, str]] = {}
REPO = "/repos/{owner}/{repo}"
PULL = f"{REPO}/pulls/{{pull_number}}"
ISSUE = f"{REPO}/issues/{{issue_number}}"


def answers(name: str, **permissions: str) -> Callable[[Handler], Handler]:
    """Enter the handler of a call, with the permissions that it needs, as `contents="write"`."""

    def enter(handler: Handler) -> Handler:
        HANDLERS[name], PERMISSIONS[name] = handler, permissions
        return handler

    return enter


def invalid(resource: str, message: str, name: str = "") -> Refusal:
    """Return the refusal of what is well-formed and cannot be."""
    error = {"resource": resource, "code": "custom", "message": message}
    return Refusal(422, "Validation Failed", [{**error, "field": name} if name else error])


class Calls:
    """Answers to calls, from a state. Whoever calls holds the lock of the state."""

    def __init__(self, state: State, limits: Limits, api: str, web: str) -> None:
        self.state, self.limits = state, limits
        self.json = Answers(api, web)

    def answer(self, request: Request) -> Answer:
        """Answer a call. Raises Refusal."""
        name, variables = request.call.name, request.call.variables
        if "owner" in variables:
            request.repository = self._find(request, PERMISSIONS[name])
            self.state.synchronize(request.repository)
        number = variables.get("pull_number") or variables.get("issue_number")
        if number is not None:
            pulls = request.repository.pulls
            if not number.isdigit() or int(number) not in pulls:
                raise Refusal(404, "Not Found")
            request.pull = pulls[int(number)]
        return HANDLERS[name](self, request)

    def _find(self, request: Request, permissions: dict[str, str]) -> Repository:
        variables, credential = request.call.variables, request.credential
        repository = self.state.find_repository(f"{variables['owner']}/{variables['repo']}")
        if repository is None:
            raise Refusal(404, "Not Found")
        if credential.app and not credential.installation:
            return repository  # an App reads of repositories which installation reaches them
        access = self.state.access(credential, repository)
        if access is None:
            raise Refusal(404, "Not Found")
        writes = "write" in permissions.values()
        missing = [key for key, level in permissions.items() if not credential.allows(key, level)]
        if missing or (writes and access != "write"):
            kind = "integration" if credential.installation else "personal access token"
            accepted = ", ".join(f"{key}={level}" for key, level in permissions.items())
            headers = {"X-Accepted-GitHub-Permissions": accepted}
            raise Refusal(403, f"Resource not accessible by {kind}", headers=headers)
        if writes and repository.is_archived:
            raise Refusal(403, "Repository was archived so is read-only.")
        return repository

    @answers("GET /rate_limit")
    def rate_limit(self, request: Request) -> Answer:
        return Answer({"resources": self.limits.overview(request.credential.limit_key)})

    @answers(f"GET {REPO}/installation")
    def installation(self, request: Request) -> Answer:
        app = self._app(request)
        for found in self.state.installations.values():
            reached = found.repositories is None or request.repository.id in found.repositories
            if found.app == app and found.owner == request.repository.owner and reached:
                break
        else:
            raise Refusal(404, "Not Found")
        url = f"{self.json.api}/app/installations/{found.id}"
        values = {
            "id": found.id,
            "account": self.json.account(found.owner),
            "app_id": app.id,
            "app_slug": app.slug,
            "client_id": app.client_id,
            "target_id": found.owner.id,
            "target_type": found.owner.kind,
            "repository_selection": "all" if found.repositories is None else "selected",
            "permissions": found.permissions,
            "access_tokens_url": f"{url}/access_tokens",
            "suspended_at": instant(self.state.clock()) if found.is_suspended else None,
        }
        return Answer(complete("installation", values, url=url))

    @answers("POST /app/installations/{installation_id}/access_tokens")
    def access_token(self, request: Request) -> Answer:
        app = self._app(request)
        found = self.state.installations.get(int(request.call.variables["installation_id"]))
        if found is None or found.app != app:
            raise Refusal(404, "Not Found")
        if found.is_suspended:
            raise Refusal(403, "This installation has been suspended")
        body = request.body or {}
        asked = body.get("permissions", found.permissions)
        granted = Credential(app.account, found.permissions)
        if not all(granted.allows(name, level) for name, level in asked.items()):
            message = "The permissions requested are not granted to this installation."
            raise Refusal(422, message, [])
        repositories = found.repositories
        if "repositories" in body or "repository_ids" in body:
            names = {
                it.name: it.id for it in self.state.repositories.values() if it.owner == found.owner
            }
            wanted = {names.get(it, 0) for it in body.get("repositories", ())}
            wanted.update(body.get("repository_ids", ()))
            if not wanted <= (set(names.values()) if repositories is None else repositories):
                message = (
                    "There is at least one repository that does not exist or is not accessible"
                )
                raise Refusal(422, f"{message} to the parent installation.", [])
            repositories = wanted
        # Longer than the 40 characters of earlier tokens, and of another form.
        token = f"ghs_{app.id}_{uuid.uuid4().hex}.{uuid.uuid4().hex}.{uuid.uuid4().hex}"
        expires_at = self.state.clock() + TOKEN_LIFE
        self.state.credentials[token] = Credential(
            app.account, asked, repositories, expires_at, found
        )
        selection = "all" if repositories is None else "selected"
        values = {"token": token, "expires_at": instant(expires_at), "permissions": asked}
        return Answer({**values, "repository_selection": selection}, 201)

    @answers(f"GET {REPO}", metadata="read")
    def repository(self, request: Request) -> Answer:
        repository = request.repository
        can_push = self.state.access(request.credential, repository) == "write"
        return Answer(self.json.repository(repository, "full-repository", can_push=can_push))

    @answers(f"GET {REPO}/pulls", pull_requests="read")
    def list_pulls(self, request: Request) -> Answer:
        queries, repository = request.queries, request.repository
        state = queries.get("state", "open")
        pulls = [it for it in repository.pulls.values() if state in ("all", it.state)]
        if "head" in queries:
            owner, _, branch = queries["head"].partition(":")
            pulls = [it for it in pulls if (repository.owner.login, it.head) == (owner, branch)]
        if "base" in queries:
            pulls = [it for it in pulls if it.base == queries["base"]]
        by = "updated_at" if queries.get("sort") == "updated" else "created_at"
        # Newest first where the order is by creation, as GitHub documents its default.
        default = "asc" if "sort" in queries and queries["sort"] != "created" else "desc"
        is_descending = queries.get("direction", default) == "desc"
        pulls.sort(key=lambda it: (getattr(it, by), it.number), reverse=is_descending)
        return self._page(request, pulls, lambda it: self.json.pull(repository, it))

    @answers(f"POST {REPO}/pulls", pull_requests="write")
    def open_pull(self, request: Request) -> Answer:
        repository, body, state = request.repository, request.body, self.state
        base, head = body["base"], body["head"].removeprefix(f"{repository.owner.login}:")
        if "title" not in body:
            raise invalid("PullRequest", "title is missing", "title")
        base_commit = self._branch_commit(repository, "base", base)
        head_commit = self._branch_commit(repository, "head", head)
        for pull in repository.pulls.values():
            if (pull.state, pull.head, pull.base) == ("open", head, base):
                name = f"{repository.owner.login}:{head}"
                raise invalid("PullRequest", f"A pull request already exists for {name}.")
        if repository.contains(base_commit, head_commit):
            raise invalid("PullRequest", f"No commits between {base} and {head}")
        if body.get("draft") and not repository.allows_drafts:
            message = "Draft pull requests are not supported in this repository."
            raise invalid("PullRequest", message)
        self._refuse_long(body)
        now = state.clock()
        pull = Pull(
            id=state.next_id(),
            number=len(repository.pulls) + 1,
            author=request.credential.account,
            title=body["title"],
            body=body.get("body"),
            base=base,
            head=head,
            base_commit=base_commit,
            head_commit=head_commit,
            created_at=now,
            updated_at=now,
            is_draft=body.get("draft", False),
        )
        repository.pulls[pull.number] = pull
        repository.point_request(pull)
        return self._whole(request, pull, 201)

    @answers(f"GET {PULL}", pull_requests="read", contents="read")
    def pull(self, request: Request) -> Answer:
        return self._whole(request, request.pull)

    @answers(f"PATCH {PULL}", pull_requests="write")
    def edit_pull(self, request: Request) -> Answer:
        pull, body, repository = request.pull, request.body, request.repository
        self._refuse_long(body)
        state = body.get("state", pull.state)
        if state == "open" and pull.state == "closed":
            if pull.merged_at is not None or repository.branch_commit(pull.head) is None:
                message = "state cannot be changed. The branch has been deleted or merged."
                raise invalid("PullRequest", message, "state")
            pull.state, pull.closed_at = "open", None
            self.state.record(pull, "reopened", request.credential)
        elif state == "closed" and pull.state == "open":
            self.state.close(pull, request.credential)
        if "base" in body:
            pull.base_commit = self._branch_commit(repository, "base", body["base"])
            pull.base = body["base"]
        pull.title = body.get("title", pull.title)
        pull.body = body.get("body", pull.body)
        pull.updated_at = self.state.clock()
        self.state.synchronize(repository)
        return self._whole(request, pull)

    @answers(f"PUT {PULL}/merge", contents="write")
    def merge(self, request: Request) -> Answer:
        commit = self.state.merge(
            request.repository, request.pull, request.body or {}, request.credential
        )
        message = "Pull Request successfully merged"
        return Answer({"sha": commit, "merged": True, "message": message})

    @answers(f"PUT {PULL}/merge-async", contents="write")
    def merge_later(self, request: Request) -> Answer:
        pull, body, merges = request.pull, request.body or {}, self.state.merges
        rules = request.repository.rules(pull.base)
        if pull.merged_at is not None:
            details = {"message": "Pull Request is already merged", "sha": pull.merge_commit}
            return Answer({"status": "merged", "details": details})
        if pull.state == "closed" or pull.is_draft:
            words = "closed" if pull.state == "closed" else "a draft"
            details = {"message": f"Pull Request is {words}"}
            return Answer({"status": "failed", "details": details}, 400)
        if any(it["pull"] is pull and it["status"] == "pending" for it in merges.values()):
            details = {"message": "Another merge of this Pull Request is pending"}
            return Answer({"status": "failed", "details": details}, 409)
        action = body.get("merge_action", "default")
        head = body.get("sha", pull.head_commit)
        job = uuid.uuid4().hex
        details = {
            "message": "Merge requested",
            "uuid": job,
            "merge_method": body.get("merge_method", "default"),
            "merge_action": action,
            "expected_head_sha": head,
        }
        merges[job] = {
            "status": "pending",
            "details": details,
            "asked": False,
            "repository": request.repository,
            "pull": pull,
            "body": {**body, "sha": head},
            "credential": request.credential,
            "queue": action == "merge_queue"
            or (action == "default" and any(it.queue for it in rules)),
        }
        return Answer({"status": "pending", "details": details}, 202)

    @answers(f"GET {PULL}/merge-async/{{uuid}}", contents="read")
    def merge_result(self, request: Request) -> Answer:
        job = request.call.variables["uuid"]
        if job not in self.state.merges or self.state.merges[job]["pull"] is not request.pull:
            raise Refusal(404, "Not Found")
        return Answer(self.state.run_merge(job))

    @answers(f"GET {PULL}/files", pull_requests="read")
    def files(self, request: Request) -> Answer:
        repository, pull = request.repository, request.pull
        base = repository.merge_base(pull.base_commit, pull.head_commit) or pull.base_commit
        # After a merge the base contains the head; the list of files stays.
        if pull.merged_at is not None and base == pull.head_commit:
            base = pull.base_commit
        entries = repository.changed_files(base, pull.head_commit)[:MOST_FILES]
        return self._page(request, entries, lambda it: self.json.changed_file(repository, it))

    @answers(f"GET {PULL}/reviews", pull_requests="read")
    def reviews(self, request: Request) -> Answer:
        repository, pull = request.repository, request.pull
        return self._page(request, pull.reviews, lambda it: self.json.review(repository, pull, it))

    @answers(f"POST {PULL}/requested_reviewers", pull_requests="write")
    def request_reviewers(self, request: Request) -> Answer:
        repository, pull, body = request.repository, request.pull, request.body
        logins, teams = body.get("reviewers", []), body.get("team_reviewers", [])
        voices = {repository.owner.login, *repository.writers, *repository.readers}
        if teams and not request.credential.allows("members", "read"):
            headers = {"X-Accepted-GitHub-Permissions": "pull_requests=write, members=read"}
            raise Refusal(403, "Resource not accessible by integration", headers=headers)
        if pull.author.login in logins:
            raise Refusal(422, "Review cannot be requested from pull request author.")
        if not set(logins) <= voices or not set(teams) <= repository.teams:
            words = "Reviews may only be requested from collaborators. One or more of the users or"
            raise Refusal(
                422, f"{words} teams you specified is not a collaborator of the repository."
            )
        reviewers = [self.state.accounts[it] for it in logins]
        pull.reviewers += [it for it in reviewers if it not in pull.reviewers]
        pull.teams += [it for it in teams if it not in pull.teams]
        pull.updated_at = self.state.clock()
        return Answer(self.json.pull(repository, pull), 201)

    @answers(f"POST {ISSUE}/labels", pull_requests="write")
    def add_labels(self, request: Request) -> Answer:
        pull = request.pull
        entries = request.body["labels"]
        names = [it if isinstance(it, str) else it["name"] for it in entries]
        pull.labels += [it for it in dict.fromkeys(names) if it not in pull.labels]
        return self._labels(request)

    @answers(f"DELETE {ISSUE}/labels/{{name}}", pull_requests="write")
    def remove_label(self, request: Request) -> Answer:
        name = unquote(request.call.variables["name"])
        if name not in request.pull.labels:
            raise Refusal(404, "Label does not exist")
        request.pull.labels.remove(name)
        return self._labels(request)

    @answers(f"GET {ISSUE}/events", pull_requests="read")
    def events(self, request: Request) -> Answer:
        repository = request.repository
        return self._page(request, request.pull.events, lambda it: self.json.event(repository, it))

    @answers("GET /search/issues", metadata="read")
    def search(self, request: Request) -> Answer:
        found = [
            (repository, pull)
            for repository in self.state.repositories.values()
            if self.state.access(request.credential, repository)
            for pull in repository.pulls.values()
            if matches(request.queries["q"], repository, pull)
        ]
        is_ascending = request.queries.get("order") == "asc"
        key = "created_at" if request.queries.get("sort") == "created" else "updated_at"
        found.sort(key=lambda it: (getattr(it[1], key), it[1].id), reverse=not is_ascending)
        items = self._page(request, found[:MOST_RESULTS], lambda it: self.json.search_item(*it))
        values = {"total_count": len(found), "incomplete_results": False, "search_type": "lexical"}
        return Answer({**values, "items": items.body}, headers=items.headers)

    @answers(f"DELETE {REPO}/git/refs/{{ref}}", contents="write")
    def delete_ref(self, request: Request) -> Answer:
        repository, ref = request.repository, request.call.variables["ref"]
        branch = unquote(ref).removeprefix("heads/")
        if repository.branch_commit(branch) is None or not ref.startswith("heads/"):
            raise Refusal(422, "Reference does not exist")
        if branch == "main":
            raise Refusal(422, "Cannot delete the default branch")
        repository.delete_branch(branch)
        self.state.pushers[repository.id] = request.credential.account
        self.state.synchronize(repository)
        return Answer(None, 204)

    @answers(f"GET {REPO}/branches/{{branch}}", contents="read")
    def branch(self, request: Request) -> Answer:
        name = unquote(request.call.variables["branch"])
        if (commit := request.repository.branch_commit(name)) is None:
            raise Refusal(404, "Branch not found")
        return Answer(self.json.branch(request.repository, name, commit))

    @answers(f"GET {REPO}/rules/branches/{{branch}}", metadata="read")
    def branch_rules(self, request: Request) -> Answer:
        rules = request.repository.rulesets.get(unquote(request.call.variables["branch"]))
        entries = [] if rules is None else self.json.rules(request.repository, rules)
        return self._page(request, entries, lambda it: it)

    @answers(f"GET {REPO}/commits/{{ref}}/statuses", statuses="read")
    def statuses(self, request: Request) -> Answer:
        repository, commit = request.repository, self._commit(request)
        newest_first = repository.statuses[commit][::-1]
        return self._page(
            request, newest_first, lambda it: self.json.status(repository, commit, it)
        )

    @answers(f"GET {REPO}/commits/{{ref}}/check-runs", checks="read")
    def check_runs(self, request: Request) -> Answer:
        repository, commit, queries = request.repository, self._commit(request), request.queries
        runs = repository.check_runs[commit][::-1]
        if queries.get("filter", "latest") == "latest":
            newest: dict[tuple[int, str], Any] = {}
            for run in runs:
                newest.setdefault((run.app.id, run.name), run)
            runs = list(newest.values())
        if "check_name" in queries:
            runs = [it for it in runs if it.name == queries["check_name"]]
        page = self._page(request, runs, lambda it: self.json.check_run(repository, commit, it))
        return Answer({"total_count": len(runs), "check_runs": page.body}, headers=page.headers)

    @answers(f"POST {REPO}/statuses/{{sha}}", statuses="write")
    def set_status(self, request: Request) -> Answer:
        repository, body, state = request.repository, request.body, self.state
        sha = request.call.variables["sha"]
        if repository.commit_of(sha) is None:
            raise Refusal(422, f"No commit found for SHA: {sha}", [])
        context = body.get("context", "default")
        statuses = repository.statuses[sha]
        if sum(it.context == context for it in statuses) >= MOST_STATUSES:
            message = "This SHA and context has reached the maximum number of statuses."
            raise invalid("Status", message)
        status = CommitStatus(
            id=state.next_id(),
            context=context,
            state=body["state"],
            creator=request.credential.account,
            at=state.clock(),
            description=body.get("description"),
            target_url=body.get("target_url"),
        )
        statuses.append(status)
        return Answer(self.json.status(repository, sha, status), 201)

    @answers(f"GET {REPO}/compare/{{basehead}}", contents="read")
    def compare(self, request: Request) -> Answer:
        repository = request.repository
        names = unquote(request.call.variables["basehead"]).split("...")
        base, head = (repository.commit_of(it) for it in (*names, "", "")[:2])
        origin = repository.merge_base(base, head) if base and head else None
        if base is None or head is None or origin is None:
            raise Refusal(404, "Not Found")
        ahead, behind = repository.commits(base, head), repository.commits(head, base)
        words = {(False, False): "identical", (True, False): "ahead", (False, True): "behind"}
        status = words.get((bool(ahead), bool(behind)), "diverged")
        page = self._page(request, ahead, lambda it: self.json.commit(repository, it))
        values = {
            "status": status,
            "ahead_by": len(ahead),
            "behind_by": len(behind),
            "total_commits": len(ahead),
            "base_commit": self.json.commit(repository, base),
            "merge_base_commit": self.json.commit(repository, origin),
            "commits": page.body,
        }
        if request.queries.get("page", "1") == "1":
            entries = repository.changed_files(origin, head)[:MOST_FILES_COMPARED]
            values["files"] = [self.json.changed_file(repository, it) for it in entries]
        whole = complete("commit-comparison", values, url=request.url)
        return Answer(whole, headers=page.headers)

    def _whole(self, request: Request, pull: Pull, status: int = 200) -> Answer:
        mergeable, state = self.state.mergeability(request.repository, pull)
        whole = self.json.whole_pull(request.repository, pull, mergeable=mergeable, state=state)
        return Answer(whole, status)

    @staticmethod
    def _branch_commit(repository: Repository, name: str, branch: str) -> str:
        """Return the commit of a branch that a body names. Raises Refusal without one."""
        if (commit := repository.branch_commit(branch)) is None:
            error = {"resource": "PullRequest", "field": name, "code": "invalid"}
            raise Refusal(422, "Validation Failed", [error])
        return commit

    def _labels(self, request: Request) -> Answer:
        request.pull.updated_at = self.state.clock()
        return Answer([self.json.label(request.repository, it) for it in request.pull.labels])

    def _commit(self, request: Request) -> str:
        ref = unquote(request.call.variables["ref"])
        commit = request.repository.commit_of(ref)
        if commit is None:
            raise Refusal(422, f"No commit found for SHA: {ref}", [])
        return commit

    @staticmethod
    def _app(request: Request) -> Any:
        if request.credential.app is None:
            raise Refusal(401, "A JSON web token could not be decoded")
        return request.credential.app

    @staticmethod
    def _refuse_long(body: dict[str, Any]) -> None:
        if len(body.get("body") or "") > MOST_BODY:
            raise invalid("Issue", f"body is too long (maximum is {MOST_BODY} characters)", "body")

    @staticmethod
    def _page(request: Request, items: list[Any], render: Callable[[Any], Any]) -> Answer:
        """Return one page of a list, with addresses of the others in the header Link."""
        size = min(int(request.queries.get("per_page", 30)), 100)
        page, last = int(request.queries.get("page", 1)), max(1, -(-len(items) // size))
        pages = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
        links = [
            f'<{request.url}?{urlencode({**request.queries, "page": number})}>; rel="{relation}"'
            for relation, number in pages.items()
            if (page > 1 if relation in ("prev", "first") else page < last)
        ]
        shown = [render(it) for it in items[(page - 1) * size : page * size]]
        return Answer(shown, headers={"Link": ", ".join(links)} if links else {})


def matches(query: str, repository: Repository, pull: Pull) -> bool:
    """Return whether a search finds a request. Raises Refusal for a word that is not known here."""
    login = pull.author.login
    tests: dict[str, Callable[[str], bool]] = {
        "is": lambda it: it in ("pr", pull.state) or (it == "merged" and bool(pull.merged_at)),
        "repo": lambda it: it.lower() == repository.full_name.lower(),
        "org": lambda it: it.lower() == repository.owner.login.lower(),
        "user": lambda it: it.lower() == repository.owner.login.lower(),
        "author": lambda it: it == login or (it.startswith("app/") and f"{it[4:]}[bot]" == login),
        "state": lambda it: it == pull.state,
        "head": pull.head.startswith,
        "label": lambda it: it in pull.labels,
        "updated": lambda it: str(instant(pull.updated_at)) >= it.removeprefix(">="),
    }
    for word in shlex.split(query):
        name, _, value = word.partition(":")
        if name not in tests or (name == "updated" and not re.match(r">=\d{4}-", value)):
            raise invalid("Search", f"the tests' GitHub does not know {word}", "q")
        if not tests[name](value):
            return False
    return True
