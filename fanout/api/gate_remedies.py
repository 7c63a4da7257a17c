"""Causes and remedies of the reasons of gates."""

from collections.abc import Mapping

from fanout.api.reasons import Reason, Remedy

GATE_REMEDIES: Mapping[Reason, Remedy] = {
    Reason.ADOPTION_AWAITS: Remedy(
        "The path already has a package that fanout did not write. The first draft for "
        "such a package is never published automatically.",
        "Review the draft with `fanout diff VARIANT`, then run `fanout promote POLICY --stage "
        "STAGE --variant VARIANT --reason WHY`.",
    ),
    Reason.AFTER_FAILED: Remedy(
        "The revision failed in a stage that `after` lists.",
        "Tag a new upstream revision with the fix, or run `fanout retry POLICY --stage "
        "EARLIER-STAGE --reason WHY`. To override the gate, run `fanout promote POLICY "
        "--stage STAGE --override after --reason WHY`.",
    ),
    Reason.AFTER_PENDING: Remedy(
        "A stage that `after` lists is still rolling out or verifying the revision, or "
        "has replaced it with a newer revision.",
        "Run `fanout explain POLICY` to see what blocks the earlier stage.",
    ),
    Reason.ANSWER_STALE: Remedy(
        "The latest result is older than the field `freshFor` of the check allows.",
        "Make sure that the checked service can be reached, so that the next pass gets a new "
        "result.",
    ),
    Reason.APPROVAL_MISSING: Remedy(
        "The current content of the draft, or of the branch that removes a package, has fewer "
        "approvals than the field `atLeast` requires.",
        "An approver runs `fanout approve POLICY --stage STAGE --revision REVISION`. The removal "
        "of a package is approved by `fanout approve POLICY --stage STAGE --removals` or, on a "
        "forge, by a review of its pull request.",
    ),
    Reason.AUTOMATION_OFF: Remedy(
        "No PromotionPolicy selects the policy, or a PromotionPolicy that selects it "
        "does not enable `autoPromotion` for the stage.",
        "Run `fanout promote POLICY --stage STAGE --reason WHY`, or let an "
        "administrator add `autoPromotion` to the PromotionPolicy.",
    ),
    Reason.BUDGET_EXHAUSTED: Remedy(
        "The stage has as many variants in flight as `rollout.maxInFlight` allows.",
        "Wait until some variants in flight are ready, or run `fanout promote POLICY "
        "--stage STAGE --override budget --reason WHY`.",
    ),
    Reason.CHANGES_REQUESTED: Remedy(
        "A review of the pull request by an approver requests changes of this revision. It holds "
        "the check however many other people approve, also after the draft is rewritten.",
        "Settle with the reviewer, who then approves on the forge or runs `fanout approve POLICY "
        "--stage STAGE --revision REVISION`, or dismiss the review on the forge. A new revision "
        "replaces what the review is about. A pull request that removes packages is approved, or "
        "the review dismissed, on the forge alone.",
    ),
    Reason.CHECK_SETTLING: Remedy(
        "The revision was published recently, and the settle time of the check is not over.",
        "None; the check runs when the settle time is over.",
    ),
    Reason.CHECK_TIMED_OUT: Remedy(
        "The check neither passed nor failed before its timeout.",
        "Repair the service that the check calls, then run `fanout retry POLICY --stage STAGE "
        "--reason WHY`.",
    ),
    Reason.CONTRADICTION: Remedy(
        "One reporter recorded `passed` and another recorded `failed` for the same check and "
        "revision.",
        "Find out which report is right, then withdraw the other report with `fanout "
        "withdraw POLICY RECORD --reason WHY`. If the check has run again, its reporter reports "
        "the new result.",
    ),
    Reason.DEADLINE_EXCEEDED: Remedy(
        "After publication, the variant did not become ready within `rollout.progressDeadline`.",
        "Fix the problem in the cluster or the package, then run `fanout retry POLICY "
        "--stage STAGE --reason WHY`. To leave the variant out, run `fanout skip "
        "POLICY --stage STAGE --variant VARIANT --reason WHY`.",
    ),
    Reason.DECISION_WAITS: Remedy(
        "The decision is for a revision that is not the current candidate of the stage, or it "
        "names no revision.",
        "Wait until the revision of the decision is the candidate. A decision without a revision "
        "never applies. To drop a decision, run `fanout withdraw POLICY RECORD --reason WHY`.",
    ),
    Reason.DEPENDENCY_PENDING: Remedy(
        "The field `dependsOn` names a policy or variant that is not ready.",
        "Run `fanout explain POLICY` with the policy that `dependsOn` names.",
    ),
    Reason.EDITED_DOWNSTREAM: Remedy(
        "Somebody reverted or removed the published package on the branch, or changed a package"
        " that is due for removal. fanout does not overwrite such a change.",
        "Restore the published package, or run `fanout promote POLICY --stage STAGE "
        "--variant VARIANT --reason WHY` to publish the next draft. To remove a "
        "changed package, run `fanout remove POLICY VARIANT --edited --reason WHY`.",
    ),
    Reason.EXPRESSION_ERROR: Remedy(
        "The expression reads a missing field, yields a value of the wrong type, or "
        "exceeds a limit.",
        "Correct the expression or the object. `fanout validate` reports each "
        "expression that fails.",
    ),
    Reason.FORGE_DENIED: Remedy(
        "The token is wrong or expired, lacks a permission, or cannot see the repository.",
        "Renew the token in the secret, or grant the permissions that `fanout docs "
        "guides/gitea` lists.",
    ),
    Reason.FORGE_REFUSES: Remedy(
        "The forge refuses to merge or change the pull request, for example because "
        "required checks are pending.",
        "Look at the pull request to see what is missing. The next pass tries again.",
    ),
    Reason.FORGE_UNAVAILABLE: Remedy(
        "The forge did not respond, or its response was an error or had unexpected data.",
        "Check the server and the URL; the next pass tries again.",
    ),
    Reason.FROM_THE_FUTURE: Remedy(
        "The clock of the machine that wrote the record is fast.",
        "Correct the clock. The record counts when its date is reached. To drop a decision or"
        " evidence earlier, run `fanout withdraw POLICY RECORD --reason WHY`.",
    ),
    Reason.GROUP_AWAITS: Remedy(
        "An earlier group in `rollout.groups` is not complete.",
        "Run `fanout explain POLICY/STAGE` to see what blocks the earlier group.",
    ),
    Reason.HALTED: Remedy(
        "More variants failed than `rollout.maxFailures` tolerates, so no further "
        "variants of the stage are updated.",
        "Tag a new upstream revision with the fix, or run `fanout retry POLICY --stage "
        "STAGE --reason WHY`, `fanout skip POLICY --stage STAGE --variant VARIANT "
        "--reason WHY`, or `fanout rollback POLICY --stage STAGE --reason WHY`.",
    ),
    Reason.MERGE_AWAITED: Remedy(
        "The gates of the draft are open, and `spec.merge` of the PromotionPolicy is Manual.",
        "Merge the pull request.",
    ),
    Reason.MERGE_CONFLICT: Remedy(
        "Upstream and a downstream edit changed the same value, and the field "
        "`onConflict` does not decide the conflict.",
        "See the values with `fanout diff VARIANT --three-way`, then run `fanout resolve "
        "POLICY --stage STAGE --variant VARIANT --reason WHY`, or commit a fix to the draft.",
    ),
    Reason.MERGE_STYLE_FORBIDDEN: Remedy(
        "The settings of the repository do not allow the merge style that `mergeStyle` names.",
        "Allow the merge style in the repository, or change `mergeStyle`.",
    ),
    Reason.MIN_READY_RUNNING: Remedy(
        "The variant passed all checks less than `rollout.minReady` ago.",
        "None; the variant becomes ready at the time that the message names.",
    ),
    Reason.NEVER_PUBLISHED: Remedy(
        "The rollback names a revision that was never published for the variant.",
        "Name another revision with `--revision`. The tags of the downstream "
        "repository show which revisions were published.",
    ),
    Reason.NO_DRAFT: Remedy(
        "The draft is not written yet, or the draft branch was deleted.",
        "Run `fanout sweep`, which writes drafts. In a cluster the controller writes them.",
    ),
    Reason.NO_REVISION: Remedy(
        "No tag of the package matches `spec.upstream.revision`.",
        "Push a tag to the upstream repository, or change `spec.upstream.revision`.",
    ),
    Reason.NO_TARGETS: Remedy(
        "The policy selects no target, or none is in the stage, so that no revision can pass it.",
        "Add a target, correct the selector, or remove the stage.",
    ),
    Reason.NOT_ENFORCED: Remedy(
        "Branch protection is missing or does not require the commit status, so people "
        "can merge before the gates are open.",
        "Require the commit status of fanout in branch protection; see `fanout docs guides/gitea`.",
    ),
    Reason.NOT_IN_STAGE: Remedy(
        "`stageExpr` yields no name, or the name of a stage that `spec.stages` does not list.",
        "Correct `stageExpr` or the label of the target, or add the stage.",
    ),
    Reason.NOTHING_COUNTS: Remedy(
        "The stage has only suspended, offline or skipped variants. They neither pass "
        "nor fail, so the stage has no result.",
        "Run `fanout resume POLICY --stage STAGE --reason WHY`, or bring the targets online.",
    ),
    Reason.OFFLINE: Remedy(
        "The expression `offlineWhen` of the policy is true for the target.",
        "Bring the target online; the rollout of the variant then continues.",
    ),
    Reason.PINNED: Remedy(
        "A rollback is active, so newer revisions are not rolled out.",
        "To end the rollback, run `fanout withdraw POLICY RECORD --reason WHY`, or "
        "promote another revision.",
    ),
    Reason.PROPAGATION_HELD: Remedy(
        "The expression in `propagateWhen` is false for the present state of the stage.",
        "Wait until the expression is true, or change the expression in the policy.",
    ),
    Reason.RATE_LIMITED: Remedy(
        "The rate limit of the forge, or the limit in the FanoutConfiguration, allows "
        "no further calls at the moment.",
        "None; calls continue at the time that the message names.",
    ),
    Reason.REQUEST_CLOSED: Remedy(
        "Somebody closed the pull request or deleted its branch, and thus declined the draft or "
        "the removal.",
        "To open the pull request again, run `fanout resume POLICY --stage STAGE "
        "--variant VARIANT --reason WHY`; of a removal, without `--variant`. A new revision gets a "
        "new pull request.",
    ),
    Reason.REQUEST_FOREIGN: Remedy(
        "Somebody opened a pull request from a draft branch. fanout ignores this pull request.",
        "If the pull request is not needed, close it.",
    ),
    Reason.REQUEST_HELD: Remedy(
        "Somebody added the hold label of fanout to the pull request.",
        "Remove the label from the pull request.",
    ),
    Reason.REQUEST_OPEN: Remedy(
        "The open pull request of the stage is under review, so no further drafts are added to it.",
        "Merge or close the open pull request.",
    ),
    Reason.REQUEST_PENDING: Remedy(
        "The branch, the text or the commit status of the pull request is outdated.",
        "None; the next pass updates the pull request.",
    ),
    Reason.REQUIRES_FAILED: Remedy(
        "A check in the field `requires` failed for the draft.",
        "Fix the draft, then run `fanout retry POLICY --stage STAGE --reason WHY`. If the check "
        "has run again, its reporter reports the new result.",
    ),
    Reason.REVISION_QUEUED: Remedy(
        "Drafts of the current candidate have approvals and can still be published.",
        "Publish the current candidate, or revoke its approvals with `fanout revoke POLICY "
        "APPROVAL`.",
    ),
    Reason.SERIALIZED: Remedy(
        "The field `spec.inFlight` is Serialize, so this revision waits until no other revision "
        "is in flight or in its soak time.",
        "Wait until the other revision is rolled out, go past it with `fanout promote POLICY "
        "--stage STAGE --override budget --reason WHY`, or change `spec.inFlight` of the policy.",
    ),
    Reason.SKIPPED: Remedy(
        "Somebody ran `fanout skip` for the variant and this revision.",
        "None; to include the variant again, run `fanout retry POLICY --stage STAGE "
        "--variant VARIANT --reason WHY`.",
    ),
    Reason.SOAK_CUT_SHORT: Remedy(
        "Another revision was published in the earlier stage before the soak time was over.",
        "Wait for the newer revision, or run `fanout promote POLICY --stage STAGE --revision "
        "REVISION --override soak --reason WHY`.",
    ),
    Reason.SOAK_RUNNING: Remedy(
        "In the earlier stage, the revision has been ready for less time than the soak time in "
        "`after`.",
        "None; the gate opens at the time that the message names.",
    ),
    Reason.SOURCE_AWAITS: Remedy(
        "An object that is injected into the variant was changed. A variant of an earlier "
        "stage uses the same object, and has to be ready with the change first.",
        "Run `fanout explain POLICY` to see what blocks the earlier stage.",
    ),
    Reason.STAGE_DRAFT_PENDING: Remedy(
        "The field `draftPer` is Stage, so all variants of the stage share one draft. "
        "One of these variants is held, and a draft is published only as a whole.",
        "Fix or skip the variant that the message names.",
    ),
    Reason.STARVING: Remedy(
        "Each revision is replaced before its soak time is over, so no revision "
        "reaches the next stage.",
        "Set `spec.inFlight` to Serialize, tag upstream revisions less often, or "
        "shorten the soak time.",
    ),
    Reason.STUCK: Remedy(
        "Nothing is in flight and no gate can open without a person.",
        "Run `fanout explain POLICY`, then run the first command that it prints.",
    ),
    Reason.SUSPENDED: Remedy(
        "A decision (`fanout suspend`) or the field `suspend` of an object suspends the policy, "
        "stage or variant.",
        "Run `fanout resume POLICY --reason WHY`, or remove the field `suspend`.",
    ),
    Reason.SWEEP_AWAITED: Remedy(
        "Only a sweep publishes drafts or removes packages automatically, and the "
        "latest pass was not a sweep.",
        "Run `fanout sweep`, or wait for the next scheduled sweep. In a cluster the controller "
        "sweeps.",
    ),
    Reason.VERIFICATION_FAILED: Remedy(
        "A check in the field `verification` failed for the published revision.",
        "Fix the cause and tag a new upstream revision, or run `fanout rollback POLICY --stage "
        "STAGE --reason WHY` or `fanout retry POLICY --stage STAGE --reason WHY`. If the check has "
        "run again, its reporter reports the new result.",
    ),
    Reason.VERIFICATION_PENDING: Remedy(
        "No result was reported, or the checked service has not passed yet.",
        "If fanout runs the check itself, wait for the result. If a person or a pipeline "
        "performs the check, perform it, and then run `fanout report POLICY --stage STAGE --check "
        "CHECK --status passed --revision REVISION`.",
    ),
    Reason.WINDOW_CLOSED: Remedy(
        "A window of a PromotionPolicy denies publication at this time, or no window allows it.",
        "Wait for the time that the message names, or run `fanout promote POLICY --stage STAGE "
        "--override window --reason WHY`.",
    ),
    Reason.WOULD_GO_BACK: Remedy(
        "The published revision of the variant is newer than the candidate of its "
        "stage. Automatic promotion does not publish older revisions.",
        "Run `fanout rollback POLICY --stage STAGE --revision REVISION --reason WHY` "
        "if you want to go back.",
    ),
    Reason.WRONG_REVISION: Remedy(
        "The evidence names a revision or commit that is neither published nor drafted "
        "in the stage.",
        "Run `fanout report` again, with the revision that `fanout get variants` shows.",
    ),
}
