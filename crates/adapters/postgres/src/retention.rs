//! Clearing what has had its time.

mod buyers;
mod records;

use diesel::sql_types::{Array, BigInt, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::StoreError;
use uuid::Uuid;

use crate::{statement::statement, transaction::Tx};

pub use self::{buyers::ErasedBuyers, records::ClearedRecords};
pub(crate) use self::{buyers::erase_buyers, records::clear_records};

/// Up to so many rows of each kind go at a time: little enough that nobody waits for the locks.
const BATCH: i64 = 1_000;

/// What one batch has cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleared {
    /// Tokens that expired over an hour ago.
    pub tokens: usize,
    /// Families that were revoked over an hour ago, or whose last token went.
    pub families: usize,
    /// Windows that began over ten minutes ago.
    pub rate_windows: usize,
    /// True when more is left than one batch holds.
    pub more: bool,
}

struct Windows {
    batch: i64,
}

statement!(Windows => ():
    "delete from rate_windows where (window_start, kind, subject) in (select window_start, kind, subject \
       from rate_windows where window_start < (select api_now()) - interval '10 minutes' \
       order by window_start, kind, subject limit ", batch: BigInt, " for update skip locked)");

struct Tokens {
    batch: i64,
}

statement!(Tokens => SqlUuid:
    "delete from access_tokens where (family_id, hash) in (select family_id, hash from access_tokens \
       where expires_at < (select api_now()) - interval '1 hour' order by expires_at limit ", batch: BigInt,
    " for update skip locked) returning family_id");

/// Families whose last token has gone, and some of those that were revoked, with what sellers see of them. A family without
/// a token is given none any more, so nothing can come in between.
struct Families {
    emptied: Vec<Uuid>,
    batch: i64,
}

statement!(Families => BigInt:
    "with revoked as (select id from families where revoked_at < (select api_now()) - interval '1 hour' \
       order by revoked_at limit ", batch: BigInt, " for update skip locked), \
     doomed as (select id from revoked union select f.id from families f where f.id = any(", emptied: Array<SqlUuid>,
    ") and not exists (select from access_tokens t where t.family_id = f.id)), \
     gone as (delete from families f using doomed where f.id = doomed.id returning f.seller_id, f.id), \
     named as (delete from personal_tokens p using gone where p.seller_id = gone.seller_id and p.id = gone.id) \
     select count(*) from gone");

/// Clears one batch in a transaction of the caller's.
pub(crate) async fn clear(tx: &Tx) -> Result<Cleared, StoreError> {
    let mut connection = tx.connection();
    let rate_windows = tx.run(Windows { batch: BATCH }.execute(&mut connection)).await?;
    let emptied = tx
        .run(Tokens { batch: BATCH }.get_results::<Uuid>(&mut connection))
        .await?;
    let tokens = emptied.len();
    let families = tx
        .run(
            Families {
                emptied,
                batch: BATCH,
            }
            .get_result::<i64>(&mut connection),
        )
        .await?;
    let families = usize::try_from(families).map_err(StoreError::unexpected)?;
    let full = usize::try_from(BATCH).map_err(StoreError::unexpected)?;
    let more = [rate_windows, tokens, families].iter().any(|rows| *rows >= full);
    Ok(Cleared {
        tokens,
        families,
        rate_windows,
        more,
    })
}
