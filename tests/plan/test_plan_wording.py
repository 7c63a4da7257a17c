"""The sentences of `plan`, as people read them."""

from operator import itemgetter

import pytest

from fanout.plan import plan_wording as wording
from fanout.plan.observation.observed_request import RequestState

AMS, BER = "edge:sites/ams", "edge:sites/ber"
OWNER = "variant ber (default/web)"

SENTENCES = [
    # Actors.
    (wording.format_maintainers("edge"), "the maintainers of edge"),
    (wording.format_variant_author("own"), "the author of PackageVariant own"),
    (wording.format_pin_author("prod"), "the policy's author (pin of stage prod)"),
    (
        wording.format_withdraw_command("web", "d1"),
        "whoever may withdraw records: run `fanout withdraw web d1 --reason WHY`",
    ),
    (wording.format_promoter("ber"), "any promoter of ber"),
    (wording.describe_postponed_draft(2),
     "its policy has written 2 drafts in this round (draftsPerRound)"),
    # Rollback.
    (wording.describe_unpublished_revision(AMS, "v1"),
     "edge:sites/ams was never published at v1; choose a published revision"),
    (wording.describe_moved_rollback("ams", "sites/ams", AMS, "v1"),
     "ams moves from sites/ams to edge:sites/ams; roll it back to v1 before or after the move"),
    (wording.describe_edited_draft("drafts/x", "v2", "v1"),
     ("branch drafts/x has people's commits on a draft of v2, which a rollback to v1 would drop;"
     " save them in another branch and remove this one")),
    (wording.describe_missing_rendering(AMS, "v1"),
     ("the vendor branch lacks v1 of edge:sites/ams, so edits cannot be told from upstream;"
     " restore that branch")),
    (wording.describe_reverted(AMS, "is at v1", "v2", "restore it (`git revert`)"),
     "edge:sites/ams is at v1, and v2 was published: it was reverted; restore it (`git revert`)"),
    # Paths and moves.
    (wording.describe_shared_branch("drafts/x", "ber"),
     ("branch drafts/x has people's commits for variant ber; its draft at the new path takes them"
     " first")),
    (wording.describe_nested_move(AMS, "sites"),
     "edge:sites/ams and the present path sites are nested; move it to a third path first"),
    (wording.describe_other_namespace(AMS, "sites"),
     ("edge:sites/ams is not free: sites belongs to a variant in another namespace; choose another"
      " path, or wait until it is free")),
    (wording.describe_undeclared_occupant(AMS, "sites", "default/old"),
     ("edge:sites/ams is not free: sites belongs to policy default/old, which is not declared;"
     " declare it again, or declare it without targets and run"
     " `fanout remove old --all-gone --reason WHY`")),
    (wording.describe_leaving_occupant(AMS, "sites", OWNER),
     ("edge:sites/ams is not free: variant ber (default/web) leaves sites when it is ready at its"
     " new path")),
    (wording.describe_moving_occupant(AMS, "sites", OWNER),
     "edge:sites/ams is not free: variant ber (default/web) has not moved from sites yet"),
    (wording.describe_orphaned_occupant(AMS, "sites", "ber", "default/web"),
     ("edge:sites/ams is not free: sites belongs to variant ber (default/web), which has no target;"
      " run `fanout remove web ber -n default --reason WHY`")),
    (wording.describe_orphaned_occupant(AMS, "sites", "ber", "default/"),
     ("edge:sites/ams is not free: sites belongs to variant ber (default/), which has no target;"
      " run `fanout remove ber -n default --reason WHY`")),
    (wording.describe_missing_branch("edge", "main", "", []),
     "repository edge has no branch main; push a first commit to it"),
    (wording.describe_missing_branch("edge", "main", "trunk", ["next", "trunk"]),
     ("repository edge has no branch main; its default branch is trunk: set spec.branch of the"
      " Repository, or create main again")),
    (wording.describe_missing_branch("edge", "main", "", ["a", "b", "c", "d"]),
     ("repository edge has no branch main, but a, b, c and 1 more: set spec.branch of the"
      " Repository, or create main again")),
    (wording.describe_lost_history("edge", "main", "sites/ams", "abab", "sites/ams/v1"),
     ("branch main of edge was rewritten or replaced: it lacks commit abab, which"
      " published sites/ams; put the branch back, or run `git restore --source sites/ams/v1 --"
      " sites/ams` on it and push")),
    (wording.describe_lost_history("edge", "main", "sites/ams", "abab", ""),
     ("branch main of edge was rewritten or replaced: it lacks commit abab, which"
      " published sites/ams; push the earlier history to it again")),
    (wording.describe_invalid_path(AMS, "is a file"),
     "edge:sites/ams: is a file; remove it from the branch or change downstream.package"),
    (wording.describe_other_installation(AMS, "lab"),
     "edge:sites/ams has a draft of installation lab; one installation owns a path"),
    (wording.describe_foreign_draft("drafts/x", "ams"),
     "branch drafts/x has commits of others and no draft of ams; rename or delete it"),
    (wording.describe_copied_draft("drafts/x", "ams", "osl"),
     ("branch drafts/x has the draft of variant osl, and none of ams; rename or delete it to have"
      " the draft written again")),
    (wording.describe_other_package(AMS),
     "edge:sites/ams holds a package that is not this variant's; choose another path or remove it"),
    (wording.describe_unmanaged_package(AMS),
     ("edge:sites/ams holds a package that fanout did not write; set adoptionPolicy: AdoptExisting,"
     " choose another path or remove it")),
    (wording.describe_unmerged_package(AMS, "drafts/x"),
     ("edge:sites/ams holds a package that is not known to be from its draft; if it is, merge"
     " branch drafts/x with a merge commit, else set adoptionPolicy: AdoptExisting or choose"
     " another path")),
    (wording.describe_unmerged_package(AMS, ""),
     ("edge:sites/ams holds a package that is not known to be from its draft; set adoptionPolicy:"
      " AdoptExisting or choose another path")),
    (wording.describe_exchange(AMS, ["ber"]),
     "edge:sites/ams is the path of ber until that moves; both move in one push"),
    (wording.describe_split_exchange(AMS, "ber"),
     ("edge:sites/ams is the path of ber, which has another pull request; move one of them to a"
     " third path first")),
    (wording.describe_remaining_draft("drafts/x", "core"),
     "branch drafts/x in core is removed first; its commits are in the draft"),
    # Former locations.
    (wording.describe_waiting_cleanup("sites/ams", "ams"),
     "sites/ams is removed when ams is ready at its new path"),
    (wording.describe_requested_cleanup(AMS, "drafts/x"),
     "edge:sites/ams goes with the pull request of drafts/x"),
    (wording.describe_edited_cleanup(AMS, BER, "fanout remove web ams"),
     ("the former path edge:sites/ams was edited: copy the edits to edge:sites/ber, then run"
     " `fanout remove web ams --edited --reason WHY`")),
    (wording.describe_manual_cleanup(AMS, "fanout remove web ams"),
     ("the former path edge:sites/ams still exists and automatic promotion is off: run"
     " `fanout remove web ams --reason WHY`")),
    (wording.describe_closed_cleanup(AMS, "publication is closed"),
     "the former path edge:sites/ams still exists: publication is closed"),
    (wording.describe_foreign_removal("drafts/x", "edge"),
     "branch drafts/x of edge has nothing but commits of others; rename or delete it"),
    # Drafts and edits.
    (wording.describe_shared_draft("ber", ""), "ber in the same draft cannot be published yet"),
    (wording.describe_shared_draft("ber", "S"),
     "ber in the same draft cannot be published yet: S"),
    (wording.describe_manual_removal(AMS, "remove the PackageVariant"),
     ("edge:sites/ams was removed from the branch by hand; restore it (`git revert`) or remove the"
     " PackageVariant")),
    (wording.describe_draft_faults("S", "drafts/x", 0),
     "S on branch drafts/x, or remove the branch to have the draft rewritten"),
    (wording.describe_draft_faults("S", "drafts/x", 2),
     "S on branch drafts/x (and 2 more), or remove the branch to have the draft rewritten"),
    (wording.describe_missing_base(AMS, has_other=False),
     ("edge:sites/ams has edits and the vendor branch lacks it; restore that branch, or set"
     " adoptionPolicy: AdoptExisting to use its upstreamLock as base")),
    (wording.describe_missing_base(AMS, has_other=True),
     ("edge:sites/ams has edits and the vendor branch has another rendering of it; restore that"
     " branch, or set adoptionPolicy: AdoptExisting to use its upstreamLock as base")),
    (wording.describe_missing_injections(AMS, "ConfigMap.site"),
     "edge:sites/ams: nothing to inject: ConfigMap.site"),
    # Pull requests.
    (wording.describe_hold_label(7, "hold"),
     "its pull request 7 has the label hold; remove the label"),
    (wording.describe_awaited_merge(7), "its pull request 7 is ready to be merged by a person"),
    (wording.describe_forbidden_style("edge", "squash"),
     "edge forbids merging by squash; allow it there or change mergeStyle"),
    (wording.describe_open_request(7),
     "pull request 7 of its stage is under review; the variant is in the next one"),
    (wording.describe_requested_revision("ams", "v2"), "of ams at v2"),
    (wording.describe_requested_removal(AMS), "to remove edge:sites/ams"),
    (wording.describe_closed_request("of ams at v2", 7, "URL", "", "COMMAND"),
     "a person closed pull request 7 (URL) of ams at v2; reopen it or run `COMMAND`"),
    (wording.describe_closed_request("of ams at v2", 7, "URL", "host/ann", "COMMAND"),
     "host/ann closed pull request 7 (URL) of ams at v2; reopen it or run `COMMAND`"),
    (wording.describe_lost_branch("of ams at v2", 7, "URL", "COMMAND"),
     "a person deleted the branch of pull request 7 (URL) of ams at v2; run `COMMAND`"),
    (wording.format_decision_command("resume", "web", ""), "fanout resume web --reason WHY"),
    (wording.format_decision_command("suspend", "web", "prod"),
     "fanout suspend web --stage prod --reason WHY"),
    (wording.describe_changed_base(7, "URL", "trunk", "main"),
     "its pull request 7 (URL) is to branch trunk, not to main; the next sweep sets it back"),
    (wording.describe_stray_path(AMS),
     "edge:sites/ams is on the branch, but its variant no longer exists"),
    (wording.describe_waiting_member("ams"), "ams waits"),
    (wording.format_request_update(has_text=True, is_draft=None, labels=()), "its text"),
    (wording.format_request_update(has_text=True, is_draft=True, labels=["a", "b"]),
     "its text, draft, label a, label b"),
    (wording.format_request_update(has_text=False, is_draft=False, labels=()), "ready for review"),
    (wording.describe_changed_packages("a", 0), "it changes a package that fanout manages: a"),
    (wording.describe_changed_packages("a", 2),
     "it changes packages that fanout manages: a and 2 more"),
    (wording.warn_unread_request("edge", 7, "S"),
     "edge: pull request 7 gets no status of fanout: S"),
    # Rules of branches.
    (wording.describe_unprotected_branch("main", "fanout"),
     ("the branch main is not protected: who may write to the repository can merge and push without"
     " the status fanout")),
    (wording.describe_required_patterns("main", "fanout", ["f[a]n", "x?"]),
     ("the branch main requires statuses by patterns (f[a]n, x?); add the status fanout by its"
     " name")),
    (wording.describe_unrequired_status("main", "fanout"),
     ("the branch main does not require the status fanout; add it to the statuses that its"
     " protection requires")),
    (wording.describe_allowed_push("main", "fanout"),
     ("the branch main requires the status fanout for merging, but fanout's account, and perhaps"
     " others, may push to it; forbid pushes to it")),
    (wording.describe_required_status("main", "fanout"),
     "the branch main requires the status fanout"),
    # Readings of checks.
    (wording.describe_missing_object("ConfigMap default/state"),
     "there is no ConfigMap default/state"),
    (wording.format_query("http://prometheus"), "the query to http://prometheus"),
    (wording.describe_series_index(3),
     ("the query yields 3 series in arbitrary order, so an index selects any of them; aggregate in"
     " the query, or use result.all(...)")),
    (wording.describe_unknown_revision("Kustomization apps", "S"),
     "Kustomization apps: the observed revision is unknown: S"),
    (wording.describe_outcome("Deployment web", "object.ok", "", is_true=True),
     "Deployment web: object.ok is true"),
    (wording.describe_outcome("Deployment web", "object.ok", "no image", is_true=False),
     "Deployment web: object.ok is false; its Ready condition says: no image"),
    (wording.describe_missing_forge("edge"),
     ("Repository edge has no forge, so statuses of commits cannot be read; let the pipeline run"
     " `fanout report` instead")),
    (wording.describe_unread_forge("git.example.com", "no answer in 30s"),
     "git.example.com could not be read: no answer in 30s"),
    (wording.describe_unread_forge("", "no answer"), "the forge could not be read: no answer"),
    (wording.describe_missing_status("ci", "", ["c1"], ""), "there is no status ci at c1"),
    (wording.describe_missing_status("ci", "bot", ["c1", "c2"], "eve"),
     "there is no status ci by bot at c1 or c2; that of eve is ignored"),
    (wording.describe_status("ci", "c1", "failure", "bot", ""),
     "status ci at c1 is failure, by bot"),
    (wording.describe_status("ci", "c1", "failure", "bot", "2 of 9 failed"),
     "status ci at c1 is failure, by bot: 2 of 9 failed"),
    # Edited packages.
    (wording.describe_hidden_names("no schema"),
     ("the object may be from upstream under another name; the pipeline that would show it cannot"
     " run: no schema")),
    (wording.format_restore_remedy(""), "restore it (`git revert`)"),
    (wording.format_restore_remedy("fanout promote web"),
     "restore it (`git revert`), or publish the next draft over it: `fanout promote web`"),
    (wording.format_target_remedy("web", "ams"),
     "remove its target and run `fanout remove web ams --reason WHY`"),
    (wording.format_rendering_remedy("sites/ams", "vendor"),
     "remove published/sites/ams from branch vendor to have it written again"),
    # Details of actions.
    (wording.describe_present_path("ams", AMS), "the path of ams is edge:sites/ams now"),
    (wording.describe_answer("e2e", "ams", "passed"), "that check e2e of ams has passed"),
    (wording.describe_dropped_answer("e2e", "ams"), "that check e2e of ams must be answered again"),
    (wording.describe_publication("ams", "v2"), "that ams is published at v2"),
    (wording.describe_recovered_publication("ams", "v2", has_tag=True),
     "that ams is published at v2, as its tag shows"),
    (wording.describe_recovered_publication("ams", "v2", has_tag=False),
     "that ams is published at v2, as the vendor branch shows"),
    (wording.describe_new_location("ams", AMS, "old/ams"),
     "that ams is at edge:sites/ams, no longer at old/ams"),
    (wording.describe_left_location("ams", AMS), "that ams has left edge:sites/ams"),
    (wording.describe_deletion_policy("ams"), "the deletionPolicy of ams"),
    (wording.describe_new_stage("ams", "prod"), "that ams is in stage prod now"),
    (wording.describe_new_stage("ams", ""), "that ams is in no stage now"),
    (wording.describe_unchanged_package("ams", "v2"),
     "that ams is at v2 with its present inputs already"),
    (wording.describe_emptied_repository("edge"), "that nothing of it is left in edge"),
    (wording.describe_verdict("stage dev", "v2", is_passed=True, is_past=False),
     "that stage dev has passed v2"),
    (wording.describe_verdict("stage dev", "v2", is_passed=True, is_past=True),
     "that stage dev has moved on from v2"),
    (wording.describe_verdict("variant ams", "v2", is_passed=False, is_past=False),
     "that variant ams does not pass v2 any more"),
    (wording.describe_removed_variant("ams", "", has_package=False),
     "that ams is gone with its target; nothing of it is on a branch"),
    (wording.describe_removed_variant("ams", "drafts/x", has_package=True),
     ("that ams is gone with its target; its package stays on the branch, and so does what people"
     " committed to drafts/x")),
    (wording.describe_early_record("report r1"), "that report r1 is dated in the future"),
    (wording.describe_early_status("2026-03-02T19:00:00Z"),
     "that the status of 2026-03-02T19:00:00Z is dated in the future"),
    (wording.describe_first_seen("ams"), "when the draft of ams was first seen"),
    (wording.describe_request_state(7, None), "that pull request 7 is closed by fanout"),
    (wording.describe_request_state(7, RequestState.OPEN), "that pull request 7 is open again"),
    (wording.describe_request_state(7, RequestState.CLOSED),
     "that pull request 7 is closed by a person"),
    (wording.describe_request_state(7, RequestState.MERGED), "that pull request 7 is merged"),
]  # fmt: skip


@pytest.mark.parametrize(("worded", "expected"), SENTENCES, ids=map(itemgetter(1), SENTENCES))
def test_wording(worded, expected):
    assert worded == expected
