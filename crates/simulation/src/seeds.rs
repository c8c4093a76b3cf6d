//! Many seeds, on all cores; and one again, when it has shown something.

use std::{
    num::NonZeroUsize,
    panic::catch_unwind,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use crate::{Outcome, Setup, Violation, executor::lock};

/// A world: what a seed is played in.
pub type World = fn(Setup) -> Result<Outcome, Violation>;

/// Plays seeds from 0 on, as many as `SIMULATION_SEEDS` says or else `usual`; or the one that `SIMULATION_SEED` names. The lowest
/// that shows something wrong is played again with all that happens in it, and returned.
pub fn play_all(world: World, usual: u64) -> Result<Outcome, Violation> {
    if let Some(seed) = number_in("SIMULATION_SEED") {
        return play(world, traced(seed));
    }
    let seeds = number_in("SIMULATION_SEEDS").unwrap_or(usual);
    let (next, total) = (AtomicU64::new(0), Mutex::new(Outcome::default()));
    let first_wrong = AtomicU64::new(u64::MAX);
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.min(first_wrong.load(Ordering::Relaxed)) {
                        break;
                    }
                    match play(
                        world,
                        Setup {
                            seed,
                            ..Setup::default()
                        },
                    ) {
                        Ok(outcome) => lock(&total).add(&outcome),
                        Err(_) => drop(first_wrong.fetch_min(seed, Ordering::Relaxed)),
                    }
                }
            });
        }
    });
    match first_wrong.into_inner() {
        u64::MAX => Ok(lock(&total).clone()),
        seed => Err(play(world, traced(seed)).err().unwrap_or_else(|| Violation {
            seed,
            wrongs: vec!["it went wrong once and not again: the run is not deterministic".to_owned()],
            trace: Vec::new(),
        })),
    }
}

fn traced(seed: u64) -> Setup {
    Setup {
        seed,
        traced: true,
        ..Setup::default()
    }
}

/// The first seed below `limit` in which a flaw shows; nothing where it never does.
pub fn catches(world: World, flaw: crate::Flaw, limit: u64) -> Option<u64> {
    (0..limit).find(|seed| {
        let setup = Setup {
            seed: *seed,
            flaw: Some(flaw),
            traced: false,
        };
        play(world, setup).is_err()
    })
}

/// A panic is a violation like any other, and known by its seed too.
fn play(world: World, setup: Setup) -> Result<Outcome, Violation> {
    catch_unwind(|| world(setup)).unwrap_or_else(|_| {
        Err(Violation {
            seed: setup.seed,
            wrongs: vec!["something panicked".to_owned()],
            trace: Vec::new(),
        })
    })
}

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
