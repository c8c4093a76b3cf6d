//! One delivery attempt from start to end.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request};
use kernel::Clock;
use tokio::time::{Instant, timeout_at};
use webhooks::{
    AttemptFailure, Attempted, HostCheck, HostRefused, Message, Outcome, Sent, WebhookSender, WebhookUrl,
    signature, standard_signature,
};

use crate::connection::{Connection, Peer};
use crate::connection_pool::ConnectionPool;
use crate::dialer::Dialer;
use crate::host_limiter::{HostLimiter, Limits};
use crate::resolver::Resolver;
use crate::{SenderSettings, SettingsError};

/// How long to wait for the rest of an answer, so that its connection can be reused. The outcome is already
/// final.
const FINISH_TIMEOUT: Duration = Duration::from_secs(1);

/// A reused connection that closes within this time before any response byte: the request is retried once on
/// a new connection. If the receiver had closed the connection before, that shows within a round trip; later,
/// the receiver has got the request.
const RETRY_WITHIN: Duration = Duration::from_secs(1);

/// Sends deliveries over HTTP/1.1 and TLS.
pub struct HttpSender {
    resolver: Resolver,
    dialer: Dialer,
    pool: Arc<ConnectionPool>,
    limiter: HostLimiter,
    user_agent: HeaderValue,
    timeout: Duration,
    /// For `webhook-timestamp`, which receivers compare with their own clocks.
    clock: Arc<dyn Clock>,
}

impl HttpSender {
    /// Loads the machine's trusted certificates and, unless the settings name some, its name servers. Opens
    /// no connection.
    pub fn new(settings: &SenderSettings, clock: Arc<dyn Clock>) -> Result<Self, SettingsError> {
        let (service, docs) = (&settings.service_name, &settings.docs_url);
        let user_agent = HeaderValue::try_from(format!("{service}-webhooks/1.0 (+{docs})"));
        Ok(Self {
            resolver: Resolver::new(settings)?,
            dialer: Dialer::new(settings)?,
            pool: ConnectionPool::new(settings.max_idle_connections, settings.max_connection_age),
            limiter: HostLimiter::new(Limits {
                per_host: settings.attempts_per_host,
                per_application: settings.attempts_per_application,
            }),
            user_agent: user_agent.map_err(|_| SettingsError::UserAgent)?,
            timeout: settings.attempt_timeout,
            clock,
        })
    }

    /// Returns the status, the unread body and the connection. Retries once if a reused connection turns out
    /// to be closed. If the first request did arrive, the receiver recognises the second by its
    /// `X-Delivery-Id`.
    async fn attempt(&self, message: &Message) -> Result<(u16, Incoming, Connection), AttemptFailure> {
        let url = &message.url;
        let addresses = self.resolver.addresses(url).await?;
        let peer = Peer {
            is_tls: url.is_https(),
            host: url.host().clone(),
            port: url.port(),
        };
        if let Some(mut connection) = self.pool.take(&peer, &addresses) {
            let sent_at = Instant::now();
            match connection.exchange(self.request(message)?).await {
                Ok((status, body)) => return Ok((status, body, connection)),
                Err(unanswered) if !unanswered.has_read && sent_at.elapsed() < RETRY_WITHIN => {}
                Err(unanswered) => return Err(unanswered.failure),
            }
        }
        let mut connection = self.dialer.open(peer, &addresses).await?;
        let head = connection.exchange(self.request(message)?).await;
        let (status, body) = head.map_err(|unanswered| unanswered.failure)?;
        Ok((status, body, connection))
    }

    /// Signs the message. hyper adds `Content-Length`.
    fn request(&self, message: &Message) -> Result<Request<Full<Bytes>>, AttemptFailure> {
        let body = Bytes::from_owner(Arc::clone(&message.body));
        let (secrets, delivery) = (&message.secrets, message.delivery);
        let timestamp = self.clock.now().timestamp();
        let standard = |secret| standard_signature(secret, delivery, timestamp, &message.body);
        let standard: Vec<_> = secrets.all().map(standard).collect();
        let request = Request::builder()
            .method(Method::POST)
            .uri(message.url.path_and_query())
            .header(HOST, message.url.authority())
            .header(USER_AGENT, &self.user_agent)
            .header(CONTENT_TYPE, "application/json")
            .header("x-signature", signature(secrets.signing(), &message.body))
            .header("x-event", message.event.as_str())
            .header("x-webhook-id", message.subscription.to_string())
            .header("x-delivery-id", delivery.to_string())
            .header("webhook-id", delivery.to_string())
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", standard.join(" "))
            .body(Full::new(body));
        request.map_err(|_| AttemptFailure::protocol("the webhook's URL does not fit into a request"))
    }

    async fn finish(&self, body: Incoming, mut connection: Connection) {
        if connection.finish(body).await {
            self.pool.put(connection);
        }
    }

    #[cfg(test)]
    pub(crate) fn pool(&self) -> &ConnectionPool {
        &self.pool
    }
}

#[async_trait]
impl WebhookSender for HttpSender {
    async fn send(&self, message: &Message) -> Sent {
        let host = message.url.host();
        let Some(_permit) = self.limiter.try_acquire(host, message.application) else {
            metrics::counter!("webhook_attempts_postponed_total").increment(1);
            return Sent::Postponed;
        };
        let started = Instant::now();
        let deadline = started + self.timeout;
        let answer = timeout_at(deadline, self.attempt(message)).await;
        let duration = started.elapsed();
        let outcome = match answer.unwrap_or(Err(AttemptFailure::TimedOut)) {
            Ok((status, body, connection)) => {
                let end = deadline.min(Instant::now() + FINISH_TIMEOUT);
                // A connection that is not finished in time is dropped.
                let _ = timeout_at(end, self.finish(body, connection)).await;
                Outcome::Answered(status)
            }
            Err(failure) => Outcome::Failed(failure),
        };
        metrics::counter!("webhook_attempts_total", "outcome" => label(&outcome)).increment(1);
        metrics::histogram!("webhook_attempt_duration_seconds").record(duration.as_secs_f64());
        Sent::Attempted(Attempted { outcome, duration })
    }
}

#[async_trait]
impl HostCheck for HttpSender {
    async fn check(&self, url: &WebhookUrl) -> Result<(), HostRefused> {
        let addresses = self.resolver.addresses(url).await;
        addresses.map(drop).map_err(|_| HostRefused)
    }
}

/// Only the class of a status, since receivers choose the status.
fn label(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Answered(..200) => "1xx",
        Outcome::Answered(200..300) => "2xx",
        Outcome::Answered(300..400) => "3xx",
        Outcome::Answered(400..500) => "4xx",
        Outcome::Answered(500..600) => "5xx",
        Outcome::Answered(_) => "other",
        Outcome::Failed(failure) => failure.as_code(),
    }
}
