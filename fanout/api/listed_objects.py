"""Statuses of policies, variants and repositories as `fanout get` lists them.

What else these objects have is as in the files; a variant of a policy is listed as somebody would
write it by hand.
"""

from fanout.api.gate_vocabulary import Verdict
from fanout.api.results import CheckResult, Condition
from fanout.api.view_base import RequestView, ViewModel
from fanout.values import Instant


class ListedStage(ViewModel):
    """Stage of a policy: its candidate, and the verdict of that."""

    name: str
    candidate: str
    verdict: Verdict


class ListedPolicyStatus(ViewModel, kw_only=True):
    """Observed state of a policy, with numbers of its variants."""

    observed_generation: int
    conditions: tuple[Condition, ...]
    variants: int
    failed_targets: int  # which have no variant
    failed_variants: int
    gone_variants: int  # whose target is gone
    edited_variants: int
    conflicts: int  # undecided ones, of all drafts
    broken_variants: int  # published with invalid files
    stages: tuple[ListedStage, ...]
    next: Instant | None = None  # next time when the state can change without action


class PackageLocation(ViewModel):
    """Place of a package: name of a Repository, and path from the root of that."""

    repository: str
    package: str


class ListedPackage(ViewModel):
    """Package of a variant: upstream revision, and Git tree."""

    revision: str
    tree: str


class ListedPublication(ListedPackage, kw_only=True):
    """Publication of a variant; its place is given where the variant moves away from it."""

    digest: str
    at: Instant | None = None  # None: it is not on record yet
    commit: str
    tag: str
    out_of_band: bool
    repository: str | None = None
    package: str | None = None


class ListedDraft(ListedPackage, kw_only=True):
    """Open draft of a variant."""

    branch: str


class ListedVariantStatus(ViewModel, kw_only=True):
    """Observed state of a variant."""

    target: str
    target_name: str
    state: str
    candidate: str
    conditions: tuple[Condition, ...]
    conflicts: tuple[str, ...]  # keys of those that hold the draft
    checks: tuple[CheckResult, ...]
    published: ListedPublication | None = None
    left: tuple[PackageLocation, ...] | None = None  # places that a move left a package at
    draft: ListedDraft | None = None
    request: RequestView | None = None


class ListedRepositoryStatus(ViewModel):
    """Number of the variants in a repository, and whether it could be listed if it was."""

    variants: int
    conditions: tuple[Condition, ...] | None = None
