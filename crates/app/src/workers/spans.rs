//! Spans of what workers send. Each begins a trace of its own: what is queued does not know the request that caused it.

use kernel::{MailId, SendError};
use tracing::{Span, field::Empty};
use web::request_span::SPANS;
use webhooks::{Attempted, Message, Outcome, Sent};

/// The span of an attempt of a delivery. Of the address it has the host alone: the rest may be the receiver's secret.
pub(super) fn attempt(message: &Message) -> Span {
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

/// Notes how an attempt ended.
pub(super) fn attempted(span: &Span, sent: &Sent) {
    match sent {
        Sent::Postponed => {
            span.record("outcome", "postponed");
        }
        Sent::Attempted(Attempted { outcome, .. }) => {
            if let Outcome::Answered(status) = outcome {
                span.record("http.response.status_code", i64::from(*status));
            }
            if outcome.is_success() {
                span.record("outcome", "delivered");
            } else {
                span.record("outcome", "failed");
                span.record("otel.status_code", "ERROR");
            }
        }
    }
}

/// The span of a mail that is sent.
pub(super) fn mail(about: &'static str, id: MailId) -> Span {
    tracing::info_span!(
        target: SPANS,
        "mail",
        otel.name = format!("mail {about}"),
        otel.kind = "client",
        otel.status_code = Empty,
        about,
        mail = %id,
        outcome = Empty,
    )
}

/// Notes what came of a mail.
pub(super) fn mailed(span: &Span, outcome: &Result<(), SendError>) {
    let outcome = match outcome {
        Ok(()) => "sent",
        Err(SendError::Transient(_)) => "put_off",
        Err(SendError::Permanent(_)) => "refused",
    };
    span.record("outcome", outcome);
    if outcome != "sent" {
        span.record("otel.status_code", "ERROR");
    }
}
