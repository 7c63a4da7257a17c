"""The sentences of the holds of `plan`, as people read them."""

from operator import itemgetter

import pytest

from fanout.plan import plan_wording as wording

AMS, BER = "edge:sites/ams", "edge:sites/ber"
OWNER = "variant ber (default/web)"

SENTENCES = [
    # Actors.
    (wording.format_maintainers("edge"), "the maintainers of edge"),
    (wording.format_variant_author("own"), "the author of PackageVariant own"),
    (wording.format_pin_author("prod"), "the policy's author (pin of stage prod)"),
    (wording.format_withdraw_command("web", "d1"), "any promoter: run fanout withdraw web d1"),
    (wording.format_promoter("ber"), "any promoter of ber"),
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
    (wording.describe_undeclared_occupant(AMS, "sites", "default/old"),
     ("edge:sites/ams is not free: sites belongs to policy default/old, which is not declared;"
     " declare it again, or declare it without targets and run"
     " `fanout remove old --all-gone --reason WHY`")),
    (wording.describe_leaving_occupant(AMS, "sites", OWNER),
     ("edge:sites/ams is not free: variant ber (default/web) leaves sites when it is ready at its"
     " new path")),
    (wording.describe_moving_occupant(AMS, "sites", OWNER),
     "edge:sites/ams is not free: variant ber (default/web) has not moved from sites yet"),
    (wording.describe_orphaned_occupant(AMS, "sites", OWNER),
     ("edge:sites/ams is not free: sites belongs to variant ber (default/web), which has no target;"
     " run `fanout remove`")),
    (wording.describe_missing_branch("edge", "main"),
     "repository edge has no branch main; push a first commit to it"),
    (wording.describe_invalid_path(AMS, "is a file"),
     "edge:sites/ams: is a file; remove it from the branch or change downstream.package"),
    (wording.describe_other_installation(AMS, "lab"),
     "edge:sites/ams has a draft of installation lab; one installation owns a path"),
    (wording.describe_foreign_draft("drafts/x", "ams"),
     "branch drafts/x is not a draft of ams; remove it"),
    (wording.describe_other_package(AMS),
     "edge:sites/ams holds a package that is not this variant's; choose another path or remove it"),
    (wording.describe_unmanaged_package(AMS),
     ("edge:sites/ams holds a package that fanout did not write; set adoptionPolicy: AdoptExisting,"
     " choose another path or remove it")),
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
    (wording.describe_closed_request("ams", "v2"),
     ("a person closed the pull request of ams at v2 or deleted its branch; reopen it or run"
     " `fanout resume`")),
    (wording.describe_stray_path(AMS),
     "edge:sites/ams is on the branch, but its variant no longer exists"),
    (wording.describe_waiting_member("ams"), "ams waits"),
]  # fmt: skip


@pytest.mark.parametrize(("worded", "expected"), SENTENCES, ids=map(itemgetter(1), SENTENCES))
def test_wording(worded, expected):
    assert worded == expected
