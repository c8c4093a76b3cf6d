//! Feeds a target for a while.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use crate::{Mutator, Target};

/// How long a target may be at one input of ordinary length.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came of it.
#[derive(Debug)]
pub struct Driven {
    /// Inputs that were read.
    pub inputs: u64,
    /// The first of them for which something did not hold.
    pub found: Option<Found>,
}

/// An input for which something does not hold.
#[derive(Debug)]
pub struct Found {
    /// The input.
    pub input: Vec<u8>,
    /// What was said of it.
    pub what: String,
}

/// Feeds a target with its seeds and then with what a mutator makes of them, until so much time has passed or something does
/// not hold.
pub fn drive(target: &Target, number: u64, time: Duration) -> Driven {
    let end = Instant::now() + time;
    let seeds = (target.seeds)();
    let mut mutator = Mutator::new(number, seeds.clone(), target.words);
    let mut seeds = seeds.into_iter();
    let mut inputs = 0;
    loop {
        let seed = seeds.next();
        if seed.is_none() && Instant::now() >= end {
            return Driven { inputs, found: None };
        }
        let input = seed.unwrap_or_else(|| mutator.next_input());
        inputs += 1;
        if let Err(what) = holds_for(target, &input) {
            let found = Some(Found { input, what });
            return Driven { inputs, found };
        }
    }
}

/// Whether everything holds for this input; if not, what does not.
pub fn holds_for(target: &Target, input: &[u8]) -> Result<(), String> {
    let began = Instant::now();
    let ended = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let took = began.elapsed();
    match ended {
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(text.unwrap_or_else(|| "it panicked without a word".to_owned()))
        }
        Ok(()) if took > PATIENCE => Err(format!("it took {took:?} for {} bytes", input.len())),
        Ok(()) => Ok(()),
    }
}
