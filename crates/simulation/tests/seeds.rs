//! Thousands of seeds, each a marketplace in which everything goes wrong. What one of them shows, it shows again:
//! `SIMULATION_SEED=… cargo test -p simulation`; `SIMULATION_SEEDS=…` plays another number of them.
#![expect(clippy::panic, reason = "tests")]

use simulation::{Outcome, Setup, World, play_all, tokens, trade};

/// How many seeds are played in an ordinary run.
const SEEDS: u64 = 2_500;

fn hold(world: World) -> Outcome {
    play_all(world, SEEDS).unwrap_or_else(|violation| panic!("{violation}"))
}

#[test]
fn whatever_goes_wrong_trade_keeps_its_promises() {
    let outcome = hold(trade);
    assert!(outcome.requests > 0 && outcome.attempts > 0, "{outcome:?}");
}

#[test]
fn whatever_goes_wrong_no_token_outlives_its_end() {
    let outcome = hold(tokens);
    assert!(outcome.requests > 0 && outcome.deaths > 0, "{outcome:?}");
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
