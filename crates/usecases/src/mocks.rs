//! A mock of the open transaction, for the unit tests of this crate and of others.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{Change, Claim, CommitError, IdempotencyCompletion, OfferId, Remembered, SellerId, StoreError};
use mockall::mock;
use oauth::{
    Application, ApplicationEvent, ApplicationStore, ClientId, FamilyId, NewSeller, NewToken, Seller,
    SellerStore, TokenStore,
};
use offers::{Offer, OfferEvent, OfferStore};
use orders::{
    BuyerNotifier, OrderEvent, OrderId, OrderNumber, OrderRef, OrderStore, SellerOrder, ShipmentMail,
};

use crate::Transaction;

mock! {
    pub Transaction {}

    #[async_trait]
    impl Transaction for Transaction {
        fn now(&self) -> DateTime<Utc>;
        async fn commit(self: Box<Self>) -> Result<(), CommitError>;
    }

    #[async_trait]
    impl OfferStore for Transaction {
        async fn lock_offers(&self, seller: SellerId, ids: &[OfferId]) -> Result<Vec<Offer>, StoreError>;
        async fn save_offers(&self, seller: SellerId, changes: Vec<Change<Offer, OfferEvent>>) -> Result<(), StoreError>;
    }

    #[async_trait]
    impl ApplicationStore for Transaction {
        async fn lock_application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError>;
        async fn built_in_application(&self, seller: SellerId) -> Result<Option<Application>, StoreError>;
        async fn save_application(&self, change: Change<Application, ApplicationEvent>) -> Result<(), StoreError>;
        async fn delete_application(&self, client_id: ClientId) -> Result<bool, StoreError>;
    }

    #[async_trait]
    impl SellerStore for Transaction {
        async fn add_seller(&self, seller: NewSeller) -> Result<Seller, StoreError>;
        async fn lock_seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError>;
        async fn close_seller(&self, id: SellerId, at: DateTime<Utc>) -> Result<bool, StoreError>;
    }

    #[async_trait]
    impl TokenStore for Transaction {
        async fn issue_token(&self, token: NewToken) -> Result<(), StoreError>;
        async fn add_personal_token(&self, seller: SellerId, family: FamilyId, name: &str) -> Result<(), StoreError>;
        async fn count_personal_tokens(&self, seller: SellerId, now: DateTime<Utc>) -> Result<usize, StoreError>;
        async fn revoke_personal_token(&self, seller: SellerId, family: FamilyId) -> Result<bool, StoreError>;
    }
    #[async_trait]
    impl OrderStore for Transaction {
        async fn lock_part(&self, seller: SellerId, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError>;
        async fn lock_order(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError>;
        async fn open_order(&self, order: OrderId, number: &OrderNumber, is_test: bool) -> Result<(), StoreError>;
        async fn save_parts(&self, changes: Vec<Change<SellerOrder, OrderEvent>>) -> Result<(), StoreError>;
    }

    #[async_trait]
    impl BuyerNotifier for Transaction {
        async fn queue_mail(&self, mail: ShipmentMail) -> Result<(), StoreError>;
        async fn forget_mails(&self, order: OrderId) -> Result<(), StoreError>;
    }

    #[async_trait]
    impl IdempotencyCompletion for Transaction {
        async fn complete(&self, claim: &Claim, answer: &Remembered) -> Result<(), StoreError>;
    }
}
