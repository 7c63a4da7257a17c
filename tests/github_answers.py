"""JSON objects of GitHub's REST API for what the tests' GitHub has.

Fields that a client has a use for are given here; `complete` adds the others.
"""

from datetime import datetime
from typing import Any

from github_description import complete
from github_repository import (
    Account,
    App,
    CheckRun,
    CommitStatus,
    Event,
    Pull,
    Repository,
    Review,
    Rules,
)

Json = dict[str, Any]
LABEL_COLOR = "ededed"


def instant(at: datetime | None) -> str | None:
    """Return an instant as GitHub writes it, in whole seconds."""
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%SZ")


class Answers:
    """Writer of JSON objects with addresses below `api` and `web`."""

    def __init__(self, api: str, web: str) -> None:
        self.api, self.web = api, web

    def account(self, account: Account) -> Json:
        """Return a `simple-user`."""
        values = {"login": account.login, "id": account.id, "type": account.kind}
        url = f"{self.api}/users/{account.login}"
        return complete("simple-user", {**values, "url": url}, url=url)

    def app(self, app: App) -> Json:
        """Return an `integration`."""
        url = f"{self.web}/apps/{app.slug}"
        values = {
            "id": app.id,
            "slug": app.slug,
            "client_id": app.client_id,
            "name": app.slug,
            "owner": self.account(app.account),
            "html_url": url,
        }
        return complete("integration", values, url=url)

    def repository(self, repository: Repository, schema: str, *, can_push: bool) -> Json:
        """Return a repository in the fields that `repository` and `full-repository` share."""
        url = f"{self.api}/repos/{repository.full_name}"
        values = {
            "id": repository.id,
            "node_id": repository.node,
            "name": repository.name,
            "full_name": repository.full_name,
            "owner": self.account(repository.owner),
            "private": repository.is_private,
            "visibility": "private" if repository.is_private else "public",
            "archived": repository.is_archived,
            "url": url,
            "html_url": f"{self.web}/{repository.full_name}",
            "clone_url": f"{self.web}/{repository.full_name}.git",
            "default_branch": "main",
            "allow_merge_commit": "merge" in repository.methods,
            "allow_squash_merge": "squash" in repository.methods,
            "allow_rebase_merge": "rebase" in repository.methods,
            "allow_auto_merge": repository.allows_auto_merge,
            "delete_branch_on_merge": repository.deletes_merged_branches,
            "has_pull_requests": True,
            "created_at": instant(repository.created_at),
            "updated_at": instant(repository.created_at),
            "pushed_at": instant(repository.created_at),
            "permissions": {"admin": False, "push": can_push, "pull": True},
        }
        return complete(schema, values, url=url)

    def pull(self, repository: Repository, pull: Pull) -> Json:
        """Return a `pull-request-simple`, which lists have."""
        url = f"{self.api}/repos/{repository.full_name}/pulls/{pull.number}"
        web = f"{self.web}/{repository.full_name}/pull/{pull.number}"
        values = {
            "id": pull.id,
            "node_id": pull.node,
            "number": pull.number,
            "url": url,
            "html_url": web,
            "state": pull.state,
            "title": pull.title,
            "body": pull.body,
            "draft": pull.is_draft,
            "user": self.account(pull.author),
            "labels": [self.label(repository, it) for it in pull.labels],
            "requested_reviewers": [self.account(it) for it in pull.reviewers],
            "requested_teams": [self._team(it) for it in pull.teams],
            "head": self._side(repository, pull.head, pull.head_commit),
            "base": self._side(repository, pull.base, pull.base_commit),
            "created_at": instant(pull.created_at),
            "updated_at": instant(pull.updated_at),
            "closed_at": instant(pull.closed_at),
            "merged_at": instant(pull.merged_at),
            "assignees": [],
            "auto_merge": self._armed(pull),
        }
        return complete("pull-request-simple", values, url=url)

    def whole_pull(
        self, repository: Repository, pull: Pull, *, mergeable: bool | None, state: str
    ) -> Json:
        """Return a `pull-request`, which has more than those of lists."""
        simple = self.pull(repository, pull)
        changes = repository.changed_files(
            repository.merge_base(pull.base_commit, pull.head_commit) or pull.base_commit,
            pull.head_commit,
        )
        values = {
            **simple,
            "requested_teams": [self._team(it, "team-simple") for it in pull.teams],
            "mergeable": mergeable,
            "mergeable_state": state,
            "merged": pull.merged_at is not None,
            "merged_by": None if pull.merged_by is None else self.account(pull.merged_by),
            "commits": len(repository.commits(pull.base_commit, pull.head_commit)),
            "changed_files": len(changes),
            "additions": sum(it["additions"] for it in changes),
            "deletions": sum(it["deletions"] for it in changes),
        }
        return complete("pull-request", values, url=simple["url"])

    def label(self, repository: Repository, name: str) -> Json:
        """Return a `label`; all have the color of those that a call created by naming them."""
        url = f"{self.api}/repos/{repository.full_name}/labels/{name}"
        # Null is described for some objects with labels, text for all.
        values = {"name": name, "color": LABEL_COLOR, "description": "", "url": url}
        return complete("label", values, url=url)

    def review(self, repository: Repository, pull: Pull, review: Review) -> Json:
        """Return a `pull-request-review`."""
        values = {
            "id": review.id,
            "user": self.account(review.author),
            "state": review.state,
            "commit_id": review.commit,
            "body": review.body,
            "submitted_at": instant(review.submitted_at),
            "author_association": "MEMBER",
        }
        web = f"{self.web}/{repository.full_name}/pull/{pull.number}"
        return complete("pull-request-review", values, url=web)

    def status(self, repository: Repository, commit: str, status: CommitStatus) -> Json:
        """Return a `status`."""
        url = f"{self.api}/repos/{repository.full_name}/statuses/{commit}"
        values = {
            "id": status.id,
            "url": url,
            "context": status.context,
            "state": status.state,
            "description": status.description,
            "target_url": status.target_url,
            "creator": self.account(status.creator),
            "created_at": instant(status.at),
            "updated_at": instant(status.at),
        }
        return complete("status", values, url=url)

    def check_run(self, repository: Repository, commit: str, run: CheckRun) -> Json:
        """Return a `check-run`."""
        url = f"{self.api}/repos/{repository.full_name}/check-runs/{run.id}"
        values = {
            "id": run.id,
            "name": run.name,
            "head_sha": commit,
            "status": run.status,
            "conclusion": run.conclusion,
            "app": self.app(run.app),
            "url": url,
            "details_url": run.details_url,
            "html_url": url,
            "started_at": instant(run.at),
            "completed_at": instant(run.at) if run.status == "completed" else None,
        }
        return complete("check-run", values, url=url)

    def event(self, repository: Repository, event: Event) -> Json:
        """Return an event of an issue.

        GitHub describes that of `closed` and `merged` by no schema of their own; it has what all of
        them have.
        """
        url = f"{self.api}/repos/{repository.full_name}/issues/events/{event.id}"
        values = {
            "id": event.id,
            "url": url,
            "event": event.kind,
            "actor": self.account(event.actor),
            "created_at": instant(event.at),
            "commit_id": event.commit,
            "performed_via_github_app": None if event.app is None else self.app(event.app),
        }
        return complete("added-to-project-issue-event", values, url=url)

    def commit(self, repository: Repository, commit: str) -> Json:
        """Return a `commit`, without its files."""
        url = f"{self.api}/repos/{repository.full_name}/commits/{commit}"
        found = repository.commit(commit)
        values = complete("commit", {"sha": commit, "url": url}, url=url)
        values["commit"]["message"] = found.message
        values["commit"]["tree"]["sha"] = str(found.tree.id)
        values["parents"] = [
            {"sha": str(it), "url": f"{url.rpartition('/')[0]}/{it}"} for it in found.parent_ids
        ]
        return values

    def changed_file(self, repository: Repository, entry: Json) -> Json:
        """Return a `diff-entry`."""
        return complete("diff-entry", entry, url=f"{self.web}/{repository.full_name}")

    def branch(self, repository: Repository, name: str, commit: str) -> Json:
        """Return a `branch-with-protection`: of rulesets it says only that there is one."""
        url = f"{self.api}/repos/{repository.full_name}/branches/{name}"
        classic = repository.protections.get(name)
        protection: Json = {"enabled": classic is not None}
        protection["required_status_checks"] = {
            "enforcement_level": "everyone" if classic and classic.checks else "off",
            "contexts": list(classic.checks) if classic else [],
            "checks": [
                {"context": context, "app_id": app}
                for context, app in (classic.checks if classic else {}).items()
            ],
        }
        values = {
            "name": name,
            "commit": self.commit(repository, commit),
            "protected": bool(repository.rules(name)),
            "protection": protection,
            "protection_url": f"{url}/protection",
        }
        return complete("branch-with-protection", values, url=url)

    def rules(self, repository: Repository, rules: Rules) -> list[Json]:
        """Return the rules of a ruleset, each a `repository-rule-detailed`."""
        asks_review = rules.approvals or rules.code_owners or rules.last_push_approval
        narrow = rules.conversation_resolution or len(rules.methods) < 3
        kinds: dict[str, Json | None] = {}
        if rules.checks:
            kinds["required_status_checks"] = {
                "strict_required_status_checks_policy": rules.is_strict,
                "required_status_checks": [
                    {"context": context, **({} if app is None else {"integration_id": app})}
                    for context, app in rules.checks.items()
                ],
            }
        if asks_review or narrow:
            kinds["pull_request"] = {
                "allowed_merge_methods": list(rules.methods),
                "dismiss_stale_reviews_on_push": False,
                "require_code_owner_review": rules.code_owners,
                "require_last_push_approval": rules.last_push_approval,
                "required_approving_review_count": rules.approvals,
                "required_review_thread_resolution": rules.conversation_resolution,
            }
        if rules.linear_history:
            kinds["required_linear_history"] = None
        if rules.signatures:
            kinds["required_signatures"] = None
        if rules.queue:
            kinds["merge_queue"] = {
                "check_response_timeout_minutes": 60,
                "grouping_strategy": "ALLGREEN",
                "max_entries_to_build": 5,
                "max_entries_to_merge": 5,
                "merge_method": rules.methods[0].upper(),
                "min_entries_to_merge": 1,
                "min_entries_to_merge_wait_minutes": 5,
            }
        origin = {
            "ruleset_source_type": "Repository",
            "ruleset_source": repository.full_name,
            "ruleset_id": repository.id,
        }
        return [
            {"type": kind, **({} if values is None else {"parameters": values}), **origin}
            for kind, values in kinds.items()
        ]

    def search_item(self, repository: Repository, pull: Pull) -> Json:
        """Return an `issue-search-result-item`."""
        url = f"{self.api}/repos/{repository.full_name}/issues/{pull.number}"
        simple = self.pull(repository, pull)
        shared = ("number", "state", "title", "user", "labels", "html_url", "draft")
        instants = ("created_at", "updated_at", "closed_at")
        values = {
            **{name: simple[name] for name in (*shared, *instants)},
            **({} if pull.body is None else {"body": pull.body}),  # described as text, never null
            "url": url,
            "repository_url": f"{self.api}/repos/{repository.full_name}",
            "pull_request": {
                "url": simple["url"],
                "html_url": simple["html_url"],
                "diff_url": simple["diff_url"],
                "patch_url": simple["patch_url"],
                "merged_at": simple["merged_at"],
            },
        }
        return complete("issue-search-result-item", values, url=url)

    def _side(self, repository: Repository, branch: str, commit: str) -> Json:
        return {
            "label": f"{repository.owner.login}:{branch}",
            "ref": branch,
            "sha": commit,
            "repo": self.repository(repository, "repository", can_push=True),
            "user": self.account(repository.owner),
        }

    def _armed(self, pull: Pull) -> Json | None:
        armed = pull.auto_merge
        if armed is None:
            return None
        return {
            "enabled_by": self.account(armed.credential.account),
            "merge_method": armed.method,
            "commit_title": armed.title or pull.title,
            "commit_message": armed.text or "",
        }

    def _team(self, slug: str, schema: str = "team") -> Json:
        return complete(schema, {"slug": slug, "name": slug}, url=f"{self.api}/teams/{slug}")
