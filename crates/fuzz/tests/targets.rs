//! Every target, fed for a short while, and what inputs cost as they grow.
//!
//! `FUZZ_SECONDS` says how long each target is fed (a quarter of a second without it), `FUZZ_SEED` which inputs are made (a
//! number, or `random`; the same in each run without it), `FUZZ_TARGET` which target alone.
#![expect(clippy::panic, clippy::print_stderr, reason = "tests")]

use std::{env, sync::Mutex, thread, time::Duration};

use fuzz::{Driven, TABLE, Target, costs, drive, seed};

/// How many targets are fed at a time.
const THREADS: usize = 2;

fn number(name: &str) -> Option<f64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn chosen() -> Vec<&'static Target> {
    let name = env::var("FUZZ_TARGET").ok();
    let chosen = TABLE
        .iter()
        .filter(|target| name.as_ref().is_none_or(|name| name == target.name));
    let chosen: Vec<_> = chosen.collect();
    assert!(!chosen.is_empty(), "there is no such target");
    chosen
}

#[test]
fn whatever_is_read_every_target_holds() {
    let time = Duration::from_secs_f64(number("FUZZ_SECONDS").unwrap_or(0.25));
    let seed = seed();
    let waiting = Mutex::new(chosen());
    let faults = Mutex::new(Vec::new());
    let feed = || {
        while let Some(target) = { waiting.lock().unwrap().pop() } {
            let Driven { inputs, found } = drive(target, seed, time);
            eprintln!("{}: {inputs} inputs", target.name);
            if let Some(found) = found {
                let input = found.input.escape_ascii();
                let fault = format!(
                    "{} with FUZZ_SEED={seed}: {}\nb\"{input}\"",
                    target.name, found.what
                );
                faults.lock().unwrap().push(fault);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(feed);
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn nothing_costs_more_than_in_proportion_to_its_length() {
    let mut faults = Vec::new();
    for target in chosen() {
        let dear = costs(target).into_iter().filter(fuzz::Costs::are_too_much);
        faults.extend(dear.map(|costs| format!("{}: {costs:?}", target.name)));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
