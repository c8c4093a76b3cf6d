//! Deletes and erases expired data, in batches, so that locks are held only briefly.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use diesel::dsl::{array, sql};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel::{delete, update};
use diesel_async::RunQueryDsl;
use kernel::StoreError;
use oauth::Limiter;
use usecases::Transaction;
use uuid::Uuid;

use crate::database::{MARK, SET_MARK};
use crate::layout::Layout;
use crate::orders::DirectoryRow;
use crate::schema::{
    access_tokens, account_mails, api_usage, application_usage, authorization_codes, consents, earlier_links,
    families, flashes, idempotency, instance, journal, links, mails, orders, rate_windows, refresh_tokens,
    sessions,
};
use crate::sql::{coalesce, column, microseconds};
use crate::statement::{Prepared, statements};
use crate::unit_of_work::Tx;

statements! {
    "retention.sql";
    FAMILIES: (Array<SqlUuid>);
    AUDIT_LOG: (BigInt, BigInt);
    CHANGES: (Text, BigInt, BigInt) -> WalkRow;
    DELIVERIES: (Text, Integer, BigInt) -> WalkRow;
    CLOSED_SELLERS: (BigInt, BigInt);
    ERASE_BUYERS: (Array<SqlUuid>);
    ERASE_BUYERS_OF_SELLER: (SqlUuid, Array<SqlUuid>, Timestamptz);
}

/// How many rows a batch has deleted, and the position where the next one continues, if not at the beginning.
#[derive(Default, QueryableByName)]
struct WalkRow {
    #[diesel(sql_type = BigInt)]
    rows: i64,
    #[diesel(sql_type = Nullable<Text>)]
    next: Option<String>,
}

/// The rows at the places (`ctid`) that a query selects.
macro_rules! at {
    ($table:ident, $places:expr) => {{
        let is_there = sql::<Bool>("ctid = any(")
            .bind::<Array<Text>, _>(array($places))
            .sql(")");
        $table::table.filter(is_there)
    }};
}

/// The first rows of a table by an index: at most a batch, and none that is locked.
macro_rules! first {
    ($table:ident by $order:expr, $($filter:expr),+) => {
        at!(
            $table,
            $table::table
                .select(sql::<Text>("ctid"))
                $(.filter($filter))+
                .order($order)
                .limit(BATCH)
                .for_update()
                .skip_locked()
        )
    };
}

/// The first rows that were before an instant, by a timestamp with which an index begins.
macro_rules! older {
    ($table:ident.$time:ident, $before:expr $(, $filter:expr)*) => {
        first!($table by $table::$time, $table::$time.lt($before) $(, $filter)*)
    };
}

/// Deletes the first tokens or codes of families.
macro_rules! first_of_families {
    ($table:ident, $families:expr) => {
        delete(first!($table by ($table::family_id, $table::hash), $table::family_id.eq_any($families)))
    };
}

/// Deletes a batch of expired tokens or codes, and those of their families of which it was the last one.
macro_rules! clear_ended {
    ($table:ident, $tx:ident, $before:expr) => {{
        let ended = delete(older!($table.expires_at, $before)).returning($table::family_id);
        let ended = async { Prepared(ended).get_results::<Uuid>(&mut $tx.connection()).await };
        let families = Box::pin($tx.run(ended)).await?;
        clear_families($tx, vec![families.len()], families).await
    }};
}

/// Rows of each kind deleted per batch.
const BATCH: i64 = 1_000;
/// Orders per batch of buyer erasure: their rows are locked meanwhile, and sellers' requests may wait for
/// them.
const ORDERS_AT_ONCE: i64 = 100;
/// Delivery queues examined per batch.
const QUEUES_AT_ONCE: i32 = 200;
/// Items of the change feed examined per batch beyond the first ones.
const EXAMINED: i64 = 10_000;
const QUEUES: Walk = Walk {
    mark: "deliveries_cleared_to",
    start: "00000000-0000-0000-0000-000000000000 00000000-0000-0000-0000-000000000000",
    to_its_end: true,
};
const FEED: Walk = Walk {
    mark: "changes_examined_to",
    start: "0 0",
    to_its_end: false,
};

/// A walk in batches.
struct Walk {
    /// The installation mark that stores where the next batch continues.
    mark: &'static str,
    start: &'static str,
    /// Whether [`Cleared::more`] is true until the walk reaches its end, even after a batch that is not full.
    to_its_end: bool,
}

impl Walk {
    async fn position(&self, tx: &Tx) -> Result<String, StoreError> {
        let stored = tx.row(MARK.bind((self.mark,))).await?;
        Ok(stored.map_or_else(|| self.start.to_owned(), |mark| mark.0))
    }

    /// Stores where the next batch continues.
    async fn go_on(&self, tx: &Tx, from: String, walked: Option<WalkRow>) -> Result<Cleared, StoreError> {
        let WalkRow { rows, next } = walked.unwrap_or_default();
        let rows = usize::try_from(rows).map_err(StoreError::unexpected)?;
        let more = is_full(rows, BATCH) || self.to_its_end && next.is_some();
        let next = next.unwrap_or_else(|| self.start.to_owned());
        if next != from {
            tx.execute(SET_MARK.bind((self.mark, next))).await?;
        }
        Ok(Cleared { rows, more })
    }
}

/// What one batch has deleted or erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleared {
    /// Rows; orders whose buyer was erased, erased accounts and their subscriptions.
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

/// A kind of data that expires. Each is deleted by itself: where one cannot be, the others still are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expired {
    /// Windows of rate limits, after ten minutes; those of an hour ([`Limiter::HOURLY`]) with the hour.
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
    /// Deliveries after 30 days, those that wait after 31 or once they have been due for an hour, unless they
    /// are among the last 100 of their subscription; and those of deleted subscriptions.
    Deliveries,
    /// Events of the journals that were recorded this long ago, the oldest first.
    Events(TimeDelta),
    /// The audit log's entries of this age.
    AuditLog(TimeDelta),
    /// Buyers of orders that were placed this long ago: erased, with the mails about the orders.
    Buyers(TimeDelta),
    /// Names and addresses of accounts that were closed this long ago: replaced, and the mails to them and their
    /// subscriptions deleted.
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
    let ago = |time| tx.now() - time;
    let (an_hour_ago, a_month_ago) = (ago(TimeDelta::hours(1)), ago(TimeDelta::days(30)));
    let deleted = match expired {
        Expired::RateWindows => {
            use rate_windows::{kind, window_start};
            let is_over = kind
                .ne_all(Limiter::HOURLY.map(Limiter::code))
                .or(window_start.lt(an_hour_ago));
            let before = ago(TimeDelta::minutes(10));
            tx.execute(delete(older!(rate_windows.window_start, before, is_over)))
        }
        Expired::AccessTokens => return clear_ended!(access_tokens, tx, an_hour_ago),
        // A repeat of its request gets it within 24 hours.
        Expired::RefreshTokens => return clear_ended!(refresh_tokens, tx, ago(TimeDelta::hours(25))),
        Expired::Codes => return clear_ended!(authorization_codes, tx, an_hour_ago),
        Expired::RevokedFamilies => return clear_revoked_families(tx, an_hour_ago).await,
        // A session is not used after its seven days, so soon afterwards it has been idle for eight hours.
        Expired::Sessions => tx.execute(delete(older!(sessions.seen_at, ago(TimeDelta::hours(9))))),
        Expired::Links => {
            let newest = delete(older!(links.expires_at, an_hour_ago));
            let newest = tx.execute(newest).await?;
            let earlier = delete(older!(earlier_links.expires_at, an_hour_ago));
            return Ok(Cleared::of(&[newest, tx.execute(earlier).await?]));
        }
        Expired::Consents => tx.execute(delete(older!(consents.expires_at, an_hour_ago))),
        Expired::Forms => tx.execute(delete(older!(flashes.created_at, ago(TimeDelta::days(8))))),
        Expired::Secrets => {
            let unfetched = older!(flashes.created_at, an_hour_ago, flashes::sealed.is_not_null());
            tx.execute(update(unfetched).set(flashes::sealed.eq(None::<Vec<u8>>)))
        }
        Expired::UnsentAccountMails => {
            use account_mails::{dead_at, due_at, expires_at, fence, url};
            let unsent = older!(account_mails.due_at, an_hour_ago, expires_at.lt(an_hour_ago));
            tx.execute(update(unsent).set((
                due_at.eq(None::<DateTime<Utc>>),
                dead_at.eq(tx.now()),
                url.eq(None::<Vec<u8>>),
                fence.eq(None::<Uuid>),
            )))
        }
        Expired::AccountMails => {
            use account_mails::{dead_at, due_at, sent_at};
            let done = || coalesce(sent_at, dead_at);
            let old = first!(account_mails by done(), due_at.is_null(), done().lt(a_month_ago));
            tx.execute(delete(old))
        }
        // Also what replicas of the previous version have counted.
        Expired::Usage => {
            let before = ago(TimeDelta::days(35));
            let counted = delete(older!(application_usage.hour, before));
            let counted = tx.execute(counted).await?;
            let earlier = delete(older!(api_usage.hour, before));
            return Ok(Cleared::of(&[counted, tx.execute(earlier).await?]));
        }
        // Found by their start, since their end moves. A completed claim ends 24 hours after its completion;
        // the extra hour allows for clock differences and late requests.
        Expired::Claims => {
            let has_ended = idempotency::expires_at.lt(an_hour_ago);
            let before = ago(TimeDelta::hours(25));
            tx.execute(delete(older!(idempotency.created_at, before, has_ended)))
        }
        Expired::Changes => {
            let from = FEED.position(tx).await?;
            let walked = tx.row(CHANGES.bind((from.as_str(), EXAMINED, BATCH))).await?;
            return FEED.go_on(tx, from, walked).await;
        }
        Expired::Mails => {
            use mails::{dead_at, due_at, sent_at};
            let done = || coalesce(sent_at, dead_at);
            let old = first!(mails by done(), due_at.is_null(), done().lt(a_month_ago));
            tx.execute(delete(old))
        }
        Expired::Deliveries => {
            let from = QUEUES.position(tx).await?;
            let walked = tx
                .row(DELIVERIES.bind((from.as_str(), QUEUES_AT_ONCE, BATCH)))
                .await?;
            return QUEUES.go_on(tx, from, walked).await;
        }
        Expired::Events(age) => return clear_events(tx, ago(age)).await,
        Expired::AuditLog(age) => tx.execute(AUDIT_LOG.bind((BATCH, microseconds(age)))),
        Expired::Buyers(age) => return erase_buyers(tx, ago(age)).await,
        Expired::ClosedSellers(age) => tx.execute(CLOSED_SELLERS.bind((BATCH, microseconds(age)))),
    };
    Ok(Cleared::of(&[deleted.await?]))
}

/// Deletes a batch of the journals' events. From then on they begin at this time for every reader, even for
/// one that keeps events for longer: it must not hide the gap.
async fn clear_events(tx: &Tx, before: DateTime<Utc>) -> Result<Cleared, StoreError> {
    use instance::set_at;
    use journal::{number, recorded_at};
    // Waits for rows that another worker clears: those behind them must not be gone before.
    let expired = at!(
        journal,
        journal::table
            .select(sql::<Text>("ctid"))
            .filter(recorded_at.lt(before))
            .order((recorded_at, number))
            .limit(BATCH)
            .for_update()
    );
    let cleared = tx.execute(delete(expired)).await?;
    if cleared > 0 {
        let begun = instance::table.find("journal").filter(set_at.lt(before));
        tx.execute(update(begun).set(set_at.eq(before))).await?;
    }
    Ok(Cleared::of(&[cleared]))
}

/// Deletes a batch of the tokens and codes of families that were revoked, and then the families left without
/// any.
async fn clear_revoked_families(tx: &Tx, before: DateTime<Utc>) -> Result<Cleared, StoreError> {
    let revoked = families::table
        .filter(families::revoked_at.lt(before))
        .order(families::revoked_at)
        .limit(BATCH)
        .select(families::id);
    let revoked = async { Prepared(revoked).get_results::<Uuid>(&mut tx.connection()).await };
    let of = Box::pin(tx.run(revoked)).await?;
    let deleted = vec![
        tx.execute(first_of_families!(access_tokens, &of)).await?,
        tx.execute(first_of_families!(refresh_tokens, &of)).await?,
        tx.execute(first_of_families!(authorization_codes, &of)).await?,
    ];
    clear_families(tx, deleted, of).await
}

/// Deletes those families that have no token and no code, after these numbers of tokens and codes.
async fn clear_families(
    tx: &Tx,
    mut rows: Vec<usize>,
    mut families: Vec<Uuid>,
) -> Result<Cleared, StoreError> {
    families.sort_unstable();
    families.dedup();
    rows.push(tx.execute(FAMILIES.bind((families,))).await?);
    Ok(Cleared::of(&rows))
}

/// Erases the buyers of one batch of orders in the caller's transaction.
async fn erase_buyers(tx: &Tx, before: DateTime<Utc>) -> Result<Cleared, StoreError> {
    // Orders that another transaction is erasing are skipped.
    let oldest = orders::table
        .filter(orders::buyer_erased_at.is_null())
        .filter(orders::created_at.lt(before))
        .order(orders::created_at)
        .limit(ORDERS_AT_ONCE)
        .select(DirectoryRow::as_select())
        .for_no_key_update()
        .skip_locked();
    let locked = tx.rows(oldest).await?;
    if locked.is_empty() {
        return Ok(Cleared::default());
    }
    let orders = column(&locked, |row| row.order_id);
    let orders = orders.as_slice();
    if tx.units.layout == Layout::Citus {
        erase_by_seller(tx, &locked).await?;
    } else {
        tx.execute(ERASE_BUYERS.bind((orders,))).await?;
    }
    // A transaction that held a part until just now may have queued a mail. This statement sees everything
    // committed while the previous one waited; later transactions find no buyer to write to.
    tx.execute(delete(mails::table.filter(mails::order_id.eq_any(orders))))
        .await?;
    let erased = orders::table.filter(orders::order_id.eq_any(orders));
    tx.execute(update(erased).set(orders::buyer_erased_at.eq(tx.now())))
        .await?;
    Ok(Cleared {
        rows: orders.len(),
        more: is_full(orders.len(), ORDERS_AT_ONCE),
    })
}

/// On Citus: one statement per seller. Its time is `tx.now()`.
async fn erase_by_seller(tx: &Tx, orders: &[DirectoryRow]) -> Result<(), StoreError> {
    let mut sellers = BTreeMap::<Uuid, Vec<Uuid>>::new();
    for order in orders {
        for seller in order.sellers.iter().flatten() {
            sellers.entry(*seller).or_default().push(order.order_id);
        }
    }
    tx.mark_distributed_write();
    for (seller, orders) in sellers {
        tx.execute(ERASE_BUYERS_OF_SELLER.bind((seller, orders, tx.now())))
            .await?;
    }
    Ok(())
}
