//! Which keys seal the stored values, and resealing webhook secrets under another key. Only these secrets outlive a
//! key: all other sealed values expire within days.

use std::{collections::BTreeMap, sync::Arc};

use diesel_async::RunQueryDsl;
use kernel::{SealPurpose, StoreError};
use uuid::Uuid;

use crate::connection::error::{is_lock_timeout, store_error};
use crate::connection::pool::Autocommit;
use crate::connection::{Connector, OpenConnection};
use crate::sealing::Sealing;
use crate::sql::{row, sql};
use crate::webhooks::secret_binding;

/// The column of webhook signing secrets.
pub const WEBHOOK_SECRETS: &str = "subscriptions.secret";
/// Every column of sealed values, with its purpose.
const COLUMNS: [(&str, SealPurpose); 4] = [
    (WEBHOOK_SECRETS, SealPurpose::WebhookSecret),
    ("idempotency.body", SealPurpose::RememberedBody),
    ("account_mails.url", SealPurpose::MailedLink),
    ("flashes.sealed", SealPurpose::Flash),
];
/// Secrets read per page.
const PAGE: i64 = 200;

/// The id of the key that sealed a value; the first byte is the id's length.
macro_rules! key_of {
    ($column:literal) => {
        concat!(
            "encode(substring(",
            $column,
            " from 2 for get_byte(",
            $column,
            " || '\\x00'::bytea, 0)), 'escape')"
        )
    };
}

/// Counts the values of a column by key.
macro_rules! counted {
    ($table:literal, $column:literal) => {
        concat!(
            "select '",
            $table,
            ".",
            $column,
            "', ",
            key_of!($column),
            ", count(*) from ",
            $table,
            " where ",
            $column,
            " is not null group by 2"
        )
    };
}

/// Three values of each key, among the first 500 rows returned for a column, with their bindings.
macro_rules! sampled {
    ($table:literal, $column:literal, $binding:literal) => {
        concat!(
            "(select '",
            $table,
            ".",
            $column,
            "', key, binding, sealed from (select key, binding, sealed, \
            row_number() over (partition by key) as place from (select ",
            key_of!($column),
            " as key, ",
            $binding,
            " as binding, ",
            $column,
            " as sealed from ",
            $table,
            " where ",
            $column,
            " is not null limit 500) sample) counted where place <= 3)"
        )
    };
}

row! {
    struct SecretRow {
        seller_id: Uuid,
        id: Uuid,
        /// The id of the sealing key.
        key: String,
        secret: Vec<u8>,
    }
}

/// Result of resealing webhook secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Already sealed with the current key.
    pub current: u64,
    /// Resealed, or in a dry run would have been.
    pub resealed: u64,
    /// Locked by another transaction.
    pub busy: u64,
    /// Could not be opened, by the id of the key that they name.
    pub unopened: BTreeMap<String, u64>,
}

/// All sealed values of a database.
pub struct SealedValues {
    pub(crate) connector: Arc<Connector>,
    pub(crate) statements: Autocommit,
    pub(crate) sealing: Sealing,
}

impl SealedValues {
    /// The number of values that each key seals: by key id, and then by column. Has no timeout.
    pub async fn keys(&self) -> Result<BTreeMap<String, BTreeMap<&'static str, u64>>, StoreError> {
        let open = self.connector.open().await?;
        let counted = sql!((String, String, i64): concat!(counted!("subscriptions", "secret"), " union all ",
            counted!("idempotency", "body"), " union all ", counted!("account_mails", "url"), " union all ",
            counted!("flashes", "sealed")));
        let rows = counted
            .get_results::<(String, String, i64)>(&mut open.connection())
            .await;
        let mut keys = BTreeMap::<String, BTreeMap<&'static str, u64>>::new();
        for (name, key, count) in rows.map_err(store_error)? {
            let columns = keys.entry(key).or_default();
            if let Some((column, _)) = COLUMNS.iter().find(|(column, _)| *column == name) {
                columns.insert(column, u64::try_from(count).map_err(StoreError::unexpected)?);
            }
        }
        Ok(keys)
    }

    pub fn columns() -> impl Iterator<Item = &'static str> {
        COLUMNS.iter().map(|(column, _)| *column)
    }

    /// Opens a few values of each key and returns, by key id, whether any opened. Cheap; a key that seals few values may be
    /// missed.
    pub async fn sample(&self) -> Result<BTreeMap<String, bool>, StoreError> {
        // These bindings are built in `sealing`, `webhooks` and the use case `shown_once`.
        let sampled = sql!((String, String, Vec<u8>, Vec<u8>): concat!(
            sampled!("subscriptions", "secret", "uuid_send(seller_id) || uuid_send(id)"), " union all ",
            sampled!("idempotency", "body", "int8send(16) || uuid_send(seller_id) || int8send(octet_length(key)) \
              || convert_to(key, 'UTF8') || int8send(octet_length(fingerprint)) || fingerprint || int8send(16) \
              || uuid_send(fence)"), " union all ",
            sampled!("account_mails", "url", "uuid_send(id)"), " union all ",
            sampled!("flashes", "sealed", "session_hash || uuid_send(form)")));
        let sealer = self.sealing.sealer()?;
        let mut found = BTreeMap::<String, bool>::new();
        for (name, key, binding, sealed) in self.statements.rows(sampled).await? {
            let of_key = found.entry(key).or_default();
            let purpose = COLUMNS.iter().find(|(column, _)| *column == name);
            *of_key |= purpose.is_some_and(|(_, purpose)| sealer.open(*purpose, &binding, &sealed).is_ok());
        }
        Ok(found)
    }

    /// Reseals webhook secrets, except those sealed with the key `current`, which is the one that the sealer seals
    /// with. A `dry` run opens them and writes nothing.
    ///
    /// A secret is replaced only if it is unchanged, one row per statement, so that this can run beside processes that
    /// lock many of these rows. It stores no progress: a repeated run skips what is done.
    pub async fn reseal(&self, current: &str, dry: bool) -> Result<Resealed, StoreError> {
        let sealer = self.sealing.sealer()?;
        let open = self.connector.open().await?;
        let (mut outcome, mut owner, mut id) = (Resealed::default(), Uuid::nil(), Uuid::nil());
        loop {
            let page = sql!(SecretRow: concat!("select seller_id, id, ", key_of!("secret"),
                ", secret from subscriptions where (seller_id, id) > ("), owner, ", ", id,
                ") order by seller_id, id limit ", PAGE, "");
            let page = page.get_results::<SecretRow>(&mut open.connection()).await;
            let page = page.map_err(store_error)?;
            let Some(last) = page.last() else {
                return Ok(outcome);
            };
            (owner, id) = (last.seller_id, last.id);
            for row in page {
                if row.key == current {
                    outcome.current += 1;
                    continue;
                }
                let binding = secret_binding(row.seller_id, row.id);
                let Ok(plain) = sealer.open(SealPurpose::WebhookSecret, &binding, &row.secret) else {
                    *outcome.unopened.entry(row.key).or_default() += 1;
                    continue;
                };
                let new = sealer.seal(SealPurpose::WebhookSecret, &binding, &plain);
                if dry || replace(&open, &row, new).await? {
                    outcome.resealed += 1;
                } else {
                    outcome.busy += 1;
                }
            }
        }
    }
}

/// False if the row is locked by another transaction, changed or removed.
async fn replace(open: &OpenConnection, row: &SecretRow, sealed: Vec<u8>) -> Result<bool, StoreError> {
    let replace = sql!((): "update subscriptions set secret = ", sealed,
        " from (select set_config('lock_timeout', '2s', true) as lock_timeout) setting where lock_timeout <> '' and seller_id = ",
        row.seller_id, " and id = ", row.id, " and secret = ", row.secret.as_slice(), "");
    match replace.execute(&mut open.connection()).await {
        Ok(rows) => Ok(rows == 1),
        Err(error) if is_lock_timeout(&error) => Ok(false),
        Err(error) => Err(store_error(error)),
    }
}
