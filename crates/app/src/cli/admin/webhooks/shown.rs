//! Subscriptions and deliveries as the lists show them.

use serde_json::{Value, json};
use webhooks::{Attempted, DeliveryOfAny, DeliveryState, Outcome, SubscriptionOfSeller};

use super::super::listing::{Listed, instant, second};

impl Listed for SubscriptionOfSeller {
    const HEAD: &'static [&'static str] = &["ID", "CREATED", "ACTIVE", "APPLICATION", "URL"];

    fn cells(&self) -> Vec<String> {
        let subscription = &self.subscription;
        vec![
            subscription.id.to_string(),
            second(subscription.created_at),
            if subscription.active { "yes" } else { "no" }.to_owned(),
            self.app_name.clone(),
            subscription.url.as_str().to_owned(),
        ]
    }

    fn object(&self) -> Value {
        let subscription = &self.subscription;
        let events = subscription.events.iter().map(|event| event.as_str());
        json!({
            "id": subscription.id.to_string(),
            "client_id": subscription.client_id.to_string(),
            "application": self.app_name,
            "url": subscription.url.as_str(),
            "events": events.collect::<Vec<_>>(),
            "active": subscription.active,
            "created_at": instant(subscription.created_at),
        })
    }
}

impl Listed for DeliveryOfAny {
    const HEAD: &'static [&'static str] = &[
        "ID",
        "CREATED",
        "EVENT",
        "ATTEMPTS",
        "DUE",
        "LAST",
        "SELLER",
        "SUBSCRIPTION",
    ];

    fn cells(&self) -> Vec<String> {
        let (delivery, state) = (&self.delivery, &self.delivery.state);
        vec![
            delivery.id.to_string(),
            second(delivery.created_at),
            delivery.event.as_str().to_owned(),
            state.attempt().to_string(),
            due(state),
            state.last().map_or_else(|| "-".to_owned(), outcome),
            self.seller.to_string(),
            self.subscription.to_string(),
        ]
    }

    fn object(&self) -> Value {
        let (delivery, state) = (&self.delivery, &self.delivery.state);
        json!({
            "id": delivery.id.to_string(),
            "seller_id": self.seller.to_string(),
            "subscription_id": self.subscription.to_string(),
            "event": delivery.event.as_str(),
            "created_at": instant(delivery.created_at),
            "attempts": state.attempt(),
            "next_retry_at": state.next_retry_at().map(instant),
            "response_status": state.last().and_then(Attempted::response_status),
            "error": state.last().and_then(failure),
        })
    }
}

/// When the next attempt is.
fn due(state: &DeliveryState) -> String {
    match state {
        DeliveryState::Queued => "now".to_owned(),
        DeliveryState::Waiting { due_at, .. } => second(*due_at),
        DeliveryState::Delivered { .. } | DeliveryState::Exhausted { .. } | DeliveryState::Stopped { .. } => {
            "-".to_owned()
        }
    }
}

fn outcome(last: &Attempted) -> String {
    match &last.outcome {
        Outcome::Answered(status) => status.to_string(),
        Outcome::Failed(failure) => failure.as_code().to_owned(),
    }
}

fn failure(last: &Attempted) -> Option<String> {
    match &last.outcome {
        Outcome::Answered(_) => None,
        Outcome::Failed(failure) => Some(failure.to_string()),
    }
}
