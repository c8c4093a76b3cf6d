//! Deletes and erases expired data, in batches, so that locks are held only briefly.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel::upsert::excluded;
use kernel::StoreError;
use usecases::Transaction;
use uuid::Uuid;

use crate::layout::Layout;
use crate::schema::{api_now, instance, mails, orders};
use crate::sql::{column, microseconds};
use crate::statement::{Statement, statements};
use crate::unit_of_work::Tx;

statements! {
    "retention.sql";
    RATE_WINDOWS: (BigInt);
    ACCESS_TOKENS: (BigInt) -> FamilyRow;
    REFRESH_TOKENS: (BigInt) -> FamilyRow;
    CODES: (BigInt) -> FamilyRow;
    REVOKED_FAMILIES: (BigInt) -> FamilyRow;
    ACCESS_TOKENS_OF: (Array<SqlUuid>, BigInt);
    REFRESH_TOKENS_OF: (Array<SqlUuid>, BigInt);
    CODES_OF: (Array<SqlUuid>, BigInt);
    FAMILIES: (Array<SqlUuid>) -> CountRow;
    SESSIONS: (BigInt);
    LINKS: (BigInt);
    EARLIER_LINKS: (BigInt);
    CONSENTS: (BigInt);
    FORMS: (BigInt);
    SECRETS: (BigInt);
    UNSENT_ACCOUNT_MAILS: (BigInt);
    ACCOUNT_MAILS: (BigInt);
    USAGE: (BigInt);
    EARLIER_USAGE: (BigInt);
    CLAIMS: (BigInt);
    MAILS: (BigInt);
    AUDIT_LOG: (BigInt, BigInt);
    CHANGES: (Text, BigInt, BigInt) -> WalkRow;
    DELIVERIES: (Text, Integer, BigInt) -> WalkRow;
    CLOSED_SELLERS: (BigInt, BigInt) -> CountRow;
    ORDERS: (BigInt, BigInt) -> OrderRow;
    ERASE_BUYERS: (Array<SqlUuid>);
    ERASE_BUYERS_OF_SELLER: (SqlUuid, Array<SqlUuid>, Timestamptz);
    MARK_ERASED: (Array<SqlUuid>);
}

#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct FamilyRow {
    #[diesel(sql_type = SqlUuid)]
    family_id: Uuid,
}

#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    rows: i64,
}

/// How many rows a batch has deleted, and the position where the next one continues, if not at the beginning.
#[derive(Default, QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct WalkRow {
    #[diesel(sql_type = BigInt)]
    rows: i64,
    #[diesel(sql_type = Nullable<Text>)]
    next: Option<String>,
}

#[derive(QueryableByName)]
#[diesel(table_name = orders, check_for_backend(diesel::pg::Pg))]
struct OrderRow {
    order_id: Uuid,
    sellers: Option<Vec<Uuid>>,
}

/// A stored position.
#[derive(Queryable, Selectable)]
#[diesel(table_name = instance, check_for_backend(diesel::pg::Pg))]
struct PositionRow {
    value: String,
}

/// Rows of each kind deleted per batch.
const BATCH: i64 = 1_000;
/// Orders per batch of buyer erasure: their rows are locked meanwhile, and sellers' requests may wait for them.
const ORDERS_AT_ONCE: i64 = 100;
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
    let statements: &[Statement<(BigInt,), ()>] = match expired {
        Expired::RateWindows => &[RATE_WINDOWS],
        Expired::AccessTokens => return clear_ended(tx, ACCESS_TOKENS).await,
        Expired::RefreshTokens => return clear_ended(tx, REFRESH_TOKENS).await,
        Expired::Codes => return clear_ended(tx, CODES).await,
        Expired::RevokedFamilies => return clear_revoked_families(tx).await,
        Expired::Sessions => &[SESSIONS],
        Expired::Links => &[LINKS, EARLIER_LINKS],
        Expired::Consents => &[CONSENTS],
        Expired::Forms => &[FORMS],
        Expired::Secrets => &[SECRETS],
        Expired::UnsentAccountMails => &[UNSENT_ACCOUNT_MAILS],
        Expired::AccountMails => &[ACCOUNT_MAILS],
        Expired::Usage => &[USAGE, EARLIER_USAGE],
        Expired::Claims => &[CLAIMS],
        Expired::Changes => return clear_changes(tx).await,
        Expired::Mails => &[MAILS],
        Expired::Deliveries => return clear_deliveries(tx).await,
        Expired::AuditLog(age) => {
            let deleted = tx.execute(AUDIT_LOG.bind((BATCH, microseconds(age)))).await?;
            return Ok(Cleared::of(&[deleted]));
        }
        Expired::Buyers(age) => return erase_buyers(tx, age).await,
        Expired::ClosedSellers(age) => {
            let erased = tx.row(CLOSED_SELLERS.bind((BATCH, microseconds(age)))).await?;
            return Ok(Cleared::of(&[count(erased)?]));
        }
    };
    let mut rows = Vec::new();
    for statement in statements {
        rows.push(tx.execute(statement.bind((BATCH,))).await?);
    }
    Ok(Cleared::of(&rows))
}

fn count(row: Option<CountRow>) -> Result<usize, StoreError> {
    usize::try_from(row.map_or(0, |row| row.rows)).map_err(StoreError::unexpected)
}

/// Deletes a batch of expired tokens or codes, and those of their families of which it was the last one.
async fn clear_ended(tx: &Tx, statement: Statement<(BigInt,), FamilyRow>) -> Result<Cleared, StoreError> {
    let ended = tx.rows(statement.bind((BATCH,))).await?;
    clear_families(tx, vec![ended.len()], ended).await
}

/// Deletes a batch of the tokens and codes of families that were revoked, and then the families left without any.
async fn clear_revoked_families(tx: &Tx) -> Result<Cleared, StoreError> {
    let revoked = tx.rows(REVOKED_FAMILIES.bind((BATCH,))).await?;
    let of = column(&revoked, |row| row.family_id);
    let mut rows = Vec::new();
    for statement in [ACCESS_TOKENS_OF, REFRESH_TOKENS_OF, CODES_OF] {
        rows.push(tx.execute(statement.bind((of.as_slice(), BATCH))).await?);
    }
    clear_families(tx, rows, revoked).await
}

/// Deletes those families that have no token and no code, after these numbers of tokens and codes.
async fn clear_families(
    tx: &Tx,
    mut rows: Vec<usize>,
    families: Vec<FamilyRow>,
) -> Result<Cleared, StoreError> {
    let mut of = column(&families, |row| row.family_id);
    of.sort_unstable();
    of.dedup();
    rows.push(count(tx.row(FAMILIES.bind((of,))).await?)?);
    Ok(Cleared::of(&rows))
}

/// Deletes old items of the change feed.
async fn clear_changes(tx: &Tx) -> Result<Cleared, StoreError> {
    let stored = stored_position(tx, FEED_POSITION).await?;
    let position = stored.as_deref().unwrap_or(FEED_START);
    let walk = tx.row(CHANGES.bind((position, EXAMINED, BATCH))).await?;
    let WalkRow { rows, next } = walk.unwrap_or_default();
    let cleared = Cleared::of(&[usize::try_from(rows).map_err(StoreError::unexpected)?]);
    if !cleared.more {
        let next = next.unwrap_or_else(|| FEED_START.to_owned());
        store_position(tx, FEED_POSITION, stored, next).await?;
    }
    Ok(cleared)
}

async fn stored_position(tx: &Tx, key: &'static str) -> Result<Option<String>, StoreError> {
    let stored = instance::table.find(key).select(PositionRow::as_select());
    Ok(tx.row(stored).await?.map(|row| row.value))
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
    let store = diesel::insert_into(instance::table)
        .values((instance::key.eq(key), instance::value.eq(value)))
        .on_conflict(instance::key)
        .do_update()
        .set((
            instance::value.eq(excluded(instance::value)),
            instance::set_at.eq(api_now()),
        ));
    tx.execute(store).await.map(drop)
}

/// Deletes old deliveries. There is more until the last queue was examined.
async fn clear_deliveries(tx: &Tx) -> Result<Cleared, StoreError> {
    let stored = stored_position(tx, QUEUE_POSITION).await?;
    let position = stored.as_deref().unwrap_or(FIRST_QUEUE);
    let walk = tx.row(DELIVERIES.bind((position, QUEUES, BATCH))).await?;
    let WalkRow { rows, next } = walk.unwrap_or_default();
    let rows = usize::try_from(rows).map_err(StoreError::unexpected)?;
    let cleared = Cleared {
        rows,
        more: is_full(rows, BATCH) || next.is_some(),
    };
    let next = next.unwrap_or_else(|| FIRST_QUEUE.to_owned());
    store_position(tx, QUEUE_POSITION, stored, next).await?;
    Ok(cleared)
}

/// Erases the buyers of one batch of orders in the caller's transaction.
async fn erase_buyers(tx: &Tx, age: TimeDelta) -> Result<Cleared, StoreError> {
    let locked = tx.rows(ORDERS.bind((ORDERS_AT_ONCE, microseconds(age)))).await?;
    let orders = column(&locked, |row| row.order_id);
    let orders = orders.as_slice();
    if !orders.is_empty() && tx.context().layout == Layout::Citus {
        erase_by_seller(tx, &locked).await?;
    } else if !orders.is_empty() {
        tx.execute(ERASE_BUYERS.bind((orders,))).await?;
    }
    if !orders.is_empty() {
        // A transaction that held a part until just now may have queued a mail. This statement sees everything
        // committed while the previous one waited; later transactions find no buyer to write to.
        tx.execute(diesel::delete(
            mails::table.filter(mails::order_id.eq_any(orders)),
        ))
        .await?;
        tx.execute(MARK_ERASED.bind((orders,))).await?;
    }
    Ok(Cleared {
        rows: orders.len(),
        more: is_full(orders.len(), ORDERS_AT_ONCE),
    })
}

/// On Citus: one statement per seller. Its time is `tx.now()`.
async fn erase_by_seller(tx: &Tx, orders: &[OrderRow]) -> Result<(), StoreError> {
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
