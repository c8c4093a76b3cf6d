//! What inputs cost as they grow: nothing that strangers send may cost more than in proportion to its length.

use std::time::{Duration, Instant};

use crate::Target;

/// What comes before, what is repeated, what comes after.
pub type Shape = (&'static str, &'static str, &'static str);

/// What a shape of input cost.
#[derive(Debug)]
pub struct Costs {
    /// Which shape.
    pub shape: Shape,
    /// The most time that the shorter input took.
    pub short: Duration,
    /// The least time that one took which is [`Costs::TIMES`] times as long.
    pub long: Duration,
}

impl Costs {
    /// How much longer the long input is.
    pub const TIMES: u32 = 8;
    /// The length of the short one, in bytes.
    const SHORT: usize = 16 * 1024;

    /// Whether it costs far more than in proportion: what grows by the square costs 64 times as much.
    pub fn are_too_much(&self) -> bool {
        self.long > self.short * (Self::TIMES * 3) + Duration::from_millis(50)
    }
}

/// Measures every shape of a target, its words repeated among them.
pub fn costs(target: &Target) -> Vec<Costs> {
    let words = target.words.iter().map(|word| ("", *word, ""));
    let shapes = target.grows.iter().copied().chain(words);
    shapes.map(|shape| measured(target, shape)).collect()
}

/// A busy machine may hold a run up: what seems too much is measured again.
fn measured(target: &Target, shape: Shape) -> Costs {
    let length = Costs::SHORT.saturating_mul(usize::try_from(Costs::TIMES).unwrap_or(usize::MAX));
    let (short, long) = (grown(shape, Costs::SHORT), grown(shape, length));
    let time = |input: &[u8]| {
        let began = Instant::now();
        (target.run)(input);
        began.elapsed()
    };
    let mut costs = Costs {
        shape,
        short: time(&short),
        long: time(&long),
    };
    for _ in 0..4 {
        if !costs.are_too_much() {
            break;
        }
        costs.short = costs.short.max(time(&short));
        costs.long = costs.long.min(time(&long));
    }
    costs
}

fn grown((before, unit, after): Shape, length: usize) -> Vec<u8> {
    let mut input = before.as_bytes().to_vec();
    let (head, tail) = unit.split_once('#').unwrap_or((unit, ""));
    let counts = unit.contains('#');
    let mut number = 0_u64;
    while input.len() < length {
        input.extend_from_slice(head.as_bytes());
        if counts {
            input.extend_from_slice(number.to_string().as_bytes());
            input.extend_from_slice(tail.as_bytes());
            number += 1;
        } else if head.is_empty() {
            break;
        }
    }
    input.extend_from_slice(after.as_bytes());
    input
}
