//! Chance and new ids, from the operating system's generator.

use kernel::Randomness;
use ring::rand::{SecureRandom as _, SystemRandom};
use uuid::Uuid;

/// The operating system's cryptographically secure generator.
#[derive(Debug, Clone)]
pub struct SystemRandomness(SystemRandom);

impl SystemRandomness {
    /// The generator.
    pub fn new() -> Self {
        Self(SystemRandom::new())
    }

    /// Bytes that nobody can guess.
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

    #[expect(
        clippy::disallowed_methods,
        reason = "this is where everybody else's ids come from"
    )]
    fn uuid(&self) -> Uuid {
        Uuid::now_v7()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_rise_in_the_order_in_which_they_are_made() {
        let ids = (0..10_000)
            .map(|_| SystemRandomness::new().uuid())
            .collect::<Vec<_>>();
        assert!(ids.is_sorted_by(|earlier, later| earlier < later));
        assert!(ids.iter().all(|id| id.get_version_num() == 7));
    }

    #[test]
    fn no_secret_comes_twice() {
        let randomness = SystemRandomness::new();
        let secrets = (0..1_000).map(|_| randomness.secret()).collect::<BTreeSet<_>>();
        assert_eq!(secrets.len(), 1_000);
    }
}
