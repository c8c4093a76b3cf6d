//! Idempotency keys in memory.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Claim, Claimed, IdempotencyClaims, KeySpace, LOST_CLAIM, Remembered, StoreError};
use usecases::MockTransaction;

use super::{Store, conflict};

/// A claimed key.
#[derive(Debug, Clone)]
pub(crate) struct ClaimRow {
    pub(crate) claim: Claim,
    pub(crate) answer: Option<Remembered>,
}

/// An answer that its transaction has not committed.
pub(super) type Completion = Arc<Mutex<Option<(Claim, Remembered)>>>;

impl Store {
    /// Whether the key is held and not completed.
    pub(crate) fn holds(&self, key: &str) -> bool {
        let claims = self.claims.lock().unwrap();
        claims.get(key).is_some_and(|row| row.answer.is_none())
    }

    /// Somebody else takes the key over.
    pub(crate) fn steals(&self, key: &str) {
        let mut claims = self.claims.lock().unwrap();
        claims.get_mut(key).unwrap().claim.fence = uuid::Uuid::max();
    }

    pub(super) fn completed(&self, completion: &Completion) {
        let completed = completion.lock().unwrap().take();
        if let Some((claim, answer)) = completed {
            let mut claims = self.claims.lock().unwrap();
            claims.get_mut(claim.key.as_str()).unwrap().answer = Some(answer);
        }
    }
}

#[async_trait]
impl IdempotencyClaims for Store {
    async fn claim(&self, claim: &Claim, lease: Duration) -> Result<Claimed, StoreError> {
        self.check()?;
        assert_eq!((claim.space, lease), (KeySpace::Operator, Duration::from_mins(1)));
        let mut claims = self.claims.lock().unwrap();
        let Some(row) = claims.get(claim.key.as_str()) else {
            let row = ClaimRow {
                claim: claim.clone(),
                answer: None,
            };
            claims.insert(claim.key.as_str().to_owned(), row);
            return Ok(Claimed::Run);
        };
        Ok(match &row.answer {
            _ if row.claim.fingerprint != claim.fingerprint => Claimed::Reused,
            None => Claimed::InProgress,
            Some(answer) => Claimed::Completed(answer.clone()),
        })
    }

    async fn release(&self, claim: &Claim) -> Result<(), StoreError> {
        self.check()?;
        let mut claims = self.claims.lock().unwrap();
        claims.retain(|_, row| row.answer.is_some() || row.claim.fence != claim.fence);
        Ok(())
    }

    async fn outcome(&self, claim: &Claim) -> Result<Option<Remembered>, StoreError> {
        self.check()?;
        let claims = self.claims.lock().unwrap();
        Ok(claims.get(claim.key.as_str()).and_then(|row| row.answer.clone()))
    }
}

pub(super) fn expect(tx: &mut MockTransaction, store: &Store, completion: &Completion) {
    let (store, completion) = (store.clone(), Arc::clone(completion));
    tx.expect_complete().returning(move |claim, answer| {
        let claims = store.claims.lock().unwrap();
        let mine = claims
            .get(claim.key.as_str())
            .is_some_and(|row| row.claim == *claim);
        if !mine {
            return Err(conflict(LOST_CLAIM));
        }
        *completion.lock().unwrap() = Some((claim.clone(), answer.clone()));
        Ok(())
    });
}
