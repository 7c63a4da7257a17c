"""The sentences of a pass, as people read them."""

from operator import itemgetter

import pytest

from fanout.reconcile import reconcile_wording as wording

SENTENCES = [
    # Adoption, edits and drafts.
    (wording.remind_lost_renderings("web"),
     "the vendor branch lacks published packages; run `fanout explain web`"),
    (wording.describe_open_conflicts(1, "web", "ams"),
     ("1 undecided merge conflict in its draft; run `fanout diff ams --three-way`, then commit a"
      " fix to the draft or run `fanout resolve web --variant ams --reason WHY`")),
    (wording.remind_open_conflicts(2, "web/dev/ams"),
     "2 undecided merge conflicts; run `fanout explain web/dev/ams`"),
    (wording.describe_decided_conflict("replicas", "ann", "d1", "capacity"),
     "replicas; decided by ann (d1): capacity"),
    (wording.describe_early_merge("ams", "v1"), "ams: a person merged v1 before its gates opened"),
    (wording.describe_accepted_conflicts(1),
     "its draft is published with 1 merge conflict that a person accepted"),
    (wording.describe_unreadable_repositories(2, "ams"),
     "2 variants cannot be observed, ams first"),
    (wording.describe_settled_conflict("replicas", "by spec.onConflict"),
     "replicas; decided by spec.onConflict"),
    (wording.describe_taken_value("a.yaml", "local"), "a.yaml: the local value is in the draft"),
    (wording.describe_rejected_value("v1", "replicas"), "decided when v1 was published: replicas"),
    (wording.describe_stage_conflicts(2), "2 undecided merge conflicts in drafts of this stage"),
    (wording.describe_readiness(1, 2), "1 of 2 variants ready"),
    (wording.describe_failed_targets(1, "C/d/ams", "P"),
     "1 target without a variant, C/d/ams first: P"),
    (wording.describe_failed_variants(2, "ams"), "2 variants failed, ams first"),
    # Tags and repositories.
    (wording.describe_foreign_request(7, "main", "drafts/x"),
     "pull request 7 from drafts/x to main was not opened by fanout and is ignored"),
    # Records.
    (wording.describe_early_record("Evidence", "e1", "ci", "2026-03-02T10:00:00Z"),
     ("Evidence e1 of ci is dated 2026-03-02T10:00:00Z, more than five minutes ahead; it does not"
      " count yet")),
    # Removal.
    (wording.describe_next_removals("ams, ber"),
     "the next sweep removes variants without a target: ams, ber"),
    (wording.append_actor("it waits", ""), "it waits"),
    (wording.append_actor("it waits", "ann"), "it waits; who can act: ann"),
    # Pull requests.
    (wording.describe_undecided_conflict("S"), "S; undecided"),
    (wording.describe_draft_conflicts(1, "its draft"), "1 undecided merge conflict in its draft"),
    (wording.describe_decided_conflicts("v2", is_published=False),
     "decided merge conflicts in the draft of v2"),
    (wording.describe_decided_conflicts("v2", is_published=True),
     "merge conflicts decided in v2, which is published"),
    (wording.describe_taken_value("", "local"), "a value: the local value is in the draft"),
    # Pins and promotion.
    (wording.describe_policy_pin("stage prod", "v1"), "the policy pins stage prod to v1"),
    (wording.describe_rollback("ams", "v1", "d1", "ann", "outage"),
     "ams stays at v1, by decision d1 of ann: outage"),
]  # fmt: skip


@pytest.mark.parametrize(("worded", "expected"), SENTENCES, ids=map(itemgetter(1), SENTENCES))
def test_wording(worded, expected):
    assert worded == expected
