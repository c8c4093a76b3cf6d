//! The simulation finds what it is there to find: each flaw of a database, or of an adapter over it, shows within so many
//! seeds.

use simulation::{Flaw, World, catches, tokens, trade};

/// How many seeds a flaw may hide from at most.
const LIMIT: u64 = 3_000;

fn caught(world: World, flaw: Flaw) {
    let seed = catches(world, flaw, LIMIT);
    assert!(seed.is_some(), "{flaw:?} shows in none of {LIMIT} seeds");
}

#[test]
fn the_simulation_catches_a_completion_that_forgets_the_fence() {
    caught(trade, Flaw::ForgetsFence);
}

#[test]
fn the_simulation_catches_an_answer_that_is_remembered_apart_from_its_effect() {
    caught(trade, Flaw::RemembersApart);
}

#[test]
fn the_simulation_catches_events_that_are_told_after_the_commit() {
    caught(trade, Flaw::TellsAfterCommit);
}

#[test]
fn the_simulation_catches_a_lane_that_is_put_to_sleep_too_soon() {
    caught(trade, Flaw::SleepsTooSoon);
}

#[test]
fn the_simulation_catches_an_end_that_is_recorded_twice() {
    caught(trade, Flaw::ForgetsAttempt);
}

#[test]
fn the_simulation_catches_a_worker_that_gives_back_another_ones_lane() {
    caught(trade, Flaw::ForgetsLaneFence);
}

#[test]
fn the_simulation_catches_stock_that_is_taken_without_a_lock() {
    caught(trade, Flaw::ReadsUnlocked);
}

#[test]
fn the_simulation_catches_a_feed_that_reads_ahead_of_open_transactions() {
    caught(trade, Flaw::ReadsAhead);
}

#[test]
fn the_simulation_catches_a_gate_that_remembers_tokens() {
    caught(tokens, Flaw::RemembersTokens);
}

#[test]
fn the_simulation_catches_a_refresh_that_is_judged_before_the_lock() {
    caught(tokens, Flaw::JudgesUnlocked);
}

#[test]
fn the_simulation_catches_a_count_that_is_sent_again() {
    caught(tokens, Flaw::CountsAgain);
}
