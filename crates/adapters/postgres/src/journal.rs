//! Reading the event journal; its rows are written with the deliveries: see `outbox.sql`.

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use kernel::{Reader, SellerId, StoreError};
use usecases::LockSet;
use uuid::Uuid;
use webhooks::{
    Event, EventId, JournalPage, JournalPlace, JournalReader, JournalRefusal, JournalStart, JournalState,
    JournaledEvent, MAX_EVENTS, MAX_LOOKED_AT, Subject, WebhookEvent,
};

use crate::connection::pool::Autocommit;
use crate::schema;
use crate::sql::column;
use crate::statement::statements;

statements! {
    "journal.sql";
    /// The state of the journal, or an event of the page, unsorted.
    PAGE: (
        SqlUuid, Nullable<BigInt>, Nullable<Timestamptz>, Array<Text>, BigInt, BigInt
    ) -> (Option<StateRow>, Option<EventRow>);
    LAST_NUMBERS: (Array<SqlUuid>) -> LastNumber;
}

#[derive(QueryableByName)]
struct StateRow {
    #[diesel(sql_type = BigInt)]
    last: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    oldest: Option<i64>,
    /// The event at which the page begins.
    #[diesel(sql_type = Nullable<SqlUuid>)]
    present: Option<Uuid>,
    #[diesel(sql_type = Timestamptz)]
    at: DateTime<Utc>,
    /// When the journals began, or the time before which events were cleared.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    begun_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = BigInt)]
    start: i64,
    /// The last event that was looked at.
    #[diesel(sql_type = Nullable<SqlUuid>)]
    ended: Option<Uuid>,
}

#[derive(QueryableByName)]
#[diesel(table_name = schema::journal)]
struct EventRow {
    number: i64,
    id: Uuid,
    event: String,
    occurred_at: DateTime<Utc>,
    order_id: Option<Uuid>,
    order_number: Option<String>,
    offer_id: Option<Uuid>,
}

#[derive(QueryableByName)]
#[diesel(table_name = schema::journals)]
struct LastNumber {
    seller_id: Uuid,
    last_number: i64,
}

impl EventRow {
    fn read(self, seller: SellerId) -> Result<JournaledEvent, StoreError> {
        let row = self;
        let corrupt = |reason: String| StoreError::corrupt("journal", row.id, reason);
        let name =
            WebhookEvent::parse(&row.event).ok_or_else(|| corrupt(format!("event {:?}", row.event)))?;
        let subject = match (row.order_id, row.order_number, row.offer_id) {
            (Some(order_id), Some(order_number), None) => Subject::Order {
                order_id,
                order_number,
            },
            (None, None, Some(offer_id)) => Subject::Offer { offer_id },
            _ => return Err(corrupt("not one subject".to_owned())),
        };
        Ok(JournaledEvent {
            id: row.id.into(),
            event: Event::recorded(seller, name, subject),
            occurred_at: row.occurred_at,
        })
    }
}

/// The columns of an event's subject: order, its number, offer.
pub(crate) fn subject(event: &Event) -> (Option<Uuid>, Option<&str>, Option<Uuid>) {
    match event.subject() {
        Subject::Order {
            order_id,
            order_number,
        } => (Some(*order_id), Some(order_number), None),
        Subject::Offer { offer_id } => (None, None, Some(*offer_id)),
        // The table refuses a row without a subject.
        Subject::Connection { .. } => (None, None, None),
    }
}

/// The journals of all sellers.
pub(crate) struct Journals {
    pub(crate) statements: Autocommit,
    /// How long events are kept.
    pub(crate) kept_for: TimeDelta,
}

#[async_trait]
impl JournalReader for Journals {
    async fn page(
        &self,
        reader: Reader,
        start: JournalStart,
        names: &[WebhookEvent],
        limit: u16,
    ) -> Result<Result<JournalPage, JournalRefusal>, StoreError> {
        let (seller, limit) = (reader.seller, limit.clamp(1, MAX_EVENTS));
        let (after, since) = match start {
            JournalStart::Oldest => (None, None),
            JournalStart::After(place) => (Some(place.number), None),
            JournalStart::Since(at) => (None, Some(at)),
        };
        let names = column(names, |name| name.as_str());
        let (one_more, looked_at) = (i64::from(limit) + 1, i64::from(MAX_LOOKED_AT));
        let page = PAGE.bind((seller.uuid(), after, since, names, one_more, looked_at));
        let (mut state, mut rows) = (None, Vec::new());
        let shares = LockSet::of_reader(reader);
        for (of_journal, event) in self.statements.sharing(shares).rows(page).await? {
            state = state.or(of_journal);
            rows.extend(event);
        }
        rows.sort_by_key(|row| row.number);
        let Some(found) = state else {
            return Err(StoreError::unexpected("the journal's query returned no row"));
        };
        let (at, present) = (found.at, found.present.map(EventId::from));
        let state = JournalState {
            last: found.last,
            oldest: found.oldest,
        };
        let kept_since = at - self.kept_for;
        let begins = found.begun_at.map_or(kept_since, |begun| begun.max(kept_since));
        let judged = match start {
            // What is older was given out by a journal that a restore has ended, or is not followed by all events.
            JournalStart::After(place) => state.admits(place, present, begins),
            JournalStart::Since(since) if since < begins => Err(JournalRefusal::TooOld(begins)),
            JournalStart::Oldest | JournalStart::Since(_) => Ok(()),
        };
        if let Err(refusal) = judged {
            return Ok(Err(refusal));
        }
        let end = state.last.min(found.start.saturating_add(looked_at));
        let most = usize::from(limit);
        let has_more = end < state.last || rows.len() > most;
        rows.truncate(most);
        // A full page with more behind it ends with its last event, another one with the last that was looked at.
        let (number, event) = match rows.last() {
            Some(last) if has_more && rows.len() == most => (last.number, Some(last.id)),
            _ => (end, found.ended),
        };
        let event = event.map(EventId::from);
        let events = rows.into_iter().map(|row| row.read(seller));
        Ok(Ok(JournalPage {
            events: events.collect::<Result<_, _>>()?,
            place: JournalPlace { number, event, at },
            has_more,
        }))
    }

    async fn last_numbers(&self, sellers: &[SellerId]) -> Result<HashMap<SellerId, i64>, StoreError> {
        let sellers = column(sellers, |seller| seller.uuid());
        let rows = self.statements.rows(LAST_NUMBERS.bind((sellers,))).await?;
        let numbers = rows
            .into_iter()
            .map(|row| (row.seller_id.into(), row.last_number));
        Ok(numbers.collect())
    }
}
