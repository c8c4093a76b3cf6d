//! Subscriptions and deliveries as the page shows them.

use uuid::Uuid;
use webhooks::{
    Attempted, DeliveryId, DeliveryOfSeller, DeliveryState, MOST_ATTEMPTS, Outcome, SubscriptionId,
    SubscriptionOfSeller, WebhookEvent,
};

use crate::texts::Texts;
use crate::when::When;

/// A subscription.
pub(super) struct Receiver {
    pub(super) id: SubscriptionId,
    /// The one-time number of the form that sends a test event.
    pub(super) number: Uuid,
    pub(super) app_name: String,
    pub(super) url: String,
    pub(super) events: Vec<Event>,
    pub(super) active: bool,
    pub(super) since: When,
}

/// An event, in words and as the API names it.
pub(super) struct Event {
    pub(super) label: &'static str,
    pub(super) name: &'static str,
}

/// A delivery.
pub(super) struct Listed {
    pub(super) id: DeliveryId,
    /// The one-time number of the form that delivers it again.
    pub(super) number: Uuid,
    pub(super) event: Event,
    pub(super) subscription: SubscriptionId,
    pub(super) app_name: String,
    pub(super) url: String,
    /// Whether its subscription still gets anything.
    pub(super) active: bool,
    /// The class of the state's tag, and its word.
    pub(super) state: &'static str,
    pub(super) state_label: &'static str,
    pub(super) queued: When,
    pub(super) attempts: String,
    pub(super) next: Option<When>,
    pub(super) arrived: Option<When>,
    pub(super) last: Option<Last>,
}

/// The last attempt.
pub(super) struct Last {
    pub(super) failed: bool,
    /// How it ended.
    pub(super) text: String,
    /// The technical reason, in English; empty for none.
    pub(super) reason: String,
    /// In milliseconds.
    pub(super) duration: i32,
}

impl Receiver {
    pub(super) fn new(found: SubscriptionOfSeller, number: Uuid, t: &Texts) -> Self {
        let subscription = found.subscription;
        Self {
            id: subscription.id,
            number,
            app_name: found.app_name,
            url: subscription.url.as_str().to_owned(),
            events: subscription
                .events
                .into_iter()
                .map(|event| Event::new(event, t))
                .collect(),
            active: subscription.active,
            since: When(subscription.created_at),
        }
    }
}

impl Event {
    fn new(event: WebhookEvent, t: &Texts) -> Self {
        Self {
            label: (t.deliveries.event)(event),
            name: event.as_str(),
        }
    }
}

impl Listed {
    /// A subscription that was deleted since is no more than missing here.
    pub(super) fn new(found: DeliveryOfSeller, receivers: &[Receiver], number: Uuid, t: &Texts) -> Self {
        let delivery = found.delivery;
        let receiver = receivers
            .iter()
            .find(|receiver| receiver.id == found.subscription);
        let (state, state_label) = state(&delivery.state, t);
        Self {
            id: delivery.id,
            number,
            event: Event::new(delivery.event, t),
            subscription: found.subscription,
            app_name: receiver.map_or_else(String::new, |receiver| receiver.app_name.clone()),
            url: receiver.map_or_else(String::new, |receiver| receiver.url.clone()),
            active: receiver.is_some_and(|receiver| receiver.active),
            state,
            state_label,
            queued: When(delivery.created_at),
            attempts: (t.deliveries.attempts_text)(delivery.state.attempt(), MOST_ATTEMPTS),
            next: delivery.state.next_retry_at().map(When),
            arrived: delivery.state.delivered_at().map(When),
            last: delivery.state.last().map(|last| Last::new(last, t)),
        }
    }
}

impl Last {
    fn new(last: &Attempted, t: &Texts) -> Self {
        let (text, reason) = match &last.outcome {
            Outcome::Answered(status) => ((t.deliveries.answered)(*status), ""),
            Outcome::Failed(failure) => (
                (t.deliveries.failure)(failure).to_owned(),
                failure.reason().unwrap_or_default(),
            ),
        };
        Self {
            failed: !last.outcome.is_success(),
            text,
            reason: reason.to_owned(),
            duration: last.duration_ms(),
        }
    }
}

fn state(state: &DeliveryState, t: &Texts) -> (&'static str, &'static str) {
    match state {
        DeliveryState::Queued => ("queued", t.deliveries.queued),
        DeliveryState::Waiting { .. } => ("waiting", t.deliveries.waiting),
        DeliveryState::Delivered { .. } => ("delivered", t.deliveries.delivered),
        DeliveryState::Exhausted { .. } => ("exhausted", t.deliveries.exhausted),
        DeliveryState::Stopped { .. } => ("stopped", t.deliveries.stopped),
    }
}
