//! An attempt from begin to end.

use std::{net::IpAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Request,
    body::Incoming,
    header::{CONTENT_TYPE, HOST, HeaderValue, USER_AGENT},
};
use tokio::time::{Instant, timeout_at};
use webhooks::{
    Attempted, Failure, HostCheck, HostRefused, Message, Outcome, Scheme, Sent, WebhookSender, WebhookUrl,
};

use crate::{
    SenderSettings, SettingsError,
    connection::Connection,
    crowd::{Crowd, Limits},
    dialer::Dialer,
    kept::{Kept, Peer},
    meters,
    resolver::Resolver,
};

/// How long the rest of an answer is waited for, so that its connection can be kept. The outcome is settled by then.
const FINISH: Duration = Duration::from_secs(1);

/// Sends deliveries over HTTP/1.1 and TLS.
pub struct HttpSender {
    resolver: Resolver,
    dialer: Dialer,
    kept: Arc<Kept>,
    crowd: Crowd,
    user_agent: HeaderValue,
    timeout: Duration,
}

/// How soon a kept connection has to turn out to be closed for that the request goes out again. One that the receiver closed
/// before it saw the request says so within a round trip; later the receiver has had it, and the delivery may have been ended
/// meanwhile.
const CLOSED_BEFORE: Duration = Duration::from_secs(1);

/// The head of an answer, and what its rest is read from.
struct Answer {
    status: u16,
    rest: Incoming,
    connection: Connection,
    peer: Peer,
    address: IpAddr,
}

impl HttpSender {
    /// Reads the machine's trusted certificates and, unless others are given, its name servers. Connects to nothing yet.
    pub fn new(settings: &SenderSettings) -> Result<Self, SettingsError> {
        settings.check()?;
        let (service, docs) = (&settings.service_name, &settings.docs_url);
        let user_agent = HeaderValue::try_from(format!("{service}-webhooks/1.0 (+{docs})"));
        Ok(Self {
            resolver: Resolver::new(settings)?,
            dialer: Dialer::new(settings)?,
            kept: Kept::new(settings.kept_connections, settings.kept_for),
            crowd: Crowd::new(Limits {
                places: settings.connections_per_host,
                share: settings.connections_per_application,
            }),
            user_agent: user_agent.map_err(|_| SettingsError::UserAgent)?,
            timeout: settings.attempt_timeout,
        })
    }

    async fn attempt(&self, message: &Message) -> Result<Answer, Failure> {
        let url = &message.url;
        let addresses = self.resolver.addresses(url).await?;
        let peer = Peer {
            secure: url.scheme() == Scheme::Https,
            host: url.host().clone(),
            port: url.port(),
        };
        let (address, connection, (status, rest)) = self.exchange(message, &peer, &addresses).await?;
        Ok(Answer {
            status,
            rest,
            connection,
            peer,
            address,
        })
    }

    /// A kept connection may have been closed by the receiver at the moment of its use. Where it ends at once and not one byte
    /// came back, the request goes out once more over a new connection; should the first one have arrived after all, its
    /// `X-Delivery-Id` tells the receiver so.
    async fn exchange(
        &self,
        message: &Message,
        peer: &Peer,
        addresses: &[IpAddr],
    ) -> Result<(IpAddr, Connection, (u16, Incoming)), Failure> {
        if let Some((address, mut connection)) = self.kept.take(peer, addresses) {
            let sent_at = Instant::now();
            match connection.exchange(self.request(message)?).await {
                Ok(head) => return Ok((address, connection, head)),
                Err(unanswered) if unanswered.unheard && sent_at.elapsed() < CLOSED_BEFORE => {}
                Err(unanswered) => return Err(unanswered.failure),
            }
        }
        let (address, mut connection) = self.dialer.open(peer, addresses).await?;
        let head = connection.exchange(self.request(message)?).await;
        let head = head.map_err(|unanswered| unanswered.failure)?;
        Ok((address, connection, head))
    }

    /// `Content-Length` follows from the body.
    fn request(&self, message: &Message) -> Result<Request<Full<Bytes>>, Failure> {
        let body = Bytes::from_owner(Arc::clone(&message.body));
        let request = Request::builder()
            .method(Method::POST)
            .uri(message.url.path_and_query())
            .header(HOST, message.url.authority())
            .header(USER_AGENT, &self.user_agent)
            .header(CONTENT_TYPE, "application/json")
            .header("x-signature", &message.signature)
            .header("x-event", message.event.as_str())
            .header("x-delivery-id", message.delivery.to_string())
            .body(Full::new(body));
        request.map_err(|_| Failure::protocol("the webhook's address cannot be put into a request"))
    }

    #[cfg(test)]
    pub(crate) fn kept(&self) -> &Kept {
        &self.kept
    }

    async fn finish(&self, answer: Answer) {
        let Answer {
            rest,
            mut connection,
            peer,
            address,
            ..
        } = answer;
        if connection.finish(rest).await {
            self.kept.put(peer, address, connection);
        }
    }
}

#[async_trait]
impl WebhookSender for HttpSender {
    async fn send(&self, message: &Message) -> Sent {
        let Some(_place) = self.crowd.enter(message.url.host(), message.application) else {
            meters::postponed();
            return Sent::Postponed;
        };
        let started = Instant::now();
        let deadline = started + self.timeout;
        let answer = timeout_at(deadline, self.attempt(message)).await;
        let duration = started.elapsed();
        let outcome = match answer.unwrap_or(Err(Failure::TimedOut)) {
            Ok(answer) => {
                let status = answer.status;
                let patience = deadline.min(Instant::now() + FINISH);
                // In time or not: the status has decided, and a connection that is not finished is dropped.
                let _ = timeout_at(patience, self.finish(answer)).await;
                Outcome::Answered(status)
            }
            Err(failure) => Outcome::Failed(failure),
        };
        let attempted = Attempted { outcome, duration };
        meters::attempted(&attempted);
        Sent::Attempted(attempted)
    }
}

#[async_trait]
impl HostCheck for HttpSender {
    async fn check(&self, url: &WebhookUrl) -> Result<(), HostRefused> {
        let addresses = self.resolver.addresses(url).await;
        addresses.map(drop).map_err(|_| HostRefused)
    }
}
