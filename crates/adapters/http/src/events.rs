//! `GET /v1/events`: the seller's event journal, by cursor; waits for an event where there is none.

mod waiting;

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::Method;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::DateTime;
use kernel::{SealPurpose, Sealer, SellerId, StoreError};
use oauth::{Principal, Scope};
use tokio::select;
use tokio::time::{Instant, sleep_until, timeout_at};
use uuid::Uuid;
use web::deadline::Deadline;
use web::openapi::{Docs, JsonBody, Parameter};
use web::operation::{Call, Incoming, Read};
use web::problem::to_sentence;
use web::query::{self, Selection};
use web::reply::Reply;
use web::schema::{Node, array, boolean, date_time, open_object, string, uuid};
use web::timestamps::Timestamp;
use web::view::View;
use web::{Entry, Error, Problem, Violations};
use webhooks::{
    DEFAULT_EVENTS, JournalPage, JournalPlace, JournalRefusal, JournalStart, JournaledEvent, MAX_EVENTS,
    WebhookEvent,
};

use crate::Public;
use crate::documents::{docs, example};
use crate::page;
use crate::webhooks::event;

pub use waiting::Waiting;

/// The path of the journal, which has a limit of its own.
pub(crate) const PATH: &str = "/v1/events";
/// Requests a minute of an application and seller.
pub(crate) const LIMIT: u32 = 60;
/// The longest wait, in seconds.
const MAX_WAIT: u16 = 30;
/// The shortest time between the readings of one request.
const LEAST_WAIT: Duration = Duration::from_secs(1);
/// The message for a cursor that does not open.
const REFUSED: &str = "Not a cursor of this seller's journal: send the `cursor` of an earlier answer.";

pub(crate) struct ListEvents {
    start: JournalStart,
    limit: u16,
    wait: Duration,
}

impl Read<Public> for ListEvents {
    const SCOPE: &'static [Scope] = &[Scope::OrdersRead, Scope::OffersRead];
    const NEEDS_FINISHED: bool = true;
    const OWN_DEADLINE: bool = true;
    const FIELDS: &'static [&'static str] = EventView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        response: Some(JsonBody::new(EventPage::schema, example!("events"))),
        ..docs!("listEvents", "Events")
    });
    const QUERY: &'static [Parameter] = &[
        page::AFTER,
        Parameter::new("since", date_time),
        page::LIMIT,
        Parameter::new("wait", || {
            Node::of([("type", "integer".into()), ("default", 0.into())])
        }),
        query::FIELDS,
    ];

    fn decode(incoming: &Incoming<'_>, call: &Call<Public>) -> Result<Option<Self>, Violations> {
        let (keys, seller) = (call.state.sealer.as_ref(), call.caller.seller);
        let waits = incoming.head.method != Method::HEAD;
        incoming.query(|query| {
            let after = query.parsed("after", |text| open(keys, seller, text).ok_or(REFUSED));
            let since = query.date_time("since");
            let start = match (after, since) {
                (Some(_), Some(_)) => {
                    query.refuse("since", "Send `after` or `since`, not both.");
                    JournalStart::Oldest
                }
                (Some(place), None) => JournalStart::After(place),
                (None, Some(at)) => JournalStart::Since(at),
                (None, None) => JournalStart::Oldest,
            };
            let wait = query.clamped("wait", 0..=MAX_WAIT, 0);
            Some(Self {
                start,
                limit: query.clamped("limit", 1..=MAX_EVENTS, DEFAULT_EVENTS),
                wait: Duration::from_secs(if waits { wait.into() } else { 0 }),
            })
        })
    }

    /// The first page with an event, or an empty one once the time is over, too many wait, or the process is
    /// asked to stop. A reader that disconnects keeps its place until then: one that has only ended its side of the
    /// connection gets its answer.
    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let until = Instant::now() + self.wait;
        let state = Arc::clone(&call.state);
        let mut start = self.start;
        let mut page = self.page(&call, &call.caller, start, call.deadline).await?;
        if page.is_empty()
            && !self.wait.is_zero()
            && let Some(mut place) = state.waiting.enter(call.caller.client_id, call.caller.seller)
        {
            while page.is_empty() && Instant::now() < until {
                let read_at = Instant::now();
                let (seen, least) = (
                    place.event_after(page.place.number),
                    (read_at + LEAST_WAIT).min(until),
                );
                let waited = async {
                    timeout_at(until, seen).await.unwrap_or(Ok(()))?;
                    sleep_until(least).await;
                    Ok::<_, StoreError>(())
                };
                select! {
                    waited = waited => waited?,
                    () = state.ports.tasks.stopping() => break,
                }
                // A place is judged by its age. Waiting here does not age it.
                page.place.at += read_at.elapsed();
                start = JournalStart::After(page.place);
                let deadline = Deadline::of_request(Instant::now());
                page = self.page(&call, &call.caller, start, deadline).await?;
            }
            // The token may have ended, or lost scopes, meanwhile.
            let deadline = Deadline::of_request(Instant::now());
            let known = deadline.run(state.gate.look_up(call.caller.token)).await??;
            let unauthorized = |_| Problem::unauthorized(&state.ports.service.realm, "access token");
            let caller = known.map_err(unauthorized)?;
            if names(&caller) != names(&call.caller) {
                page = self.page(&call, &caller, start, deadline).await?;
            }
        }
        let cursor = seal(state.sealer.as_ref(), call.caller.seller, page.place);
        Reply::ok(&EventPage::whole((&page, call.fields, &cursor)))
    }
}

impl ListEvents {
    async fn page(
        &self,
        call: &Call<Public>,
        caller: &Principal,
        start: JournalStart,
        deadline: Deadline,
    ) -> Result<JournalPage, Error> {
        let names = names(caller);
        if names.is_empty() {
            let realm = &call.state.ports.service.realm;
            return Err(Problem::insufficient_scope(Scope::OrdersRead.as_str(), realm).into());
        }
        let journals = call.state.waiting.journals();
        let page = journals.page(caller.reader(), start, &names, self.limit);
        let page = deadline.run(page).await??;
        page.map_err(|refusal| {
            let path = match refusal {
                JournalRefusal::UnknownPlace | JournalRefusal::NoLongerKept => "after",
                JournalRefusal::TooOld(_) => "since",
            };
            Problem::from(Entry::validation(path, to_sentence(&refusal))).into()
        })
    }
}

/// The events that a caller may see.
fn names(principal: &Principal) -> Vec<WebhookEvent> {
    let may = |name: &WebhookEvent| match name {
        WebhookEvent::OrderCreated
        | WebhookEvent::OrderPaid
        | WebhookEvent::OrderShipped
        | WebhookEvent::OrderDelivered
        | WebhookEvent::OrderCancelled => principal.may(Scope::OrdersRead),
        WebhookEvent::OfferRejected => principal.may(Scope::OffersRead),
        // No journal has it.
        WebhookEvent::ConnectionEnded => false,
    };
    WebhookEvent::ALL.into_iter().filter(may).collect()
}

web::view! {
    EventView<'a> of event: &'a JournaledEvent, named "JournaledEvent", "An event of the journal." {
        "id": uuid().describe("The same as `event_id` in the bodies of webhooks.") => event.id.uuid(),
        "event": event() => event.event.name.as_str(),
        "occurred_at": date_time() => Timestamp::new(event.occurred_at),
        "data": data() => event.event.data(event.id),
    }
}

/// Only ids, of an order or an offer.
fn data() -> Node {
    let of = |thing| uuid().describe(thing);
    open_object(
        [
            ("order_id", of("In events of orders.")),
            ("order_number", string().describe("In events of orders.")),
            ("offer_id", of("In events of offers.")),
            (
                "seller_id",
                uuid().describe("The seller whose event it is, as in `GET /v1/me`."),
            ),
            ("event_id", uuid()),
        ],
        &["seller_id", "event_id"],
    )
    .describe("Only ids, never personal data. More fields may be added.")
    .named("JournaledEventData")
}

web::view! {
    EventPage<'a> of (page, fields, cursor): (&'a JournalPage, Selection, &'a str), named "EventPage" {
        "items": array(EventView::schema())
            => page.events.iter().map(|event| EventView::new(event, *fields)).collect::<Vec<_>>(),
        "cursor": string().describe("Where the next call begins, to be sent as `after`. It moves also where there is no event.")
            => cursor,
        "has_more": boolean().describe("Whether the journal goes on behind it already.") => page.has_more,
    }
}

/// What a cursor is bound to.
fn bound_to(seller: SellerId) -> Vec<u8> {
    [b"events\0", seller.uuid().as_bytes().as_slice()].concat()
}

fn seal(keys: &dyn Sealer, seller: SellerId, place: JournalPlace) -> String {
    let mut plain = place.number.to_be_bytes().to_vec();
    plain.extend_from_slice(&place.at.timestamp_micros().to_be_bytes());
    plain.extend(place.event.iter().flat_map(|event| event.uuid().into_bytes()));
    URL_SAFE_NO_PAD.encode(keys.seal(SealPurpose::Cursor, &bound_to(seller), &plain))
}

fn open(keys: &dyn Sealer, seller: SellerId, text: &str) -> Option<JournalPlace> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let plain = keys.open(SealPurpose::Cursor, &bound_to(seller), &bytes).ok()?;
    let (number, rest) = plain.split_first_chunk::<8>()?;
    let (at, event) = rest.split_first_chunk::<8>()?;
    let event = match event {
        [] => None,
        event => Some(Uuid::from_slice(event).ok()?.into()),
    };
    Some(JournalPlace {
        number: i64::from_be_bytes(*number),
        event,
        at: DateTime::from_timestamp_micros(i64::from_be_bytes(*at))?,
    })
}
