"""Variants of repositories with a forge, as values: drafts, pull requests, reviews, statuses."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from fanout.plan.commit_statement import PackageStatement
from fanout.plan.observation.forge_identity import ForgeIdentity
from fanout.plan.observation.observed_request import (
    CommitStatus,
    ForgeState,
    ObservedRequest,
    ObservedReview,
    RequestFacts,
    RequestState,
    ReviewVerdict,
    StatusState,
)
from fanout.plan.observation.repository_state import OpenDraft, PathState, Remote, RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_status import GrantLine, PublishedLine, VariantLine
from fanout.selection.variant_spec import VariantSpec

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOST = "git.example.com"
REF = "refs/heads/drafts/default/_stages/default.monitoring/prod"
REMOTE = Remote("https://git.example.com/org/edge.git")
MAIN = "refs/heads/main"


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def commit_id(name: str) -> str:
    """An id that begins with the name's hexadecimal digits."""
    return name.encode().hex().ljust(40, "0")


def review(reviewer: str, verdict: str = "approved", *, minute: float = 1, head: str = "c1",
           dismissed: bool = False) -> ObservedReview:  # fmt: skip
    return ObservedReview(
        reviewer, ReviewVerdict(verdict), commit_id(head) if head else "", at(minute), dismissed
    )


def status(state: str = "success", creator: str = "ci", *, minute: float = 1,
           context: str = "ci/test") -> CommitStatus:  # fmt: skip
    return CommitStatus(context, StatusState(state), creator, at(minute))


def request(
    reviews: Sequence[ObservedReview] = (),
    trees: Mapping[str, Mapping[str, str]] | None = None,
    head: str = "c1",
    revisions: Mapping[str, Mapping[str, str]] | None = None,
) -> RequestFacts:
    """An open pull request; `trees` has the package trees of each reviewed commit.

    `revisions` has the revisions of its draft at each commit that is there, by variant.
    """
    shown = ObservedRequest(
        number=7,
        url="https://git.example.com/org/edge/pulls/7",
        state=RequestState.OPEN,
        is_draft=True,
        title="",
        text="",
        author="fanout",
        labels=frozenset(),
        head_repository=None,
        head_branch=REF.removeprefix("refs/heads/"),
        head_commit=commit_id(head),
        base_branch="main",
        updated=at(0),
    )
    reviewed = {commit_id(name): it for name, it in (trees or {}).items()}
    refused = {commit_id(name): it for name, it in (revisions or {}).items()}
    return RequestFacts(
        request=shown,
        reviews=tuple(reviews),
        reviewed_trees=reviewed,
        refused_revisions=refused,
    )


def forge(facts: RequestFacts | None = None,
          statuses: Mapping[str, Sequence[CommitStatus]] | None = None) -> ForgeState:  # fmt: skip
    return ForgeState(
        host=HOST,
        account=ForgeIdentity("fanout"),
        requests={REF: facts} if facts is not None else {},
        statuses={commit_id(name): tuple(it) for name, it in (statuses or {}).items()},
    )


def drafted(
    name: str,
    state: ForgeState | None,
    *,
    tree: str = "tree-a",
    revision: str = "v2",
    released: float | None = 0,
    stage: str = "prod",
) -> ObservedVariant:
    """A variant with a draft at the path `sites/<name>`, released at a minute."""
    repository = RepositoryState(remote=REMOTE, branch=MAIN, refs={}, forge=state)
    trailers = PackageStatement(
        install="default", policy="default/monitoring", variant=name, stage=stage,
        revision=revision, commit="u1", digest="d1", onto="none", tree=tree,
    )  # fmt: skip
    path = f"sites/{name}"
    draft = OpenDraft(
        ref=REF, path=path, commit=commit_id("c1"), tree=tree, trailers=trailers,
        is_edited=False,
    )  # fmt: skip
    grant = GrantLine(revision=revision, commit="u1", digest="d1", tree=tree, at=at(released or 0))
    return ObservedVariant(
        spec=_spec(name, stage),
        repository_state=repository,
        draft_ref=REF,
        path_state=PathState(None),
        status_line=VariantLine(
            repository=repository.identity,
            path=path,
            grant=grant if released is not None else None,
        ),
        draft=draft,
    )


def published(
    name: str, state: ForgeState | None, *, merge: str = "m1", head: str = "h1",
    tree: str = "tree-a", head_tree: str | None = None,
) -> ObservedVariant:  # fmt: skip
    """A published variant; `head_tree` is what the branch has at its path now."""
    repository = RepositoryState(
        remote=REMOTE, branch=MAIN, refs={}, head=commit_id(head), forge=state
    )
    line = PublishedLine(
        revision="v2", commit="u1", digest="d1", tree=tree, at=at(0),
        merge=commit_id(merge) if merge else "",
    )  # fmt: skip
    return ObservedVariant(
        spec=_spec(name, "prod"),
        repository_state=repository,
        draft_ref=REF,
        path_state=PathState(tree if head_tree is None else head_tree),
        status_line=VariantLine(
            repository=repository.identity, path=f"sites/{name}", published=line
        ),
        published=line,
    )


def _spec(name: str, stage: str) -> VariantSpec:
    return VariantSpec(
        name=name,
        namespace="default",
        policy="monitoring",
        stage=stage,
        target=name,
        upstream_repository="blueprints",
        upstream_package="monitoring",
        repository="edge",
        path=f"sites/{name}",
    )
