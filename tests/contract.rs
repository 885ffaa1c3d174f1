//! The store's contract: what every backend must answer at every transition of a job's life.
//!
//! A case uses only a `Workbench`, so another backend is one more runner in `contract!`. After each case the store is
//! audited. Tests of a single backend are in `redis_layout` and `embedded`.

#[macro_use]
mod runner;

mod archive;
mod attempts;
pub(crate) mod audit;
mod audit_log;
mod bulk;
mod bulk_revive;
mod cancel;
mod cancel_races;
mod carriers;
mod dead_letters;
pub(crate) mod destinations;
mod events;
mod eviction;
mod exchange;
mod failing;
mod feeds;
mod forecast;
mod gauges;
mod if_exists;
mod import;
pub(crate) mod job_builders;
mod lanes;
mod limits;
mod list;
mod list_dead;
pub(crate) mod list_tagged;
mod look_up;
mod model;
mod notice_outbox;
mod order;
mod order_random;
pub(crate) mod policies;
mod prepare;
mod promote;
mod pull_jobs;
mod random;
mod recover;
mod renew;
mod reschedule_run_revive;
mod reserve;
pub(crate) mod schedules;
mod settle;
mod side_by_side;
mod stale_leases;
mod submit;
mod topics;
pub(crate) mod transition_log;
mod wakes;
pub(crate) mod workbench;

contract! {
    prepare {
        nothing_is_answered_before_the_checks_have_succeeded,
        an_installation_of_another_shard_count_is_refused,
        preparing_again_changes_nothing,
    }
    submit {
        a_job_with_a_delay_is_delayed_and_never_due_early,
        a_job_without_a_delay_is_ready,
        a_job_due_in_the_past_is_ready_and_due_now,
        a_job_due_at_a_time_is_due_exactly_then,
        the_same_content_again_returns_the_state_of_the_job,
        other_content_under_a_known_name_is_a_conflict,
        a_name_twice_in_one_batch_is_submitted_twice,
        a_batch_of_500_jobs_of_mixed_topics_is_answered_in_order,
        a_body_of_200_kb_is_kept_whole_and_goes_with_its_job,
        the_longest_name_the_longest_delay_and_the_largest_body_fit,
        shards_add_up_to_one_installation,
    }
    audit_log {
        entries_are_read_newest_first_and_each_owners_apart,
        an_entry_that_is_added_again_is_there_once,
        any_text_is_kept_as_it_is,
        many_entries_of_one_owner_do_not_push_out_those_of_the_others,
        long_entries_take_no_more_room_than_there_is,
    }
    failing {
        failures_of_a_destination_are_one_until_a_success_ends_them,
        reports_of_many_processes_at_once_are_all_counted,
        pages_of_destinations_show_which_fail_and_can_be_of_them_alone,
    }
    feeds {
        a_feed_has_one_process_at_a_time,
        a_feed_is_free_when_its_lease_has_run_out,
        a_feed_goes_on_where_the_last_pass_has_ended,
        a_position_that_is_set_stays_until_the_process_knows_it,
        a_disturbance_is_seen_by_the_process_that_has_the_feed,
    }
    if_exists {
        an_update_changes_other_content_of_a_job_that_has_not_ended_and_nothing_else,
        a_submit_for_a_free_id_creates_a_job_whatever_it_may_change,
        a_pending_job_gets_content_time_and_url_of_the_submit,
        the_same_content_takes_its_own_place_with_a_new_time,
        a_push_job_may_become_a_pull_job_and_back,
        a_reserved_job_stays_and_the_answer_says_until_when,
        a_refused_submit_of_the_newest_content_is_a_repetition,
        a_repeated_token_changes_nothing_in_any_state,
        a_repeated_change_is_known_whatever_became_of_the_job,
        a_repeated_move_is_known_after_a_change,
        only_the_last_token_of_a_job_is_known,
        the_token_of_another_job_means_nothing,
        a_key_twice_in_one_batch_is_changed_in_order,
        a_batch_of_500_changes_is_answered_in_order,
        an_ended_job_begins_a_new_life_and_counts_as_another_one,
        an_ended_job_of_the_same_content_begins_again_too,
        a_dead_job_begins_a_new_life_in_its_place,
        a_dead_job_that_was_never_tried_begins_a_new_life_too,
        an_imported_job_with_attempts_begins_a_new_life,
        a_job_that_was_tried_begins_one_new_life_and_not_more,
        a_revived_job_goes_on_with_its_life,
        a_lease_of_a_former_life_settles_nothing,
        a_settle_of_a_former_life_is_no_repetition,
        the_first_lease_of_a_new_life_settles_it,
        a_cancel_of_a_new_life_does_not_ask_about_the_former_one,
        a_new_life_has_an_attempt_log_of_its_own,
        a_death_of_a_former_life_keeps_its_notice,
        a_bulk_revive_passes_over_a_dead_job_that_began_again,
        a_job_is_postponed_to_its_limit_and_no_further,
        the_limit_counts_for_the_first_submit_too,
        a_ready_job_is_delayed_again_until_its_limit_has_passed,
        a_changed_job_is_delivered_at_its_new_time_and_never_before,
        a_change_wakes_whom_a_submit_would,
        a_job_of_a_paused_topic_is_changed_and_waits_on,
        many_changes_of_one_job_leave_one_job_that_is_delivered_once,
    }
    promote {
        nothing_is_promoted_before_it_is_due,
        what_is_due_is_promoted_and_nothing_of_it_early,
        a_pass_takes_no_more_than_its_limit,
        promoted_jobs_keep_the_order_of_their_due_times,
        a_herd_of_2000_in_one_topic_does_not_delay_another,
        topics_come_in_turn_over_many_passes,
        a_cancelled_job_is_not_promoted,
        a_fenced_pass_promotes_nothing,
        the_next_due_time_is_that_of_the_earliest_job,
    }
    reserve {
        a_lease_carries_all_that_was_submitted,
        each_reserve_is_another_attempt,
        a_reserve_takes_no_more_than_its_limit_and_reports_that_there_is_more,
        a_reserve_of_nothing_is_empty,
        large_bodies_are_spread_over_several_reserves,
        a_lease_lasts_for_its_timeout_and_margin_and_never_longer_than_a_stretch,
        the_same_sequence_gives_the_same_leases_again,
        the_same_sequence_keeps_the_receipts_whatever_bits_are_offered,
        a_repeated_reserve_leaves_out_what_was_settled_meanwhile,
        two_callers_never_hold_the_same_job,
        a_cancelled_ready_job_is_passed_over,
        a_small_sequence_of_another_caller_is_no_repetition,
    }
    lanes {
        lanes_share_a_reserve,
        lanes_come_in_turn_over_many_reserves,
        a_lane_at_its_limit_is_left_out_and_reported,
        a_lane_gives_no_more_than_its_limit,
        an_origin_gives_no_more_than_its_limit_over_all_topics,
        a_thousand_lanes_of_an_origin_at_its_limit_do_not_hide_another_origin,
        a_tenant_gives_no_more_than_its_limit_over_all_topics_and_origins,
        jobs_without_a_tenant_have_a_limit_only_if_it_is_named,
        a_lane_gives_no_more_than_its_origin_and_its_tenant_leave,
        a_thousand_lanes_of_a_tenant_at_its_limit_hide_nobody,
        a_thousand_lanes_of_a_tenant_hide_nobody_who_comes_once_they_were_met_closed,
        callers_with_room_for_different_tenants_each_find_their_lanes,
        a_lane_that_is_closed_among_a_thousand_of_another_tenant_is_found_once_it_opens,
        a_hundred_origins_at_their_limits_do_not_hide_another_one,
        a_hundred_lanes_at_their_limits_do_not_hide_one_below_its_limit,
        stale_entries_do_not_block_another_lane,
    }
    pull_jobs {
        a_pull_job_goes_to_consumers_of_its_topic_and_to_no_notifier,
        a_pulled_job_carries_all_that_was_submitted,
        a_pull_takes_no_more_than_its_limit_and_reports_that_there_is_more,
        a_pull_lease_lasts_for_the_ttr_of_the_request_else_of_the_job,
        the_same_pull_again_gives_the_same_jobs,
        two_consumers_never_hold_the_same_job,
        a_finished_job_is_done_and_only_a_finish_repeats_that,
        a_retried_job_is_delayed_with_one_more_failure_and_its_error,
        a_bury_by_a_consumer_makes_the_job_dead_by_the_reason_given,
        a_released_job_is_ready_again_at_once_or_after_its_delay,
        a_settle_by_receipt_repeats_until_the_next_one,
        settles_of_many_receipts_are_answered_in_order,
        a_large_job_is_pulled_and_finished_whole,
        a_stale_receipt_changes_nothing,
        a_renewed_receipt_holds_longer_and_a_stale_one_is_not_renewed,
        a_lease_is_not_renewed_beyond_its_longest_time_since_the_reserve,
        an_expired_lease_is_returned_until_it_is_settled_as_failed,
        no_settle_by_an_expired_lease_counts_as_a_repetition,
        expired_leases_that_are_not_settled_are_postponed,
        a_lease_renewed_after_it_ran_out_is_not_settled_as_failed,
        a_lease_finished_after_it_ran_out_is_not_settled_as_failed,
        a_pass_returns_no_more_expired_leases_than_its_limit,
        the_receipt_leads_to_what_chooses_the_retry_tier,
        a_cancelled_reserved_pull_job_is_done_when_finished_and_else_cancelled,
        a_cancelled_job_whose_lease_expires_is_cancelled,
        cancelled_jobs_do_not_block_others,
        many_cancelled_jobs_take_few_calls,
        a_lane_whose_jobs_were_all_cancelled_is_empty_and_the_next_job_wakes,
        a_lane_that_was_empty_wakes_the_consumers_and_a_full_one_does_not,
        topics_with_ready_pull_jobs_are_listed_page_by_page,
        a_later_job_of_the_same_name_is_not_settled_by_an_old_receipt,
        an_exported_pull_job_is_imported_as_one,
    }
    settle {
        a_completed_job_is_done_and_remembered,
        a_returned_job_is_ready_again_and_its_next_attempt_has_the_same_number,
        the_return_of_a_job_whose_cancel_was_requested_cancels_it,
        a_retried_job_is_delayed_with_one_more_failure,
        a_retry_without_a_delay_is_due_at_once,
        a_bury_makes_the_job_dead_with_a_reason,
        a_released_job_is_ready_without_a_failure,
        a_job_released_with_a_delay_is_delayed_without_a_failure,
        a_repeated_settle_is_known_and_changes_nothing,
        a_failure_after_the_next_delivery_is_still_known_as_a_repetition,
        many_outcomes_in_one_call_are_answered_in_order,
        an_error_of_any_length_and_script_stays_readable,
        lateness_adds_up_in_the_statistics,
    }
    exchange {
        an_exchange_settles_every_outcome_and_then_reserves_ready_jobs,
        an_exchange_keeps_to_its_limits_and_reports_that_there_is_more,
        a_repeated_exchange_gives_the_same_leases_and_changes_nothing,
        an_exchange_is_repeated_by_its_two_halves_as_well,
        a_stale_settle_does_not_keep_an_exchange_from_reserving,
        two_leases_of_one_job_in_an_exchange_are_settled_in_turn,
        an_exchange_of_one_half_is_that_half,
        exchanges_alone_bring_every_job_to_its_end_once,
    }
    stale_leases {
        a_stale_failure_changes_nothing,
        a_late_success_completes_a_ready_job,
        a_late_success_completes_a_delayed_job,
        a_late_success_completes_a_job_reserved_by_another,
        a_late_success_completes_a_job_dead_by_lost,
        a_late_success_changes_nothing_on_a_job_dead_by_exhausted,
        a_late_success_changes_nothing_on_a_done_job,
        a_late_success_changes_nothing_on_a_cancelled_job,
        a_lease_of_an_earlier_life_completes_nothing,
        two_leases_of_one_job_in_one_call_are_settled_one_after_the_other,
    }
    renew {
        a_renewed_lease_is_left_alone_past_its_first_deadline,
        a_renewal_never_shortens_a_lease,
        a_lease_that_was_settled_or_recovered_is_not_renewed,
        a_lease_past_its_deadline_is_renewed_while_nobody_recovered_it,
    }
    recover {
        a_lease_that_ran_out_is_ready_again_at_the_front,
        a_lease_before_its_deadline_is_left,
        five_lost_leases_in_a_row_bury_the_job,
        an_outcome_in_between_starts_the_count_again,
        a_job_with_a_cancel_request_is_cancelled,
        a_pass_recovers_no_more_than_its_limit,
        a_fenced_pass_recovers_nothing,
    }
    cancel {
        a_delayed_job_is_cancelled_and_never_promoted,
        a_ready_job_is_cancelled_and_never_reserved,
        a_cancelled_dead_job_is_not_evicted,
        a_reserved_job_that_succeeds_is_done_all_the_same,
        a_reserved_job_that_does_not_succeed_is_cancelled,
        a_done_job_is_too_late_and_an_unknown_one_unknown,
        a_repeated_cancel_gives_the_same_answer,
        after_a_lease_ran_out_the_delivery_may_be_in_flight,
        no_later_outcome_hides_that_a_lease_ran_out,
        neither_does_a_bulk_revive,
    }
    reschedule_run_revive {
        a_delayed_job_is_rescheduled_to_other_times_far_and_near,
        a_job_rescheduled_to_the_time_it_has_stays,
        a_job_rescheduled_to_now_or_the_past_is_ready,
        a_rescheduled_job_is_delivered_at_its_new_time_and_never_before,
        a_job_that_waits_for_a_retry_keeps_what_it_has_behind_it,
        run_makes_a_delayed_job_due_now_and_leaves_what_is_due_as_it_is,
        a_moved_job_whose_lease_runs_out_is_ready_again,
        a_revived_job_begins_again_but_for_its_attempts,
        a_revived_job_counts_its_lost_leases_anew,
        a_late_success_completes_a_job_that_was_moved_and_lost,
        a_state_that_forbids_a_move_is_returned_and_stays,
        a_repeated_move_is_known_whatever_became_of_the_job,
        a_moved_job_can_be_cancelled_and_is_never_delivered,
        moved_jobs_are_listed_as_they_are_kept,
        a_move_wakes_whom_it_concerns,
        a_purged_job_is_gone_and_counted_and_its_id_is_free,
    }
    eviction {
        a_dead_job_past_its_retention_is_gone_and_counted,
        a_dead_job_within_its_retention_stays,
        an_ended_job_is_remembered_for_its_time_and_then_its_id_is_free,
        a_pass_evicts_no_more_than_its_limit,
        a_fenced_pass_evicts_nothing,
    }
    dead_letters {
        the_pages_have_the_dead_jobs_of_a_topic_in_order_of_death,
        those_of_one_millisecond_are_on_one_page_each,
        a_page_begins_after_the_position_of_any_dead_job,
        the_pages_of_a_filter_have_what_died_so_and_then,
        the_pages_of_all_shards_are_one_list_in_order_of_death,
        many_dead_jobs_of_another_topic_are_passed_over_step_by_step,
        what_stays_dead_is_met_once_while_others_die_are_revived_and_purged,
        a_job_that_dies_again_has_the_time_of_its_last_death,
        what_was_dead_since_then_is_purged_and_nothing_else,
        large_jobs_are_purged_whole,
    }
    bulk {
        each_job_is_changed_as_a_call_for_it_alone_would,
        a_job_that_does_not_fit_any_more_when_it_is_changed_stays,
        a_job_is_moved_once_by_an_operation_even_if_it_fits_again,
        a_stopped_operation_changes_nothing_more,
        the_pages_of_each_filter_have_what_fits_and_nothing_else,
    }
    bulk_revive {
        many_dead_jobs_are_revived_as_each_would_be,
        a_job_is_revived_once_by_a_bulk_revive_whatever_is_repeated,
        only_what_was_dead_when_it_began_is_wanted,
        a_bulk_revive_has_one_worker_at_a_time_and_goes_on_with_another,
        a_stopped_bulk_revive_revives_nothing_more,
        a_finished_bulk_revive_is_done_and_shows_its_counts,
        a_repeated_call_begins_no_second_bulk_revive,
        the_number_of_running_bulk_revives_is_bounded,
        a_revived_job_can_be_moved_as_any_other,
    }
    schedules {
        a_schedule_is_found_as_it_was_added,
        a_schedule_keeps_its_topic_until_it_is_removed,
        a_change_of_another_version_changes_nothing,
        a_time_fires_once_and_its_job_is_an_ordinary_one,
        many_schedules_fire_in_one_call_each_with_many_jobs,
        a_job_whose_id_is_taken_is_not_submitted_again,
        a_firing_beyond_the_limits_of_a_tenant_changes_nothing,
        a_schedule_that_waits_for_its_last_job_knows_when_that_has_ended,
        those_whose_time_has_come_are_found_in_its_order,
        a_pass_says_when_the_first_schedule_fires,
        an_earlier_schedule_wakes_the_carrier,
        schedules_are_listed_by_scope_in_the_order_of_their_names,
        a_tenant_has_no_more_schedules_than_it_may,
        a_large_schedule_is_kept_whole,
    }
    carriers {
        each_claim_has_a_later_epoch_and_fences_the_one_before,
        a_shard_is_given_back_only_by_who_holds_it,
        members_join_stay_and_leave,
        a_member_that_is_not_heard_of_drops_out,
    }
    wakes {
        an_earlier_job_wakes_the_carrier,
        a_later_job_wakes_nobody,
        a_retry_and_a_lease_wake_the_carrier_when_they_come_first,
        a_lane_that_was_empty_wakes_the_notifiers_and_a_full_one_does_not,
        promoted_released_and_recovered_jobs_wake_the_notifiers,
        members_that_come_and_go_wake_the_carriers,
        the_cancel_of_a_reserved_job_is_announced_once,
    }
    events {
        a_job_has_events_from_its_submit_to_its_end,
        events_of_failures_have_the_response_and_the_next_due_time,
        releases_have_events_with_and_without_a_delay,
        cancels_have_events_when_the_job_ends,
        a_success_has_its_response_in_the_event_when_the_job_was_reserved_under_watch,
        lost_leases_have_events_as_attempts,
        settles_by_consumers_have_events,
        imports_have_events_of_submits_and_deaths,
        a_submit_that_changes_a_job_has_one_event_and_a_refused_one_has_none,
        jobs_that_a_call_makes_ready_have_promoted_events,
        each_revived_job_of_many_has_an_event,
        purges_and_evictions_have_no_events,
        a_large_batch_has_all_its_events_in_order,
        an_exchange_has_events_of_what_it_settles,
        a_shard_publishes_events_only_while_it_is_watched,
    }
    transition_log {
        a_life_is_logged_transition_by_transition,
        expired_leases_and_what_becomes_of_them_are_logged,
        cancels_purges_and_evictions_are_logged,
        bulk_revives_imports_and_replacing_submits_are_logged,
        transitions_of_pull_jobs_are_logged_by_name,
        an_exchange_logs_what_it_settles_and_what_it_reserves,
    }
    topics {
        each_job_counts_in_the_state_that_it_is_in,
        every_transition_moves_its_job_in_the_counts,
        what_has_ended_is_counted_by_topic_whether_or_not_it_has_jobs,
        a_topic_is_known_from_its_first_job_on,
        topics_come_page_by_page_in_the_order_of_their_names,
        the_lanes_of_a_topic_add_up,
        a_topic_of_very_many_lanes_is_counted_and_paused,
        the_first_due_time_is_that_of_what_is_near_or_ready,
        nothing_of_a_paused_topic_is_delivered_until_it_is_resumed,
        an_exchange_gives_nothing_of_a_paused_topic,
        a_delivery_under_way_goes_on_while_its_topic_is_paused,
        consumers_are_given_nothing_of_a_paused_topic,
        a_resumed_topic_wakes_the_notifiers,
        pausing_and_resuming_again_changes_nothing,
        a_lane_that_was_emptied_while_it_was_paused_is_found_again,
        a_thousand_lanes_of_a_paused_topic_do_not_stand_before_another,
        another_process_finds_the_topic_paused,
        a_topic_beyond_the_limit_is_refused_and_known_topics_go_on,
        a_tenant_has_no_more_topics_and_lanes_than_its_quota_allows,
        a_tenant_leaves_half_of_the_topics_to_the_others,
    }
    limits {
        a_limited_lane_gives_jobs_to_a_caller_with_places_alone,
        a_pause_holds_a_limited_lane_too,
        no_more_places_are_in_use_than_a_limit_allows,
        a_place_is_free_after_its_time_unless_it_is_held,
        callbacks_begin_at_the_rate_after_a_burst,
        tokens_that_were_not_used_are_there_again_if_they_were_the_last,
        all_limits_of_a_lane_hold_together,
        a_limit_of_a_topic_holds_its_lanes_together_and_no_others,
        a_breaker_is_enforced_by_a_limit_until_it_is_closed,
        a_receiver_that_asks_for_fewer_callbacks_gets_none_until_its_time,
        breakers_that_are_forced_closed_limit_nothing_until_they_are_reset,
        what_a_job_waits_for_is_known_with_the_jobs_before_it,
    }
    order {
        jobs_of_a_key_go_one_at_a_time_and_those_of_others_beside_them,
        jobs_of_a_key_that_are_due_at_once_keep_the_order_of_their_submits,
        an_attempted_job_stays_first_until_it_has_ended,
        a_job_goes_after_those_that_were_due_before_it_came,
        a_job_that_is_not_due_blocks_nobody,
        the_next_job_goes_when_the_first_dies_is_cancelled_or_replaced,
        a_dead_job_holds_its_key_until_it_is_revived_purged_or_the_key_is_unblocked,
        what_a_job_of_an_ordered_topic_waits_for_is_known,
        jobs_that_wait_go_when_their_topic_is_no_longer_ordered,
        an_order_holds_for_jobs_that_wait_already,
        consumers_get_the_jobs_of_a_key_one_at_a_time_too,
        bulk_changes_and_imports_keep_the_order,
        firings_of_a_schedule_do_not_wait_for_each_other,
        a_dead_job_is_kept_while_it_holds_its_key,
    }
    order_random {
        a_key_has_one_job_at_a_time_in_its_order_whatever_happens,
    }
    destinations {
        nothing_goes_to_a_paused_destination_until_it_is_resumed,
        a_pause_of_a_port_holds_that_port_alone,
        a_lane_waits_for_its_topic_and_for_its_destination,
        a_pause_of_a_tenant_holds_its_own_jobs,
        a_delivery_under_way_goes_on_while_its_destination_is_paused,
        consumers_of_a_topic_are_not_held_by_a_paused_destination,
        a_resumed_destination_wakes_the_notifiers,
        pausing_and_resuming_a_destination_again_changes_nothing,
        a_lane_that_was_emptied_while_its_destination_held_it_is_found_again,
        more_lanes_than_one_step_takes_are_resumed_and_those_held_otherwise_stay,
        another_process_finds_the_destination_paused,
        ready_jobs_of_a_paused_destination_count_as_ready,
        destinations_beyond_the_limits_are_not_paused,
        destinations_come_page_by_page_with_the_sums_of_their_lanes,
        destinations_of_thousands_of_lanes_are_read_in_parts,
    }
    forecast {
        a_forecast_has_each_delayed_job_in_its_slot,
        a_forecast_has_no_cancelled_job_and_tells_retries_apart,
        a_sampled_forecast_lies_within_its_error,
        a_forecast_of_many_lanes_lies_within_its_error,
        a_forecast_has_the_firings_of_schedules,
    }
    gauges {
        a_shard_counts_its_jobs_by_state,
        the_oldest_ready_job_counts_from_its_due_time,
        a_ready_job_behind_many_cancelled_ones_is_found,
        ready_jobs_of_a_paused_topic_count_as_ready,
        a_carrier_that_has_lost_the_shard_gets_no_gauges,
        topics_have_gauges_of_their_own_in_the_order_they_are_asked_for,
        thousands_of_lanes_are_counted_whole_and_the_oldest_waits_first,
    }
    policies {
        a_topic_has_the_policy_that_was_put_last,
        a_deleted_policy_is_gone_and_a_second_delete_finds_none,
        each_change_of_a_policy_has_a_later_version,
        policies_of_the_largest_size_are_read_as_a_whole,
        changes_at_the_same_time_are_all_kept,
        a_policy_beyond_the_limit_is_refused_until_one_is_deleted,
        a_topic_with_metrics_beyond_the_limit_is_refused_until_another_has_none,
        a_shared_configuration_learns_of_each_change_within_a_second,
        a_shared_configuration_knows_nothing_before_the_store_was_found_fit,
        a_change_is_known_when_its_version_is_reached,
        a_topic_has_jobs_until_the_last_one_has_ended,
        a_policy_made_from_the_stored_one_replaces_no_later_one,
    }
    random {
        thousands_of_random_operations_agree_with_a_simple_model,
    }
    list {
        the_pages_have_every_job_that_has_not_ended_as_it_is_kept,
        a_page_reads_about_as_many_jobs_as_its_limit,
        the_pages_are_those_of_all_shards,
        the_pages_of_a_filter_have_what_is_wanted_and_nothing_else,
        a_store_without_jobs_has_pages_without_jobs,
        one_wanted_job_among_many_is_met_behind_empty_pages,
        what_stays_is_met_while_everything_moves,
        a_cursor_of_no_shard_is_outdated,
        what_is_kept_is_what_was_submitted,
        large_jobs_are_spread_over_several_pages,
    }
    list_dead {
        the_pages_look_at_dead_jobs_alone,
        those_that_stay_dead_are_met_while_others_are_revived,
        jobs_that_a_place_does_not_tell_apart_are_on_one_page,
        a_cursor_of_dead_jobs_is_refused_where_others_fit,
    }
    list_tagged {
        the_pages_of_a_tag_look_at_the_jobs_with_it_alone,
        the_index_of_tags_follows_jobs_as_they_change_and_end,
        a_tag_of_a_tenant_is_not_that_of_another,
    }
    look_up {
        the_tags_of_a_job_are_in_each_answer_until_it_has_ended,
        a_job_without_tags_may_get_some_and_lose_them,
        a_job_that_is_looked_up_has_all_that_was_submitted,
        a_job_is_looked_up_in_every_state_until_it_has_ended,
    }
    import {
        a_job_with_nothing_behind_it_is_as_one_that_is_submitted,
        a_pending_job_keeps_what_it_has_behind_it,
        a_job_that_is_cancelled_is_remembered_with_what_it_had_behind_it,
        a_dead_job_is_dead_and_keeps_all_of_its_past,
        a_dead_job_is_due_as_it_is_given_to_be,
        the_longest_words_and_numbers_fit,
        a_job_is_never_created_later_than_now,
        attempts_and_failures_go_on_from_where_they_were,
        an_import_and_a_submit_are_each_others_repetition,
        a_name_twice_in_one_import_is_imported_once,
        a_dead_job_is_kept_from_its_import_on_and_then_gone,
        a_lease_of_an_earlier_life_does_not_complete_an_imported_job,
        a_late_success_completes_an_imported_job,
        an_import_wakes_as_a_submit_does,
        what_one_installation_has_another_takes_over_as_it_is,
    }
    notice_outbox {
        a_dead_letter_has_an_entry_with_all_its_notice_needs,
        each_way_to_die_leaves_an_entry,
        jobs_that_end_otherwise_or_are_imported_dead_leave_no_entry,
        the_later_life_of_a_job_does_not_change_its_entry,
        the_entry_of_a_large_job_has_no_body,
        a_dead_letter_that_is_acknowledged_twice_has_one_notice,
        a_job_that_dies_again_has_another_entry,
        a_job_that_is_imported_again_and_dies_again_has_another_entry,
        a_repeated_settle_leaves_one_entry,
        deaths_are_read_in_their_order_and_no_more_than_the_limit,
        many_deaths_of_one_call_all_leave_entries,
        a_postponed_entry_blocks_no_other_and_comes_again,
        a_fenced_acknowledgement_changes_nothing,
        a_dead_letter_wakes_the_carrier_and_a_pass_returns_when_its_notice_is_due,
        a_job_done_after_its_death_has_a_notice_of_that_death,
        a_success_that_is_noted_has_an_entry_with_its_answer,
        successes_of_exchanges_and_of_large_jobs_have_entries_without_bodies,
        what_is_no_success_has_no_entry_of_one,
        a_repeated_success_has_one_entry,
        a_success_after_a_death_has_an_entry_beside_that_of_the_death,
    }
    archive {
        each_end_leaves_an_entry_with_what_was_submitted,
        every_way_to_end_leaves_one_entry,
        without_an_archive_and_for_ends_that_are_not_wanted_there_are_no_entries,
        entries_are_removed_once_and_only_the_first_ones,
        large_ends_are_spread_over_several_parts,
        a_repeated_settle_leaves_one_entry_and_a_success_after_a_death_one_more,
        each_life_of_a_name_has_its_own_entry,
        entries_have_the_attempts_that_were_logged,
        a_full_outbox_stops_submits_and_at_twice_its_bound_reserves,
        an_outbox_that_drops_loses_the_oldest_entries_and_counts_them,
    }
    cancel_races {
        a_job_is_either_cancelled_or_reserved,
    }
    attempts {
        recorded_attempts_are_shown_and_a_job_without_attempts_has_none,
        attempts_stand_by_number_and_the_last_twenty_stay,
        an_attempt_that_is_recorded_twice_is_shown_once_as_it_was_first,
        responses_and_errors_of_any_kind_are_kept_up_to_their_bounds,
        many_attempts_in_one_call_each_go_to_their_job,
        the_log_of_a_job_outlives_its_end,
        a_later_job_of_the_same_name_has_a_log_of_its_own,
        a_late_record_of_an_earlier_job_leaves_the_log_of_a_later_one,
        a_job_that_was_created_before_an_earlier_one_of_its_name_has_its_log,
        logs_take_no_more_memory_than_they_may_and_the_oldest_are_evicted,
        a_log_that_is_added_to_stays_while_others_go,
        attempts_older_than_their_retention_are_not_shown,
        a_consumer_s_failure_is_recorded_with_what_the_lease_knows,
        an_expired_lease_is_recorded_and_a_renewed_one_is_not,
        nothing_is_recorded_without_room_and_a_topic_chooses_what_is_recorded,
    }
}
