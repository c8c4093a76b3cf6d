//! Delivers webhooks, records metrics, and wakes queues that were missed.

use std::{sync::Arc, time::Duration};

use adapter_sealing::SystemClock;
use async_trait::async_trait;
use chrono::TimeDelta;
use futures_util::FutureExt as _;
use kernel::{Clock as _, SPANS, StoreError, TransactionError};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, Span, field::Empty};
use usecases::deliver_webhooks::{Dispatch, Observer, deliver_webhooks};
use webhooks::{AttemptFailure, AttemptRecord, Attempted, Message, Outcome, Phase, Sent, WebhookSender};

use super::routine::FailureStreak;
use crate::wiring::Shared;

/// See [`Dispatch::beat`].
const BEAT: Duration = Duration::from_millis(100);
/// How often to look for missed queues.
const RECONCILE_INTERVAL: Duration = Duration::from_mins(1);

/// The worker's name.
pub(super) const WORKER: &str = "deliveries";

/// The worker. Its batch lasts until the process stops, and ends when the attempts that are in progress then
/// have ended and are recorded.
pub(super) async fn deliver(shared: Shared) -> Result<Duration, TransactionError> {
    let database = &shared.database;
    let (queues, notify) = (database.subscription_queues(), database.queued());
    let config = &shared.config.webhooks;
    let slots = config.slots();
    metrics::gauge!("webhook_attempts_max").set(slots.attempts);
    let dispatch = Dispatch {
        queues: &*queues,
        sender: &SpawningSender(shared.external.receivers.clone()),
        randomness: &*shared.randomness,
        queued: &|| notify.notified().boxed(),
        beat: &|| sleep(BEAT).boxed(),
        observer: &DeliveryObserver {
            streak: Mutex::new(FailureStreak::new(WORKER, None, shared.readiness.ready_flag())),
        },
        schedule: config.retry_schedule(),
        slots,
    };
    deliver_webhooks(dispatch, shared.tasks.stopping()).await;
    Ok(Duration::ZERO)
}

/// Wakes queues that have due deliveries which no claim sees.
pub(super) async fn reconcile(shared: Shared) -> Result<Duration, TransactionError> {
    let queues = shared.database.subscription_queues().reconcile().await?;
    if queues > 0 {
        tracing::warn!(
            queues,
            "subscriptions had due deliveries that no worker saw, and were woken"
        );
    }
    Ok(RECONCILE_INTERVAL)
}

/// Records metrics; logs failed attempts, and the start and end of a series of failures of the store.
struct DeliveryObserver {
    streak: Mutex<FailureStreak>,
}

/// Records the delay of the first real attempt: one that was postponed or lost with its worker does not
/// count. The start of an attempt is its end minus its duration.
fn record_first_delay(record: &AttemptRecord, message: &Message) {
    let was_made = record.outcome != Outcome::Failed(AttemptFailure::WorkerLost);
    if record.from.attempt == 0 && was_made {
        let took = TimeDelta::milliseconds(record.duration_ms.into());
        let delay = SystemClock.now() - took - message.due_at;
        let delay = delay.to_std().unwrap_or_default().as_secs_f64();
        metrics::histogram!("webhook_first_attempt_delay_seconds").record(delay);
    }
}

impl Observer for DeliveryObserver {
    fn ended(&self, record: &AttemptRecord, message: Option<&Message>) {
        let (outcome, delay) = match record.phase {
            Phase::Delivered => ("delivered", None),
            Phase::Waiting(delay) => ("retry", Some(delay)),
            Phase::Exhausted => ("given_up", None),
        };
        metrics::counter!("webhook_delivery_outcomes_total", "outcome" => outcome).increment(1);
        if let Some(message) = message {
            record_first_delay(record, message);
        }
        let failure = match &record.outcome {
            Outcome::Answered(200..=299) => return,
            Outcome::Answered(status) => status.to_string(),
            Outcome::Failed(failure) => failure.to_text(),
        };
        // Of the URL only the host: the rest may be a secret of the receiver.
        tracing::info!(
            delivery = %record.delivery,
            subscription = %record.lease.queue.subscription,
            seller_id = %record.lease.queue.seller,
            client_id = message.map(|message| display(message.application)),
            event = message.map(|message| message.event.as_str()),
            host = message.map(|message| message.url.authority()),
            failure,
            duration_ms = record.duration_ms,
            attempt = record.next.attempt,
            next_in_s = delay.map(|delay| delay.num_seconds()),
            "a delivery attempt failed"
        );
    }

    fn claimed(&self, queues: usize) {
        let queues = u64::try_from(queues).unwrap_or_default();
        metrics::counter!("webhook_queues_claimed_total").increment(queues);
    }

    fn succeeded(&self) {
        self.streak.lock().log_success();
    }

    fn failed(&self, error: StoreError) {
        // The delivery worker has its own pause.
        let _: Duration = self.streak.lock().log_failure(&error.into());
    }
}

/// Sends each message in a separate task, so that all cores share the work and a panic costs one attempt.
struct SpawningSender(Arc<dyn WebhookSender>);

#[async_trait]
impl WebhookSender for SpawningSender {
    async fn send(&self, message: &Message) -> Sent {
        let (sender, message, begun) = (Arc::clone(&self.0), message.clone(), Instant::now());
        let span = attempt_span(&message);
        let attempt = span.clone();
        let sending = async move {
            let sent = sender.send(&message).await;
            record_outcome(&attempt, &sent);
            sent
        };
        let sending = tokio::spawn(sending.instrument(span));
        let lost = |_| {
            Sent::Attempted(Attempted {
                outcome: Outcome::Failed(AttemptFailure::WorkerLost),
                duration: begun.elapsed(),
            })
        };
        let in_flight = metrics::gauge!("webhook_attempts_in_flight");
        in_flight.increment(1.0);
        let sent = AbortOnDropHandle::new(sending).await.unwrap_or_else(lost);
        in_flight.decrement(1.0);
        sent
    }
}

/// The span of a delivery attempt. It contains only the host of the URL: the rest may be a secret of the
/// receiver.
fn attempt_span(message: &Message) -> Span {
    tracing::info_span!(
        target: SPANS,
        "webhook",
        otel.name = format!("webhook {}", message.event.as_str()),
        otel.kind = "client",
        otel.status_code = Empty,
        event = message.event.as_str(),
        delivery = %message.delivery,
        client_id = %message.application,
        server.address = message.url.authority(),
        http.response.status_code = Empty,
        outcome = Empty,
    )
}

fn record_outcome(span: &Span, sent: &Sent) {
    let Sent::Attempted(attempted) = sent else {
        span.record("outcome", "postponed");
        return;
    };
    if let Some(status) = attempted.response_status() {
        span.record("http.response.status_code", i64::from(status));
    }
    if attempted.outcome.is_success() {
        span.record("outcome", "delivered");
    } else {
        span.record("outcome", "failed");
        span.record("otel.status_code", "ERROR");
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;
    use webhooks::{WebhookEvent, WebhookSecret, WebhookUrl};

    use super::*;

    struct Panicking;

    #[async_trait]
    impl WebhookSender for Panicking {
        async fn send(&self, _: &Message) -> Sent {
            panic!("panicking")
        }
    }

    #[tokio::test]
    async fn a_panic_costs_one_attempt() {
        let message = Message {
            application: Uuid::nil().into(),
            due_at: DateTime::UNIX_EPOCH,
            subscription: Uuid::nil().into(),
            delivery: Uuid::nil().into(),
            event: WebhookEvent::OrderPaid,
            url: WebhookUrl::parse("https://example.com/", webhooks::AddressPolicy::Public).unwrap(),
            body: Arc::from(*b"{}"),
            secrets: Arc::new(WebhookSecret::from_random(&[7; 32]).into()),
        };
        let sent = SpawningSender(Arc::new(Panicking)).send(&message).await;
        let lost = Outcome::Failed(AttemptFailure::WorkerLost);
        assert!(matches!(sent, Sent::Attempted(Attempted { outcome, .. }) if outcome == lost));
    }
}
