//! Clearing what has had its time.

mod buyers;
mod deliveries;
mod panel;
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
    /// Tokens and codes that expired over an hour ago.
    pub tokens: usize,
    /// Families that were revoked over an hour ago, or whose last token or code went.
    pub families: usize,
    /// Windows that began over ten minutes ago.
    pub rate_windows: usize,
    /// What the panel keeps: sessions, links, forms and screens of consent soon after their end, mails about accounts after 30
    /// days, usage after 35, the audit log after 400.
    pub panel: usize,
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

/// Clears a table of credentials and names the families that they were of.
macro_rules! expired {
    ($name:ident, $table:literal) => {
        struct $name {
            batch: i64,
        }

        statement!($name => SqlUuid:
            concat!("delete from ", $table, " where (family_id, hash) in (select family_id, hash from ", $table,
                " where expires_at < (select api_now()) - interval '1 hour' order by expires_at limit "), batch: BigInt,
            " for update skip locked) returning family_id");
    };
}

expired!(AccessTokens, "access_tokens");
expired!(RefreshTokens, "refresh_tokens");
expired!(Codes, "authorization_codes");

/// Families whose last token or code has gone, and some of those that were revoked, with what sellers see of them. A family
/// that has neither is given none any more, so nothing can come in between.
struct Families {
    emptied: Vec<Uuid>,
    batch: i64,
}

statement!(Families => BigInt:
    "with revoked as (select id from families where revoked_at < (select api_now()) - interval '1 hour' \
       order by revoked_at limit ", batch: BigInt, " for update skip locked), \
     doomed as (select id from revoked union select f.id from families f where f.id = any(", emptied: Array<SqlUuid>,
    ") and not exists (select from access_tokens t where t.family_id = f.id) \
         and not exists (select from refresh_tokens t where t.family_id = f.id) \
         and not exists (select from authorization_codes c where c.family_id = f.id)), \
     gone as (delete from families f using doomed where f.id = doomed.id returning f.seller_id, f.id), \
     named as (delete from personal_tokens p using gone where p.seller_id = gone.seller_id and p.id = gone.id) \
     select count(*) from gone");

/// Clears one batch in a transaction of the caller's.
pub(crate) async fn clear(tx: &Tx) -> Result<Cleared, StoreError> {
    let mut connection = tx.connection();
    let rate_windows = tx.run(Windows { batch: BATCH }.execute(&mut connection)).await?;
    let mut emptied = tx
        .run(AccessTokens { batch: BATCH }.get_results::<Uuid>(&mut connection))
        .await?;
    let refresh = tx
        .run(RefreshTokens { batch: BATCH }.get_results::<Uuid>(&mut connection))
        .await?;
    let codes = tx
        .run(Codes { batch: BATCH }.get_results::<Uuid>(&mut connection))
        .await?;
    let of_each = [emptied.len(), refresh.len(), codes.len()];
    emptied.extend(refresh);
    emptied.extend(codes);
    emptied.sort_unstable();
    emptied.dedup();
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
    let panel = panel::clear_panel(tx).await?;
    let counts = of_each.iter().chain(&panel).chain([&rate_windows, &families]);
    let more = counts.into_iter().any(|rows| *rows >= full);
    Ok(Cleared {
        tokens: of_each.iter().sum(),
        families,
        rate_windows,
        panel: panel.iter().sum(),
        more,
    })
}
