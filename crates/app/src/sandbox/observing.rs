//! Fills the timeline of the sandbox's page: observes requests, deliveries and mails, and follows the event
//! journal and the change feed.

#[cfg(test)]
mod tests;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use accounts::{AccountMail, AccountReader};
use adapter_sandbox_page::{Kind, Row, SandboxSeller, Timeline};
use adapter_sealing::SystemClock;
use async_trait::async_trait;
use changes::{ChangeCursor, ChangeItem, ChangeReader, ChangesError, Detail, MAX_CHANGES, Topic};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{
    CURRENCY, Clock as _, MailId, Mailer, SellerId, SendError, StoreError, TransactionError, error_chain,
};
use orders::ShipmentMail;
use serde_json::{Deserializer, Value, json};
use tokio::sync::{Mutex, watch};
use web::Observer;
use web::access_log::AccessLine;
use web::observer::Bodies;
use web::path::is_under;
use webhooks::{
    Attempted, HostCheck, HostRefused, JournalPlace, JournalReader, JournalStart, JournaledEvent, MAX_EVENTS,
    Message, Outcome, Sent, WebhookEvent, WebhookSender, WebhookUrl,
};

use crate::external_services::{ExternalServices, Mailers, Receivers};
use crate::wiring::Shared;

/// How often journals and feed are looked at.
const PAUSE: Duration = Duration::from_millis(250);
const EVENTS: &[WebhookEvent] = &WebhookEvent::ALL;
/// The most sellers that are followed, and that pages show.
const MAX_SELLERS: u16 = 200;
/// Larger bodies are not searched for ids.
const MAX_SEARCHED_BODY: usize = 64 * 1024;
/// Not in the timeline: static files, the sandbox's page, the documentation.
const UNSEEN: [&str; 4] = ["/sandbox", "/docs", "/panel/assets", "/favicon.ico"];

/// Records what it observes. Clones share their timeline.
#[derive(Clone, Default)]
pub(super) struct Observing {
    pub(super) timeline: Timeline,
}

impl Observing {
    /// The same services, observed.
    pub(super) fn services(&self, external: ExternalServices) -> ExternalServices {
        let observed = |mailers| -> Arc<dyn Mailers> { Arc::new(Observed(mailers, self.clone())) };
        ExternalServices {
            mailer: external.mailer.map(observed),
            receivers: Arc::new(Observed(external.receivers, self.clone())),
            ..external
        }
    }

    /// Follows the journals of these sellers, of those that are registered meanwhile, and the change feed, from
    /// now on and until the tasks are stopped.
    pub(super) fn follow(&self, shared: &Shared, sellers: watch::Sender<Vec<SandboxSeller>>) {
        let database = shared.database.for_workers();
        let places = sellers.borrow().iter().map(|one| (one.id.into(), None)).collect();
        let feeds = Feeds {
            journals: database.journals(shared.config.retention.events.time_delta()),
            changes: database.change_reader(),
            timeline: self.timeline.clone(),
            accounts: database.sellers(),
            sellers,
            places,
            cursor: None,
        };
        let feeds = Arc::new(Mutex::new(feeds));
        shared.run_routine("timeline", None, feeds, Feeds::batch);
    }
}

/// A body to search for ids; null if it is large, or not JSON. The lines of an import are its items.
fn parsed(body: &[u8]) -> Value {
    if body.len() > MAX_SEARCHED_BODY {
        return Value::Null;
    }
    let values: Result<Vec<Value>, _> = Deserializer::from_slice(body).into_iter().collect();
    let mut values = values.unwrap_or_default();
    match values.len() {
        0 | 1 => values.pop().unwrap_or_default(),
        _ => json!({"items": values}),
    }
}

fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str()
}

fn list<'a>(object: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let items = object.get(name).and_then(Value::as_array);
    items.into_iter().flatten()
}

/// The ids of what an object is about: its own, and those that it refers to.
fn ids(object: &Value) -> impl Iterator<Item = &str> {
    let names = ["id", "order_id", "order_number", "offer_id", "client_id"];
    names.into_iter().filter_map(move |name| text(object, name))
}

impl Observer for Observing {
    fn request(&self, line: &AccessLine<'_>, bodies: &Bodies) {
        let uri = line.request.uri();
        let is_unseen = UNSEEN.iter().any(|part| is_under(uri.path(), part)) || uri.path() == "/";
        if !is_unseen {
            self.timeline.record(request(line, bodies, SystemClock.now()));
        }
    }
}

fn request(line: &AccessLine<'_>, bodies: &Bodies, now: DateTime<Utc>) -> Row {
    let (method, uri, status) = (line.request.method(), line.request.uri(), line.status);
    // The panel's addresses and forms have secrets, and its pages are for people.
    let is_panel = line.listener == "panel";
    let target = uri.path_and_query().map_or(uri.path(), |target| target.as_str());
    let target = if is_panel { line.route } else { target };
    let (asked, answered) = (parsed(&bodies.request), parsed(&bodies.response));
    let is_of_seller = line.route.starts_with("/sellers/{seller}");
    let of_path = line.ids().first().copied().filter(|_| is_of_seller);
    let named = [of_path, text(&asked, "seller_id"), text(&answered, "seller_id")];
    let named = || named.into_iter().flatten().find_map(|id| id.parse().ok());
    let seller = line.caller.seller.or_else(named);
    // A list is about none of the items in an answer.
    let items = || list(&asked, "items");
    let parts = list(&asked, "parts").chain(list(&answered, "parts"));
    let sellers = items().chain(parts).filter_map(|part| text(part, "seller_id"));
    let sellers: HashSet<SellerId> = sellers.filter_map(|seller| seller.parse().ok()).collect();
    let items = items().filter_map(|item| text(item, "id"));
    let of_bodies = ids(&asked).chain(items).chain(ids(&answered));
    let all = line.ids().into_iter().chain(of_bodies);
    let mut known = HashSet::new();
    let ids = all.filter(|id| known.insert(*id)).map(str::to_owned).collect();
    let body = |body: &[u8]| match body.first() {
        Some(b'<') | None => String::new(),
        Some(_) if is_panel => String::new(),
        Some(_) => Row::text(body),
    };
    let error = line
        .refusal
        .map_or_else(String::new, |refusal| format!(" {}", refusal.error));
    Row {
        seller,
        sellers: sellers.into_iter().collect(),
        application: line.caller.client_id.map(|client_id| client_id.to_string()),
        ids,
        trace_id: Some(line.trace_id.as_str().to_owned()),
        is_write: !method.is_safe() && status.as_u16() < 400,
        outcome: format!("{}{error} in {} ms", status.as_u16(), line.duration.as_millis()),
        failed: status.as_u16() >= 400,
        body: body(&bodies.request),
        answer: body(&bodies.response),
        ..Row::new(
            Kind::Request,
            before(now, line.duration),
            format!("{method} {target}"),
        )
    }
}

fn before(now: DateTime<Utc>, took: Duration) -> DateTime<Utc> {
    now - TimeDelta::from_std(took).unwrap_or_default()
}

/// A service, and who observes it.
struct Observed<T: ?Sized>(Arc<T>, Observing);

#[async_trait]
impl WebhookSender for Observed<dyn Receivers> {
    async fn send(&self, message: &Message) -> Sent {
        let Self(receivers, observing) = self;
        let sent = receivers.send(message).await;
        if let Sent::Attempted(attempted) = &sent {
            observing
                .timeline
                .record(attempt(message, attempted, SystemClock.now()));
        }
        sent
    }
}

#[async_trait]
impl HostCheck for Observed<dyn Receivers> {
    async fn check(&self, url: &WebhookUrl) -> Result<(), HostRefused> {
        self.0.check(url).await
    }
}

fn attempt(message: &Message, attempted: &Attempted, now: DateTime<Utc>) -> Row {
    let delivered = parsed(&message.body);
    let occurred_at = text(&delivered, "occurred_at").and_then(|at| at.parse().ok());
    let data = delivered.get("data").unwrap_or(&Value::Null);
    let outcome = match &attempted.outcome {
        Outcome::Answered(status) => status.to_string(),
        Outcome::Failed(failure) => failure.to_string(),
    };
    let delivery = message.delivery.to_string();
    Row {
        caused_at: occurred_at.unwrap_or(now),
        seller: text(data, "seller_id").and_then(|seller| seller.parse().ok()),
        application: Some(message.application.to_string()),
        ids: ids(data).chain([delivery.as_str()]).map(str::to_owned).collect(),
        delivery: Some(delivery),
        outcome: format!("{outcome} in {} ms", attempted.duration_ms()),
        failed: !attempted.outcome.is_success(),
        body: Row::text(&message.body),
        ..Row::new(
            Kind::Attempt,
            before(now, attempted.duration),
            format!("{} → {}", message.event.as_str(), message.url),
        )
    }
}

#[async_trait]
impl Mailer<ShipmentMail> for Observed<dyn Mailers> {
    async fn send(&self, mail: &ShipmentMail) -> Result<(), SendError> {
        let outcome = Mailer::<ShipmentMail>::send(&*self.0, mail).await;
        let what = if mail.is_correction {
            "corrected shipment"
        } else {
            "shipment"
        };
        let title = format!("{what} mail to the buyer of {}", mail.number.as_str());
        let row = Row {
            ids: vec![mail.order.to_string(), mail.number.as_str().to_owned()],
            ..Row::new(Kind::Mail, SystemClock.now(), title)
        };
        self.1.mail(mail.id, row, &outcome);
        outcome
    }
}

#[async_trait]
impl Mailer<AccountMail> for Observed<dyn Mailers> {
    async fn send(&self, mail: &AccountMail) -> Result<(), SendError> {
        let outcome = Mailer::<AccountMail>::send(&*self.0, mail).await;
        let title = format!("{} mail to a seller", mail.kind.as_str());
        let row = Row {
            seller: Some(mail.seller),
            ids: vec![mail.seller.to_string()],
            ..Row::new(Kind::Mail, SystemClock.now(), title)
        };
        self.1.mail(mail.id, row, &outcome);
        outcome
    }
}

impl Observing {
    fn mail(&self, id: MailId, row: Row, outcome: &Result<(), SendError>) {
        self.timeline.record(Row {
            caused_at: queued_at(id).unwrap_or(row.at),
            outcome: outcome
                .as_ref()
                .map_or_else(|error| error_chain(error), |()| "sent".to_owned()),
            failed: outcome.is_err(),
            link: outcome.is_ok().then(|| format!("/sandbox/mail/{id}")),
            ..row
        });
    }
}

/// The id's time (UUIDv7), rounded up to the next millisecond.
fn queued_at(id: MailId) -> Option<DateTime<Utc>> {
    let (seconds, nanoseconds) = id.uuid().get_timestamp()?.to_unix();
    let began = DateTime::from_timestamp(seconds.try_into().ok()?, nanoseconds)?;
    Some(began + TimeDelta::milliseconds(1))
}

/// The journals and the change feed.
struct Feeds {
    journals: Arc<dyn JournalReader>,
    changes: Arc<dyn ChangeReader>,
    timeline: Timeline,
    accounts: Arc<dyn AccountReader>,
    sellers: watch::Sender<Vec<SandboxSeller>>,
    /// How far each seller's journal was read; none before it was read to its end.
    places: HashMap<SellerId, Option<JournalPlace>>,
    cursor: Option<ChangeCursor>,
}

impl Feeds {
    async fn batch(feeds: Arc<Mutex<Self>>) -> Result<Duration, TransactionError> {
        feeds.lock().await.look().await?;
        Ok(PAUSE)
    }

    /// Records what is new. At first nothing is: the timeline begins with the process.
    async fn look(&mut self) -> Result<(), StoreError> {
        let is_first = self.cursor.is_none();
        // Numbers may be committed out of their order.
        for new in self.accounts.sellers(0, MAX_SELLERS).await? {
            let Entry::Vacant(place) = self.places.entry(new.id) else {
                continue;
            };
            place.insert(None);
            let new = SandboxSeller {
                id: new.id.uuid(),
                seller_no: new.seller_no,
                email: new.email,
                password: String::new(),
                personal_token: String::new(),
            };
            self.sellers.send_modify(|all| all.push(new));
        }
        let sellers: Vec<_> = self.places.keys().copied().collect();
        let last = self.journals.last_numbers(&sellers).await?;
        for (seller, place) in &mut self.places {
            let last = last.get(seller).copied().unwrap_or_default();
            let mut names = if is_first { &[] } else { EVENTS };
            while place.is_none_or(|place| place.number < last) {
                let start = place.map_or(JournalStart::Oldest, JournalStart::After);
                let Ok(page) = self
                    .journals
                    .page((*seller).into(), start, names, MAX_EVENTS)
                    .await?
                else {
                    // After a restore, it goes on at the journal's end.
                    *place = None;
                    names = &[];
                    continue;
                };
                *place = Some(page.place);
                for found in &page.events {
                    self.timeline.record(event(*seller, found));
                }
                if !page.has_more {
                    break;
                }
            }
        }
        loop {
            let page = match self.changes.changes(self.cursor.clone(), MAX_CHANGES).await {
                Ok(page) => page,
                Err(ChangesError::Store(error)) => return Err(error),
                Err(ChangesError::Malformed | ChangesError::OtherHistory) => {
                    self.cursor = None;
                    return Ok(());
                }
            };
            self.cursor = Some(page.next);
            for item in page.items.iter().filter(|_| !is_first) {
                self.timeline.record(change(item));
            }
            if page.items.is_empty() {
                return Ok(());
            }
        }
    }
}

fn event(seller: SellerId, found: &JournaledEvent) -> Row {
    let data = serde_json::to_vec(&found.event.data(found.id)).unwrap_or_default();
    Row {
        seller: Some(seller),
        ids: ids(&parsed(&data)).map(str::to_owned).collect(),
        body: Row::text(&data),
        ..Row::new(Kind::Event, found.occurred_at, found.event.name.as_str())
    }
}

fn change(item: &ChangeItem) -> Row {
    let (topic, id) = match item.topic {
        Topic::Offer(id) => ("offer_id", id.to_string()),
        Topic::Order(id) => ("order_id", id.to_string()),
        Topic::Application(id) => ("client_id", id.to_string()),
    };
    let (outcome, value) = match item.detail {
        Detail::Price(price) => {
            let amount = price.amount();
            let shown = format!("{}.{:02} {CURRENCY}", amount / 100, amount % 100);
            let value = json!({ "amount": amount, "currency": CURRENCY });
            (shown, Some(("price", value)))
        }
        Detail::Stock(stock) => {
            let shown = format!("{} in stock", stock.get());
            (shown, Some(("stock", json!(stock.get()))))
        }
        Detail::Status(status) => {
            let status = status.as_str();
            (status.to_owned(), Some(("status", json!(status))))
        }
        Detail::Nothing => (String::new(), None),
    };
    let fields = [
        ("kind", json!(item.kind.as_str())),
        ("seller_id", json!(item.seller.uuid())),
        (topic, json!(id)),
        ("at", json!(item.at)),
    ];
    let body: BTreeMap<_, _> = fields.into_iter().chain(value).collect();
    Row {
        seller: Some(item.seller),
        application: (topic == "client_id").then(|| id.clone()),
        ids: vec![id],
        outcome,
        body: json!(body).to_string(),
        ..Row::new(Kind::Change, item.at, item.kind.as_str())
    }
}
