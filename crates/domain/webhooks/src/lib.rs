//! Webhooks: events, the subscriptions to them, deliveries and their machine, which addresses they may go to, and the ports
//! that keep and carry them.

mod address_rules;
mod attempt;
mod delivery;
mod directory;
mod event;
mod lane;
mod ports;
mod schedule;
mod secret;
mod subscription;
mod url;

pub use address_rules::{AddressPolicy, AddressRules};
pub use attempt::{Attempted, Failure, Outcome, Sent};
pub use delivery::{Delivery, DeliveryRecord, DeliveryState, Fate, Finished, MOST_ATTEMPTS};
pub use directory::{DeliveryDirectory, DeliveryOfAny, Undelivered, UndeliveredFilter};
pub use event::{DeliveryId, Event, WebhookEvent, told_again};
pub use lane::{
    Claimed, Conclusion, Due, Hold, LOSSES_FORGIVEN, Lane, LaneKey, Release, Room, TopUp, ToppedUp, UnderWay,
};
pub use ports::{
    DeliveryFilter, DeliveryOfSeller, HostCheck, HostRefused, Lanes, Message, NewDelivery,
    SubscriptionOfSeller, SubscriptionReader, SubscriptionStore, WebhookSender,
};
pub use schedule::RetrySchedule;
pub use secret::{WebhookSecret, signature};
pub use subscription::{MOST_SUBSCRIPTIONS, NewSubscription, Subscription, SubscriptionId};
pub use url::{Host, Scheme, URL_MAX, WebhookUrl};

#[cfg(any(test, feature = "mocks"))]
pub use directory::MockDeliveryDirectory;
#[cfg(any(test, feature = "mocks"))]
pub use ports::{MockHostCheck, MockLanes, MockSubscriptionReader, MockWebhookSender};
