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
pub use attempt::{AttemptFailure, Attempted, Outcome, Sent};
pub use capacity::{Capacity, DueQueue, Load, Share};
pub use delivery::{Delivery, DeliveryRecord, DeliveryState, MAX_ATTEMPTS, RetrySchedule};
pub use event::{DeliveryId, Event, EventId, Subject, WebhookEvent, with_delivery_id};
pub use journal::{
    DEFAULT_EVENTS, JournalPage, JournalPlace, JournalReader, JournalRefusal, JournalStart, JournalState,
    JournaledEvent, MAX_EVENTS, MAX_LOOKED_AT,
};
pub use machine::{LOSSES_FORGIVEN, Phase, Progress};
pub use ports::{
    DeliveryDirectory, DeliveryFilter, DeliveryWithSeller, HostCheck, HostRefused, Message, NewDelivery,
    SellerDelivery, SellerSubscription, SubscriptionQueues, SubscriptionReader, SubscriptionStore,
    Undelivered, UndeliveredFilter, WebhookSender,
};
pub use queue::{
    AttemptRecord, ClaimedQueues, Due, Lease, QueueKey, Refill, Refilled, Release, SubscriptionQueue,
};
pub use secret::{WebhookSecret, signature};
pub use subscription::{MAX_SUBSCRIPTIONS, NewSubscription, Subscription, SubscriptionId};
pub use url::{Host, MAX_URL, Scheme, WebhookUrl};

#[cfg(any(test, feature = "mocks"))]
pub use journal::MockJournalReader;
#[cfg(any(test, feature = "mocks"))]
pub use ports::{MockDeliveryDirectory, MockHostCheck, MockSubscriptionQueues, MockSubscriptionReader};
