//! A delivery as its application sees it (contract: `WebhookDelivery`).

use web::timestamps::Timestamp;
use webhooks::{Attempted, Delivery};

use super::view::view;

view! {
    /// A delivery with the chosen fields.
    DeliveryView of delivery: Delivery, of 320 bytes {
        "id" => delivery.id.uuid(),
        "event" => delivery.event.as_str(),
        "attempt" => delivery.state.attempt(),
        "response_status" => delivery.state.last().and_then(Attempted::response_status),
        "duration_ms" => delivery.state.last().map(Attempted::duration_ms),
        "delivered_at" => delivery.state.delivered_at().map(Timestamp::new),
        "next_retry_at" => delivery.state.next_retry_at().map(Timestamp::new),
        "created_at" => Timestamp::new(delivery.created_at),
    }
}
