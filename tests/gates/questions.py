"""Requests and bug reports of users of other rollout engines, and the tests that answer them.

The threads are public: `repository#number` at its host. A row names tests, or why it does not
concern fanout.
"""

from typing import NamedTuple


class Question(NamedTuple):
    """One question; `tests` are names without `test_`, one to a line."""

    number: int
    threads: str
    asked: str
    tests: str = ""
    why_not: str = ""  # where no test answers it


QUESTIONS = (
    Question(
        1, "kro#188 kro#917",
        "Can each instance be updated when somebody says so, instead of all at once?",
        """
        a_single_variant_goes_back_alone
        a_decision_to_publish_is_about
        a_variant_written_by_hand_is_drafted_and_published_by_hand_or_by_name
        """,
    ),
    Question(
        2, "kro#883",
        "Are definitions versioned, and rolled out version by version?",
        """
        an_upstream_bump_goes_through_the_stages_again
        """,
    ),
    Question(
        3, "kro#935",
        "Can a rollout go by groups that labels choose?",
        """
        groups_go_one_after_the_other_by_the_labels_of_variant_and_target
        the_group_of_a_variant
        """,
    ),
    Question(
        4, "kro#822",
        "Does what is independent of each other go at the same time?",
        """
        independent_stages_go_in_parallel_and_a_chain_goes_in_one_pass_each
        """,
    ),
    Question(
        5, "kro#1135 kro#1210",
        "Is what others need removed after them?",
        """
        kro_1135_the_last_stage_is_removed_first
        level_by_level
        """,
    ),
    Question(
        6, "kro#1316 kro#1318",
        "Does a deletion work while expressions fail?",
        """
        kro_1316_an_orphan_is_removed_though_expressions_fail
        """,
    ),
    Question(
        7, "kro#924",
        "Is an expression that fails told, instead of being taken for no?",
        """
        kro_924_an_expression_that_fails_is_reported_and_is_not_false
        a_bad_expression_is_reported_with_its_field_and_line
        """,
    ),
    Question(
        8, "kro#724",
        "Does memory stay bounded with many kinds?",
        why_not="What is kept is bounded by what there is, not by kinds: fanout watches none. The"
        " peak at 10,000 targets is measured (docs/reference/benchmarks.md).",
    ),
    Question(
        9, "argo#19535 argo#20230 argo#17296",
        "Does a rollout go on when a newer commit comes in the middle of it?",
        """
        argo_19535_a_newer_revision_in_mid_rollout_does_not_leave_it_waiting_for_ever
        a_newer_revision_takes_the_slots_of_what_is_in_flight_and_no_others
        """,
    ),
    Question(
        10, "argo#12202",
        "Do passes leave alone what they have nothing to say about?",
        """
        argo_12202_asking_again_changes_nothing
        remembering_and_asking_again_at_the_same_instant_changes_nothing
        """,
    ),
    Question(
        11, "argo#12459 argo#22976",
        "Does the next step begin when the first is healthy, whenever that is noticed?",
        """
        argo_12459_the_next_step_begins_because_the_first_is_healthy_not_because_it_became_so
        """,
    ),
    Question(
        12, "argo#19771",
        "Can an author say what completes a step?",
        """
        argo_19771_what_completes_a_step_is_what_its_author_says
        """,
    ),
    Question(
        13, "argo#22558",
        "Do steps run in their order, whatever the states?",
        """
        argo_22558_no_step_begins_before_those_that_come_first
        """,
    ),
    Question(
        14, "argo#16881 argo#23685 argo#11924",
        "Are there ever more in flight than may be?",
        """
        argo_16881_many_passes_before_anything_has_changed_release_no_more_than_one
        waves
        """,
    ),
    Question(
        15, "argo#29410",
        "Can a step be complete on what was true before the change?",
        """
        argo_29410_an_application_that_has_not_seen_the_change_lets_nobody_go_on
        argo_29410_health_that_was_read_before_the_change_completes_no_step
        """,
    ),
    Question(
        16, "argo#10048",
        "Do values that all share go by the rollout too?",
        """
        argo_10048_inputs_that_all_share_go_by_the_budget_too
        """,
    ),
    Question(
        17, "argo#11817 argo#21692",
        "Do rollouts obey windows, and does something happen when one opens?",
        """
        argo_11817_a_rollout_goes_by_the_windows_in_each_of_its_steps
        argo_21692_the_end_of_a_denied_time_is_reported_and_then_it_goes
        """,
    ),
    Question(
        18, "argo#25361 argo#26215",
        "What becomes of what a closing window catches, and can a person override it?",
        """
        argo_26215_what_a_closing_window_caught_goes_on_when_it_opens
        at_close_a_rollout_that_has_begun_goes_on_where_it_may_finish
        windows_bind_people_too_unless_overridden
        """,
    ),
    Question(
        19, "argo#27846",
        "Are there metrics of a rollout?",
        why_not="The numbers per stage and state are in the status (`get stages -o json`); a"
        " service that hands them out as metrics is not there yet.",
    ),
    Question(
        20, "argo#14712",
        "Is the Git server spared when everything is looked at?",
        """
        a_pass_without_changes_lists_each_repository_once
        """,
    ),
    Question(
        21, "argo#9002 argo#10952",
        "Does a pass cost what has changed, and not what there is?",
        """
        a_change_has_its_policies_evaluated
        variants_that_changed_are_rendered_and_their_repositories_pushed_once
        """,
    ),
    Question(
        22, "argoproj/applicationset#61",
        "Is there a time to bake, a way to skip or retry one cluster, and a check of metrics?",
        """
        min_ready
        a_rollout_releases_the_next_variants
        a_rate_of_errors_lets_a_revision_go_on
        """,
    ),
    Question(
        23, "Skyscanner/applicationset-progressive-sync#15",
        "Can a rollout bear some failures, or leave somebody out?",
        """
        a_stage_with_borne_failures_passes
        skips_and_retries_select_their_variants
        """,
    ),
    Question(
        24, "fleet#2891",
        "Is a registry spared from all clusters that pull at once?",
        """
        waves
        min_ready
        """,
    ),
    Question(
        25, "fleet#192 fleet#206 fleet#594",
        "Does one that is offline, paused or broken block the others?",
        """
        fleet_594_who_is_away_counts_in_no_share_and_is_shown
        fleet_192_an_unreachable_target_blocks_nobody
        a_site_that_is_offline_blocks_nobody
        """,
    ),
    Question(
        26, "fleet#2672 fleet#3586",
        "Are partitions ordered, what is a failure, and what of those in none?",
        """
        fleet_2672_partitions_are_in_order_the_rest_comes_last_and_nobody_is_left_out
        a_rollout_releases_the_next_variants
        a_variant_in_no_stage_is_held_and_blocks_nobody
        """,
    ),
    Question(
        27, "fleet#3827 fleet#3829",
        "Does what is new go by the budget like what is changed?",
        """
        fleet_3829_what_is_new_takes_a_slot_like_what_is_changed
        """,
    ),
    Question(
        28, "fleet#2066",
        "Can a target keep updates away while it is busy?",
        """
        a_condition_reads_the_stage_the_variant_the_target_and_the_revision
        a_site_that_is_offline_blocks_nobody
        """,
    ),
    Question(
        29, "fleet#383 fleet#450 fleet#727",
        "Which schedule wins of two, and does one that began before the start count?",
        """
        several_calendars_are_open_when_each_of_them_is
        opening
        """,
    ),
    Question(
        30, "kubefleet-dev/kubefleet#521",
        "Are there windows for each member?",
        why_not="Windows are an administrator's and bind policies: members of several"
        " windows are targets of several policies.",
    ),
    Question(
        31, "ocm#1201 ocm#1207",
        "Does a soak begin anew with an update?",
        """
        ocm_1201_min_ready_runs_from_the_success_of_this_revision
        """,
    ),
    Question(
        32, "ocm#327",
        "Does the next group begin after the soak, and do failures stop it?",
        """
        ocm_327_the_next_goes_at_the_end_of_min_ready_which_is_a_next_instant
        ocm_327_more_failures_than_may_be_stop_the_rollout
        """,
    ),
    Question(
        33, "enhancements#164",
        "Is there a history, an abort and an undo?",
        """
        each_variant_gets_what_it_last_had_of_the_revision
        a_halted_stage_publishes_nothing_that_it_has_released
        """,
    ),
    Question(
        34, "sveltos#657",
        "Does a paused cluster take a slot that others wait for?",
        """
        sveltos_657_who_is_suspended_is_given_no_slot
        """,
    ),
    Question(
        35, "sveltos#1409",
        "Is each counted once, however often it is told?",
        """
        sveltos_1409_a_variant_that_is_reported_ready_twice_is_one
        """,
    ),
    Question(
        36, "fluxcd/flux2#2712",
        "Are there maintenance windows?",
        """
        the_edge_of_a_window_is_a_next_instant
        """,
    ),
    Question(
        37, "kustomize-controller#301",
        "Is what depends on others pruned first?",
        """
        pass_by_pass_everything_goes_and_never_before_what_waits_for_it
        """,
    ),
    Question(
        38, "kustomize-controller#1664",
        "Is anything pruned, or forgotten, after a pass that could not read everything?",
        """
        a_held_variant_is_not_removed
        orphans_are_not_removed_while_a_target_is_uncertain
        """,
    ),
    Question(
        39, "kargo#3100",
        "Does a soak bind people too?",
        """
        kargo_3100_a_soak_binds_people_as_it_binds_automation
        """,
    ),
    Question(
        40, "kargo#4586 kargo#6582",
        "Does a soak count in the stages that are listed, and does its end wake the engine?",
        """
        kargo_4586_soak_counts_in_listed_stages_alone
        kargo_4586_the_end_of_a_soak_is_a_next_instant
        """,
    ),
    Question(
        41, "kargo#4238",
        "Is a soak on record that was over when the stage moved on?",
        """
        kargo_4238_a_soak_that_was_over_when_the_stage_moved_on_stands
        """,
    ),
    Question(
        42, "kargo#6360",
        "Can a soak pass behind a stage that only joins?",
        """
        kargo_6360_a_soak_behind_a_stage_that_only_joins_ends
        """,
    ),
    Question(
        43, "kargo#3207 kargo#1168",
        "Can each stage say whether all or any of those before it must have passed?",
        """
        fold
        a_join_has_the_verdict_of_its_gate
        """,
    ),
    Question(
        44, "kargo#2724",
        "Can a gate be passed by writing the object oneself?",
        """
        kargo_2724_a_promotion_that_is_written_past_the_program_opens_no_gate
        evidence_that_is_forged_by_a_commit_counts_from_its_commit
        """,
    ),
    Question(
        45, "kudo#422 kudo#628",
        "Is what was changed while the process was down noticed, and is there one plan at a time?",
        """
        made_up_once_and_then_on_time
        a_pass_that_is_killed_anywhere_is_continued
        """,
    ),
    Question(
        46, "kudo#1764 kudo#1752 kudo#1357 kudo#1323",
        "Can one abort, retry, and forget what cannot be deleted; and since when is it so?",
        """
        skips_and_retries_select_their_variants
        a_retry_gives_the_deadline_anew
        with_orphan_the_package_stays_as_nobody_s
        a_variant_is_verifying_since_its_publication_and_ready_since_its_check
        """,
    ),
    Question(
        47, "Azure/AKS#5338 Azure/AKS#5655",
        "Is there a threshold of failures, and is who is stopped left out?",
        """
        a_rollout_releases_the_next_variants
        """,
    ),
    Question(
        48, "OctopusDeploy/Issues#9291 halyard#1117",
        "Do windows close the hours that were meant, in any zone and when clocks change?",
        """
        a_window_ends_when_clocks_change
        zone_refused
        """,
    ),
)  # fmt: skip
