//! Senders and messages for tests.

use std::{sync::Arc, time::Duration};

use uuid::Uuid;
use webhooks::{
    AddressPolicy, AddressRules, Attempted, Failure, Message, Outcome, Sent, WebhookEvent, WebhookSecret,
    WebhookSender as _, WebhookUrl, signature,
};

use crate::{HttpSender, SenderSettings};

pub(super) const BODY: &[u8] = br#"{"id":"x","event":"order.paid"}"#;

pub(super) fn rules(policy: AddressPolicy) -> AddressRules {
    AddressRules {
        policy,
        deny: Vec::new(),
    }
}

pub(super) fn settings(policy: AddressPolicy) -> SenderSettings {
    SenderSettings::new("shop", "https://docs.example.com/webhooks", rules(policy))
}

pub(super) fn sender() -> HttpSender {
    sender_with(|_| {})
}

pub(super) fn sender_with(change: impl FnOnce(&mut SenderSettings)) -> HttpSender {
    let mut settings = settings(AddressPolicy::Any);
    change(&mut settings);
    HttpSender::new(&settings).unwrap()
}

pub(super) fn url(text: &str) -> WebhookUrl {
    WebhookUrl::parse(text, AddressPolicy::Any).unwrap()
}

pub(super) fn message(text: &str) -> Message {
    Message {
        application: Uuid::from_u128(1).into(),
        delivery: Uuid::from_u128(7).into(),
        event: WebhookEvent::OrderPaid,
        url: url(text),
        body: Arc::from(BODY),
        signature: signature(&WebhookSecret::from_random(&[7; 32]), BODY),
    }
}

pub(super) async fn outcome(sender: &HttpSender, text: &str) -> Outcome {
    send(sender, text).await.outcome
}

pub(super) async fn send(sender: &HttpSender, text: &str) -> Attempted {
    let Sent::Attempted(attempted) = sender.send(&message(text)).await else {
        panic!("{text} is postponed");
    };
    attempted
}

/// Sends this number of messages and asserts that each gets 200.
pub(super) async fn delivers(sender: &HttpSender, text: &str, times: usize) {
    for _ in 0..times {
        assert_eq!(outcome(sender, text).await, Outcome::Answered(200), "{text}");
    }
}

pub(super) fn failed(failure: Failure) -> Outcome {
    Outcome::Failed(failure)
}

pub(super) fn is_protocol(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(Failure::Protocol(_)))
}

/// Longer than anything in these tests takes.
pub(super) const LONG: Duration = Duration::from_secs(8);

/// A timeout that a test waits out.
pub(super) const SHORT: Duration = Duration::from_millis(300);
