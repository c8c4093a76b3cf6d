//! Deliveries: one for each event and each subscription to it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::sql_types::{Array, Binary, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{SellerId, StoreError};
use uuid::Uuid;
use webhooks::Event;

use crate::{error::store_error, pending::Write, statement::statement};

/// Queues the deliveries of a seller's events, and wakes the lanes that sleep.
///
/// - A subscription hears of it while it is active and its application neither suspended nor gone.
/// - Its row is locked `for key share`: fan-outs do not wait for each other, but whoever puts a lane to sleep locks it `for
///   update` and looks for work afterwards, and so finds this one or has not begun.
/// - A lane is woken by what its locked row says. What the statement saw before it had the lock may be old, and a lane judged
///   by it could sleep on with work for ever.
struct Insert<'a> {
    seller: Uuid,
    names: Vec<&'static str>,
    before: Vec<&'a [u8]>,
    after: Vec<&'a [u8]>,
    at: Vec<DateTime<Utc>>,
    latest: DateTime<Utc>,
}

statement!(Insert<'_> => ():
    "with live as materialized (select s.seller_id, s.id, s.events, s.leased, s.wake_at from subscriptions s \
       join applications a on a.client_id = s.client_id where s.seller_id = ", seller: SqlUuid,
    " and s.active and s.events && ", names: Array<Text>,
    " and a.deleted_at is null and a.status in ('pending', 'active') order by s.id for key share of s), \
     told as (insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body) \
       select d.seller_id, d.subscription_id, d.id, d.at, d.at, d.event, d.before || convert_to(d.id::text, 'UTF8') || d.after \
       from (select l.seller_id, l.id as subscription_id, api_uuid(e.at) as id, e.event, e.before, e.after, e.at \
         from live l join unnest(", names: Array<Text>,
    ", ", before: Array<Binary>,
    ", ", after: Array<Binary>,
    ", ", at: Array<Timestamptz>,
    ") with ordinality as e (event, before, after, at, n) on l.events @> array[e.event] order by l.id, e.n) d), \
     asleep as materialized (select s.seller_id, s.id, s.leased, s.wake_at from live l \
       join subscriptions s on s.seller_id = l.seller_id and s.id = l.id \
       where not l.leased and (l.wake_at is null or l.wake_at > ", latest: Timestamptz,
    ") order by s.id for no key update of s) \
     update subscriptions s set wake_at = ", latest: Timestamptz,
    " from asleep w where s.seller_id = w.seller_id and s.id = w.id and not w.leased \
       and (w.wake_at is null or w.wake_at > ", latest: Timestamptz, ")");

/// A seller's events, each with its instant.
pub(super) struct FanOut {
    seller: SellerId,
    events: Vec<(Event, DateTime<Utc>)>,
    /// Set where a lane was woken.
    woken: Arc<AtomicBool>,
}

impl FanOut {
    pub(super) const fn new(
        seller: SellerId,
        events: Vec<(Event, DateTime<Utc>)>,
        woken: Arc<AtomicBool>,
    ) -> Self {
        Self {
            seller,
            events,
            woken,
        }
    }
}

#[async_trait]
impl Write for FanOut {
    async fn send(&self, mut connection: &AsyncPgConnection) -> Result<(), StoreError> {
        let bodies = self.events.iter().map(|(event, at)| event.around_id(*at));
        let bodies = bodies
            .collect::<Result<Vec<_>, _>>()
            .map_err(StoreError::unexpected)?;
        let Some(latest) = self.events.iter().map(|(_, at)| *at).max() else {
            return Ok(());
        };
        let insert = Insert {
            seller: self.seller.uuid(),
            names: self.events.iter().map(|(event, _)| event.name.as_str()).collect(),
            before: bodies.iter().map(|(before, _)| before.as_slice()).collect(),
            after: bodies.iter().map(|(_, after)| after.as_slice()).collect(),
            at: self.events.iter().map(|(_, at)| *at).collect(),
            latest,
        };
        // The number of lanes that were woken tells nothing of the deliveries: there may be none of either.
        let lanes = insert.execute(&mut connection).await.map_err(store_error)?;
        self.woken.fetch_or(lanes > 0, Ordering::Relaxed);
        Ok(())
    }
}
