//! Everything that lies sealed in the database: which keys seal it, and sealing it anew under another one.
//!
//! It is gone through page by page, in the order of each table's primary key, so that no statement takes long however much
//! there is. Nothing is noted about how far one has come: what is sealed by the right key already is passed over, so that one
//! who was interrupted begins again.

mod columns;
mod statements;

use std::collections::BTreeMap;

use diesel::Queryable;
use diesel_async::RunQueryDsl;
use kernel::StoreError;

use self::statements::{Page, Put, Sample};
use crate::{reads::Reads, sealing::Sealing};

/// Rows of a page: others may have to wait for them while they are written.
const PAGE: u8 = 200;
/// Rows of each column that a sample looks at, so that it costs the same however much there is.
const SAMPLED_ROWS: i64 = 500;
/// Values of a key in each column that a sample opens: a single one may have been changed.
const SAMPLED_VALUES: i64 = 3;

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

    /// Where its table begins.
    pub fn beginning(self) -> SealedPlace {
        let place = self.place();
        SealedPlace {
            first: place.first.beginning.to_owned(),
            second: place.second.beginning.to_owned(),
        }
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

/// What became of the values of one key in a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SealedSample {
    /// Those that opened.
    pub opened: u64,
    /// Those that did not.
    pub unopened: u64,
}

#[derive(Queryable)]
struct Sampled {
    /// The id of the key that sealed it.
    key: String,
    binding: Vec<u8>,
    sealed: Vec<u8>,
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
        let rows = self.page(Page::keys(column.place(), after)).await?;
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
        let place = column.place();
        let rows = self.page(Page::others_than(current, place, after)).await?;
        let next = next(&rows);
        let (mut outcome, mut new) = (Resealed::default(), Put::nothing(place));
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
            self.put(new).await?
        };
        outcome.resealed = written;
        outcome.busy = opened.saturating_sub(written);
        Ok((outcome, next))
    }

    /// Opens a few values of each key that seals some, among the first rows of each column that come to hand, and tells by the
    /// keys' ids what became of them. Cheap; what seals little may be missed.
    pub async fn sample(&self) -> Result<BTreeMap<String, SealedSample>, StoreError> {
        let sealer = self.sealing.sealer()?;
        let mut found = BTreeMap::<String, SealedSample>::new();
        for column in SealedColumn::ALL {
            let sample = Sample {
                of: column.place(),
                rows: SAMPLED_ROWS,
                values: SAMPLED_VALUES,
            };
            let read = self
                .reads
                .ask(|lent| async move { sample.get_results::<Sampled>(&mut lent.connection()).await });
            for value in read.await? {
                let of_key = found.entry(value.key).or_default();
                match sealer.open(column.purpose(), &value.binding, &value.sealed) {
                    Ok(_) => of_key.opened += 1,
                    Err(_) => of_key.unopened += 1,
                }
            }
        }
        Ok(found)
    }

    async fn page(&self, page: Page) -> Result<Vec<Row>, StoreError> {
        let read = self
            .reads
            .ask(|lent| async move { page.get_results::<Row>(&mut lent.connection()).await });
        read.await
    }

    async fn put(&self, new: Put) -> Result<u64, StoreError> {
        let written = self
            .reads
            .ask(|lent| async move { new.execute(&mut lent.connection()).await });
        u64::try_from(written.await?).map_err(StoreError::unexpected)
    }
}

fn next(rows: &[Row]) -> Option<SealedPlace> {
    let last = rows.last().filter(|_| rows.len() >= usize::from(PAGE))?;
    Some(SealedPlace {
        first: last.first.clone(),
        second: last.second.clone(),
    })
}
