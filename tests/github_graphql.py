"""The GraphQL of the tests' GitHub: a schema cut from the published one, and what answers it.

`tools/github_graphql.py` writes the schema from `forge/github_api/documents.graphql`. A document
that asks for more than it has is a violation.
"""

from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import graphql
from github_answers import instant
from github_calls import Answer
from github_description import NotDescribed
from github_limits import Limits
from github_repository import Account, CheckRun, CommitStatus, Event, Pull, Repository, Review
from github_state import Credential, Refusal, State

SCHEMA = graphql.build_schema(
    (Path(__file__).parent / "forge" / "github_api" / "schema.graphql").read_text(encoding="utf-8")
)
MOST_NODES = 500_000  # of one call
MOST_OF_A_PAGE = 100
# Of what happens to a request, in the words of REST and of GraphQL.
ITEM_TYPES = {
    "closed": "CLOSED_EVENT",
    "removed_from_merge_queue": "REMOVED_FROM_MERGE_QUEUE_EVENT",
}
Object = dict[str, Any]


class Refused(Exception):
    """An error in an answer with status 200, with GitHub's type for it."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class GraphQL:
    """Answers to documents, from a state. Whoever asks holds the lock of the state."""

    def __init__(self, state: State, limits: Limits, web: str) -> None:
        self.state, self.limits, self.web = state, limits, web

    def answer(self, body: Any, credential: Credential) -> Answer:
        """Answer a document with its variables. Raises NotDescribed and Refusal."""
        if not isinstance(body, dict) or not isinstance(body.get("query"), str):
            raise NotDescribed("POST /graphql: the body has no document")
        document = graphql.parse(body["query"])
        if errors := graphql.validate(SCHEMA, document):
            raise NotDescribed(f"POST /graphql: {errors[0].message}")
        operations = [
            it for it in document.definitions if isinstance(it, graphql.OperationDefinitionNode)
        ]
        is_mutation = any(it.operation.value == "mutation" for it in operations)
        name = f"{'POST' if is_mutation else 'GET'} /graphql"
        variables = body.get("variables") or {}
        nodes, connections = count_nodes(document, variables)
        key = credential.limit_key
        cost = max(1, -(-connections // 100))
        self.limits.admit(key, name)
        self.limits.charge(key, name, cost)
        if nodes > MOST_NODES:
            message = (
                f"This query requests up to {nodes:,} possible nodes which exceeds the maximum"
                f" limit of {MOST_NODES:,}."
            )
            error = {"type": "MAX_NODE_LIMIT_EXCEEDED", "message": message}
            return Answer({"errors": [error]})
        result = graphql.graphql_sync(
            SCHEMA,
            body["query"],
            self._root(credential, cost),
            variable_values=variables,
            operation_name=body.get("operationName"),
            field_resolver=resolve,
        )
        answer: Object = {"data": result.data}
        if result.errors:
            answer["errors"] = [self._error(it) for it in result.errors]
        return Answer(answer)

    @staticmethod
    def _error(error: graphql.GraphQLError) -> Object:
        if not isinstance(error.original_error, Refused):
            raise NotDescribed(f"POST /graphql: {error}") from error.original_error
        formatted = error.formatted
        shown = {name: formatted[name] for name in ("message", "path", "locations")}
        return {"type": error.original_error.kind, **shown}

    def _root(self, credential: Credential, cost: int) -> Object:
        limits, key = self.limits, credential.limit_key

        def rate_limit() -> Object:
            shown = limits.overview(key)["graphql"]
            ends = self.state.clock() + timedelta(hours=1)
            return {"cost": cost, "remaining": shown["remaining"], "resetAt": instant(ends)}

        def mutation(
            act: Callable[..., Object], permission: str
        ) -> Callable[[dict[str, Any]], Object]:
            def change(input: dict[str, Any]) -> Object:  # noqa: A002 a name of GitHub's
                number = input.get("pullRequestId") or input.get("id")
                repository, pull = self._pull(credential, str(number))
                if self.state.access(credential, repository) != "write" or not credential.allows(
                    permission, "write"
                ):
                    raise Refused("FORBIDDEN", "Resource not accessible by integration")
                return act(repository, pull, input, credential)

            return change

        return {
            "rateLimit": rate_limit,
            # Other than `Bot.login`, and as in REST.
            "viewer": {"__typename": "User", "id": "U", "login": credential.account.login},
            "nodes": lambda ids: [self._node(credential, it) for it in ids],
            "repository": lambda owner, name: self._named(credential, f"{owner}/{name}"),
            "markPullRequestReadyForReview": mutation(self._set_draft(False), "pull_requests"),
            "convertPullRequestToDraft": mutation(self._set_draft(True), "pull_requests"),
            "enablePullRequestAutoMerge": mutation(self._enable, "contents"),
            "disablePullRequestAutoMerge": mutation(self._disable, "contents"),
            "enqueuePullRequest": mutation(self._enqueue, "contents"),
            "dequeuePullRequest": mutation(self._dequeue, "contents"),
        }

    # Reading

    def _node(self, credential: Credential, number: str) -> Object | Refused:
        """Return an object, or the error that takes its place in a list."""
        try:
            if number.startswith("R_"):
                return self._repository(self._find(credential, number, number), credential)
            return self._request(*self._pull(credential, number))
        except Refused as refused:
            return refused

    def _named(self, credential: Credential, full_name: str) -> Object:
        """Return a repository by its name, or an earlier one."""
        repository = self.state.find_repository(full_name)
        if repository is None or self.state.access(credential, repository) is None:
            message = f"Could not resolve to a Repository with the name '{full_name}'."
            raise Refused("NOT_FOUND", message)
        return self._repository(self._find(credential, repository.node, full_name), credential)

    def _find(self, credential: Credential, number: str, node: str) -> Repository:
        repository = next(
            (it for it in self.state.repositories.values() if it.node == number), None
        )
        if repository is None or self.state.access(credential, repository) is None:
            message = f"Could not resolve to a node with the global id of '{node}'"
            raise Refused("NOT_FOUND", message)
        self.state.synchronize(repository)
        return repository

    def _pull(self, credential: Credential, node: str) -> tuple[Repository, Pull]:
        for repository in self.state.repositories.values():
            for pull in repository.pulls.values():
                if pull.node == node:
                    return self._find(credential, repository.node, node), pull
        raise Refused("NOT_FOUND", f"Could not resolve to a node with the global id of '{node}'")

    def _repository(self, repository: Repository, credential: Credential) -> Object:
        def requests(states: Iterable[str] = (), **page: Any) -> Object:
            if not credential.allows("pull_requests", "read"):
                raise Refused("FORBIDDEN", "Resource not accessible by integration")
            pulls = [it for it in repository.pulls.values() if state_of(it) in states]
            return connect(pulls, lambda it: self._request(repository, it), **page)

        return {
            "__typename": "Repository",
            "id": repository.node,
            "nameWithOwner": repository.full_name,
            "isArchived": repository.is_archived,
            "mergeCommitAllowed": "merge" in repository.methods,
            "squashMergeAllowed": "squash" in repository.methods,
            "rebaseMergeAllowed": "rebase" in repository.methods,
            "autoMergeAllowed": repository.allows_auto_merge,
            "deleteBranchOnMerge": repository.deletes_merged_branches,
            "ref": lambda qualifiedName: self._ref(repository, qualifiedName, credential),  # noqa: N803
            "pullRequests": requests,
        }

    def _ref(self, repository: Repository, name: str, credential: Credential) -> Object | None:
        branch = name.removeprefix("refs/heads/")
        commit = repository.branch_commit(branch)
        if commit is None:
            return None
        classic = repository.protections.get(branch)
        rule = classic and {
            "requiredStatusCheckContexts": list(classic.checks),
            "requiredApprovingReviewCount": classic.approvals,
            "requiresLinearHistory": classic.linear_history,
            "requiresSignatures": classic.signatures,
            "requiresConversationResolution": classic.conversation_resolution,
            "requiresCodeOwnerReviews": classic.code_owners,
            "viewerCanPush": self.state.access(credential, repository) == "write",
        }
        target = {"__typename": "Commit", "id": commit, "oid": commit}
        return {"target": target, "refUpdateRule": rule or None}

    def _request(self, repository: Repository, pull: Pull) -> Object:
        mergeable, state = self.state.mergeability(repository, pull)
        words = {True: "MERGEABLE", False: "CONFLICTING", None: "UNKNOWN"}
        armed, queued = pull.auto_merge, pull.queued_at is not None
        url = f"{self.web}/{repository.full_name}/pull/{pull.number}"
        reviewers: list[Object] = [actor(it) for it in pull.reviewers]
        reviewers += [{"__typename": "Team", "slug": it} for it in pull.teams]
        return {
            "__typename": "PullRequest",
            "id": pull.node,
            "number": pull.number,
            "url": url,
            "state": state_of(pull),
            "title": pull.title,
            "body": pull.body or "",
            "isDraft": pull.is_draft,
            "createdAt": instant(pull.created_at),
            "updatedAt": instant(pull.updated_at),
            "closedAt": instant(pull.closed_at),
            "mergedAt": instant(pull.merged_at),
            "author": actor(pull.author),
            "baseRefName": pull.base,
            "headRefName": pull.head,
            "headRefOid": pull.head_commit,
            "headRepository": {"nameWithOwner": repository.full_name},
            "mergeable": words[mergeable],
            "mergeStateStatus": state.upper(),
            "mergeCommit": {"oid": pull.merge_commit} if pull.merge_commit else None,
            "mergedBy": None if pull.merged_by is None else actor(pull.merged_by),
            "labels": lambda **page: connect(pull.labels, lambda it: {"name": it}, **page),
            "reviewRequests": lambda **page: connect(
                reviewers, lambda it: {"requestedReviewer": it}, **page
            ),
            "reviews": lambda **page: connect(pull.reviews, lambda it: review(it, url), **page),
            "autoMergeRequest": None
            if armed is None
            else {
                "enabledAt": instant(armed.at),
                "mergeMethod": armed.method.upper(),
                "enabledBy": actor(armed.credential.account),
            },
            "mergeQueueEntry": self._entry(repository, pull) if queued else None,
            "timelineItems": lambda itemTypes, **page: connect(  # noqa: N803 a name of GitHub's
                [it for it in pull.events if ITEM_TYPES.get(it.kind) in itemTypes],
                timeline_item,
                **page,
            ),
            "statusCheckRollup": self._rollup(repository, pull.head_commit),
        }

    def _rollup(self, repository: Repository, commit: str) -> Object | None:
        entries: list[CommitStatus | CheckRun] = [
            *{it.context: it for it in repository.statuses[commit]}.values(),
            *{(it.app.id, it.name): it for it in repository.check_runs[commit]}.values(),
        ]
        if not entries:
            return None
        return {"contexts": lambda **page: connect(entries, context, **page)}

    @staticmethod
    def _entry(repository: Repository, pull: Pull) -> Object:
        commit = pull.queue_commit
        return {
            "id": f"MQE_{pull.id}",
            "position": repository.queue().index(pull) + 1,
            "state": "QUEUED" if commit is None else "AWAITING_CHECKS",
            "headCommit": None if commit is None else {"id": commit, "oid": commit},
        }

    # Changing

    def _set_draft(self, is_draft: bool) -> Callable[..., Object]:
        def change(repository: Repository, pull: Pull, *_: object) -> Object:
            if is_draft and not repository.allows_drafts:
                message = "Draft pull requests are not supported in this repository."
                raise Refused("UNPROCESSABLE", message)
            pull.is_draft, pull.updated_at = is_draft, self.state.clock()
            return {"pullRequest": self._request(repository, pull)}

        return change

    def _enable(
        self, repository: Repository, pull: Pull, given: dict[str, Any], credential: Credential
    ) -> Object:
        # This comes first, and so hides a head that moved.
        if not repository.allows_auto_merge:
            raise Refused("UNPROCESSABLE", "Auto merge is not allowed for this repository")
        if given.get("expectedHeadOid", pull.head_commit) != pull.head_commit:
            raise Refused("UNPROCESSABLE", "Head sha did not match the expected one.")
        if not repository.rules(pull.base):
            message = "Pull request Protected branch rules not configured for this branch"
            raise Refused("UNPROCESSABLE", message)
        _, state = self.state.mergeability(repository, pull)
        if state in ("clean", "unstable"):
            message = f"Pull request Pull request is in {state} status"
            raise Refused("UNPROCESSABLE", message)
        self.state.arm(pull, given, credential)
        return {"pullRequest": self._request(repository, pull)}

    def _disable(self, repository: Repository, pull: Pull, *_: object) -> Object:
        if pull.auto_merge is None:
            message = "Can't disable auto-merge for this pull request."
            raise Refused("UNPROCESSABLE", message)
        pull.auto_merge = None
        return {"pullRequest": self._request(repository, pull)}

    def _enqueue(
        self, repository: Repository, pull: Pull, given: dict[str, Any], credential: Credential
    ) -> Object:
        try:
            self.state.enqueue(repository, pull, given.get("expectedHeadOid"), credential)
        except Refusal as refusal:
            raise Refused("UNPROCESSABLE", refusal.body["message"]) from refusal
        return {"mergeQueueEntry": self._entry(repository, pull)}

    def _dequeue(self, repository: Repository, pull: Pull, *_: object) -> Object:
        if pull.queued_at is None:
            raise Refused("UNPROCESSABLE", "Pull request is not in the merge queue.")
        entry = self._entry(repository, pull)
        self.state.leave_queue(repository, pull, "MANUAL")
        return {"mergeQueueEntry": entry}


def resolve(source: Any, info: graphql.GraphQLResolveInfo[Any], **arguments: Any) -> Any:
    """Return a field of an object, or of what its function returns for the arguments."""
    value = source[info.field_name]
    return value(**arguments) if callable(value) else value


def connect(
    items: list[Any],
    render: Callable[[Any], Object],
    *,
    first: int | None = None,
    last: int | None = None,
    after: str | None = None,
) -> Object:
    """Return one page of a list as a connection, whose cursors are positions."""
    start, end = int(after or 0), len(items)
    if first is not None:
        end = min(end, start + first)
    if last is not None:
        start = max(start, end - last)
    return {
        "nodes": [render(it) for it in items[start:end]],
        "pageInfo": {"hasNextPage": end < len(items), "endCursor": str(end)},
    }


def state_of(pull: Pull) -> str:
    """Return the state of a request, of which REST has no `merged`."""
    return "MERGED" if pull.merged_at is not None else pull.state.upper()


def actor(account: Account) -> Object:
    """Return an account; a bot's login is without the `[bot]` that REST has."""
    login = account.login.removesuffix("[bot]")
    return {"__typename": account.kind, "id": f"U_{account.id}", "login": login}


def review(entry: Review, url: str) -> Object:
    """Return a `PullRequestReview`."""
    return {
        "__typename": "PullRequestReview",
        "id": f"PRR_{entry.id}",
        "state": entry.state,
        "submittedAt": instant(entry.submitted_at),
        "url": url,
        "author": actor(entry.author),
        "commit": {"oid": entry.commit} if entry.commit else None,
    }


def timeline_item(event: Event) -> Object:
    """Return a `ClosedEvent` or a `RemovedFromMergeQueueEvent`."""
    values = {"createdAt": instant(event.at), "actor": actor(event.actor)}
    if event.kind == "closed":
        return {"__typename": "ClosedEvent", **values}
    return {"__typename": "RemovedFromMergeQueueEvent", "reason": event.reason, **values}


def context(entry: CommitStatus | CheckRun) -> Object:
    """Return a `StatusContext` or a `CheckRun`."""
    if isinstance(entry, CommitStatus):
        return {
            "__typename": "StatusContext",
            "context": entry.context,
            "state": entry.state.upper(),
            "description": entry.description,
            "targetUrl": entry.target_url,
            "createdAt": instant(entry.at),
            "creator": actor(entry.creator),
        }
    return {
        "__typename": "CheckRun",
        "name": entry.name,
        "status": entry.status.upper(),
        "conclusion": entry.conclusion and entry.conclusion.upper(),
        "detailsUrl": entry.details_url,
        "startedAt": instant(entry.at),
        "completedAt": instant(entry.at) if entry.status == "completed" else None,
        "checkSuite": {"app": {"slug": entry.app.slug, "databaseId": entry.app.id}},
    }


def count_nodes(document: graphql.DocumentNode, variables: dict[str, Any]) -> tuple[int, int]:
    """Return how many nodes a document may bring, and how many connections it reads for them.

    Each connection needs `first` or `last` of 1 to 100. Raises Refusal.
    """
    fragments = {
        it.name.value: it
        for it in document.definitions
        if isinstance(it, graphql.FragmentDefinitionNode)
    }

    def value_of(node: graphql.ValueNode) -> Any:
        if isinstance(node, graphql.VariableNode):
            return variables.get(node.name.value)
        return graphql.value_from_ast_untyped(node)

    def count(selections: Iterable[graphql.SelectionNode], parents: int) -> tuple[int, int]:
        nodes = connections = 0
        for selection in selections:
            if isinstance(selection, graphql.FragmentSpreadNode):
                inner = fragments[selection.name.value].selection_set.selections
                size = parents
            elif isinstance(selection, graphql.InlineFragmentNode):
                inner, size = selection.selection_set.selections, parents
            elif isinstance(selection, graphql.FieldNode) and selection.selection_set:
                inner = selection.selection_set.selections
                given = {it.name.value: value_of(it.value) for it in selection.arguments or ()}
                size = parents * page_size(selection.name.value, given)
                if is_connection(inner):
                    nodes, connections = nodes + size, connections + parents
                elif selection.name.value == "nodes" and "ids" in given:
                    size = parents * len(given["ids"])
                    nodes += size
            else:
                continue
            more = count(inner, size)
            nodes, connections = nodes + more[0], connections + more[1]
        return nodes, connections

    def is_connection(selections: Iterable[graphql.SelectionNode]) -> bool:
        names = [it.name.value for it in selections if isinstance(it, graphql.FieldNode)]
        return "nodes" in names or "pageInfo" in names

    def page_size(name: str, given: dict[str, Any]) -> int:
        size = given.get("first") or given.get("last")
        if size is not None and not 1 <= size <= MOST_OF_A_PAGE:
            raise Refusal(400, f"{name}: `first` and `last` are from 1 to {MOST_OF_A_PAGE}")
        return size or 1

    roots = [it for it in document.definitions if isinstance(it, graphql.OperationDefinitionNode)]
    totals = [count(it.selection_set.selections, 1) for it in roots]
    return sum(it[0] for it in totals), sum(it[1] for it in totals)
