//! Seals with configured keys, hashes passwords, and provides randomness and the system clock.

mod key_ring;
mod passwords;

use chrono::{DateTime, Utc};
use kernel::{Clock, Randomness};
use ring::rand::{SecureRandom as _, SystemRandom};
use uuid::Uuid;

pub use key_ring::{KeyError, KeyRing};
pub use passwords::{Argon2Hasher, HashingBounds};

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// The operating system's cryptographically secure generator.
#[derive(Debug, Clone)]
pub struct SystemRandomness(SystemRandom);

impl SystemRandomness {
    pub fn new() -> Self {
        Self(SystemRandom::new())
    }

    #[expect(
        clippy::expect_used,
        reason = "a secret that can be guessed is worse than a request that fails"
    )]
    pub(crate) fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0
            .fill(&mut bytes)
            .expect("the operating system gives random bytes");
        bytes
    }
}

impl Default for SystemRandomness {
    fn default() -> Self {
        Self::new()
    }
}

impl Randomness for SystemRandomness {
    fn secret(&self) -> [u8; 32] {
        self.bytes()
    }

    #[expect(clippy::disallowed_methods, reason = "the only place that makes ids")]
    fn uuid(&self) -> Uuid {
        Uuid::now_v7()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_rise_and_secrets_differ() {
        let randomness = SystemRandomness::new();
        let ids: Vec<_> = (0..10_000).map(|_| randomness.uuid()).collect();
        assert!(ids.is_sorted_by(|earlier, later| earlier < later));
        assert!(ids.iter().all(|id| id.get_version_num() == 7));
        let secrets: BTreeSet<_> = (0..1_000).map(|_| randomness.secret()).collect();
        assert_eq!(secrets.len(), 1_000);
    }
}
