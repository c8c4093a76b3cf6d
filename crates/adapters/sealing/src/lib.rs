//! What takes cryptography or the machine itself: sealing under configured keys, hashing passwords, randomness, the clock.

mod clock;
mod key;
mod key_ring;
mod passwords;
mod randomness;

pub use clock::SystemClock;
pub use key::KeyError;
pub use key_ring::KeyRing;
pub use passwords::{Argon2Hasher, HashingBounds};
pub use randomness::SystemRandomness;
