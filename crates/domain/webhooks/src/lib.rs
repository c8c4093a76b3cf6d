//! Webhooks: events, and the bytes in which they are told.

mod event;

pub use event::{DeliveryId, Event, WebhookEvent};
