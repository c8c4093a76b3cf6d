//! A delivery as its application sees it (contract: `WebhookDelivery`).

use web::schema::{date_time, integer, uuid};
use web::timestamps::Timestamp;
use webhooks::{Attempted, Delivery, MOST_ATTEMPTS};

use super::view::view;
use super::webhook_view::event;

view! {
    /// A delivery with the chosen fields.
    DeliveryView of delivery: Delivery, of 320 bytes, named "WebhookDelivery", "An event on its way to a subscription." {
        "id": uuid().said("What `X-Delivery-Id` says.") => delivery.id.uuid(),
        "event": event() => delivery.event.as_str(),
        "attempt": integer(0, MOST_ATTEMPTS.into()).said("Attempts that were made; 0 while the first is still to come.")
            => delivery.state.attempt(),
        "response_status": integer(100, 999).or_null().said("What the receiver answered to the last attempt, if it did.")
            => delivery.state.last().and_then(Attempted::response_status),
        "duration_ms": integer(0, i32::MAX.into()).or_null().said("How long the last attempt took, in milliseconds.")
            => delivery.state.last().map(Attempted::duration_ms),
        "delivered_at": date_time().or_null() => delivery.state.delivered_at().map(Timestamp::new),
        "next_retry_at": date_time().or_null()
            .said("`null` once it is delivered, or given up: then `delivered_at` is `null` too.")
            => delivery.state.next_retry_at().map(Timestamp::new),
        "created_at": date_time() => Timestamp::new(delivery.created_at),
    }
}
