//! Cryptography and the machine: sealing with configured keys, hashing passwords, randomness, the clock.

mod key_ring;
mod passwords;
mod system;

pub use key_ring::{KeyError, KeyRing};
pub use passwords::{Argon2Hasher, HashingBounds};
pub use system::{SystemClock, SystemRandomness};
