//! Thousands of seeds, each a marketplace in which everything goes wrong. What one of them shows, it shows again:
//! `SIMULATION_SEED=… cargo test -p simulation --test seeds`; `SIMULATION_SEEDS=…` plays another number of them.
#![expect(clippy::panic, reason = "tests")]

use std::env;

use simulation::{Met, Setup, World, play_all, tokens, trade};

/// How many seeds are played in an ordinary run.
const SEEDS: u64 = 2_500;

/// Plays them, and looks whether each thing that is to happen has happened. That is asked of all seeds together: a few, or one that
/// is played again, may lack some of it.
fn hold(world: World, own: &[Met]) {
    let outcome = play_all(world, SEEDS).unwrap_or_else(|violation| panic!("{violation}"));
    let asked = env::var("SIMULATION_SEEDS").ok();
    let fewer = asked.is_some_and(|seeds| seeds.parse::<u64>().is_ok_and(|seeds| seeds < SEEDS));
    if fewer || env::var_os("SIMULATION_SEED").is_some() {
        return;
    }
    let missing = outcome.has_not_met(&[Met::ANYWHERE, own].concat());
    assert!(missing.is_empty(), "{missing:?} never happened: {outcome:#?}");
    assert!(outcome.requests > 0, "{outcome:#?}");
}

#[test]
fn whatever_goes_wrong_trade_keeps_its_promises() {
    hold(trade, Met::TRADE);
}

#[test]
fn whatever_goes_wrong_no_token_outlives_its_end() {
    hold(tokens, Met::TOKENS);
}

#[test]
fn a_seed_decides_everything() {
    let worlds: [World; 2] = [trade, tokens];
    for (seed, world) in (0..50).flat_map(|seed| worlds.map(|world| (seed, world))) {
        let setup = Setup {
            seed,
            ..Setup::default()
        };
        let runs = [(); 2].map(|()| world(setup).ok());
        assert_eq!(runs[0], runs[1]);
    }
}
