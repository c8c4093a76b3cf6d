//! Hashes passwords with argon2id (RFC 9106).

use std::sync::Arc;

use accounts::{HasherBusy, PasswordHash, PasswordHasher};
use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _, password_hash::phc};
use async_trait::async_trait;
use kernel::StoreError;
use tokio::{sync::Semaphore, task::spawn_blocking};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashingBounds {
    /// Maximum number of concurrent hashes, at least 1. Each takes 19 MiB and one core for tens of
    /// milliseconds.
    pub at_a_time: usize,
    /// Length of the queue. If it is full, a hash fails at once: its result would come too late for the
    /// caller.
    pub waiting: usize,
}

/// Hashes passwords on blocking threads, a few at a time.
#[derive(Debug)]
pub struct Argon2Hasher {
    /// Permits of queued and running hashes.
    queue: Arc<Semaphore>,
    /// Permits of running hashes.
    running: Arc<Semaphore>,
}

impl Argon2Hasher {
    pub fn new(bounds: HashingBounds) -> Self {
        let all = bounds.at_a_time.saturating_add(bounds.waiting);
        Self {
            queue: Arc::new(Semaphore::new(all.min(Semaphore::MAX_PERMITS))),
            running: Arc::new(Semaphore::new(bounds.at_a_time.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// The work holds its permits until it ends, even if the caller is dropped.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let queued = Arc::clone(&self.queue)
            .try_acquire_owned()
            .map_err(|_| StoreError::Unavailable(HasherBusy.into()))?;
        let running = Arc::clone(&self.running)
            .acquire_owned()
            .await
            .map_err(StoreError::unexpected)?;
        let task = spawn_blocking(move || {
            let _permits = (queued, running);
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
        self.run(move || {
            let hash = Argon2::default().hash_password(password.as_bytes());
            let hash: phc::PasswordHash = hash.map_err(failed)?;
            Ok(PasswordHash::new(hash.to_string()))
        })
        .await
    }

    async fn verify(&self, password: &str, hash: Option<PasswordHash>) -> Result<bool, StoreError> {
        let Some(hash) = hash else {
            // Does the same work as a comparison, so that the time does not reveal whether the account
            // exists.
            self.hash(password).await?;
            return Ok(false);
        };
        let password = password.to_owned();
        self.run(move || {
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
    use std::task::{Context, Waker};

    use super::*;

    fn hasher(at_a_time: usize, waiting: usize) -> Argon2Hasher {
        Argon2Hasher::new(HashingBounds { at_a_time, waiting })
    }

    #[tokio::test]
    async fn a_hash_is_salted_argon2id_and_matches_only_its_password() {
        let hasher = hasher(2, 4);
        let (one, other) = tokio::join!(hasher.hash("Żółw-17!"), hasher.hash("Żółw-17!"));
        let (one, other) = (one.unwrap(), other.unwrap());
        assert!(one.as_str().starts_with("$argon2id$v=19$"), "{}", one.as_str());
        assert_ne!(one.as_str(), other.as_str());
        assert!(hasher.verify("Żółw-17!", Some(one.clone())).await.unwrap());
        assert!(hasher.verify("Żółw-17!", Some(other)).await.unwrap());
        assert!(!hasher.verify("another", Some(one)).await.unwrap());
        assert!(!hasher.verify("Żółw-17!", None).await.unwrap());
        let malformed = PasswordHash::new("no hash".to_owned());
        assert!(hasher.verify("x", Some(malformed)).await.is_err());
    }

    #[tokio::test]
    async fn a_cancelled_call_releases_its_permits() {
        let hasher = hasher(2, 1);
        for _ in 0..3 {
            let hashing = hasher.hash("x");
            drop(tokio::time::timeout(std::time::Duration::ZERO, hashing).await);
        }
        for (all, count) in [(&hasher.running, 2), (&hasher.queue, 3)] {
            let returned = tokio::time::timeout(std::time::Duration::from_mins(1), all.acquire_many(count));
            assert!(returned.await.is_ok());
        }
    }

    #[tokio::test]
    async fn a_full_queue_fails_at_once() {
        let hasher = hasher(1, 2);
        let permit = hasher.running.acquire().await.unwrap();
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(hasher.hash("x"))).collect();
        for one in &mut waiting {
            let mut context = Context::from_waker(Waker::noop());
            assert!(one.as_mut().poll(&mut context).is_pending());
        }
        for overdue in [
            hasher.hash("x").await.map(drop),
            hasher.verify("x", None).await.map(drop),
        ] {
            assert!(
                matches!(&overdue, Err(StoreError::Unavailable(cause)) if cause.is::<HasherBusy>()),
                "{overdue:?}"
            );
        }
        drop(permit);
        for one in waiting {
            one.await.unwrap();
        }
        hasher.hash("x").await.unwrap();
    }
}
