//! What every store has to keep to, whatever it stores in: the rules that the ports state, as tests over the ports alone.
//!
//! The database in memory passes them, and so does PostgreSQL; the simulation is worth as much as the two are alike.
//! [`every_rule`](crate::every_rule) names all of them, so that no store is tested by fewer than another one.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "what is not kept to has failed the test that calls it"
)]

pub mod claims;
pub mod feed;
pub mod gate;
pub mod grants;
pub mod lanes;
pub mod offers;
pub mod orders;
pub mod settling;
mod stand;
pub mod subscriptions;

pub use stand::{Ids, LIMIT, Stand};

/// Calls a macro with every rule, by the port that states it.
#[macro_export]
macro_rules! every_rule {
    ($each:ident) => {
        $each! {
            claims: a_key_runs_once_and_is_then_answered_from_memory,
                keys_of_different_spaces_never_meet,
                who_released_leaves_nothing_and_who_completed_releases_nothing,
                a_lease_that_has_run_out_counts_as_absent_and_completes_nothing,
                answers_are_remembered_for_a_day_from_completion,
                a_completion_stands_or_falls_with_its_effect,
                of_many_at_once_exactly_one_runs,
                the_row_tells_what_became_of_a_commit;
            offers: what_is_saved_is_there_and_another_sellers_is_not,
                what_is_not_committed_is_nobodys,
                a_locked_offer_is_waited_for_and_read_as_it_is_then,
                what_is_new_must_not_be_there_and_what_changes_must,
                those_who_lock_the_same_offers_never_wait_in_a_circle;
            orders: a_number_is_given_once,
                parts_are_their_sellers_and_locked_in_one_order,
                each_event_is_delivered_to_each_subscription_to_it;
            lanes: a_lane_is_given_to_one_worker_until_its_lease_ends,
                what_was_lost_with_its_worker_is_counted,
                first_attempts_come_before_repeated_ones,
                nobody_gets_more_than_there_is_room_for,
                a_top_up_prolongs_and_leaves_out_what_runs,
                a_claim_tells_whether_there_may_be_more,
                a_suspended_applications_lanes_rest;
            settling: an_end_is_recorded_once_and_under_the_present_claim_alone,
                a_lane_sleeps_until_something_is_due_in_it,
                a_lane_rests_as_long_as_it_is_told;
            subscriptions: the_limit_is_exact_and_a_place_comes_back,
                what_has_ended_is_given_out_no_more;
            feed: every_item_is_read_once_in_one_order,
                nothing_is_shown_behind_what_is_still_under_way;
            gate: each_request_has_its_own_place_in_the_minute,
                a_token_dies_with_whatever_it_hangs_on;
            grants: a_refresh_token_gives_one_pair,
                a_second_use_waits_for_the_first,
                a_second_use_waits_for_the_first_behind_its_begin,
                a_connections_end_is_its_families_end;
        }
    };
}
