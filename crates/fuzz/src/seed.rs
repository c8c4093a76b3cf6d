//! The number that decides which inputs are made.

use std::env;

/// Without another one each run makes the same inputs, as far as its time reaches.
const USUAL: u64 = 17;

/// `FUZZ_SEED`: a number, or `random` for one that is drawn; a fixed one without it. It is told, so that it can be given again.
///
/// # Panics
///
/// If it is neither.
#[expect(
    clippy::print_stderr,
    reason = "a failure is shown with the number that repeats it"
)]
pub fn seed() -> u64 {
    let seed = match env::var("FUZZ_SEED").as_deref() {
        Err(_) => USUAL,
        Ok("random") => fastrand::u64(..),
        Ok(text) => text.parse().expect("FUZZ_SEED is a number or `random`"),
    };
    eprintln!("FUZZ_SEED={seed}");
    seed
}
