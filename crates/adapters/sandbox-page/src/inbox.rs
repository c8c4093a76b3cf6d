//! The built-in receiver of webhooks: an inbox for each seller of the sandbox.

use std::collections::{HashMap, VecDeque};
use std::future::ready;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue, ORIGIN};
use askama::Template;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::stream;
use parking_lot::Mutex;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;
use web::Tasks;
use web::form::Form;
use web::request::Request;
use webhooks::{
    Delivery, DeliveryFilter, DeliveryId, Outcome, SubscriptionId, WebhookEvent, WebhookSecret, signature,
    standard_signature,
};

use crate::calls::{Answered, By, Call, text};
use crate::guard::FOREIGN_FORM;
use crate::pages::{Frame, PageRefusal, Shown, html};
use crate::{BODY_LIMITS, Chosen, Row, SandboxPage};

/// Deliveries that an inbox keeps.
const KEPT: usize = 50;
/// Deliveries that the page lists as they are sent.
const LISTED: u16 = 100;

kernel::words! {
    /// How a receiver answers: with 204, with 500, with 204 after 3 s, never, or by closing the connection.
    /// What it cannot verify gets 401 instead of 204.
    #[derive(Default)]
    enum Behaviour {
        #[default]
        Accept = "accept",
        Fail = "fail",
        Slow = "slow",
        Silent = "silent",
        Close = "close",
    }
}

impl Behaviour {
    /// Seconds to wait, and the status to answer with; without one, the connection is closed.
    fn plan(self, is_verified: bool) -> (u64, Option<StatusCode>) {
        let verdict = if is_verified {
            StatusCode::NO_CONTENT
        } else {
            StatusCode::UNAUTHORIZED
        };
        match self {
            Self::Accept => (0, Some(verdict)),
            Self::Fail => (0, Some(StatusCode::INTERNAL_SERVER_ERROR)),
            Self::Slow => (3, Some(verdict)),
            // Longer than an attempt.
            Self::Silent => (60, None),
            Self::Close => (0, None),
        }
    }
}

/// What has to hold, and whether it does.
pub(crate) type Check = (bool, String);

/// The steps of a verification by both headers. A real receiver compares in constant time.
fn verify(secret: &WebhookSecret, headers: &HeaderMap, body: &[u8], now: DateTime<Utc>) -> Vec<Check> {
    let header = |name| text_of(headers, name);
    let (sent, computed) = (header("x-signature"), signature(secret, body));
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let seconds: i64 = timestamp.parse().unwrap_or_default();
    let age = now.timestamp().saturating_sub(seconds);
    let delivery = id.parse::<DeliveryId>().ok();
    let standard = delivery.map_or_else(String::new, |id| standard_signature(secret, id, seconds, body));
    let (signatures, length) = (header("webhook-signature"), body.len());
    let place = signatures.split(' ').position(|one| one == standard);
    let all = signatures.split(' ').count();
    let which = place.map_or_else(
        || format!("none of {all}"),
        |n| format!("number {} of {all}", n + 1),
    );
    let is_hmac = format!("It is the HMAC-SHA256 of the body's {length} bytes under the secret: {computed}");
    let is_recent = format!("webhook-timestamp is at most 5 minutes off: {timestamp} was {age} s ago.");
    let has_one = format!("webhook-signature signs “{id}.{timestamp}.” and the body, as {which}: {standard}");
    vec![
        (!sent.is_empty(), "X-Signature is there.".to_owned()),
        (sent.starts_with("sha256="), "It begins with sha256=.".to_owned()),
        (sent == computed, is_hmac),
        (delivery.is_some(), format!("webhook-id is an id: {id}")),
        (age.unsigned_abs() <= 300, is_recent),
        (delivery.is_some() && place.is_some(), has_one),
    ]
}

fn text_of(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).map_or(&[][..], HeaderValue::as_bytes);
    String::from_utf8_lossy(value).into_owned()
}

/// A request that came to an inbox.
#[derive(Default)]
struct Received {
    at: DateTime<Utc>,
    event: String,
    delivery: String,
    /// Headers and the beginning of the body.
    content: String,
    checks: Vec<Check>,
    is_verified: bool,
    behaviour: Behaviour,
    /// Of the answer, once it was given.
    status: OnceLock<StatusCode>,
}

impl Received {
    async fn answer(&self, tasks: &Tasks) -> HttpResponse {
        let (waits, status) = self.behaviour.plan(self.is_verified);
        // A stop of the process ends the wait.
        drop(timeout(Duration::from_secs(waits), tasks.stopping()).await);
        if let Some(status) = status {
            return HttpResponse::build(*self.status.get_or_init(|| status)).finish();
        }
        // A body that fails at once: actix-http ends the connection without sending the head.
        let error = io::Error::from(io::ErrorKind::ConnectionAborted);
        HttpResponse::Ok().streaming(stream::once(ready(Err::<Bytes, _>(error))))
    }
}

#[derive(Clone, Default)]
struct Receiver {
    /// Of the subscription with this id.
    secret: Option<(SubscriptionId, WebhookSecret)>,
    behaviour: Behaviour,
    /// The newest first.
    received: VecDeque<Arc<Received>>,
}

/// The receivers, by their sellers' places.
#[derive(Default)]
pub(crate) struct Inbox(Mutex<HashMap<usize, Receiver>>);

impl Inbox {
    fn with<T>(&self, n: usize, work: impl FnOnce(&mut Receiver) -> T) -> T {
        work(self.0.lock().entry(n).or_default())
    }

    /// Keeps a delivery.
    fn add(&self, n: usize, headers: &HeaderMap, body: &[u8], now: DateTime<Utc>) -> Arc<Received> {
        let line = |name: &HeaderName| format!("{name}: {}\n", text_of(headers, name.as_str()));
        let mut lines: Vec<_> = headers.keys().map(line).collect();
        lines.sort();
        let content = format!("{}\n{}", lines.concat(), Row::text(body));
        self.with(n, |receiver| {
            let checks = match &receiver.secret {
                Some((_, secret)) => verify(secret, headers, body, now),
                None => vec![(false, "The secret is known: subscribe to see it.".to_owned())],
            };
            let received = Arc::new(Received {
                at: now,
                event: text_of(headers, "x-event"),
                delivery: text_of(headers, "x-delivery-id"),
                content,
                is_verified: checks.iter().all(|(holds, _)| *holds),
                checks,
                behaviour: receiver.behaviour,
                status: OnceLock::new(),
            });
            receiver.received.push_front(Arc::clone(&received));
            receiver.received.truncate(KEPT);
            received
        })
    }

    /// Keeps the secret in an answer to a seller's call.
    pub(crate) fn learn(&self, by: &By, answer: &Answered) {
        let json = answer.json();
        let id = text(&json, "id").parse().ok();
        let secret = id.zip(WebhookSecret::presented(text(&json, "secret")));
        if let (By::Seller(n), Some(secret)) = (by, secret) {
            self.with(*n, |receiver| receiver.secret = Some(secret));
        }
    }
}

/// `POST /sandbox/inbox/{n}`: a delivery.
pub(crate) async fn receive(page: &SandboxPage, n: usize, request: &mut Request) -> Shown {
    // Browsers send an origin, senders of webhooks do not.
    if request.headers().contains_key(ORIGIN) {
        return Err(PageRefusal::new(StatusCode::FORBIDDEN, FOREIGN_FORM));
    }
    let body = request.body(BODY_LIMITS).await.map_err(PageRefusal::bad)?;
    let now = page.settings.clock.now();
    let received = page.inbox.add(n, request.headers(), &body, now);
    Ok(received.answer(&page.settings.tasks).await)
}

#[derive(Template)]
#[template(path = "receiver.html")]
struct ReceiverPage<'a> {
    frame: Frame<'a>,
    n: usize,
    receiver: Receiver,
    /// Its subscription, whose secret may be lost.
    own: Option<SubscriptionId>,
    /// The button that subscribes it, or repairs its subscription.
    subscribe: String,
    /// The newest first.
    deliveries: Vec<Delivery>,
}

impl ReceiverPage<'_> {
    fn behaviour(&self) -> String {
        let (page, words) = (self.frame.page, Behaviour::ALL.map(Behaviour::as_str));
        let (seller, behaviour) = (self.n.to_string(), self.receiver.behaviour.as_str());
        let form = json!({ "token": page.form_token, "seller": seller, "behaviour": behaviour });
        let call = Call::new(By::Page, Method::POST, "/sandbox/api/receiver", form);
        page.button("Set", call, &[("/behaviour", "It answers", &words)])
    }

    /// The button of a POST by the seller.
    fn button(&self, label: &str, path: String) -> String {
        let call = Call::new(By::Seller(self.n), Method::POST, path, Value::Null);
        self.frame.page.button(label, call, &[])
    }
}

/// `GET /sandbox/receiver`: a seller's receiver.
pub(crate) async fn receiver(page: &SandboxPage, (n, seller): Chosen<'_>) -> Shown {
    let (reader, id) = (&page.settings.subscriptions, seller.id.into());
    let path = format!("/sandbox/inbox/{n}");
    let url = format!("{}{path}", page.settings.api_url);
    let all = reader.subscriptions_of_seller(id, None, u16::MAX).await?;
    let all = all.into_iter().map(|listed| listed.subscription);
    // An earlier run may have had another port.
    let own = all.filter(|own| own.active && own.url.as_str().ends_with(&path));
    let own = own.max_by_key(|own| own.url.as_str() == url);
    let call = |method, path: String, body| Call::new(By::Seller(n), method, path, body);
    let (label, call) = match &own {
        None => {
            let body = json!({ "url": url, "events": WebhookEvent::ALL.map(WebhookEvent::as_str) });
            let call = call(Method::POST, "/v1/webhooks".to_owned(), body);
            ("Subscribe to all events", call)
        }
        Some(own) if own.url.as_str() == url => {
            let path = format!("/v1/webhooks/{}/secret-rotation", own.id);
            let call = call(Method::POST, path, json!({ "overlap_seconds": 0 }));
            ("Give it a new secret", call)
        }
        Some(own) => {
            let path = format!("/v1/webhooks/{}", own.id);
            let call = call(Method::PATCH, path, json!({ "url": url }));
            ("Deliver to this run's port", call)
        }
    };
    let mut deliveries = Vec::new();
    if let Some(own) = &own {
        let filter = DeliveryFilter {
            subscription: Some(own.id),
            ..DeliveryFilter::default()
        };
        deliveries = reader.deliveries_of_seller(id, filter, None, LISTED).await?;
    }
    let own = own.map(|own| own.id);
    let mut receiver = page.inbox.with(n, |receiver| receiver.clone());
    receiver.secret = receiver.secret.filter(|(id, _)| Some(*id) == own);
    Ok(html(&ReceiverPage {
        frame: page.frame("Receiver"),
        n,
        receiver,
        own,
        subscribe: page.button(label, call, &[]),
        deliveries: deliveries.into_iter().map(|sent| sent.delivery).collect(),
    }))
}

/// `POST /sandbox/api/receiver`: sets how a seller's receiver answers from now on.
pub(crate) fn behave(page: &SandboxPage, (n, _): Chosen<'_>, form: &Form) -> Shown {
    let word = form.get("behaviour").unwrap_or_default();
    let all = Behaviour::ALL.map(Behaviour::as_str).join(", ");
    let behaviour =
        Behaviour::parse(word).ok_or_else(|| PageRefusal::bad(format!("`behaviour`: one of {all}.")))?;
    page.inbox.with(n, |receiver| receiver.behaviour = behaviour);
    Ok(HttpResponse::Ok().body(format!("The receiver's behaviour from now on: {word}.\n")))
}

#[cfg(test)]
mod tests;
