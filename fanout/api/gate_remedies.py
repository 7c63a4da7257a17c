"""Causes and remedies of the reasons of gates."""

from collections.abc import Mapping

from fanout.api.reasons import Reason, Remedy

GATE_REMEDIES: Mapping[Reason, Remedy] = {
    Reason.ADOPTION_AWAITS: Remedy(
        "The path already has a package that fanout did not write. Its first draft is never "
        "published automatically.",
        "Review the draft with `fanout diff VARIANT`, then run `fanout promote POLICY --stage "
        "STAGE --variant VARIANT --reason WHY`.",
    ),
    Reason.AFTER_FAILED: Remedy(
        "The revision failed in a stage that `after` lists.",
        "Publish a fixed revision, or run `fanout retry POLICY --stage EARLIER-STAGE --reason "
        "WHY`. To skip the gate, run `fanout promote POLICY --stage STAGE --override after "
        "--reason WHY`.",
    ),
    Reason.AFTER_PENDING: Remedy(
        "The revision is still being rolled out or verified in a stage that `after` lists, or a "
        "newer revision replaced it there.",
        "Run `fanout explain POLICY` to see what blocks the earlier stage.",
    ),
    Reason.ANSWER_STALE: Remedy(
        "The last result is older than freshFor of the check.",
        "Make sure that the checked service can be reached, so that the next pass gets a new "
        "result.",
    ),
    Reason.APPROVAL_MISSING: Remedy(
        "Fewer people than atLeast have approved the current content of the draft.",
        "An approver runs `fanout approve POLICY --stage STAGE --revision REVISION`.",
    ),
    Reason.AUTOMATION_OFF: Remedy(
        "No PromotionPolicy enables autoPromotion for the stage. If several select the policy, "
        "all of them have to enable it.",
        "Run `fanout promote POLICY --stage STAGE --reason WHY`, or let an administrator add "
        "autoPromotion to the PromotionPolicy.",
    ),
    Reason.BUDGET_EXHAUSTED: Remedy(
        "As many variants of the stage are in flight as rollout.maxInFlight allows.",
        "Wait until variants in flight are ready, or run `fanout promote POLICY --stage STAGE "
        "--override budget --reason WHY`.",
    ),
    Reason.CHECK_SETTLING: Remedy(
        "The check is not run until its settle time after publication is over.",
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
        "Find out which report is right, then run `fanout withdraw POLICY RECORD --reason WHY` "
        "for the other.",
    ),
    Reason.DEADLINE_EXCEEDED: Remedy(
        "The variant was not ready within rollout.progressDeadline after it was published.",
        "Fix what was published, then run `fanout retry POLICY --stage STAGE --reason WHY`; or "
        "run `fanout skip POLICY --stage STAGE --variant VARIANT --reason WHY`.",
    ),
    Reason.DECISION_WAITS: Remedy(
        "The decision covers drafts or a revision that do not exist in the stage now.",
        "Wait, decide again, or run `fanout withdraw POLICY RECORD --reason WHY`.",
    ),
    Reason.DEPENDENCY_PENDING: Remedy(
        "dependsOn names a policy or variant that is not ready.",
        "Run `fanout explain POLICY` for the dependency.",
    ),
    Reason.EDITED_DOWNSTREAM: Remedy(
        "Somebody removed or reverted the publication on the branch, and fanout does not "
        "overwrite this.",
        "Restore the package, as with `git revert`, or run `fanout promote POLICY --stage "
        "STAGE --variant VARIANT --reason WHY` to publish the next draft over it.",
    ),
    Reason.EXPRESSION_ERROR: Remedy(
        "The expression reads a field that the object does not have, has a value of another "
        "type, or exceeds a limit.",
        "Correct the expression or the object; `fanout validate` evaluates the expressions of "
        "templates.",
    ),
    Reason.FORGE_DENIED: Remedy(
        "The token is wrong or expired, lacks a permission, or cannot see the repository.",
        "Renew the token in the secret, or grant the permissions that `fanout docs "
        "guides/gitea` lists.",
    ),
    Reason.FORGE_REFUSES: Remedy(
        "The forge refuses a merge or change, for example while checks of its own are pending.",
        "See the pull request for what it still needs; the next pass tries again.",
    ),
    Reason.FORGE_UNAVAILABLE: Remedy(
        "The forge did not respond, responded with an error, or with unexpected data.",
        "Check the server and the URL; the next pass tries again.",
    ),
    Reason.FROM_THE_FUTURE: Remedy(
        "The clock of the machine that recorded it is fast.",
        "Correct that clock. The record counts when its time is reached; to drop a decision or "
        "evidence, run `fanout withdraw POLICY RECORD --reason WHY`.",
    ),
    Reason.GROUP_AWAITS: Remedy(
        "The groups in rollout.groups are rolled out in order, and an earlier group is not "
        "complete.",
        "Run `fanout explain POLICY/STAGE` to see what blocks the earlier group.",
    ),
    Reason.HALTED: Remedy(
        "More variants failed than rollout.maxFailures tolerates, so no further variants of the "
        "stage are released.",
        "Publish a fix, or run `fanout retry POLICY --stage STAGE --reason WHY`, `fanout skip "
        "POLICY --stage STAGE --variant VARIANT --reason WHY`, or `fanout rollback POLICY "
        "--stage STAGE --reason WHY`.",
    ),
    Reason.MERGE_AWAITED: Remedy(
        "spec.merge of the PromotionPolicy is Manual and the gates of the draft are open.",
        "Merge the pull request.",
    ),
    Reason.MERGE_CONFLICT: Remedy(
        "Upstream and a downstream edit changed the same value, and onConflict does not decide.",
        "See the values with `fanout diff VARIANT --three-way`, then run `fanout resolve "
        "POLICY --stage STAGE --variant VARIANT --reason WHY`, or commit a fix to the draft.",
    ),
    Reason.MERGE_STYLE_FORBIDDEN: Remedy(
        "mergeStyle names a style that the settings of the repository do not allow.",
        "Allow the style in the repository, or change mergeStyle.",
    ),
    Reason.MIN_READY_RUNNING: Remedy(
        "All checks passed, but not yet for as long as rollout.minReady.",
        "None; the variant becomes ready at the time that the message names.",
    ),
    Reason.NEVER_PUBLISHED: Remedy(
        "A rollback can only return to a revision that the variant had published.",
        "Name another revision with --revision. The tags of the repository show those that "
        "were published.",
    ),
    Reason.NO_DRAFT: Remedy(
        "The draft is not written yet, or its branch was deleted.",
        "Run `fanout sweep`, which writes drafts.",
    ),
    Reason.NO_REVISION: Remedy(
        "No tag of the package matches spec.upstream.revision.",
        "Push a tag to the upstream repository, or change spec.upstream.revision.",
    ),
    Reason.NO_TARGETS: Remedy(
        "No target is in the stage, so no revision can pass it.",
        "Add a target, or remove the stage.",
    ),
    Reason.NOT_ENFORCED: Remedy(
        "Branch protection is missing or does not list the status, so people can merge before "
        "the gates are open.",
        "Require the status in branch protection; see `fanout docs guides/gitea`.",
    ),
    Reason.NOT_IN_STAGE: Remedy(
        "stageExpr yields a name that spec.stages does not have, or no name.",
        "Correct the stageExpr or the label of the target, or add the stage.",
    ),
    Reason.NOTHING_COUNTS: Remedy(
        "Suspended, offline and skipped variants neither pass nor fail, so the stage has no "
        "result.",
        "Run `fanout resume POLICY --stage STAGE --reason WHY`, or bring the targets online.",
    ),
    Reason.OFFLINE: Remedy(
        "offlineWhen of the policy is true for the target.",
        "Bring the target online; the rollout of the variant then continues.",
    ),
    Reason.PINNED: Remedy(
        "A rollback is active, so newer revisions are not released.",
        "To continue, run `fanout withdraw POLICY RECORD --reason WHY`, or promote another "
        "revision.",
    ),
    Reason.PROPAGATION_HELD: Remedy(
        "The expression is false for the present state of the stage.",
        "Wait until it is true, or change the expression in the policy.",
    ),
    Reason.RATE_LIMITED: Remedy(
        "The forge, or the limit in the FanoutConfiguration, allows no more calls for now.",
        "None; calls continue at the time that the message names.",
    ),
    Reason.REQUEST_CLOSED: Remedy(
        "A person closed the pull request or deleted its branch, which declines the draft.",
        "To open it again, run `fanout resume POLICY --stage STAGE --variant VARIANT --reason "
        "WHY`; a new revision also opens a new pull request.",
    ),
    Reason.REQUEST_FOREIGN: Remedy(
        "Somebody opened a pull request from a draft branch. fanout ignores it.",
        "Close that pull request if it is not needed.",
    ),
    Reason.REQUEST_HELD: Remedy(
        "Somebody set the hold label of fanout on the pull request.",
        "Remove the label.",
    ),
    Reason.REQUEST_OPEN: Remedy(
        "The pull request of the stage is under review, so no further drafts are added to it.",
        "Merge or close the open pull request.",
    ),
    Reason.REQUEST_PENDING: Remedy(
        "The next pass updates its branch, text or status.",
        "None; the next pass continues.",
    ),
    Reason.REQUIRES_FAILED: Remedy(
        "A check in `requires` failed for the draft.",
        "Fix the draft, then run `fanout retry POLICY --stage STAGE --reason WHY`.",
    ),
    Reason.REVISION_QUEUED: Remedy(
        "Drafts of the current candidate have approvals and can still pass.",
        "Publish the current candidate, or revoke its approvals with `fanout revoke POLICY "
        "APPROVAL`.",
    ),
    Reason.SERIALIZED: Remedy(
        "spec.inFlight is Serialize, and a revision is in flight or soaking.",
        "Wait, or change spec.inFlight of the policy.",
    ),
    Reason.SKIPPED: Remedy(
        "A person recorded a skip.",
        "None; to include it again, run `fanout retry POLICY --stage STAGE --variant VARIANT "
        "--reason WHY`.",
    ),
    Reason.SOAK_CUT_SHORT: Remedy(
        "A newer revision was published in the earlier stage before the soak time was over.",
        "Wait for the newer revision, or run `fanout promote POLICY --stage STAGE --override "
        "soak --reason WHY`.",
    ),
    Reason.SOAK_RUNNING: Remedy(
        "The revision is ready in the earlier stage, but not yet for the soak time of `after`.",
        "None; the gate opens at the time that the message names.",
    ),
    Reason.SOURCE_AWAITS: Remedy(
        "The variant injects an object that changed. Another variant, in an earlier stage, also "
        "injects it and is not yet ready with the change.",
        "Run `fanout explain POLICY` to see what blocks the earlier stage.",
    ),
    Reason.STAGE_DRAFT_PENDING: Remedy(
        "draftPer is Stage, and a draft is published only as a whole.",
        "Fix or skip the variant that the message names.",
    ),
    Reason.STARVING: Remedy(
        "Each revision is replaced before its soak time is over, so none reaches the next stage.",
        "Set spec.inFlight to Serialize, release less often, or shorten the soak time.",
    ),
    Reason.STUCK: Remedy(
        "Nothing is in flight and no gate can open without a person.",
        "Run `fanout explain POLICY` and follow its first command.",
    ),
    Reason.SUSPENDED: Remedy(
        "A decision (`fanout suspend`) or the field `suspend` of an object suspends the policy, "
        "stage or variant.",
        "Run `fanout resume POLICY --reason WHY`, or remove the field `suspend`.",
    ),
    Reason.SWEEP_AWAITED: Remedy(
        "Automation publishes only in sweeps, and the latest reconciliation was not a sweep.",
        "Run `fanout sweep`, or wait for the schedule.",
    ),
    Reason.VERIFICATION_FAILED: Remedy(
        "A check in `verification` failed for the published revision.",
        "Fix the cause and publish a new revision, or run `fanout retry POLICY --stage STAGE "
        "--reason WHY` or `fanout rollback POLICY --stage STAGE --reason WHY`.",
    ),
    Reason.VERIFICATION_PENDING: Remedy(
        "No result was reported, or the checked service has not passed yet.",
        "If the result has to be reported and the check has passed, run `fanout report POLICY "
        "--stage STAGE --check CHECK --status passed --revision REVISION`; otherwise wait for "
        "the service.",
    ),
    Reason.WINDOW_CLOSED: Remedy(
        "A window of a PromotionPolicy denies this time, or none allows it.",
        "Wait for the time that the message names, or run `fanout promote POLICY --stage STAGE "
        "--override window --reason WHY`.",
    ),
    Reason.WOULD_GO_BACK: Remedy(
        "The variant has a newer revision than the candidate of its stage.",
        "Run `fanout rollback POLICY --stage STAGE --revision REVISION --reason WHY` if this "
        "is intended.",
    ),
    Reason.WRONG_REVISION: Remedy(
        "The reported revision or commit is not published or drafted in the stage.",
        "Report the revision that `fanout get variants` shows.",
    ),
}
