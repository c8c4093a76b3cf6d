//! Deletes expired data, in batches, so that locks are held only briefly.

use std::{collections::BTreeMap, fmt};

use chrono::TimeDelta;
use kernel::StoreError;
use usecases::Transaction;
use uuid::Uuid;

use crate::{
    layout::Layout,
    sql::{column, microseconds, row, sql},
    unit_of_work::Tx,
};

/// Rows of each kind deleted per batch.
const BATCH: i64 = 1_000;
/// Orders per batch of buyer erasure: their rows are locked meanwhile, and sellers' requests may wait for them.
const ORDERS: i64 = 100;
/// Delivery queues examined per batch.
const QUEUES: i32 = 200;
/// The installation mark that stores where the deletion of deliveries continues.
const POSITION_KEY: &str = "deliveries_cleared_to";

/// What one batch has deleted, or erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleared {
    /// Rows; orders whose buyer was erased.
    pub rows: usize,
    /// True if more is left than fits into one batch.
    pub more: bool,
}

impl Cleared {
    fn of(rows: &[usize]) -> Self {
        Self {
            rows: rows.iter().sum(),
            more: rows.iter().any(|rows| is_full(*rows, BATCH)),
        }
    }
}

fn is_full(rows: usize, batch: i64) -> bool {
    i64::try_from(rows).is_ok_and(|rows| rows >= batch)
}

/// Deletes a batch of a table's oldest rows, by the timestamp that its index begins with.
macro_rules! delete_older {
    ($table:literal, $key:literal, $instant:literal, $age:literal) => {
        sql!((): concat!("delete from ", $table, " where (", $key, ") in (select ", $key, " from ", $table, " where ", $instant,
            " < (select api_now()) - interval '", $age, "' order by ", $instant, " limit "), BATCH, " for update skip locked)")
    };
}

/// Deletes expired rows of a credential table and returns their families.
macro_rules! delete_expired {
    ($table:literal) => {
        sql!(Uuid: concat!("delete from ", $table, " where (family_id, hash) in (select family_id, hash from ", $table,
            " where expires_at < (select api_now()) - interval '1 hour' order by expires_at limit "), BATCH,
            " for update skip locked) returning family_id")
    };
}

/// Deletes one batch of credentials and panel data in the caller's transaction: windows of rate limits after ten minutes, those of an hour (kinds from 10 on) with the hour; tokens and codes an
/// hour after their end, families an hour after their revocation or with their last token or code; sessions, links, forms and consent screens soon after
/// their end, mails about accounts after 30 days, usage after 35, the audit log after 400.
pub(crate) async fn clear(tx: &Tx) -> Result<Cleared, StoreError> {
    let rate_windows = tx
        .execute(sql!(():
            "delete from rate_windows where (window_start, kind, subject) in (select window_start, kind, subject \
               from rate_windows where window_start < (select api_now()) - interval '10 minutes' \
                 and (kind < 10 or window_start < (select api_now()) - interval '1 hour') \
               order by window_start, kind, subject limit ", BATCH, " for update skip locked)"))
        .await?;
    let credentials = [
        tx.rows(delete_expired!("access_tokens")).await?,
        tx.rows(delete_expired!("refresh_tokens")).await?,
        tx.rows(delete_expired!("authorization_codes")).await?,
    ];
    let tokens = credentials.each_ref().map(Vec::len);
    let mut emptied = credentials.concat();
    emptied.sort_unstable();
    emptied.dedup();
    // Families whose last token or code was deleted, and some of the revoked ones, with their `personal_tokens` rows. A
    // family without either never gets another one, so nothing can be inserted concurrently.
    let families = tx.row(sql!(i64:
        "with revoked as (select id from families where revoked_at < (select api_now()) - interval '1 hour' \
           order by revoked_at limit ", BATCH, " for update skip locked), \
         expired as (select id from revoked union select f.id from families f where f.id = any(", emptied,
        ") and not exists (select from access_tokens t where t.family_id = f.id) \
             and not exists (select from refresh_tokens t where t.family_id = f.id) \
             and not exists (select from authorization_codes c where c.family_id = f.id)), \
         deleted as (delete from families f using expired where f.id = expired.id returning f.seller_id, f.id), \
         personal as (delete from personal_tokens p using deleted where p.seller_id = deleted.seller_id and p.id = deleted.id) \
         select count(*) from deleted")).await?.unwrap_or_default();
    let families = usize::try_from(families).map_err(StoreError::unexpected)?;
    let panel = clear_panel(tx).await?;
    let counts = [tokens.as_slice(), &panel, &[rate_windows, families]].concat();
    Ok(Cleared::of(&counts))
}

async fn clear_panel(tx: &Tx) -> Result<[usize; 10], StoreError> {
    Ok([
        // A session is not used after its seven days, so soon afterwards it has been idle for eight hours.
        tx.execute(delete_older!("sessions", "hash", "seen_at", "9 hours")).await?,
        tx.execute(delete_older!("links", "hash", "expires_at", "1 hour")).await?,
        tx.execute(delete_older!("earlier_links", "hash", "expires_at", "1 hour")).await?,
        tx.execute(delete_older!("consents", "id", "expires_at", "1 hour")).await?,
        // No form is older than its session.
        tx.execute(delete_older!("flashes", "session_hash, form", "created_at", "8 days")).await?,
        // A secret that no one fetched: it was to be shown immediately.
        tx.execute(sql!(():
            "update flashes set sealed = null where (session_hash, form) in (select session_hash, form from flashes \
               where sealed is not null and created_at < (select api_now()) - interval '1 hour' order by created_at limit ",
            BATCH, " for update skip locked)")).await?,
        // Mails whose link expired before they could be sent: the link need not be stored any longer.
        tx.execute(sql!(():
            "update account_mails set due_at = null, dead_at = api_now(), url = null, fence = null where id in (select id \
               from account_mails where due_at < (select api_now()) - interval '1 hour' \
                 and expires_at < (select api_now()) - interval '1 hour' order by due_at limit ", BATCH,
            " for update skip locked)")).await?,
        tx.execute(sql!(():
            "delete from account_mails where id in (select id from account_mails where due_at is null \
               and coalesce(sent_at, dead_at) < (select api_now()) - interval '30 days' order by coalesce(sent_at, dead_at) limit ",
            BATCH, " for update skip locked)")).await?,
        tx.execute(delete_older!("application_usage", "client_id, hour, status", "hour", "35 days")).await?,
        // What replicas of the previous version have counted.
        tx.execute(delete_older!("api_usage", "seller_id, client_id, hour, status", "hour", "35 days")).await?,
        // Ids rise with time: the first rows are examined, and no index by time is needed.
        tx.execute(sql!(():
            "delete from audit_log where id in (select id from (select id, at from audit_log order by id limit ",
            BATCH, ") oldest where at < (select api_now()) - interval '400 days')")).await?,
    ])
}

/// Deletes one batch of records in the caller's transaction: claims made more than 25 hours ago that ended more than an hour ago; items of the change feed, and mails that were sent or
/// given up, after 30 days; finished deliveries after 30 days unless they are among the last 100 of their subscription, and those of deleted subscriptions.
pub(crate) async fn clear_records(tx: &Tx) -> Result<Cleared, StoreError> {
    // Claims are found by their start, since their end moves. A completed claim ends 24 hours after its completion; the
    // extra hour allows for clock differences and late requests.
    let claims = tx.execute(sql!(():
        "delete from idempotency where (seller_id, key) in (select seller_id, key from idempotency \
           where created_at < (select api_now()) - interval '25 hours' and expires_at < (select api_now()) - interval '1 hour' \
           order by created_at limit ", BATCH, " for update skip locked)")).await?;
    // The feed's order is the order of time, apart from long transactions: the first rows are examined, and no index by
    // time is needed.
    let changes = tx
        .execute(sql!(():
            "delete from changes where (seller_id, id) in (select seller_id, id from \
               (select seller_id, id, at from changes order by xid, id limit ", BATCH,
            ") oldest where at < (select api_now()) - interval '30 days')"))
        .await?;
    let mails = tx.execute(sql!(():
        "delete from mails where id in (select id from mails where due_at is null \
           and coalesce(sent_at, dead_at) < (select api_now()) - interval '30 days' order by coalesce(sent_at, dead_at) limit ",
        BATCH, " for update skip locked)")).await?;
    let (deliveries, more_deliveries) = clear_deliveries(tx).await?;
    let cleared = Cleared::of(&[claims, changes, mails]);
    Ok(Cleared {
        rows: cleared.rows.saturating_add(deliveries),
        more: cleared.more || more_deliveries,
    })
}

row! {
    struct ClearedRow {
        rows: i64,
        full: bool,
        seller: Option<Uuid>,
        subscription: Option<Uuid>,
    }
}

/// The delivery queue at which the deletion continues.
#[derive(Clone, Copy, Default)]
struct Position {
    seller: Uuid,
    subscription: Uuid,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.seller, self.subscription)
    }
}

impl Position {
    fn parse(text: &str) -> Option<Self> {
        let (seller, subscription) = text.split_once(' ')?;
        Some(Self {
            seller: seller.parse().ok()?,
            subscription: subscription.parse().ok()?,
        })
    }
}

/// Deletes old, finished deliveries, except the last hundred of each subscription, and all deliveries whose
/// subscription was deleted. Returns the number of deleted rows and whether there is more to examine.
///
/// It walks the queues by the primary key, in which ids rise with time, and stores its position: the last queue if the
/// batch was full, else the one after the last examined, and none at the end. So it reads only what it deletes plus the
/// hundred it keeps, and needs no index of its own. The id of thirty days ago is that timestamp with all random bits
/// zero.
async fn clear_deliveries(tx: &Tx) -> Result<(usize, bool), StoreError> {
    let stored = tx
        .row(sql!(String:
            "select value from instance where key = ", POSITION_KEY, ""))
        .await?;
    let position = stored.as_deref().and_then(Position::parse).unwrap_or_default();
    let clear = sql!(ClearedRow:
        "with recursive age as materialized (select (lpad(to_hex(floor(extract(epoch from (select api_now()) - interval '30 days') \
             * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid as id), \
         queue as ((select seller_id, subscription_id, 0 as n from deliveries where (seller_id, subscription_id) >= (",
        position.seller, ", ", position.subscription, ") order by seller_id, subscription_id limit 1) \
           union all select d.seller_id, d.subscription_id, l.n + 1 from queue l cross join lateral (\
             select seller_id, subscription_id from deliveries where (seller_id, subscription_id) > (l.seller_id, l.subscription_id) \
             order by seller_id, subscription_id limit 1) d where l.n < ", QUEUES,
        "), expired as materialized (select d.seller_id, d.subscription_id, d.id from queue l cross join age \
           left join subscriptions s on s.seller_id = l.seller_id and s.id = l.subscription_id \
           cross join lateral (select x.seller_id, x.subscription_id, x.id from deliveries x where x.seller_id = l.seller_id \
             and x.subscription_id = l.subscription_id and (s.id is null or (x.due_at is null \
               and x.id < least(age.id, coalesce((select h.id from deliveries h where h.seller_id = l.seller_id \
                 and h.subscription_id = l.subscription_id order by h.id desc offset 99 limit 1), '00000000-0000-0000-0000-000000000000')))) \
             order by x.id limit 1000) d \
           where l.n < ", QUEUES, " order by d.seller_id, d.subscription_id, d.id limit ", BATCH,
        "), cleared as (delete from deliveries d using expired x where d.seller_id = x.seller_id \
             and d.subscription_id = x.subscription_id and d.id = x.id), \
         size as (select count(*) as rows, count(*) >= ", BATCH, " as full from expired), \
         next as (select seller_id, subscription_id from queue where n = ", QUEUES,
        "), last as (select seller_id, subscription_id from expired order by seller_id desc, subscription_id desc limit 1) \
         select z.rows, z.full, case when z.full then l.seller_id else n.seller_id end, \
           case when z.full then l.subscription_id else n.subscription_id end \
         from size z left join next n on true left join last l on true");
    let cleared = tx.row(clear).await?;
    let cleared =
        cleared.ok_or_else(|| StoreError::unexpected("the deletion of deliveries returned no row"))?;
    let next = cleared.seller.zip(cleared.subscription);
    let next = next.map(|(seller, subscription)| Position { seller, subscription });
    let value = next.unwrap_or_default().to_string();
    if stored.as_ref() != Some(&value) {
        tx.execute(sql!(():
            "insert into instance (key, value) values (", POSITION_KEY, ", ", value.as_str(),
            ") on conflict (key) do update set value = excluded.value, set_at = api_now()"))
            .await?;
    }
    let rows = usize::try_from(cleared.rows).map_err(StoreError::unexpected)?;
    Ok((rows, cleared.full || next.is_some()))
}

/// Erases the buyers of one batch of orders in the caller's transaction. Skips orders that another transaction is erasing.
pub(crate) async fn erase_buyers(tx: &Tx, age: TimeDelta) -> Result<Cleared, StoreError> {
    let locked = tx
        .rows(sql!((Uuid, Option<Vec<Uuid>>):
            "select order_id, sellers from orders where buyer_erased_at is null \
               and created_at < (select api_now()) - ", microseconds(age),
            " * interval '1 microsecond' order by created_at limit ", ORDERS, " for no key update skip locked"))
        .await?;
    let orders = column(&locked, |(order, _)| *order);
    let orders = orders.as_slice();
    if !orders.is_empty() && tx.context().layout == Layout::Citus {
        erase_by_seller(tx, &locked).await?;
    } else if !orders.is_empty() {
        // The set-based form of `SellerOrder::erase_buyer`, which defines the rule, including `updated_at`; a test
        // compares the two. Parts are locked by seller, as in every transaction.
        tx.execute(sql!(():
            "with clock as materialized (select api_now() as at), \
             parts as materialized (select seller_id, order_id from seller_orders where order_id = any(", orders,
            ") and (buyer is not null or shipping_address is not null) order by seller_id, order_id for no key update) \
             update seller_orders p set buyer = null, shipping_address = null, \
               updated_at = case when p.paid_at is null then p.updated_at else greatest(p.updated_at + interval '1 us', (select at from clock)) end \
               from parts where p.seller_id = parts.seller_id and p.order_id = parts.order_id")).await?;
    }
    if !orders.is_empty() {
        // A transaction that held a part until just now may have queued a mail. This statement sees everything
        // committed while the previous one waited; later transactions find no buyer to write to.
        tx.execute(sql!(():
            "delete from mails where order_id = any(", orders, ")"))
            .await?;
        tx.execute(sql!(():
            "update orders set buyer_erased_at = (select api_now()) where order_id = any(", orders, ")"))
            .await?;
    }
    Ok(Cleared {
        rows: orders.len(),
        more: is_full(orders.len(), ORDERS),
    })
}

/// On Citus: one statement per seller. Its time is `tx.now()`, since no volatile function may be in the SET clause.
async fn erase_by_seller(tx: &Tx, orders: &[(Uuid, Option<Vec<Uuid>>)]) -> Result<(), StoreError> {
    let mut sellers = BTreeMap::<Uuid, Vec<Uuid>>::new();
    for (order, seller) in orders
        .iter()
        .flat_map(|(order, sellers)| sellers.iter().flatten().map(move |seller| (order, seller)))
    {
        sellers.entry(*seller).or_default().push(*order);
    }
    tx.mark_distributed_write();
    for (seller, orders) in sellers {
        tx.execute(sql!(():
            "update seller_orders set buyer = null, shipping_address = null, \
               updated_at = case when paid_at is null then updated_at else greatest(updated_at + interval '1 us', ", tx.now(),
            ") end where seller_id = ", seller, " and order_id = any(", orders,
            ") and (buyer is not null or shipping_address is not null)"))
            .await?;
    }
    Ok(())
}
