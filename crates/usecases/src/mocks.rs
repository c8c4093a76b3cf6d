//! A mock of the open transaction, for unit tests of this crate and others.

use std::{collections::BTreeSet, net::IpAddr};

use accounts::{
    AccountMail, AccountStore, Action, Actor, Link, LinkKind, NewOperatorToken, NewPersonalToken, NewSeller,
    PasswordHash, Seller, Session,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{Change, Claim, MailId, OfferId, SellerId, StoreError, StoredResponse, TransactionError};
use mockall::mock;
use oauth::{
    AccessToken, Application, ApplicationStore, ClientId, Consent, ConsentId, Count, FamiliesOf, Family,
    FamilyId, GrantStore, Limiter, NewConsent, NewPair, SecretHash, StoredCredential, Subject, TokenKey,
    Viewer,
};
use offers::{Offer, OfferStore};
use orders::{OrderId, OrderNumber, OrderRef, OrderStore, SellerOrder, ShipmentMail, TrackedParcel};
use serde_json::Value;
use uuid::Uuid;
use webhooks::{
    Delivery, DeliveryId, LockedDelivery, NewSubscription, SigningSecrets, Subscription, SubscriptionChange,
    SubscriptionId, SubscriptionStore,
};

use crate::{Announcement, Transaction};

mock! {
    pub Transaction {}

    #[async_trait]
    impl Transaction for Transaction {
        fn now(&self) -> DateTime<Utc>;
        async fn complete(&self, claim: &Claim, answer: &StoredResponse) -> Result<(), StoreError>;
        async fn commit(self: Box<Self>) -> Result<(), TransactionError>;
    }

    #[async_trait]
    impl OfferStore<Announcement> for Transaction {
        async fn lock_offers(&self, seller: SellerId, ids: &[OfferId]) -> Result<Vec<Offer>, StoreError>;
        async fn save_offers(&self, seller: SellerId, changes: Vec<Change<Offer, Announcement>>) -> Result<(), StoreError>;
        async fn save_fed_offers(&self, seller: SellerId, changes: Vec<Change<Offer, Announcement>>) -> Result<(), StoreError>;
    }

    #[async_trait]
    impl ApplicationStore<Announcement> for Transaction {
        async fn lock_application(&self, client_id: ClientId) -> Result<Option<Application>, StoreError>;
        async fn built_in_application(&self, seller: SellerId) -> Result<Option<Application>, StoreError>;
        async fn count_applications(&self, owner: SellerId) -> Result<usize, StoreError>;
        async fn save_application(&self, change: Change<Application, Announcement>) -> Result<(), StoreError>;
        async fn delete_application(&self, client_id: ClientId) -> Result<bool, StoreError>;
    }

    #[async_trait]
    impl GrantStore for Transaction {
        async fn add_consent(&self, consent: NewConsent) -> Result<(), StoreError>;
        async fn lock_family(&self, id: FamilyId) -> Result<Option<Family>, StoreError>;
        async fn lock_credential(&self, key: TokenKey) -> Result<Option<(Family, StoredCredential)>, StoreError>;
        async fn use_credential(&self, key: TokenKey, pair: NewPair) -> Result<(), StoreError>;
        async fn access_token(&self, key: TokenKey) -> Result<Option<AccessToken>, StoreError>;
        async fn revoke_family(&self, id: FamilyId) -> Result<(), StoreError>;
        async fn revoke_families(&self, of: FamiliesOf) -> Result<(), StoreError>;
        async fn revoke_access_token(&self, key: TokenKey) -> Result<bool, StoreError>;
        async fn lock_consent(&self, id: ConsentId, viewer: Viewer, expires_at: DateTime<Utc>) -> Result<Consent, StoreError>;
        async fn save_consent(&self, consent: Consent) -> Result<(), StoreError>;
        async fn release_consent(&self, id: ConsentId, viewer: Viewer) -> Result<bool, StoreError>;
        async fn disconnect(&self, seller: SellerId, client_id: ClientId) -> Result<bool, StoreError>;
    }

    #[async_trait]
    impl OrderStore<Announcement> for Transaction {
        async fn lock_part(&self, seller: SellerId, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError>;
        async fn lock_order(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError>;
        async fn open_order(&self, order: OrderId, number: &OrderNumber, is_test: bool, sellers: &BTreeSet<SellerId>, placed_at: DateTime<Utc>) -> Result<(), StoreError>;
        async fn save_parts(&self, changes: Vec<Change<SellerOrder, Announcement>>) -> Result<(), StoreError>;
        async fn begin_tracking(&self, parcel: TrackedParcel) -> Result<(), StoreError>;
        async fn end_tracking(&self, seller: SellerId, order: OrderId) -> Result<(), StoreError>;
        async fn queue_mail(&self, mail: ShipmentMail) -> Result<(), StoreError>;
        async fn requeue_mail(&self, mail: MailId) -> Result<Option<OrderId>, StoreError>;
        async fn drop_retried_mails(&self, order: OrderId) -> Result<(), StoreError>;
        async fn forget_mails(&self, order: OrderId) -> Result<(), StoreError>;
    }

    #[async_trait]
    impl SubscriptionStore for Transaction {
        async fn add_subscription(&self, subscription: NewSubscription) -> Result<bool, StoreError>;
        async fn change_subscription(&self, seller: SellerId, client_id: ClientId, subscription: SubscriptionId, change: SubscriptionChange) -> Result<Option<Subscription>, StoreError>;
        async fn lock_secrets(&self, seller: SellerId, client_id: ClientId, subscription: SubscriptionId) -> Result<Option<(SigningSecrets, bool)>, StoreError>;
        async fn replace_secrets(&self, seller: SellerId, subscription: SubscriptionId, secrets: &SigningSecrets) -> Result<(), StoreError>;
        async fn remove_subscription(&self, seller: SellerId, client_id: ClientId, subscription: SubscriptionId) -> Result<bool, StoreError>;
        async fn subscription(&self, seller: SellerId, subscription: SubscriptionId) -> Result<Option<Subscription>, StoreError>;
        async fn queue_delivery(&self, seller: SellerId, subscription: SubscriptionId, delivery: &Delivery) -> Result<bool, StoreError>;
        async fn lock_delivery(&self, seller: SellerId, client_id: Option<ClientId>, subscription: SubscriptionId, delivery: DeliveryId) -> Result<Option<LockedDelivery>, StoreError>;
        async fn requeue_delivery(&self, seller: SellerId, subscription: SubscriptionId, delivery: DeliveryId, has_ended: bool, now: DateTime<Utc>) -> Result<bool, StoreError>;
    }

    #[async_trait]
    impl AccountStore for Transaction {
        async fn add_seller(&self, seller: NewSeller) -> Result<Seller, StoreError>;
        async fn lock_seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError>;
        async fn close_seller(&self, id: SellerId, at: DateTime<Utc>) -> Result<bool, StoreError>;
        async fn open_session(&self, session: Session) -> Result<(), StoreError>;
        async fn end_session(&self, session: SecretHash) -> Result<(), StoreError>;
        async fn end_sessions(&self, seller: SellerId, but: Option<SecretHash>) -> Result<(), StoreError>;
        async fn has_session(&self, session: SecretHash) -> Result<bool, StoreError>;
        async fn password_hash(&self, seller: SellerId) -> Result<Option<PasswordHash>, StoreError>;
        async fn set_password(&self, seller: SellerId, password: PasswordHash) -> Result<(), StoreError>;
        async fn add_link(&self, link: Link) -> Result<(), StoreError>;
        async fn newest_link_expiry(&self, seller: SellerId, kind: LinkKind) -> Result<Option<DateTime<Utc>>, StoreError>;
        async fn use_link(&self, hash: SecretHash, kind: LinkKind) -> Result<Option<Seller>, StoreError>;
        async fn queue_account_mail(&self, mail: AccountMail) -> Result<(), StoreError>;
        async fn store_flash(&self, session: SecretHash, form: Uuid, sealed: Option<Vec<u8>>) -> Result<bool, StoreError>;
        async fn take_flash(&self, session: SecretHash, form: Uuid) -> Result<Option<Vec<u8>>, StoreError>;
        async fn count_action(&self, limiter: Limiter, subject: Subject) -> Result<Count, StoreError>;
        async fn log_action(&self, actor: Actor, address: Option<IpAddr>, action: Action, subject: &str, changes: Option<Value>) -> Result<(), StoreError>;
        async fn add_personal_token(&self, seller: SellerId, client_id: ClientId, key: TokenKey, token: NewPersonalToken) -> Result<(), StoreError>;
        async fn count_personal_tokens(&self, seller: SellerId, now: DateTime<Utc>) -> Result<usize, StoreError>;
        async fn revoke_personal_token(&self, seller: SellerId, family: FamilyId) -> Result<bool, StoreError>;
        async fn add_operator_token(&self, id: Uuid, hash: SecretHash, token: NewOperatorToken) -> Result<(), StoreError>;
        async fn operator_token(&self, hash: SecretHash) -> Result<Option<Uuid>, StoreError>;
        async fn revoke_operator_token(&self, id: Uuid) -> Result<bool, StoreError>;
    }
}
