"""A client of fanout, and a repository on the tests' GitHub that it works on."""

from dataclasses import dataclass

from github_site import Site

from fanout.api.promotion_policy import MergeStyle
from fanout.forge.github import GitHubForge
from fanout.plan.observation.merge_outcome import Merged, Refused
from fanout.plan.observation.observed_request import (
    GuardedMerge,
    ObservedRequest,
    RepositoryName,
    RequestDraft,
)

NAME = RepositoryName("acme", "site")
BOT = "fanout[bot]"
HEADERS = (("Accept", "application/vnd.github+json"), ("X-GitHub-Api-Version", "2026-03-10"))
DRAFT = RequestDraft("draft", "main", "Release v1 to prod", "What changes.", is_draft=False)


@dataclass
class Place:
    """The site, and the client of fanout."""

    site: Site
    forge: GitHubForge

    def open(self, *, is_draft: bool = False) -> ObservedRequest:
        draft = RequestDraft("draft", "main", DRAFT.title, DRAFT.text, is_draft)
        return self.forge.open_request(NAME, draft)

    def seen(self, request: ObservedRequest) -> ObservedRequest:
        """Return the request as it is now, after GitHub has computed whether it can be merged."""
        self.forge.request(NAME, request.number)
        observed = self.forge.request(NAME, request.number)
        assert observed is not None
        return observed

    def merge(self, request: ObservedRequest, **options) -> Merged | Refused:
        values = {"style": MergeStyle.MERGE, "subject": "Publish v1", "body": "By fanout"}
        guard = {"number": 1, "head_commit": request.head_commit, "head_branch": "draft"}
        return self.forge.merge_request(NAME, GuardedMerge(**{**guard, **values, **options}))
