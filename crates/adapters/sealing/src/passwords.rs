//! Passwords, hashed with argon2id (RFC 9106).

use std::sync::Arc;

use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _, password_hash::phc};
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

impl Argon2Hasher {
    /// Does such work once there is a place for it. The place is held until the work is done, also when nobody waits for it
    /// any more.
    async fn hashing<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let place = Arc::clone(&self.places)
            .acquire_owned()
            .await
            .map_err(StoreError::unexpected)?;
        let task = spawn_blocking(move || {
            let _place = place;
            work()
        });
        task.await.map_err(StoreError::unexpected)?
    }
}

fn failed(error: impl std::fmt::Display) -> StoreError {
    StoreError::unexpected(error.to_string())
}

#[async_trait]
impl PasswordHasher for Argon2Hasher {
    async fn hash(&self, password: &str) -> Result<PasswordHash, StoreError> {
        let password = password.to_owned();
        self.hashing(move || {
            let hash = Argon2::default().hash_password(password.as_bytes());
            let hash: phc::PasswordHash = hash.map_err(failed)?;
            Ok(PasswordHash::new(hash.to_string()))
        })
        .await
    }

    async fn verify(&self, password: &str, hash: Option<PasswordHash>) -> Result<bool, StoreError> {
        let Some(hash) = hash else {
            // As much work as the comparison would have been.
            self.hash(password).await?;
            return Ok(false);
        };
        let password = password.to_owned();
        self.hashing(move || {
            let hash = phc::PasswordHash::new(hash.as_str()).map_err(failed)?;
            Ok(Argon2::default()
                .verify_password(password.as_bytes(), &hash)
                .is_ok())
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hash_is_salted_argon2id_and_fits_its_password_alone() {
        let hasher = Argon2Hasher::new();
        let (one, other) = tokio::join!(hasher.hash("Żółw-17!"), hasher.hash("Żółw-17!"));
        let (one, other) = (one.unwrap(), other.unwrap());
        assert!(one.as_str().starts_with("$argon2id$v=19$"), "{}", one.as_str());
        assert_ne!(one.as_str(), other.as_str());
        assert!(hasher.verify("Żółw-17!", Some(one.clone())).await.unwrap());
        assert!(hasher.verify("Żółw-17!", Some(other)).await.unwrap());
        assert!(!hasher.verify("another", Some(one)).await.unwrap());
        assert!(!hasher.verify("Żółw-17!", None).await.unwrap());
        let odd = PasswordHash::new("no hash".to_owned());
        assert!(hasher.verify("x", Some(odd)).await.is_err());
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
