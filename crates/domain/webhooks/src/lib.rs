//! Webhooks: events, subscriptions, deliveries and their state machine, the address rules, and the ports that
//! store and send deliveries.

mod address_rules;
mod attempt;
mod capacity;
mod delivery;
mod event;
mod journal;
mod machine;
mod ports;
mod queue;
mod secret;
mod subscription;
mod url;

pub use address_rules::{AddressPolicy, AddressRules};
pub use attempt::{AttemptFailure, Attempted, FailureKind, Outcome, Sent};
pub use capacity::{Capacity, DueQueue, Load, Party, Share};
pub use delivery::{Delivery, DeliveryRecord, DeliveryState, MAX_ATTEMPTS, RetrySchedule};
pub use event::{About, DeliveryId, Event, EventId, Subject, WebhookEvent};
pub use journal::{
    DEFAULT_EVENTS, JournalPage, JournalPlace, JournalReader, JournalRefusal, JournalStart, JournalState,
    JournaledEvent, MAX_EVENTS, MAX_LOOKED_AT,
};
pub use machine::{LOSSES_FORGIVEN, Phase, Progress};
pub use ports::{
    DeliveryFilter, DeliveryWithSeller, HostCheck, HostRefused, LockedDelivery, Message, SellerDelivery,
    SellerSubscription, SubscriptionQueues, SubscriptionReader, SubscriptionStore, Undelivered,
    UndeliveredFilter, WebhookSender,
};
pub use queue::{
    AttemptRecord, ClaimedQueues, Due, Lease, QueueKey, Refill, Refilled, Release, SubscriptionQueue,
};
pub use secret::{SigningSecrets, WebhookSecret, signature, standard_signature};
pub use subscription::{
    MAX_SUBSCRIPTIONS, NewSubscription, Subscription, SubscriptionChange, SubscriptionId,
};
pub use url::{Host, MAX_URL, WebhookUrl};

#[cfg(any(test, feature = "mocks"))]
pub use journal::MockJournalReader;
#[cfg(any(test, feature = "mocks"))]
pub use ports::{MockHostCheck, MockSubscriptionReader};
