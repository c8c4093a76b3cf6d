//! Seals with configured keys, hashes passwords, and provides randomness and the system clock.

mod key_ring;
mod passwords;
mod system;

pub use key_ring::{KeyError, KeyRing};
pub use passwords::{Argon2Hasher, HashingBounds};
pub use system::{SystemClock, SystemRandomness};
