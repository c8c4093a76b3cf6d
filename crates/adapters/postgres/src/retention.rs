//! Deletes and erases expired data, in batches, so that locks are held only briefly.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use kernel::StoreError;
use usecases::Transaction;
use uuid::Uuid;

use crate::layout::Layout;
use crate::sql::{column, microseconds, sql};
use crate::unit_of_work::Tx;

/// Rows of each kind deleted per batch.
const BATCH: i64 = 1_000;
/// Orders per batch of buyer erasure: their rows are locked meanwhile, and sellers' requests may wait for them.
const ORDERS: i64 = 100;
/// Delivery queues examined per batch.
const QUEUES: i32 = 200;
/// The installation mark that stores the delivery queue at which the deletion continues.
const QUEUE_POSITION: &str = "deliveries_cleared_to";
const FIRST_QUEUE: &str = "00000000-0000-0000-0000-000000000000 00000000-0000-0000-0000-000000000000";
/// Items of the change feed examined per batch beyond the first ones, and the mark that stores where that continues.
const EXAMINED: i64 = 10_000;
const FEED_POSITION: &str = "changes_examined_to";
const FEED_START: &str = "0 0";

/// What one batch has deleted or erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleared {
    /// Rows; orders whose buyer was erased, erased accounts.
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

/// Deletes a batch of a table's oldest rows, by the timestamp that its index begins with; of a partial index, with its condition.
macro_rules! delete_older {
    ($table:literal, $key:literal, $instant:literal, $age:literal $(, $only:literal)?) => {
        sql!((): concat!("delete from ", $table, " where (", $key, ") in (select ", $key, " from ", $table, " where ", $($only, " and ",)?
            $instant, " < (select api_now()) - interval '", $age, "' order by ", $instant, " limit "), BATCH, " for update skip locked)")
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

/// Deletes a batch of a credential table's rows of these families.
macro_rules! delete_of {
    ($table:literal, $families:expr) => {
        sql!((): concat!("delete from ", $table, " where (family_id, hash) in (select t.family_id, t.hash from unnest("), $families,
            concat!(") f (id) cross join lateral (select family_id, hash from ", $table, " where family_id = f.id limit 1000 \
               for update skip locked) t limit "), BATCH, ")")
    };
}

/// A kind of data that expires. Each is deleted by itself: where one cannot be, the others still are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expired {
    /// Windows of rate limits, after ten minutes; those of an hour, whose kinds begin with 10, with the hour.
    RateWindows,
    /// Tokens and codes, an hour after their end; with the last one of a family the family.
    AccessTokens,
    RefreshTokens,
    Codes,
    /// Families an hour after their revocation, their tokens and codes first.
    RevokedFamilies,
    Sessions,
    Links,
    Consents,
    /// Forms of the panel, which no session outlives.
    Forms,
    /// Secrets that were to be shown once, and that nobody fetched.
    Secrets,
    /// Mails with a link that expired before they could be sent: the link need not be stored any longer.
    UnsentAccountMails,
    /// 30 days after they were sent or given up.
    AccountMails,
    /// After 35 days.
    Usage,
    /// Claims made more than 25 hours ago that ended more than an hour ago.
    Claims,
    /// Items of the change feed, after 30 days.
    Changes,
    /// 30 days after they were sent or given up.
    Mails,
    /// Deliveries after 30 days, also those that wait and have been due for an hour, unless they are among the last 100 of their
    /// subscription; and those of deleted subscriptions.
    Deliveries,
    /// The audit log's entries of this age.
    AuditLog(TimeDelta),
    /// Buyers of orders that were placed this long ago: erased, with the mails about the orders.
    Buyers(TimeDelta),
    /// Names and addresses of accounts that were closed this long ago: replaced, and the mails to them deleted.
    ClosedSellers(TimeDelta),
}

impl Expired {
    /// Those whose age is not configured.
    pub const FIXED: [Self; 17] = [
        Self::RateWindows,
        Self::AccessTokens,
        Self::RefreshTokens,
        Self::Codes,
        Self::RevokedFamilies,
        Self::Sessions,
        Self::Links,
        Self::Consents,
        Self::Forms,
        Self::Secrets,
        Self::UnsentAccountMails,
        Self::AccountMails,
        Self::Usage,
        Self::Claims,
        Self::Changes,
        Self::Mails,
        Self::Deliveries,
    ];
}

/// Deletes one batch in the caller's transaction.
pub(crate) async fn clear(tx: &Tx, expired: Expired) -> Result<Cleared, StoreError> {
    let rows = match expired {
        Expired::RateWindows => {
            tx.execute(sql!(():
                "delete from rate_windows where (window_start, kind, subject) in (select window_start, kind, subject \
                   from rate_windows where window_start < (select api_now()) - interval '10 minutes' \
                     and (kind < 10 or window_start < (select api_now()) - interval '1 hour') \
                   order by window_start, kind, subject limit ", BATCH, " for update skip locked)")).await?
        }
        Expired::AccessTokens => return clear_ended(tx, tx.rows(delete_expired!("access_tokens")).await?).await,
        Expired::RefreshTokens => return clear_ended(tx, tx.rows(delete_expired!("refresh_tokens")).await?).await,
        Expired::Codes => return clear_ended(tx, tx.rows(delete_expired!("authorization_codes")).await?).await,
        Expired::RevokedFamilies => return clear_revoked_families(tx).await,
        // A session is not used after its seven days, so soon afterwards it has been idle for eight hours.
        Expired::Sessions => tx.execute(delete_older!("sessions", "hash", "seen_at", "9 hours")).await?,
        Expired::Links => {
            let links = tx.execute(delete_older!("links", "hash", "expires_at", "1 hour")).await?;
            let earlier = tx.execute(delete_older!("earlier_links", "hash", "expires_at", "1 hour")).await?;
            return Ok(Cleared::of(&[links, earlier]));
        }
        Expired::Consents => tx.execute(delete_older!("consents", "id", "expires_at", "1 hour")).await?,
        Expired::Forms => tx.execute(delete_older!("flashes", "session_hash, form", "created_at", "8 days")).await?,
        Expired::Secrets => {
            tx.execute(sql!(():
                "update flashes set sealed = null where (session_hash, form) in (select session_hash, form from flashes \
                   where sealed is not null and created_at < (select api_now()) - interval '1 hour' order by created_at limit ",
                BATCH, " for update skip locked)")).await?
        }
        Expired::UnsentAccountMails => {
            tx.execute(sql!(():
                "update account_mails set due_at = null, dead_at = api_now(), url = null, fence = null where id in (select id \
                   from account_mails where due_at < (select api_now()) - interval '1 hour' \
                     and expires_at < (select api_now()) - interval '1 hour' order by due_at limit ", BATCH,
                " for update skip locked)")).await?
        }
        Expired::AccountMails => {
            tx.execute(delete_older!("account_mails", "id", "coalesce(sent_at, dead_at)", "30 days", "due_at is null")).await?
        }
        Expired::Usage => {
            let counts = tx.execute(delete_older!("application_usage", "client_id, hour, status", "hour", "35 days")).await?;
            // What replicas of the previous version have counted.
            let earlier = tx.execute(delete_older!("api_usage", "seller_id, client_id, hour, status", "hour", "35 days")).await?;
            return Ok(Cleared::of(&[counts, earlier]));
        }
        // Ids rise with time: the first rows are examined, and no index by time is needed.
        Expired::AuditLog(age) => {
            tx.execute(sql!(():
                "delete from audit_log where id in (select id from (select id, at from audit_log order by id limit ",
                BATCH, ") oldest where at < (select api_now()) - ", microseconds(age), " * interval '1 microsecond')")).await?
        }
        // Found by their start, since their end moves. A completed claim ends 24 hours after its completion; the extra hour allows for
        // clock differences and late requests.
        Expired::Claims => {
            tx.execute(delete_older!("idempotency", "seller_id, key", "created_at", "25 hours",
                "expires_at < (select api_now()) - interval '1 hour'")).await?
        }
        Expired::Changes => return clear_changes(tx).await,
        Expired::Mails => {
            tx.execute(delete_older!("mails", "id", "coalesce(sent_at, dead_at)", "30 days", "due_at is null")).await?
        }
        Expired::Deliveries => return clear_deliveries(tx).await,
        Expired::Buyers(age) => return erase_buyers(tx, age).await,
        Expired::ClosedSellers(age) => erase_closed_sellers(tx, age).await?,
    };
    Ok(Cleared::of(&[rows]))
}

/// Deletes those of the families whose last token or code has expired.
async fn clear_ended(tx: &Tx, of: Vec<Uuid>) -> Result<Cleared, StoreError> {
    clear_families(tx, &[of.len()], of).await
}

/// Deletes a batch of the tokens and codes of families that were revoked, and then the families left without any.
async fn clear_revoked_families(tx: &Tx) -> Result<Cleared, StoreError> {
    let revoked = tx
        .rows(sql!(Uuid:
            "select id from families where revoked_at < (select api_now()) - interval '1 hour' order by revoked_at limit ",
            BATCH, ""))
        .await?;
    let access = tx.execute(delete_of!("access_tokens", &*revoked)).await?;
    let refresh = tx.execute(delete_of!("refresh_tokens", &*revoked)).await?;
    let codes = tx.execute(delete_of!("authorization_codes", &*revoked)).await?;
    clear_families(tx, &[access, refresh, codes], revoked).await
}

/// Deletes those families that have no token and no code, with their `personal_tokens` rows, after `tokens` of theirs. A family without
/// either never gets another one, so nothing can be inserted concurrently, and nothing is left to cascade to.
async fn clear_families(tx: &Tx, tokens: &[usize], mut of: Vec<Uuid>) -> Result<Cleared, StoreError> {
    of.sort_unstable();
    of.dedup();
    let families = tx.row(sql!(i64:
        "with deleted as (delete from families f where f.id = any(", of,
        ") and not exists (select from access_tokens t where t.family_id = f.id) \
             and not exists (select from refresh_tokens t where t.family_id = f.id) \
             and not exists (select from authorization_codes c where c.family_id = f.id) returning f.seller_id, f.id), \
         personal as (delete from personal_tokens p using deleted where p.seller_id = deleted.seller_id and p.id = deleted.id) \
         select count(*) from deleted")).await?.unwrap_or_default();
    let families = usize::try_from(families).map_err(StoreError::unexpected)?;
    Ok(Cleared::of(&[tokens, &[families]].concat()))
}

/// Deletes old items of the change feed. Its order is that of time, apart from long transactions and clocks that ran ahead, and no index by
/// time is needed: each batch examines the first items, and further ones from where the last batch ended, so none is left out for long.
async fn clear_changes(tx: &Tx) -> Result<Cleared, StoreError> {
    let stored = stored_position(tx, FEED_POSITION).await?;
    let position = stored.as_deref().unwrap_or(FEED_START);
    let cleared = tx.row(sql!((i64, Option<String>):
        "with further as materialized (select seller_id, xid, id, at from changes \
           where (xid, id) > (split_part(", position, ", ' ', 1)::bigint, split_part(", position, ", ' ', 2)::bigint) \
           order by xid, id limit ", EXAMINED, "), \
         expired as materialized (select seller_id, id from (\
             select * from (select seller_id, xid, id, at from changes order by xid, id limit ", BATCH, ") first \
             union select * from further) examined \
           where at < (select api_now()) - interval '30 days' order by xid, id limit ", BATCH,
        "), deleted as (delete from changes c using expired e where c.seller_id = e.seller_id and c.id = e.id) \
         select (select count(*) from expired), (select xid || ' ' || id from further order by further.xid, further.id offset ",
        EXAMINED - 1, " limit 1)")).await?;
    let (rows, next) = cleared.unwrap_or_default();
    let cleared = Cleared::of(&[usize::try_from(rows).map_err(StoreError::unexpected)?]);
    if !cleared.more {
        let next = next.unwrap_or_else(|| FEED_START.to_owned());
        store_position(tx, FEED_POSITION, stored, next).await?;
    }
    Ok(cleared)
}

async fn stored_position(tx: &Tx, key: &'static str) -> Result<Option<String>, StoreError> {
    tx.row(sql!(String: "select value from instance where key = ", key, ""))
        .await
}

async fn store_position(
    tx: &Tx,
    key: &'static str,
    before: Option<String>,
    value: String,
) -> Result<(), StoreError> {
    if before.as_ref() == Some(&value) {
        return Ok(());
    }
    let store = sql!((): "insert into instance (key, value) values (", key, ", ", value,
        ") on conflict (key) do update set value = excluded.value, set_at = api_now()");
    tx.execute(store).await.map(drop)
}

/// Deletes old deliveries, except the last hundred of each subscription, and all deliveries whose subscription was deleted. Those that rest
/// between two attempts, or have not been due for an hour, stay. There is more until the last queue was examined.
///
/// It walks the queues by the primary key, in which ids rise with time, and stores its position: the last queue if the
/// batch was full, else the one after the last examined, and none at the end. So it reads of
/// each queue the oldest thousand and the hundred it keeps, and needs no index of its own. The id of thirty days ago is that timestamp with
/// all random bits zero.
async fn clear_deliveries(tx: &Tx) -> Result<Cleared, StoreError> {
    let stored = stored_position(tx, QUEUE_POSITION).await?;
    let position = stored.as_deref().unwrap_or(FIRST_QUEUE);
    let clear = sql!((i64, bool, Option<String>):
        "with recursive age as materialized (select at, (lpad(to_hex(floor(extract(epoch from at - interval '30 days') * 1000)::bigint), 12, '0') \
             || repeat('0', 20))::uuid as id from (select api_now() as at) clock), \
         queue as ((select seller_id, subscription_id, 0 as n from deliveries where (seller_id, subscription_id) >= \
             (split_part(", position, ", ' ', 1)::uuid, split_part(", position, ", ' ', 2)::uuid) order by seller_id, subscription_id limit 1) \
           union all select d.seller_id, d.subscription_id, l.n + 1 from queue l cross join lateral (\
             select seller_id, subscription_id from deliveries where (seller_id, subscription_id) > (l.seller_id, l.subscription_id) \
             order by seller_id, subscription_id limit 1) d where l.n < ", QUEUES,
        "), expired as materialized (select d.seller_id, d.subscription_id, d.id from queue l cross join age \
           left join subscriptions s on s.seller_id = l.seller_id and s.id = l.subscription_id \
           cross join lateral (select x.seller_id, x.subscription_id, x.id, x.due_at from deliveries x where x.seller_id = l.seller_id \
             and x.subscription_id = l.subscription_id and x.id < case when s.id is null then 'ffffffff-ffff-ffff-ffff-ffffffffffff' \
               else least(age.id, coalesce((select h.id from deliveries h where h.seller_id = l.seller_id \
                 and h.subscription_id = l.subscription_id order by h.id desc offset 99 limit 1), '00000000-0000-0000-0000-000000000000')) end \
             order by x.id limit 1000) d \
           where l.n < ", QUEUES, " and (s.id is null or d.due_at is null or d.due_at < age.at - interval '1 hour') order by d.seller_id, d.subscription_id, d.id limit ", BATCH,
        "), cleared as (delete from deliveries d using expired x where d.seller_id = x.seller_id \
             and d.subscription_id = x.subscription_id and d.id = x.id), \
         size as (select count(*) as rows, count(*) >= ", BATCH, " as full from expired), \
         next as (select seller_id, subscription_id from queue where n = ", QUEUES,
        "), last as (select seller_id, subscription_id from expired order by seller_id desc, subscription_id desc limit 1) \
         select z.rows, z.full, case when z.full then l.seller_id || ' ' || l.subscription_id \
           else n.seller_id || ' ' || n.subscription_id end \
         from size z left join next n on true left join last l on true");
    let (rows, is_full, next) = tx.row(clear).await?.unwrap_or_default();
    let cleared = Cleared {
        rows: usize::try_from(rows).map_err(StoreError::unexpected)?,
        more: is_full || next.is_some(),
    };
    let next = next.unwrap_or_else(|| FIRST_QUEUE.to_owned());
    store_position(tx, QUEUE_POSITION, stored, next).await?;
    Ok(cleared)
}

/// Erases the names and addresses of a batch of closed accounts. The new address is unique, and marks an account as erased.
async fn erase_closed_sellers(tx: &Tx, age: TimeDelta) -> Result<usize, StoreError> {
    let erased = tx.row(sql!(i64:
        "with erased as (update sellers set name = 'erased', email = id || '@erased.invalid', password_hash = null where id in (\
             select id from sellers where closed_at < (select api_now()) - ", microseconds(age), " * interval '1 microsecond' \
               and email not like '%@erased.invalid' order by closed_at limit ", BATCH, " for no key update skip locked) returning id), \
         mails as (delete from account_mails m using erased e where m.seller_id = e.id) \
         select count(*) from erased"));
    usize::try_from(erased.await?.unwrap_or_default()).map_err(StoreError::unexpected)
}

/// Erases the buyers of one batch of orders in the caller's transaction. Skips orders that another transaction is erasing.
async fn erase_buyers(tx: &Tx, age: TimeDelta) -> Result<Cleared, StoreError> {
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
