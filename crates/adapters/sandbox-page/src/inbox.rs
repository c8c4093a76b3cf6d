//! The built-in receiver of webhooks: an inbox for each seller of the sandbox.

use std::collections::{HashMap, VecDeque};
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use askama::Template;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::stream;
use parking_lot::Mutex;
use reqwest::Method;
use serde_json::json;
use tokio::select;
use tokio::time::sleep;
use web::Tasks;
use web::form::Form;
use web::request::Request;
use webhooks::{
    Delivery, DeliveryFilter, DeliveryId, Outcome, SubscriptionId, WebhookEvent, WebhookSecret, signature,
    standard_signature,
};

use crate::calls::{Body, By, Call, text};
use crate::pages::{Frame, Shown, html, see_other, unread};
use crate::{BODY_LIMITS, SandboxPage, Settings, unread_body};

/// Deliveries that an inbox keeps, and bytes of a body.
const KEPT: usize = 50;
const KEPT_BODY: usize = 4 * 1024;
/// The most that is kept of a header, in bytes.
const KEPT_HEADER: usize = 1024;
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
    async fn answer(self, tasks: &Tasks, is_verified: bool) -> HttpResponse {
        let waits = match self {
            Self::Slow => Duration::from_secs(3),
            // Longer than an attempt.
            Self::Silent => Duration::from_mins(1),
            Self::Accept | Self::Fail | Self::Close => Duration::ZERO,
        };
        select! {
            () = sleep(waits) => {}
            () = tasks.stopping() => {}
        }
        match self {
            Self::Fail => HttpResponse::InternalServerError().finish(),
            // A body that fails at once: actix-http ends the connection without sending the head.
            Self::Silent | Self::Close => {
                let error = io::Error::from(io::ErrorKind::ConnectionAborted);
                HttpResponse::Ok().streaming(stream::once(ready(Err::<Bytes, _>(error))))
            }
            Self::Accept | Self::Slow if is_verified => HttpResponse::NoContent().finish(),
            Self::Accept | Self::Slow => HttpResponse::Unauthorized().finish(),
        }
    }

    /// The answer for people.
    fn answered(self, is_verified: bool) -> &'static str {
        match self {
            Self::Accept if is_verified => "204",
            Self::Slow if is_verified => "204 after 3 s",
            Self::Accept | Self::Slow => "401",
            Self::Fail => "500",
            Self::Silent => "none",
            Self::Close => "none, closed",
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
    let standard = delivery.map(|id| standard_signature(secret, id, seconds, body));
    let standard = standard.unwrap_or_default();
    let (signatures, length) = (header("webhook-signature"), body.len());
    let place = signatures.split(' ').position(|one| one == standard);
    let (n, all) = (place.map_or(0, |n| n + 1), signatures.split(' ').count());
    let is_hmac = format!("It is the HMAC-SHA256 of the body's {length} bytes under the secret: {computed}");
    let is_recent = format!("webhook-timestamp is at most 5 minutes off: {timestamp} was {age} s ago.");
    let has_one = format!(
        "webhook-signature signs “{id}.{timestamp}.” and the body, as number {n} of {all}: {standard}"
    );
    vec![
        (!sent.is_empty(), "X-Signature is there.".to_owned()),
        (sent.starts_with("sha256="), "It begins with sha256=.".to_owned()),
        (sent == computed, is_hmac),
        (delivery.is_some(), format!("webhook-id is an id: {id}")),
        (age.unsigned_abs() <= 300, is_recent),
        (delivery.is_some() && n > 0, has_one),
    ]
}

fn text_of(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).map_or(&[][..], HeaderValue::as_bytes);
    String::from_utf8_lossy(value).into_owned()
}

/// A request that came to an inbox.
struct Received {
    at: DateTime<Utc>,
    event: String,
    delivery: String,
    /// Headers and the beginning of the body.
    content: String,
    checks: Vec<Check>,
    is_verified: bool,
    behaviour: Behaviour,
}

#[derive(Clone)]
struct Subscription {
    id: SubscriptionId,
    secret: WebhookSecret,
}

#[derive(Clone, Default)]
struct Receiver {
    subscription: Option<Subscription>,
    behaviour: Behaviour,
    /// The newest first.
    received: VecDeque<Arc<Received>>,
}

/// The receivers, by their sellers' places in the settings.
#[derive(Default)]
pub(crate) struct Inbox(Mutex<HashMap<usize, Receiver>>);

impl Inbox {
    fn with<T>(&self, n: usize, work: impl FnOnce(&mut Receiver) -> T) -> T {
        work(self.0.lock().entry(n).or_default())
    }

    /// Keeps a delivery. Returns how to answer, and whether it is verified.
    fn add(&self, n: usize, headers: &HeaderMap, body: &[u8], now: DateTime<Utc>) -> (Behaviour, bool) {
        let line = |name: &HeaderName| {
            let mut value = text_of(headers, name.as_str());
            value.truncate(value.floor_char_boundary(KEPT_HEADER));
            format!("{name}: {value}\n")
        };
        let mut lines: Vec<_> = headers.keys().map(line).collect();
        lines.sort();
        let kept = String::from_utf8_lossy(body.get(..KEPT_BODY).unwrap_or(body));
        let content = format!("{}\n{kept}", lines.concat());
        self.with(n, |receiver| {
            let checks = match &receiver.subscription {
                Some(subscription) => verify(&subscription.secret, headers, body, now),
                None => vec![(false, "The secret is known: subscribe to see it.".to_owned())],
            };
            let (behaviour, is_verified) = (receiver.behaviour, checks.iter().all(|(holds, _)| *holds));
            let [event, delivery] = ["x-event", "x-delivery-id"].map(|name| text_of(headers, name));
            let received = Received {
                at: now,
                event,
                delivery,
                content,
                checks,
                is_verified,
                behaviour,
            };
            receiver.received.push_front(Arc::new(received));
            receiver.received.truncate(KEPT);
            (behaviour, is_verified)
        })
    }
}

/// `POST /sandbox/inbox/{n}`: a delivery.
pub(crate) async fn receive(page: &SandboxPage, n: usize, request: &mut Request) -> HttpResponse {
    let settings = &page.settings;
    match request.body(BODY_LIMITS).await {
        _ if n >= settings.sellers.len() => HttpResponse::NotFound().finish(),
        Ok(body) => {
            let now = settings.clock.now();
            let (behaviour, is_verified) = page.inbox.add(n, request.headers(), &body, now);
            behaviour.answer(&settings.tasks, is_verified).await
        }
        Err(error) => unread_body(error),
    }
}

#[derive(Template)]
#[template(path = "receiver.html")]
struct ReceiverPage<'a> {
    frame: Frame,
    page: &'a SandboxPage,
    n: usize,
    receiver: Receiver,
    /// The newest first.
    deliveries: Vec<Delivery>,
    alert: String,
}

impl ReceiverPage<'_> {
    fn curl(&self) -> String {
        let settings = &self.page.settings;
        subscription(settings, self.n).keyed(settings).curl(settings)
    }

    /// How the last attempt ended, for people; empty if there was none.
    fn outcome(sent: &Delivery) -> String {
        match sent.outcome() {
            None => String::new(),
            Some(Outcome::Answered(status)) => format!(" · last answer: {status}"),
            Some(Outcome::Failed(failure)) => format!(" · last failure: {failure}"),
        }
    }

    /// The button of a POST by the seller.
    fn button(&self, label: &str, path: String) -> String {
        let call = Call::new(By::Seller(self.n), Method::POST, path, Body::None);
        self.page.button(label, call, &[])
    }
}

/// `GET /sandbox/receiver`: a seller's receiver.
pub(crate) async fn receiver(page: &SandboxPage, query: &Form) -> Shown {
    show(page, query, String::new()).await
}

async fn show(page: &SandboxPage, query: &Form, alert: String) -> Shown {
    let (n, seller) = page.seller(query);
    let receiver = page.inbox.with(n, |receiver| receiver.clone());
    let deliveries = match (seller, &receiver.subscription) {
        (Some(seller), Some(own)) => {
            let filter = DeliveryFilter {
                subscription: Some(own.id),
                ..DeliveryFilter::default()
            };
            let reader = &page.settings.subscriptions;
            let sent = reader.deliveries_of_seller(seller.id, filter, None, LISTED).await;
            sent.map_err(|error| unread(&error))?
        }
        _ => Vec::new(),
    };
    let shown = ReceiverPage {
        frame: page.frame("Receiver"),
        page,
        n,
        receiver,
        deliveries: deliveries.into_iter().map(|sent| sent.delivery).collect(),
        alert,
    };
    Ok(html(&shown))
}

/// `POST /sandbox/receiver`: subscribes a seller's receiver to all events.
pub(crate) async fn subscribe(page: &SandboxPage, form: &Form) -> Shown {
    let (n, inbox) = (page.seller(form).0, &page.inbox);
    match subscribed(page, n).await {
        Ok(made) => inbox.with(n, |receiver| receiver.subscription = Some(made)),
        Err(sentence) => return show(page, form, sentence).await,
    }
    Ok(see_other(&format!("/sandbox/receiver?seller={n}")))
}

/// Deletes the inbox's earlier subscriptions, whose secrets may be lost, and makes one.
async fn subscribed(page: &SandboxPage, n: usize) -> Result<Subscription, String> {
    let (settings, own_url) = (&page.settings, url(&page.settings, n));
    let seller = settings.sellers.get(n).ok_or("The sandbox has no sellers.")?;
    let all = settings
        .subscriptions
        .subscriptions_of_seller(seller.id, None, u16::MAX)
        .await;
    for earlier in all.map_err(|error| unread(&error))? {
        if earlier.subscription.url.as_str() == own_url {
            let path = format!("/v1/webhooks/{}", earlier.subscription.id);
            let deletion = Call::new(By::Seller(n), Method::DELETE, path, Body::None);
            let deleted = page.make(&deletion).await?;
            // 404: another application made it.
            if deleted.status != 404 {
                deleted.accepted()?;
            }
        }
    }
    let created = page.make(&subscription(settings, n)).await?.accepted()?.json();
    let id = text(&created, "id").parse::<SubscriptionId>();
    let secret = WebhookSecret::parse(text(&created, "secret").to_owned());
    Ok(Subscription {
        id: id.map_err(|error| format!("The id {error}."))?,
        secret: secret.map_err(|error| format!("The secret {error}."))?,
    })
}

fn subscription(settings: &Settings, n: usize) -> Call {
    let body = json!({ "url": url(settings, n), "events": WebhookEvent::ALL.map(WebhookEvent::as_str) });
    Call::new(By::Seller(n), Method::POST, "/v1/webhooks", Body::Json(body))
}

fn url(settings: &Settings, n: usize) -> String {
    format!("{}/sandbox/inbox/{n}", settings.api_url)
}

/// `POST /sandbox/receiver/behaviour`: sets how a seller's receiver answers from now on.
pub(crate) fn behave(page: &SandboxPage, form: &Form) -> HttpResponse {
    let (n, inbox) = (page.seller(form).0, &page.inbox);
    let chosen = form.get("behaviour").and_then(Behaviour::parse);
    inbox.with(n, |receiver| receiver.behaviour = chosen.unwrap_or_default());
    see_other(&format!("/sandbox/receiver?seller={n}"))
}

#[cfg(test)]
mod tests;
