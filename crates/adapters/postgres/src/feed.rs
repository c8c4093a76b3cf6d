//! Reading the change feed. Writers take no lock and no counter for its order, which is that of transaction
//! ids: a long transaction delays all readers, and a restored database begins a new feed.

use async_trait::async_trait;
use changes::{
    ChangeCursor, ChangeItem, ChangeKind, ChangePage, ChangeReader, ChangesError, Detail, MAX_CHANGES, Topic,
};
use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Timestamptz};
use kernel::{Money, StoreError};
use offers::{OfferStatus, Stock};
use usecases::LockSet;
use uuid::Uuid;

use crate::connection::NOT_ADOPTED;
use crate::connection::pool::Autocommit;
use crate::schema;
use crate::statement::statements;

statements! {
    "feed.sql";
    CHANGES: (BigInt, BigInt, Timestamptz, BigInt) -> PageRow;
}

/// The feed, and one of its rows, if there are any.
#[derive(QueryableByName)]
struct PageRow {
    #[diesel(sql_type = BigInt)]
    feed: i64,
    /// Whether the position belongs to its history.
    #[diesel(sql_type = Bool)]
    known: bool,
    #[diesel(embed)]
    row: Option<FeedRow>,
}

#[derive(QueryableByName)]
#[diesel(table_name = schema::changes)]
struct FeedRow {
    xid: i64,
    id: i64,
    seller_id: Uuid,
    at: DateTime<Utc>,
    kind: String,
    offer_id: Option<Uuid>,
    order_id: Option<Uuid>,
    client_id: Option<Uuid>,
    price_amount: Option<i64>,
    stock: Option<i32>,
    status: Option<String>,
}

impl TryFrom<FeedRow> for ChangeItem {
    type Error = StoreError;

    fn try_from(row: FeedRow) -> Result<Self, StoreError> {
        let corrupt =
            |reason: String| StoreError::corrupt("changes", format!("{}, {}", row.seller_id, row.id), reason);
        let kind = ChangeKind::parse(&row.kind).ok_or_else(|| corrupt(format!("kind {:?}", row.kind)))?;
        let topic = match (row.offer_id, row.order_id, row.client_id) {
            (Some(id), None, None) => Topic::Offer(id.into()),
            (None, Some(id), None) => Topic::Order(id.into()),
            (None, None, Some(id)) => Topic::Application(id.into()),
            _ => return Err(corrupt("not exactly one topic".to_owned())),
        };
        let detail = detail(row.price_amount, row.stock, row.status.as_deref()).map_err(corrupt)?;
        Ok(Self {
            kind,
            seller: row.seller_id.into(),
            topic,
            detail,
            at: row.at,
        })
    }
}

fn detail(amount: Option<i64>, stock: Option<i32>, status: Option<&str>) -> Result<Detail, String> {
    match (amount, stock, status) {
        (None, None, None) => Ok(Detail::Nothing),
        (Some(amount), None, None) => Money::pln(amount)
            .map(Detail::Price)
            .map_err(|invalid| format!("price {amount} {invalid}")),
        (None, Some(pieces), None) => Stock::new(pieces.into())
            .map(Detail::Stock)
            .map_err(|invalid| format!("stock {pieces} {invalid}")),
        (None, None, Some(word)) => OfferStatus::parse(word)
            .map(Detail::Status)
            .ok_or_else(|| format!("status {word:?}")),
        _ => Err("more than one value".to_owned()),
    }
}

/// A position in a feed: that of a row, or all zeros for the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    /// The feed: the identifier of the cluster in which it began, also after an upgrade that took it along; a
    /// random number after a restore.
    feed: i64,
    xid: i64,
    id: i64,
    /// The row's time in microseconds since 1970.
    at: i64,
}

impl Position {
    fn write(self) -> ChangeCursor {
        let Self { feed, xid, id, at } = self;
        ChangeCursor(format!("{feed:x}.{xid:x}.{id:x}.{at:x}"))
    }

    fn read(cursor: &ChangeCursor) -> Option<Self> {
        let mut numbers = cursor
            .0
            .split('.')
            .map(|number| i64::from_str_radix(number, 16).ok());
        let position = Self {
            feed: numbers.next()??,
            xid: numbers.next()??,
            id: numbers.next()??,
            at: numbers.next()??,
        };
        // Each position has exactly one spelling.
        (numbers.next().is_none() && position.write() == *cursor).then_some(position)
    }
}

/// The change feed; one statement per page.
#[async_trait]
impl ChangeReader for Autocommit {
    async fn changes(&self, after: Option<ChangeCursor>, limit: u16) -> Result<ChangePage, ChangesError> {
        let after = match after {
            None => None,
            Some(cursor) => Some(Position::read(&cursor).ok_or(ChangesError::Malformed)?),
        };
        let (xid, id, micros) = after.map_or((0, 0, 0), |position| (position.xid, position.id, position.at));
        let at = DateTime::from_timestamp_micros(micros).ok_or(ChangesError::Malformed)?;
        let page = CHANGES.bind((xid, id, at, i64::from(limit.clamp(1, MAX_CHANGES))));
        let (mut items, mut next) = (Vec::new(), None);
        let share = self.sharing(LockSet::of_feed());
        for PageRow { feed, known, row } in share.rows(page).await? {
            if !known || after.is_some_and(|position| position.feed != feed) {
                return Err(ChangesError::OtherHistory);
            }
            let (xid, id, at) = row.as_ref().map_or((xid, id, micros), |row| {
                (row.xid, row.id, row.at.timestamp_micros())
            });
            next = Some(Position { feed, xid, id, at });
            items.extend(row.map(ChangeItem::try_from).transpose()?);
        }
        let next = next.ok_or_else(|| StoreError::Unavailable(NOT_ADOPTED.into()))?;
        Ok(ChangePage {
            items,
            next: next.write(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_reads_back_and_has_one_spelling() {
        let position = Position {
            feed: 7_710_183_783_564_038_062,
            xid: 4_000_000_000,
            id: 17,
            at: 1_790_000_000_123_456,
        };
        assert_eq!(Position::read(&position.write()), Some(position));
        for other in [
            "",
            "a",
            "1.2.3",
            "1.2.3.4.5",
            "1.2.3.x",
            "1.2.3.+4",
            "01.2.3.4",
            "1.2.3.4 ",
            "1.2.3.ffffffffffffffff",
            "A.1.1.1",
        ] {
            assert_eq!(Position::read(&ChangeCursor(other.to_owned())), None, "{other}");
        }
    }
}
