//! When a transaction is done again, and when it must not be.

use std::sync::{Arc, Mutex};

use kernel::{Change, OfferId, SellerId};
use mockall::mock;
use oauth::{Application, ApplicationEvent, ClientId, FamilyId, NewSeller, NewToken, Seller};
use offers::{Offer, OfferEvent};

use super::*;
use crate::{Failure, test_support::now};

mock! {
    Tx {}

    #[async_trait]
    impl Transaction for Tx {
        fn now(&self) -> DateTime<Utc>;
        async fn commit(self: Box<Self>) -> Result<(), CommitError>;
    }

    #[async_trait]
    impl OfferStore for Tx {
        async fn lock_offers(&self, seller: SellerId, ids: &[OfferId]) -> Result<Vec<Offer>, StoreError>;
        async fn save_offers(&self, seller: SellerId, changes: Vec<Change<Offer, OfferEvent>>) -> Result<(), StoreError>;
    }

    #[async_trait]
    impl ApplicationStore for Tx {
        async fn lock_application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError>;
        async fn built_in_application(&self, seller: SellerId) -> Result<Option<Application>, StoreError>;
        async fn save_application(&self, change: Change<Application, ApplicationEvent>) -> Result<(), StoreError>;
        async fn delete_application(&self, client_id: ClientId) -> Result<bool, StoreError>;
    }

    #[async_trait]
    impl SellerStore for Tx {
        async fn add_seller(&self, seller: NewSeller) -> Result<Seller, StoreError>;
        async fn lock_seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError>;
        async fn close_seller(&self, id: SellerId, at: DateTime<Utc>) -> Result<bool, StoreError>;
    }

    #[async_trait]
    impl TokenStore for Tx {
        async fn issue_token(&self, token: NewToken) -> Result<(), StoreError>;
        async fn add_personal_token(&self, seller: SellerId, family: FamilyId, name: &str) -> Result<(), StoreError>;
        async fn count_personal_tokens(&self, seller: SellerId, now: DateTime<Utc>) -> Result<usize, StoreError>;
        async fn revoke_personal_token(&self, seller: SellerId, family: FamilyId) -> Result<bool, StoreError>;
    }
}

/// Hands out transactions whose commits end as listed, last first; counts how many were begun.
struct Units {
    commits: Mutex<Vec<Result<(), CommitError>>>,
    begun: Arc<Mutex<usize>>,
}

#[async_trait]
impl UnitOfWork for Units {
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        *self.begun.lock().unwrap() += 1;
        let end = self.commits.lock().unwrap().pop();
        let mut tx = MockTx::new();
        tx.expect_now().returning(now);
        if let Some(end) = end {
            let end = Mutex::new(Some(end));
            tx.expect_commit()
                .return_once(move || end.lock().unwrap().take().unwrap());
        }
        Ok(Box::new(tx))
    }
}

fn lost() -> StoreError {
    StoreError::Retryable("deadlock".into())
}

/// Work that ends so each time.
struct Ends<F>(F);

#[async_trait]
impl<F: Fn() -> Result<u8, Failure<&'static str>> + Send + Sync> Work for Ends<F> {
    type Done = u8;
    type Error = Failure<&'static str>;

    async fn run(&self, _: &dyn Transaction) -> Result<u8, Self::Error> {
        self.0()
    }
}

async fn run(
    commits: Vec<Result<(), CommitError>>,
    end: impl Fn() -> Result<u8, Failure<&'static str>> + Send + Sync,
) -> (Result<u8, Failure<&'static str>>, usize) {
    let begun = Arc::new(Mutex::new(0));
    let units = Units {
        commits: Mutex::new(commits),
        begun: Arc::clone(&begun),
    };
    let result = transact(&units, &Ends(end)).await;
    let begun = *begun.lock().unwrap();
    (result, begun)
}

#[tokio::test]
async fn a_transaction_that_lost_is_done_again() {
    let commits = vec![Ok(()), Err(CommitError::RolledBack(lost()))];
    let (result, begun) = run(commits, || Ok(1)).await;
    assert!(matches!((result, begun), (Ok(1), 2)));
}

#[tokio::test]
async fn it_gives_up_after_three_repeats() {
    let (result, begun) = run(Vec::new(), || Err(lost().into())).await;
    assert!(matches!(
        result,
        Err(Failure::Store(UnitOfWorkError::Store(StoreError::Retryable(_))))
    ));
    assert_eq!(begun, 4);
}

#[tokio::test]
async fn a_commit_of_unknown_fate_is_never_repeated() {
    let (result, begun) = run(vec![Err(CommitError::Unknown(lost()))], || Ok(1)).await;
    assert!(matches!(result, Err(Failure::Store(UnitOfWorkError::Unknown(_)))));
    assert_eq!(begun, 1);
}

#[tokio::test]
async fn a_refusal_commits_nothing() {
    let (result, begun) = run(Vec::new(), || Err(Failure::Refused("no"))).await;
    assert!(matches!((result, begun), (Err(Failure::Refused("no")), 1)));
}
