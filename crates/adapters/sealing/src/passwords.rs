//! Passwords, hashed with argon2id (RFC 9106).

use std::sync::Arc;

use argon2::{Argon2, PasswordHasher as _, password_hash::phc};
use async_trait::async_trait;
use kernel::StoreError;
use oauth::{PasswordHash, PasswordHasher};
use tokio::{sync::Semaphore, task::spawn_blocking};

/// How many hashes are made at a time. Each takes 19 MiB and a core for tens of milliseconds.
const AT_A_TIME: usize = 2;

/// Hashes passwords off the asynchronous threads, a few at a time; clones share the bound.
#[derive(Debug, Clone)]
pub struct Argon2Hasher {
    places: Arc<Semaphore>,
}

impl Argon2Hasher {
    /// A hasher with its own bound: make one for the process.
    pub fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(AT_A_TIME)),
        }
    }
}

impl Default for Argon2Hasher {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl PasswordHasher for Argon2Hasher {
    async fn hash(&self, password: &str) -> Result<PasswordHash, StoreError> {
        let place = Arc::clone(&self.places)
            .acquire_owned()
            .await
            .map_err(StoreError::unexpected)?;
        let password = password.to_owned();
        let hashed = spawn_blocking(move || {
            // The place is held until the work is done, also when nobody waits for it any more.
            let _place = place;
            let hash: Result<phc::PasswordHash, _> = Argon2::default().hash_password(password.as_bytes());
            hash.map(|hash| hash.to_string())
        });
        let hash = hashed.await.map_err(StoreError::unexpected)?;
        hash.map(PasswordHash::new)
            .map_err(|error| StoreError::unexpected(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use argon2::PasswordVerifier as _;

    use super::*;

    #[tokio::test]
    async fn a_hash_is_salted_argon2id_and_fits_its_password_alone() {
        let hasher = Argon2Hasher::new();
        let (one, other) = tokio::join!(hasher.hash("Żółw-17!"), hasher.hash("Żółw-17!"));
        let (one, other) = (one.unwrap(), other.unwrap());
        assert!(one.as_str().starts_with("$argon2id$v=19$"), "{}", one.as_str());
        assert_ne!(one.as_str(), other.as_str());
        let parsed = phc::PasswordHash::new(one.as_str()).unwrap();
        assert!(
            Argon2::default()
                .verify_password("Żółw-17!".as_bytes(), &parsed)
                .is_ok()
        );
        assert!(Argon2::default().verify_password(b"another", &parsed).is_err());
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_gives_its_place_back() {
        let hasher = Argon2Hasher::new();
        for _ in 0..=AT_A_TIME {
            let hashing = hasher.hash("x");
            drop(tokio::time::timeout(std::time::Duration::ZERO, hashing).await);
        }
        let all = u32::try_from(AT_A_TIME).unwrap();
        let returned =
            tokio::time::timeout(std::time::Duration::from_mins(1), hasher.places.acquire_many(all));
        assert!(returned.await.is_ok());
    }
}
