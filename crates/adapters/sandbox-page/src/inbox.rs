//! The built-in receiver of webhooks: an inbox for each seller of the sandbox.

use std::collections::{HashMap, VecDeque};
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderMap, LOCATION};
use actix_web::http::{ConnectionType, StatusCode};
use askama::Template;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::stream;
use parking_lot::Mutex;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;
use web::body::BodyLimits;
use web::form::Form;
use web::request::Request;
use webhooks::{DeliveryId, MAX_ATTEMPTS, WebhookEvent, WebhookSecret, signature, standard_signature};

use crate::calls::{Answered, Body, By, Call};
use crate::pages::{Frame, html};
use crate::{SandboxPage, SandboxSeller, Settings};

const PATH: &str = "/sandbox/receiver";
/// Deliveries that an inbox keeps, and bytes of a body that it keeps.
const KEPT: usize = 50;
const KEPT_BODY: usize = 4 * 1024;
const MAX_BODY: usize = 64 * 1024;
/// The greatest age of a timestamp, in seconds, into the future too.
const TOLERANCE: u64 = 300;
const SLOW: Duration = Duration::from_secs(3);
/// Longer than an attempt takes.
const SILENT: Duration = Duration::from_mins(1);

kernel::words! {
    /// How a receiver answers.
    #[derive(Default)]
    pub(crate) enum Behaviour {
        #[default]
        Accept = "accept",
        Fail = "fail",
        Slow = "slow",
        Silent = "silent",
        Close = "close",
    }
}

impl Behaviour {
    const fn about(self) -> &'static str {
        match self {
            Self::Accept => "answers 204 at once",
            Self::Fail => "answers 500",
            Self::Slow => "answers 204 after 3 seconds",
            Self::Silent => "never answers",
            Self::Close => "closes the connection without an answer",
        }
    }

    /// The answer in words. As the guide says, what is not verified gets 401.
    const fn promise(self, is_verified: bool) -> &'static str {
        match (self, is_verified) {
            (Self::Accept, true) => "204",
            (Self::Slow, true) => "204, after 3 s",
            (Self::Accept, false) => "401: not verified",
            (Self::Slow, false) => "401, after 3 s: not verified",
            (Self::Fail, _) => "500",
            (Self::Silent, _) => "none: the sender gives up",
            (Self::Close, _) => "none: the connection is closed",
        }
    }

    async fn answer(self, is_verified: bool) -> HttpResponse {
        match self {
            Self::Accept => {}
            Self::Fail => return HttpResponse::InternalServerError().finish(),
            Self::Slow => sleep(SLOW).await,
            Self::Silent => {
                sleep(SILENT).await;
                return closed();
            }
            Self::Close => return closed(),
        }
        if is_verified {
            HttpResponse::NoContent().finish()
        } else {
            HttpResponse::Unauthorized().finish()
        }
    }
}

/// Ends the connection without a byte: actix-http writes a head with the first piece of its body, and drops
/// both when the body fails.
fn closed() -> HttpResponse {
    let error = io::Error::from(io::ErrorKind::ConnectionAborted);
    HttpResponse::InternalServerError().streaming(stream::once(ready(Err::<Bytes, _>(error))))
}

/// Something that has to hold, and whether it does.
pub(crate) struct Check {
    pub(crate) holds: bool,
    pub(crate) text: String,
}

impl Check {
    pub(crate) fn new(holds: bool, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { holds, text }
    }
}

/// The steps of a verification, by both headers.
fn verify(
    secret: Option<&WebhookSecret>,
    headers: &HeaderMap,
    body: &[u8],
    now: DateTime<Utc>,
) -> Vec<Check> {
    let Some(secret) = secret else {
        return vec![Check::new(
            false,
            "The secret is known. Subscribe this receiver: only that shows the secret.",
        )];
    };
    let header = |name| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let (sent, computed) = (header("x-signature"), signature(secret, body));
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let (delivery, seconds) = (id.parse::<DeliveryId>().ok(), timestamp.parse::<i64>().ok());
    let age = seconds.map(|seconds| now.timestamp().saturating_sub(seconds));
    let signatures: Vec<_> = header("webhook-signature").split_whitespace().collect();
    let standard = delivery
        .zip(seconds)
        .map(|(id, seconds)| standard_signature(secret, id, seconds, body));
    let standard = standard.unwrap_or_default();
    let equal = signatures.iter().position(|signature| *signature == standard);
    let length = body.len();
    vec![
        Check::new(!sent.is_empty(), "X-Signature is there."),
        Check::new(sent.starts_with("sha256="), "X-Signature begins with sha256=."),
        // A real receiver compares in constant time.
        Check::new(
            sent == computed,
            format!(
                "X-Signature is the hexadecimal HMAC-SHA256 of the body's {length} bytes under the secret: {computed}"
            ),
        ),
        Check::new(
            delivery.is_some(),
            format!("webhook-id is the id of a delivery: {id}"),
        ),
        Check::new(
            age.is_some_and(|age| age.unsigned_abs() <= TOLERANCE),
            match age {
                Some(age) => {
                    format!("webhook-timestamp is at most 5 minutes off: {timestamp} was {age} s ago.")
                }
                None => "webhook-timestamp is there, in Unix seconds.".to_owned(),
            },
        ),
        Check::new(
            !signatures.is_empty() && signatures.iter().all(|signature| signature.starts_with("v1,")),
            format!(
                "webhook-signature has v1 signatures, separated by spaces: {}.",
                signatures.len()
            ),
        ),
        Check::new(
            equal.is_some(),
            match equal {
                Some(n) => format!(
                    "Signature {} of {} is the base64 HMAC-SHA256 of “{id}.{timestamp}.” and the body: {standard}",
                    n.saturating_add(1),
                    signatures.len()
                ),
                None => format!(
                    "One of them is the base64 HMAC-SHA256 of “{id}.{timestamp}.” and the body: {standard}"
                ),
            },
        ),
    ]
}

/// A request that came to an inbox.
struct Received {
    number: u64,
    at: DateTime<Utc>,
    event: String,
    headers: Vec<(String, String)>,
    /// Its beginning.
    body: String,
    checks: Vec<Check>,
    is_verified: bool,
    answer: &'static str,
}

/// A delivery as the API tells it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Sent {
    id: String,
    event: String,
    attempt: u8,
    response_status: Option<u16>,
    duration_ms: Option<u32>,
    delivered_at: Option<DateTime<Utc>>,
    next_retry_at: Option<DateTime<Utc>>,
    failure: Option<String>,
}

impl Sent {
    /// Whether an attempt is under way, or about to begin.
    fn is_due(&self, now: DateTime<Utc>) -> bool {
        match self.next_retry_at {
            Some(at) => at <= now,
            None => self.attempt == 0,
        }
    }

    /// The CSS class of its state, and the state in words.
    const fn state(&self) -> (&'static str, &'static str) {
        match (self.delivered_at, self.next_retry_at, self.attempt) {
            (Some(_), ..) => ("delivered", "delivered"),
            (_, Some(_), _) => ("waiting", "waits for a retry"),
            (_, _, 0) => ("waiting", "queued"),
            (_, _, MAX_ATTEMPTS..) => ("exhausted", "given up"),
            _ => ("", "stopped"),
        }
    }

    /// What came of the last attempt.
    fn outcome(&self) -> String {
        let status = self.response_status.map(|status| status.to_string());
        let outcome = status.or_else(|| self.failure.clone());
        outcome.map_or_else(String::new, |outcome| {
            format!("{outcome}, {} ms", self.duration_ms.unwrap_or_default())
        })
    }
}

#[derive(Clone)]
struct Subscription {
    id: String,
    secret: WebhookSecret,
}

#[derive(Default)]
struct Receiver {
    subscription: Option<Subscription>,
    behaviour: Behaviour,
    /// The newest first.
    received: VecDeque<Arc<Received>>,
    /// How many came.
    count: u64,
    /// As the API told them when `read_at` had come.
    sent: Vec<Sent>,
    read_at: u64,
    /// What the API refused.
    alert: String,
    /// Rises with each change.
    version: u64,
}

/// What all inboxes have, by the seller's place in the settings.
#[derive(Default)]
pub(crate) struct Inbox(Mutex<HashMap<usize, Receiver>>);

impl Inbox {
    fn with<T>(&self, n: usize, work: impl FnOnce(&mut Receiver) -> T) -> T {
        work(self.0.lock().entry(n).or_default())
    }

    fn change(&self, n: usize, work: impl FnOnce(&mut Receiver)) {
        self.with(n, |receiver| {
            receiver.version += 1;
            work(receiver);
        });
    }
}

/// `POST /sandbox/inbox/{n}`: a delivery.
pub(crate) async fn receive(page: &SandboxPage, n: usize, request: &mut Request) -> HttpResponse {
    let settings = &page.shared.settings;
    if n >= settings.sellers.len() {
        return HttpResponse::NotFound().body("The sandbox has no such inbox.\n");
    }
    let within = settings.service.body_timeout;
    let body = match request
        .body(BodyLimits {
            cap: MAX_BODY,
            within,
        })
        .await
    {
        Ok(body) => body,
        Err(error) => {
            let mut response = HttpResponse::BadRequest().body(format!("{error}\n"));
            response.head_mut().set_connection_type(ConnectionType::Close);
            return response;
        }
    };
    let (behaviour, is_verified) = page
        .shared
        .inbox
        .add(n, request.headers(), &body, settings.clock.now());
    behaviour.answer(is_verified).await
}

impl Inbox {
    fn add(&self, n: usize, headers: &HeaderMap, body: &[u8], now: DateTime<Utc>) -> (Behaviour, bool) {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        self.with(n, |receiver| {
            let secret = receiver
                .subscription
                .as_ref()
                .map(|subscription| &subscription.secret);
            let checks = verify(secret, headers, body, now);
            let (behaviour, is_verified) = (receiver.behaviour, checks.iter().all(|check| check.holds));
            let event = headers
                .get("x-event")
                .map_or_else(String::new, |event| text(event.as_bytes()));
            let mut headers: Vec<_> = headers
                .iter()
                .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
                .collect();
            headers.sort();
            receiver.count += 1;
            receiver.version += 1;
            receiver.received.push_front(Arc::new(Received {
                number: receiver.count,
                at: now,
                event,
                headers,
                body: match body.split_at_checked(KEPT_BODY) {
                    Some((start, rest)) if !rest.is_empty() => format!("{}…", text(start)),
                    _ => text(body),
                },
                checks,
                is_verified,
                answer: behaviour.promise(is_verified),
            }));
            receiver.received.truncate(KEPT);
            (behaviour, is_verified)
        })
    }
}

/// What changes by itself.
#[derive(Template)]
#[template(path = "inbox_list.html")]
struct InboxList {
    seller: usize,
    version: u64,
    alert: String,
    received: Vec<Arc<Received>>,
    /// Each with the button that sends it again.
    sent: Vec<(Sent, String)>,
}

#[derive(Template)]
#[template(path = "receiver.html")]
struct ReceiverPage<'a> {
    frame: Frame,
    sellers: &'a [SandboxSeller],
    chosen: usize,
    url: String,
    curl: String,
    subscription: Option<Subscription>,
    test: String,
    behaviour: Behaviour,
    list: InboxList,
}

/// `GET /sandbox/receiver`: the page of a seller's receiver. With `seen`, a version: its list alone, or 204 if
/// that has not changed.
pub(crate) async fn receiver(page: &SandboxPage, query: &Form) -> HttpResponse {
    let (settings, inbox) = (&page.shared.settings, &page.shared.inbox);
    let (n, _) = page.seller(query);
    let seen = query.get("seen").and_then(|seen| seen.parse::<u64>().ok());
    let now = settings.clock.now();
    // Polling calls the API only when its answer may have changed.
    let stale = inbox.with(n, |receiver| {
        let is_stale = seen.is_none() || receiver.read_at != receiver.count;
        let is_stale = is_stale || receiver.sent.iter().any(|sent| sent.is_due(now));
        let id = receiver
            .subscription
            .as_ref()
            .map(|subscription| subscription.id.clone());
        id.filter(|_| is_stale).map(|id| (id, receiver.count))
    });
    if let Some((id, count)) = stale {
        let path = format!("/v1/webhooks/{id}/deliveries");
        let read = page
            .shared
            .calls
            .read(settings, By::Seller(n), path)
            .await
            .and_then(accepted);
        let (sent, alert) = match read.map(|answered| list(&answered)) {
            Ok(sent) => (Some(sent), String::new()),
            Err(sentence) => (None, sentence),
        };
        inbox.with(n, |receiver| {
            let sent = sent.unwrap_or_else(|| receiver.sent.clone());
            if (&sent, &alert) != (&receiver.sent, &receiver.alert) {
                (receiver.sent, receiver.alert) = (sent, alert);
                receiver.version += 1;
            }
            receiver.read_at = count;
        });
    }
    let (list, subscription, behaviour) = inbox.with(n, |receiver| {
        let id = receiver
            .subscription
            .as_ref()
            .map_or("", |subscription| &subscription.id);
        let sent = receiver
            .sent
            .iter()
            .map(|sent| (sent.clone(), again(page, n, id, sent)));
        let list = InboxList {
            seller: n,
            version: receiver.version,
            alert: receiver.alert.clone(),
            received: receiver.received.iter().cloned().collect(),
            sent: sent.collect(),
        };
        (list, receiver.subscription.clone(), receiver.behaviour)
    });
    match seen {
        Some(seen) if seen == list.version => return HttpResponse::NoContent().finish(),
        Some(_) => return html(StatusCode::OK, &list),
        None => {}
    }
    let test = subscription.as_ref().map_or_else(String::new, |subscription| {
        let path = format!("/v1/webhooks/{}/test", subscription.id);
        button(
            page,
            "Send a test event",
            &Call::by_seller(n, Method::POST, path, Body::None),
        )
    });
    let shown = ReceiverPage {
        frame: page.frame("Receiver", PATH),
        sellers: &settings.sellers,
        chosen: n,
        url: url(settings, n),
        curl: subscription_call(settings, n).curl(settings),
        subscription,
        test,
        behaviour,
        list,
    };
    html(StatusCode::OK, &shown)
}

/// The button that makes a delivery again.
fn again(page: &SandboxPage, n: usize, subscription: &str, sent: &Sent) -> String {
    let path = format!("/v1/webhooks/{subscription}/deliveries/{}/redelivery", sent.id);
    let label = match sent.state() {
        ("waiting", _) => "Try now",
        _ => "Send again",
    };
    button(page, label, &Call::by_seller(n, Method::POST, path, Body::None))
}

fn button(page: &SandboxPage, label: &str, call: &Call) -> String {
    page.button(label, call, &[]).unwrap_or_default()
}

/// `POST /sandbox/receiver`: subscribes a seller's receiver to all events.
pub(crate) async fn subscribe(page: &SandboxPage, form: &Form) -> HttpResponse {
    let (n, _) = page.seller(form);
    let made = subscribed(page, n).await;
    page.shared.inbox.change(n, |receiver| match made {
        Ok(subscription) => {
            receiver.subscription = Some(subscription);
            receiver.sent.clear();
            receiver.alert.clear();
        }
        Err(sentence) => receiver.alert = sentence,
    });
    see_other(&format!("{PATH}?seller={n}"))
}

/// Deletes earlier subscriptions of the inbox, whose secrets may be lost, and makes a new one.
async fn subscribed(page: &SandboxPage, n: usize) -> Result<Subscription, String> {
    let settings = &page.shared.settings;
    let listed = page
        .shared
        .calls
        .read(settings, By::Seller(n), "/v1/webhooks".to_owned())
        .await;
    let all: Vec<Value> = list(&listed.and_then(accepted)?);
    let own_url = url(settings, n);
    for earlier in all.iter().filter(|webhook| text(webhook, "url") == own_url) {
        let path = format!("/v1/webhooks/{}", text(earlier, "id"));
        made(page, &Call::by_seller(n, Method::DELETE, path, Body::None)).await?;
    }
    let created = made(page, &subscription_call(settings, n)).await?.json();
    let secret = WebhookSecret::parse(text(&created, "secret").to_owned());
    let secret = secret.map_err(|error| format!("The API's secret {error}."))?;
    let id = text(&created, "id").to_owned();
    Ok(Subscription { id, secret })
}

fn subscription_call(settings: &Settings, n: usize) -> Call {
    let body = json!({ "url": url(settings, n), "events": WebhookEvent::ALL.map(WebhookEvent::as_str) });
    Call::by_seller(n, Method::POST, "/v1/webhooks", Body::Json(body))
}

fn url(settings: &Settings, n: usize) -> String {
    format!("{}/sandbox/inbox/{n}", settings.api_url)
}

/// `POST /sandbox/receiver/behaviour`: sets how a seller's receiver answers from now on.
pub(crate) fn behave(page: &SandboxPage, form: &Form) -> HttpResponse {
    let (n, _) = page.seller(form);
    let behaviour = form
        .get("behaviour")
        .and_then(Behaviour::parse)
        .unwrap_or_default();
    page.shared
        .inbox
        .change(n, |receiver| receiver.behaviour = behaviour);
    see_other(&format!("{PATH}?seller={n}"))
}

pub(crate) fn see_other(path: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((LOCATION, path)).finish()
}

/// Makes a call that has to succeed; else a sentence.
pub(crate) async fn made(page: &SandboxPage, call: &Call) -> Result<Answered, String> {
    page.shared
        .calls
        .make(&page.shared.settings, call)
        .await
        .and_then(accepted)
}

/// The answer if it is a success, else a sentence with the API's own words.
pub(crate) fn accepted(answered: Answered) -> Result<Answered, String> {
    if answered.is_success() {
        return Ok(answered);
    }
    let body = answered.json();
    let entries = body.get("errors").and_then(Value::as_array).into_iter().flatten();
    let words = entries.map(|entry| match text(entry, "path") {
        "" => text(entry, "message").to_owned(),
        path => format!("{path}: {}", text(entry, "message")),
    });
    let words = words.collect::<Vec<_>>().join(" ");
    Err(format!("The answer was {}. {words}", answered.status))
}

/// The `items` of an answer.
pub(crate) fn list<T: for<'a> Deserialize<'a>>(answered: &Answered) -> Vec<T> {
    let mut body = answered.json();
    let items = body.get_mut("items").map(Value::take);
    items
        .and_then(|items| serde_json::from_value(items).ok())
        .unwrap_or_default()
}

/// A string of an object; empty for none.
pub(crate) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
