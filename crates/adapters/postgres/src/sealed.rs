//! Which keys seal the stored values, and resealing webhook secrets under another key. Only these secrets
//! outlive a key: all other sealed values expire within days.

use std::collections::BTreeMap;

use diesel::sql_types::{BigInt, Binary, Text, Uuid as SqlUuid};
use diesel_async::{RunQueryDsl as _, SimpleAsyncConnection as _};
use kernel::{SealPurpose, StoreError};
use uuid::Uuid;

use crate::connection::error::{is_lock_timeout, store_error};
use crate::connection::{BEGIN_UNLIMITED, OpenConnection};
use crate::database::Database;
use crate::schema::subscriptions;
use crate::sealing::secret_binding;
use crate::statement::statements;

statements! {
    "sealed.sql";
    COUNTS: () -> CountRow;
    SAMPLE: () -> SampleRow;
    SECRETS: (SqlUuid, SqlUuid) -> SecretRow;
    REPLACE_SECRET: (SqlUuid, SqlUuid, Binary, Binary);
}

/// The column of webhook signing secrets.
pub const WEBHOOK_SECRETS: &str = "subscriptions.secret";
/// Every column of sealed values, with its purpose.
const COLUMNS: [(&str, SealPurpose); 4] = [
    (WEBHOOK_SECRETS, SealPurpose::WebhookSecret),
    ("idempotency.body", SealPurpose::RememberedBody),
    ("account_mails.url", SealPurpose::MailedLink),
    ("flashes.sealed", SealPurpose::Flash),
];

#[derive(diesel::QueryableByName)]
struct CountRow {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    key: String,
    #[diesel(sql_type = BigInt)]
    count: i64,
}

#[derive(diesel::QueryableByName)]
struct SampleRow {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    key: String,
    #[diesel(sql_type = Binary)]
    binding: Vec<u8>,
    #[diesel(sql_type = Binary)]
    value: Vec<u8>,
}

#[derive(diesel::QueryableByName)]
#[diesel(table_name = subscriptions)]
struct SecretRow {
    seller_id: Uuid,
    id: Uuid,
    /// The id of the sealing key.
    #[diesel(sql_type = Text)]
    key: String,
    secret: Vec<u8>,
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

/// The columns of sealed values.
pub fn sealed_columns() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|(column, _)| *column)
}

impl Database {
    /// The number of values that each key seals: by key id, and then by column. Has no timeout.
    pub async fn sealing_keys(&self) -> Result<BTreeMap<String, BTreeMap<String, u64>>, StoreError> {
        let open = self.connector().open().await?;
        let mut connection = open.connection();
        let begun = connection.batch_execute(BEGIN_UNLIMITED).await;
        begun.map_err(store_error)?;
        let rows = COUNTS.bare().get_results::<CountRow>(&mut connection).await;
        let mut keys = BTreeMap::<String, BTreeMap<String, u64>>::new();
        for row in rows.map_err(store_error)? {
            let count = u64::try_from(row.count).map_err(StoreError::unexpected)?;
            keys.entry(row.key).or_default().insert(row.name, count);
        }
        Ok(keys)
    }

    /// Opens a few sealed values of each key and returns, by key id, whether any opened. Cheap; a key that seals few
    /// values may be missed.
    pub async fn sample_sealed(&self) -> Result<BTreeMap<String, bool>, StoreError> {
        let sealer = self.units.sealing.sealer()?;
        let mut found = BTreeMap::<String, bool>::new();
        for row in self.autocommit("sealed_values").rows(SAMPLE.bare()).await? {
            let of_key = found.entry(row.key).or_default();
            let purpose = COLUMNS.iter().find(|(column, _)| *column == row.name);
            *of_key |=
                purpose.is_some_and(|(_, purpose)| sealer.open(*purpose, &row.binding, &row.value).is_ok());
        }
        Ok(found)
    }

    /// Reseals webhook secrets, except those sealed with the key `current`, which is the one that the sealer
    /// seals with. A `dry` run opens them and writes nothing.
    ///
    /// A secret is replaced only if it is unchanged, one row per statement, so that this can run beside
    /// processes that lock many of these rows. It stores no progress: a repeated run skips what is done.
    pub async fn reseal(&self, current: &str, dry: bool) -> Result<Resealed, StoreError> {
        let sealer = self.units.sealing.sealer()?;
        let open = self.connector().open().await?;
        let (mut outcome, mut owner, mut id) = (Resealed::default(), Uuid::nil(), Uuid::nil());
        loop {
            let page = SECRETS.bind((owner, id));
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
    let replace = REPLACE_SECRET.bind((row.seller_id, row.id, row.secret.as_slice(), sealed));
    match replace.execute(&mut open.connection()).await {
        Ok(rows) => Ok(rows == 1),
        Err(error) if is_lock_timeout(&error) => Ok(false),
        Err(error) => Err(store_error(error)),
    }
}
