//! Effects that happen once per idempotency key: the answer is remembered in the transaction of the effect.

use async_trait::async_trait;
use kernel::{Claim, IdempotencyClaims, Remembered};

use crate::{Repeatable, Transaction, Work};

/// A result that can be remembered as an answer.
pub trait Answer {
    /// The answer, exactly as it goes out.
    fn remembered(&self) -> Remembered;
}

/// Work that completes its claim as its last step before the commit. When the claim was lost to somebody else meanwhile,
/// the completion fails, and with it the whole transaction.
#[derive(Debug)]
pub struct Remembering<'a, W> {
    /// The work itself.
    pub work: &'a W,
    /// The claim; none when the client sent no key.
    pub claim: Option<&'a Claim>,
}

#[async_trait]
impl<W: Work<Done: Answer>> Work for Remembering<'_, W> {
    type Done = W::Done;
    type Error = W::Error;

    async fn run(&self, transaction: &dyn Transaction) -> Result<W::Done, W::Error> {
        let done = self.work.run(transaction).await?;
        if let Some(claim) = self.claim {
            let completed = transaction.complete(claim, &done.remembered()).await;
            completed.map_err(|error| W::Error::from(error.into()))?;
        }
        Ok(done)
    }
}

/// How a claimed run ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ran<T> {
    /// It did its work.
    Done(T),
    /// The answer to its COMMIT was lost, and the row says that the work was done: this is its answer.
    Known(Remembered),
}

/// Runs what a claim was made for, and settles the claim. After a failure that surely changed nothing, the claim is
/// released before the failure is told, so that the client may try again. Where the fate of the transaction is unknown, the
/// row tells it; where not even that can be read, the claim stays until its lease runs out.
pub async fn once<T, E: Repeatable>(
    claims: &dyn IdempotencyClaims,
    claim: &Claim,
    run: impl Future<Output = Result<T, E>>,
) -> Result<Ran<T>, E> {
    let error = match run.await {
        Ok(done) => return Ok(Ran::Done(done)),
        Err(error) => error,
    };
    if error.is_unknown() {
        match claims.outcome(claim).await {
            Ok(Some(remembered)) => return Ok(Ran::Known(remembered)),
            Ok(None) => {}
            Err(_) => return Err(error),
        }
    }
    // A claim that cannot be released runs out by itself.
    drop(claims.release(claim).await);
    Err(error)
}

#[cfg(test)]
mod tests {
    use kernel::{Fingerprint, IdempotencyKey, KeySpace, MockIdempotencyClaims, StoreError};
    use uuid::Uuid;

    use super::*;
    use crate::{Failure, UnitOfWorkError};

    type Refused = Failure<&'static str>;

    fn claim() -> Claim {
        Claim {
            space: KeySpace::Operator,
            key: IdempotencyKey::new(b"k").unwrap(),
            fingerprint: Fingerprint::of(&[]),
            fence: Uuid::nil(),
        }
    }

    fn answer() -> Remembered {
        Remembered {
            status: 201,
            body: b"{}".to_vec(),
        }
    }

    fn lost() -> StoreError {
        StoreError::Unavailable("gone".into())
    }

    async fn run(claims: MockIdempotencyClaims, result: Result<u8, Refused>) -> Result<Ran<u8>, Refused> {
        once(&claims, &claim(), async { result }).await
    }

    #[tokio::test]
    async fn a_refusal_gives_the_key_back() {
        let mut claims = MockIdempotencyClaims::new();
        claims.expect_release().once().returning(|_| Ok(()));
        assert!(matches!(
            run(claims, Err(Failure::Refused("no"))).await,
            Err(Failure::Refused("no"))
        ));
    }

    #[tokio::test]
    async fn success_settles_itself() {
        assert_eq!(
            run(MockIdempotencyClaims::new(), Ok(1)).await.unwrap(),
            Ran::Done(1)
        );
    }

    #[tokio::test]
    async fn a_lost_commit_is_answered_by_what_stands_in_the_row() {
        let unknown = || Err(Failure::Store(UnitOfWorkError::Unknown(lost())));
        let mut done = MockIdempotencyClaims::new();
        done.expect_outcome().once().returning(|_| Ok(Some(answer())));
        assert_eq!(run(done, unknown()).await.unwrap(), Ran::Known(answer()));
        let mut undone = MockIdempotencyClaims::new();
        undone.expect_outcome().once().returning(|_| Ok(None));
        undone.expect_release().once().returning(|_| Ok(()));
        assert!(run(undone, unknown()).await.is_err());
        let mut unreadable = MockIdempotencyClaims::new();
        unreadable.expect_outcome().once().returning(|_| Err(lost()));
        assert!(run(unreadable, unknown()).await.is_err());
    }
}
