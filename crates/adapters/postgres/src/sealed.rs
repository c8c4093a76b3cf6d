//! Everything that lies sealed in the database: which keys seal it, and sealing it anew under another one.
//!
//! It is gone through page by page, in the order of each table's primary key, so that no statement takes long however much
//! there is. Nothing is noted about how far one has come: what is sealed by the right key already is passed over, so that one
//! who was interrupted begins again.

mod columns;

use std::collections::BTreeMap;

use diesel::Queryable;
use diesel_async::RunQueryDsl;
use kernel::{Purpose, StoreError};

use self::columns::{
    Asked, FlashesPage, FlashesPut, LinksPage, LinksPut, New, RememberedPage, RememberedPut, SecretsPage,
    SecretsPut,
};
use crate::{reads::Reads, sealing::Sealing};

/// Rows of a page: others may have to wait for them while they are written.
const PAGE: u8 = 200;

/// A column of sealed values. Whatever is sealed and stored is one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SealedColumn {
    /// What webhooks are signed with.
    WebhookSecrets,
    /// Answers that are remembered for idempotency keys.
    RememberedBodies,
    /// Links in mails that wait.
    MailedLinks,
    /// Secrets that the panel is yet to show.
    Flashes,
}

impl SealedColumn {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::WebhookSecrets,
        Self::RememberedBodies,
        Self::MailedLinks,
        Self::Flashes,
    ];

    /// Table and column.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WebhookSecrets => "subscriptions.secret",
            Self::RememberedBodies => "idempotency.body",
            Self::MailedLinks => "account_mails.url",
            Self::Flashes => "flashes.sealed",
        }
    }

    const fn purpose(self) -> Purpose {
        match self {
            Self::WebhookSecrets => Purpose::WebhookSecret,
            Self::RememberedBodies => Purpose::RememberedBody,
            Self::MailedLinks => Purpose::MailedLink,
            Self::Flashes => Purpose::Flash,
        }
    }

    /// Where its table begins.
    pub fn beginning(self) -> SealedPlace {
        let nil = || uuid::Uuid::nil().to_string();
        let (first, second) = match self {
            Self::WebhookSecrets => (nil(), nil()),
            Self::RememberedBodies | Self::MailedLinks => (nil(), String::new()),
            Self::Flashes => (String::new(), nil()),
        };
        SealedPlace { first, second }
    }
}

/// A place in the order of a table: the primary key of its last row that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedPlace {
    first: String,
    second: String,
}

/// What became of the values of a page, or of many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Those that the right key sealed already.
    pub current: u64,
    /// Those that were sealed anew, or would have been.
    pub resealed: u64,
    /// Those that somebody else had locked, changed or removed meanwhile.
    pub busy: u64,
    /// Those that do not open, by the id of the key that they name.
    pub unopened: BTreeMap<String, u64>,
}

impl Resealed {
    /// Adds what became of others.
    pub fn add(&mut self, more: Self) {
        self.current += more.current;
        self.resealed += more.resealed;
        self.busy += more.busy;
        for (key, values) in more.unopened {
            *self.unopened.entry(key).or_default() += values;
        }
    }
}

#[derive(Queryable)]
struct Row {
    first: String,
    second: String,
    /// The id of the key that sealed it.
    key: String,
    /// What it is bound to.
    binding: Vec<u8>,
    /// The sealed value, where it was asked for and another key sealed it.
    sealed: Option<Vec<u8>>,
}

/// All sealed values of a database.
pub struct SealedValues {
    pub(crate) reads: Reads,
    pub(crate) sealing: Sealing,
}

impl std::fmt::Debug for SealedValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealedValues")
    }
}

impl SealedValues {
    /// How many values of the page after a place each key seals, by its id, and the place of the next page; none at the end.
    pub async fn keys(
        &self,
        column: SealedColumn,
        after: &SealedPlace,
    ) -> Result<(BTreeMap<String, u64>, Option<SealedPlace>), StoreError> {
        let rows = self.page(column, Asked::keys(after)).await?;
        let next = next(&rows);
        let mut counts = BTreeMap::new();
        for row in rows {
            *counts.entry(row.key).or_default() += 1;
        }
        Ok((counts, next))
    }

    /// Seals the values of the page after a place anew, but for those that the key named `current` has sealed: the one that
    /// the sealer seals with. Tells what became of them, and the place of the next page; none at the end.
    ///
    /// A value is replaced only where it is still the one that was opened, so that this may run beside processes that write.
    /// With `dry`, values are opened and nothing is written.
    pub async fn reseal(
        &self,
        column: SealedColumn,
        after: &SealedPlace,
        current: &str,
        dry: bool,
    ) -> Result<(Resealed, Option<SealedPlace>), StoreError> {
        let rows = self.page(column, Asked::others_than(current, after)).await?;
        let next = next(&rows);
        let (mut outcome, mut new) = (Resealed::default(), New::default());
        for row in rows {
            let Some(old) = row.sealed else {
                outcome.current += 1;
                continue;
            };
            let sealer = self.sealing.sealer()?;
            match sealer.open(column.purpose(), &row.binding, &old) {
                Ok(plain) => {
                    let value = sealer.seal(column.purpose(), &row.binding, &plain);
                    new.push((row.first, row.second), old, value);
                }
                Err(_) => *outcome.unopened.entry(row.key).or_default() += 1,
            }
        }
        let opened = new.len();
        let written = if dry || opened == 0 {
            opened
        } else {
            self.put(column, new).await?
        };
        outcome.resealed = written;
        outcome.busy = opened.saturating_sub(written);
        Ok((outcome, next))
    }

    async fn page(&self, column: SealedColumn, asked: Asked) -> Result<Vec<Row>, StoreError> {
        macro_rules! read_page {
            ($statement:ident) => {{
                let page = $statement { asked };
                let read = self
                    .reads
                    .ask(|lent| async move { page.get_results::<Row>(&mut lent.connection()).await });
                read.await
            }};
        }
        match column {
            SealedColumn::WebhookSecrets => read_page!(SecretsPage),
            SealedColumn::RememberedBodies => read_page!(RememberedPage),
            SealedColumn::MailedLinks => read_page!(LinksPage),
            SealedColumn::Flashes => read_page!(FlashesPage),
        }
    }

    async fn put(&self, column: SealedColumn, new: New) -> Result<u64, StoreError> {
        macro_rules! put_values {
            ($statement:ident) => {{
                let put = $statement { new };
                let written = self
                    .reads
                    .ask(|lent| async move { put.execute(&mut lent.connection()).await });
                written.await?
            }};
        }
        let written = match column {
            SealedColumn::WebhookSecrets => put_values!(SecretsPut),
            SealedColumn::RememberedBodies => put_values!(RememberedPut),
            SealedColumn::MailedLinks => put_values!(LinksPut),
            SealedColumn::Flashes => put_values!(FlashesPut),
        };
        u64::try_from(written).map_err(StoreError::unexpected)
    }
}

fn next(rows: &[Row]) -> Option<SealedPlace> {
    let last = rows.last().filter(|_| rows.len() >= usize::from(PAGE))?;
    Some(SealedPlace {
        first: last.first.clone(),
        second: last.second.clone(),
    })
}
