"""First phase of a variant in a pass: what its repository and its records show."""

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.api.text_fields import list_first
from fanout.errors import InvalidInput
from fanout.package.merge.merge_conflicts import NO_CHOICES, ConflictChoices
from fanout.plan import plan_wording
from fanout.plan.commit_statement import NO_VALUE
from fanout.plan.edits.adoption_base import UpstreamOrigin
from fanout.plan.edits.draft_damage import build_faults_hold
from fanout.plan.edits.merge_disputes import parse_disputes
from fanout.plan.history.earlier_publication import RevertedPublication
from fanout.plan.move_locations import AbandonedLocation, MisplacedDraft
from fanout.plan.observation.repository_state import (
    ObservedPath,
    OpenDraft,
    PathState,
    PristineRenderings,
    RepositoryState,
)
from fanout.plan.records.policy_status import PublishedLine, VariantLine
from fanout.selection.ref_names import SetScope, install_of, scope_of, vendor_ref
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value


class DeclinedRequest(Value, kw_only=True):
    """Pull request that a person closed, or whose branch a person deleted."""

    revision: str  # that the variant has in it
    number: int
    url: str
    by: str = ""  # "<host>/<login>" of who closed it; "": unknown, or its branch was deleted
    is_closed: bool = True  # False: its branch was deleted, and the forge shows it open still


class VariantContext(Value, kw_only=True):
    """Context of a variant: its places, choices about it, and what others make it wait for."""

    may_adopt: bool = False  # its policy adopts existing packages
    choices: ConflictChoices = NO_CHOICES  # winners of its merge conflicts
    previous: ObservedPath | None = None  # other location of its published package
    misplaced_drafts: tuple[MisplacedDraft, ...] = ()  # its drafts at other locations
    abandoned: tuple[AbandonedLocation, ...] = ()  # previous locations that still have its package
    exchange_partners: frozenset[str] = frozenset()  # variants with which it exchanges paths
    occupant_tag: str = ""  # of the last publication of the one that is at its path now
    wait_hold: Hold | None = None  # it waits for another variant
    # Renderings before an interrupted push, or before a draft that replaced a merged one.
    unfinished_push: PristineRenderings | None = None


class ObservedVariant(VariantContext, kw_only=True):
    """One variant as its repository and its records show it, before a candidate is selected."""

    spec: VariantSpec
    repository_state: RepositoryState
    draft_ref: str  # branch of its draft
    path_state: PathState  # content of the branch at its path
    status_line: VariantLine
    draft: OpenDraft | None = None
    keeps_draft: bool = False  # commits of people on it are not in what was merged by hand
    published: PublishedLine | None = None
    is_unrecorded: bool = False  # the publication was found in Git and is not on record yet
    origin: UpstreamOrigin | None = None  # of the package that it adopts
    published_for_another: bool = False  # the publication at its path is of another variant
    tag: str = ""  # of an unrecorded publication that has a tag or is stated; full ref name
    reverted_publication: RevertedPublication | None = None  # its publication was reverted by hand
    has_lost_history: bool = False  # removed, and the branch lacks the commit that published it
    published_faults: tuple[InvalidInput, ...] = ()  # introduced by edits of the published package
    missing_tag: str = ""  # of the published revision, if upstream no longer has it
    rewound_records: str = ""  # a sentence, if its newest publication is missing in the records
    declined: DeclinedRequest | None = None  # counts for its revision alone
    obstacle: Hold | None = None  # prevents any draft, whatever the candidate

    @property
    def shares_draft(self) -> bool:
        """Return whether variants of its stage share the branch of its draft."""
        return scope_of(self.draft_ref) is SetScope.STAGE

    @property
    def is_granted(self) -> bool:
        """Return whether the recorded release is for exactly the draft on its branch."""
        return self.grants(self.draft)

    def grants(self, draft: OpenDraft | None) -> bool:
        """Return whether the recorded release is for exactly this draft at this place."""
        grant = self.status_line.grant
        return (
            grant is not None
            and draft is not None
            # A release for another place does not allow a publication here, though the
            # content is equal.
            and self.status_line.granted_place == (self.repository_state.identity, self.spec.path)
            and (grant.revision, grant.digest) == (draft.trailers.revision, draft.trailers.digest)
        )

    @property
    def is_moving(self) -> bool:
        """Return whether the published package is still at another place."""
        return self.previous is not None and not self.is_unrecorded

    @property
    def package_location(self) -> ObservedPath:
        """Return where the variant's own package is, or is to be if it has none."""
        if self.previous is not None and self.is_moving:
            return self.previous
        return ObservedPath(self.repository_state, self.spec.repository, self.spec.path)

    @property
    def package_state(self) -> PathState:
        """Return the state of the variant's own package on its branch."""
        if self.previous is not None and self.is_moving:
            return self.previous.path_state
        return self.path_state

    @property
    def open_drafts(self) -> tuple[tuple[RepositoryState, str, OpenDraft], ...]:
        """Return its draft and those at other locations: repository, path and draft of each."""
        misplaced = ((it.repository_state, it.path, it.draft) for it in self.misplaced_drafts)
        own = [(self.repository_state, self.spec.path, self.draft)] if self.draft else []
        return (*own, *misplaced)

    @property
    def onto_tree(self) -> str:
        """Return the tree that a draft written now replaces (trailer `Fanout-Onto`)."""
        return self.package_state.tree or NO_VALUE

    @property
    def published_rendering(self) -> str | None:
        """Return the tree under `published/` at the path, as it was before an unfinished push."""
        if self.unfinished_push is not None:
            return self.unfinished_push.published_tree
        return self.repository_state.published_renderings.get(self.spec.path)

    @property
    def drafted_rendering(self) -> str | None:
        """Return the tree under `drafts/` at the path, as it was before an unfinished push."""
        if self.unfinished_push is not None:
            return self.unfinished_push.drafted_tree
        return self.repository_state.drafted_renderings.get(self.spec.path)

    @property
    def pristine_tree(self) -> str | None:
        """Return the tree of the published rendering without edits, or None if lost.

        The recorded status has its id. So the branch of renderings may be lost or changed by
        hand: where nothing was merged, the repository's own history holds that tree.
        """
        if self.reverted_publication is not None:
            return self.reverted_publication.pristine_tree
        recorded = self.published.pristine if self.published else ""
        if recorded in ("", self.vendored_tree):
            return self.vendored_tree
        assert self.published is not None, "only a publication has a recorded pristine rendering"
        return recorded if recorded == self.published.tree else None

    @property
    def vendored_tree(self) -> str | None:
        """Return the tree that the branch of renderings has as published for this variant."""
        if self.published_for_another and not self.is_moving:
            return None
        if self.is_unrecorded and self.drafted_rendering is not None:
            return self.drafted_rendering
        if self.previous is not None and self.is_moving:
            return self.previous.pristine_tree
        return self.published_rendering

    @property
    def is_edited(self) -> bool:
        """Return whether the published package was changed or removed by hand.

        The pristine rendering tells also where the status was lost. Where nothing tells, the
        published tree may hold the edits of earlier revisions and counts as edited.
        """
        if self.published is None and self.vendored_tree is None:
            return False
        if self.reverted_publication is not None:
            return self.package_state.tree != self.reverted_publication.pristine_tree
        pristine = self.published.pristine if self.published else ""
        return self.package_state.tree != (pristine or self.vendored_tree)

    @property
    def has_edits_in_force(self) -> bool:
        """Return whether the published package is still in place with edits made by hand."""
        is_present = self.published is not None and self.package_state.tree is not None
        return is_present and self.reverted_publication is None and self.is_edited

    @property
    def lacks_base(self) -> bool:
        """Return whether the published package has edits but no base to merge from."""
        is_present = self.published is not None and self.package_state.tree is not None
        return is_present and self.is_edited and self.pristine_tree is None

    @property
    def is_removed_by_hand(self) -> bool:
        """Return whether the published package was removed from the branch by hand.

        If the records are lost, its pristine rendering shows that it was published.
        """
        return (
            self.package_state.tree is None
            and (self.published is not None or self.vendored_tree is not None)
            and self.package_location.repository_state.failure is None
            # Without this, a variant that was never published at this path would count as
            # removed from it.
            and self.status_line.place
            == (self.package_location.repository_state.identity, self.package_location.path)
        )

    @property
    def revert_hold(self) -> Hold | None:
        """Return a hold if the publication was removed or reverted by hand: it is not put back."""
        spec, published, reverted = self.spec, self.published, self.reverted_publication
        is_removed = self.is_removed_by_hand
        if not is_removed and (reverted is None or published is None):
            return None
        home = self.package_location
        state, location = home.repository_state, f"{home.repository}:{home.path}"
        if not is_removed and reverted is not None and published is not None:
            remedy = "restore it (`git revert`)"
            if not reverted.is_other_package and reverted.pristine_tree is not None:
                subject = spec.name
                if spec.policy:
                    subject = f"{spec.policy} --stage {spec.stage} --variant {spec.name}"
                command = f"fanout promote {subject} --reason WHY"
                remedy += f", or publish the next draft over it: `{command}`"
            sentence = (
                f"{location} {reverted.description}, and {published.revision} was published: it was"
                f" reverted; {remedy}"
            )
        elif not state.head:
            return missing_branch_hold(state, home.repository, is_published=True)
        elif self.has_lost_history and published is not None:
            tag, merge = published.tag, published.merge
            return lost_history_hold(state, home.repository, home.path, tag, merge)
        else:
            remedy = "remove the PackageVariant"
            if published is None:
                branch = vendor_ref(install_of(self.draft_ref)).removeprefix("refs/heads/")
                place = f"published/{spec.path} from branch {branch}"
                remedy = f"remove {place} to have it written again"
            elif spec.policy:
                command = f"fanout remove {spec.policy} {spec.name} --reason WHY"
                remedy = f"remove its target and run `{command}`"
            sentence = (
                f"{location} was removed from the branch by hand; restore it (`git revert`) or"
                f" {remedy}"
            )
        who = plan_wording.format_maintainers(spec.repository)
        return Hold(Reason.EDITED_DOWNSTREAM, sentence, who)

    @property
    def is_unmanaged(self) -> bool:
        """Return whether the package at the path is not managed by fanout, or not any more."""
        if self.path_state.tree is None or self.is_moving:
            return False
        is_unknown = self.published is None and self.published_rendering is None
        return is_unknown or self.published_for_another or (self.may_adopt and self.lacks_base)

    @property
    def needs_merge(self) -> bool:
        """Return whether edits made by hand must be merged into the new rendering."""
        return (
            self.is_edited
            or self.is_unmanaged
            or (self.draft is not None and self.draft.has_edits)
            or any(it.draft.has_edits for it in self.misplaced_drafts)
        )

    @property
    def draft_hold(self) -> Hold | None:
        """Return the first hold that prevents a draft for any candidate, independent of gates."""
        # In order of what must be mended first: no draft can be reasoned about while
        # its repository or its published package is unusable.
        if self.obstacle is not None:
            return self.obstacle
        reverted = self.reverted_publication
        # Another package may stand in place of the published one.
        is_replaced = reverted is not None and (
            reverted.is_other_package or reverted.pristine_tree is None
        )
        hold = self.revert_hold if is_replaced or self.is_removed_by_hand else None
        hold = hold or self.wait_hold
        if hold is not None or self.is_unrecorded:
            return hold
        # What edits have broken is neither published nor rewritten.
        for _, _, draft in self.open_drafts:
            if draft.faults:
                return build_faults_hold(draft.faults, draft.ref, self.spec.repository)
        return None

    def follows_choices(self, draft: OpenDraft) -> bool:
        """Return whether every dispute that no commit settled has the chosen winner."""
        # Most drafts have no disputes, and their trailers need no parsing.
        if draft.trailers.conflicts == NO_VALUE or self.choices == NO_CHOICES:
            return True
        return all(
            it.key in draft.settled_keys or self.choices.winner(it.key, it.winner) is it.winner
            for it in parse_disputes(draft.trailers.conflicts)
        )


def lost_history_hold(
    state: RepositoryState, repository: str, path: str, tag: str, merge: str
) -> Hold:
    """Return the hold of a package that a branch lacks together with the commit of its publication.

    `tag` and `merge` are the tag and the commit of the publication.
    """
    restoration = (
        f"put the branch back, or run `git restore --source {tag} -- {path}` on it and push"
        if tag and state.refs.get(f"refs/tags/{tag}") == merge
        else "push the earlier history to it again"
    )
    return Hold(
        Reason.BRANCH_REWRITTEN,
        f"branch {state.branch.removeprefix('refs/heads/')} of {repository} was rewritten or"
        f" replaced: it lacks commit {merge[:12]}, which published {path}; {restoration}",
        who=plan_wording.format_maintainers(repository),
    )


def lost_leftover_hold(abandoned: AbandonedLocation) -> Hold:
    """Return the hold of a package that a move has left on a branch that was rewritten since."""
    line, location = abandoned.left_place, abandoned.location
    return lost_history_hold(
        location.repository_state, location.repository, line.path, line.tag, line.merge
    )


def missing_branch_hold(state: RepositoryState, repository: str, *, is_published: bool) -> Hold:
    """Return the hold of variants whose repository lacks its branch.

    `is_published`: a package was published to it, so that an empty repository has been replaced.
    """
    own = ("refs/heads/drafts/", "refs/heads/fanout/")
    others = sorted(
        ref.removeprefix("refs/heads/")
        for ref in state.refs
        if ref.startswith("refs/heads/") and not ref.startswith(own)
    )
    branch = state.branch.removeprefix("refs/heads/")
    missing = f"repository {repository} has no branch {branch}"
    remedy = f"set spec.branch of the Repository, or create {branch} again"
    if state.default_branch:
        sentence = f"{missing}; its default branch is {state.default_branch}: {remedy}"
    elif others:
        sentence = f"{missing}, but {list_first(others, 3)}: {remedy}"
    elif is_published:
        sentence = (
            f"{missing}, to which packages were published: the repository was emptied or replaced;"
            " push the earlier history to it again"
        )
    else:
        sentence = f"{missing}; push a first commit to it"
    return Hold(Reason.BRANCH_MISSING, sentence, who=plan_wording.format_maintainers(repository))
