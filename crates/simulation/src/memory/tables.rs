//! The tables and their rows.

use changes::ChangeItem;
use chrono::{DateTime, Utc};
use kernel::{MailId, OfferId, SellerId};
use oauth::{
    Action, Actor, Application, ClientId, Code, FamilyId, FamilyKind, Generation, RefreshToken, ScopeSet,
    Seller,
};
use offers::Offer;
use orders::{OrderId, SellerOrder, ShipmentMail};
use uuid::Uuid;
use webhooks::{Attempted, DeliveryId, LaneKey, NewSubscription, WebhookEvent};

use super::{TxId, table::Table};

/// A claimed key.
#[derive(Debug, Clone)]
pub(crate) struct ClaimRow {
    pub(crate) fence: Uuid,
    pub(crate) fingerprint: [u8; 32],
    /// The answer, once there is one.
    pub(crate) answer: Option<kernel::Remembered>,
    pub(crate) expires_at: DateTime<Utc>,
}

/// A subscription, and its lane.
#[derive(Debug, Clone)]
pub(crate) struct SubscriptionRow {
    pub(crate) new: NewSubscription,
    pub(crate) active: bool,
    /// The connection that it was made under.
    pub(crate) generation: Option<Generation>,
    pub(crate) leased: bool,
    pub(crate) fence: Option<Uuid>,
    pub(crate) failing: bool,
    pub(crate) wake_at: Option<DateTime<Utc>>,
    pub(crate) in_hand: Vec<DeliveryId>,
}

/// A delivery.
#[derive(Debug, Clone)]
pub(crate) struct DeliveryRow {
    pub(crate) event: WebhookEvent,
    pub(crate) body: Vec<u8>,
    pub(crate) due_at: Option<DateTime<Utc>>,
    pub(crate) attempt: u8,
    pub(crate) lost: u8,
    pub(crate) delivered_at: Option<DateTime<Utc>>,
    pub(crate) last: Option<Attempted>,
}

/// An application, also one that was deleted.
#[derive(Debug, Clone)]
pub(crate) struct ApplicationRow {
    pub(crate) application: Application,
    pub(crate) deleted: bool,
}

/// Which application a seller has let in, under which number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionRow {
    pub(crate) generation: Generation,
    pub(crate) open: bool,
}

/// A family of tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FamilyRow {
    pub(crate) seller: SellerId,
    pub(crate) client_id: ClientId,
    pub(crate) kind: FamilyKind,
    pub(crate) scopes: ScopeSet,
    pub(crate) revoked: bool,
    pub(crate) generation: Option<Generation>,
}

/// A bearer token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenRow {
    /// Its own, where they are fewer than its family's.
    pub(crate) scopes: Option<ScopeSet>,
    pub(crate) expires_at: Option<DateTime<Utc>>,
    pub(crate) revoked: bool,
}

/// Where a credential lies.
pub(crate) type CredentialKey = (FamilyId, [u8; 32]);

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident: $key:ty => $row:ty,)*) => {
        /// Everything that is kept.
        #[derive(Default)]
        pub(crate) struct Tables {
            $($(#[$doc])* pub(crate) $name: Table<$key, $row>,)*
        }

        impl Tables {
            /// A transaction ends, with all that it has written or with nothing of it.
            pub(crate) fn end(&mut self, tx: TxId, keep: bool) {
                $(self.$name.end(tx, keep);)*
            }
        }
    };
}

tables! {
    offers: (SellerId, OfferId) => Offer,
    /// Orders by their numbers.
    numbers: String => OrderId,
    parts: (OrderId, SellerId) => SellerOrder,
    mails: MailId => ShipmentMail,
    claims: (Uuid, String) => ClaimRow,
    subscriptions: LaneKey => SubscriptionRow,
    /// How many places are taken.
    places: (SellerId, ClientId) => u32,
    deliveries: (LaneKey, DeliveryId) => DeliveryRow,
    /// The feed, by the transaction and a number.
    feed: (u64, u64) => ChangeItem,
    sellers: SellerId => Seller,
    applications: ClientId => ApplicationRow,
    connections: (SellerId, ClientId) => ConnectionRow,
    families: FamilyId => FamilyRow,
    access_tokens: CredentialKey => TokenRow,
    refresh_tokens: CredentialKey => RefreshToken,
    codes: CredentialKey => Code,
    personal_tokens: FamilyId => (SellerId, String),
    /// Calls by limiter, subject and the minute's beginning.
    windows: (i16, Uuid, DateTime<Utc>) => u64,
    audit: u64 => (Actor, Action, String),
}
