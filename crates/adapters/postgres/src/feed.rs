//! Reading the change feed.

use async_trait::async_trait;
use changes::{CHANGES_MAX, ChangeCursor, ChangeItem, ChangePage, ChangeReader, ChangesError};
use chrono::{DateTime, Utc};
use diesel::sql_types::{BigInt, Bool, Nullable, Timestamptz};
use diesel_async::RunQueryDsl;

use crate::{
    outbox::{FeedColumns, FeedRow, feed_columns},
    reads::Reads,
    statement::statement,
};

/// Reads the rows after a place whose transactions have all ended, and so have those of every row that could still come to
/// lie before them. The place of the oldest transaction under way is part of the very snapshot that the rows are read in.
///
/// Two facts come along, also where there are no rows: the identifier of the cluster, and whether the place is one of this
/// cluster's history. A restore or a failover takes back what came last, and transaction ids and numbers of rows are then given
/// out again. So a place is known when a transaction of its id may have been, and its row is there with the very time that it
/// had, or so old that it may have been cleared away.
struct Slice {
    xid: i64,
    id: i64,
    at: DateTime<Utc>,
    rows: i64,
}

statement!(Slice => (BigInt, Bool, Nullable<FeedColumns>):
    "select c.system_identifier, ", xid: BigInt,
    " = 0 or (", xid: BigInt,
    " < pg_snapshot_xmax(pg_current_snapshot())::text::bigint and (", at: Timestamptz,
    " < (select api_now()) - interval '30 days' or exists (select from changes where xid = ", xid: BigInt,
    " and id = ", id: BigInt,
    " and at = ", at: Timestamptz,
    concat!("))), ", feed_columns!(), " from pg_control_system() c left join lateral \
       (select * from changes where (xid, id) > ("), xid: BigInt,
    ", ", id: BigInt,
    ") and xid < (select pg_snapshot_xmin(pg_current_snapshot())::text::bigint) order by xid, id limit ", rows: BigInt,
    ") f on true order by f.xid, f.id");

/// A place in the feed of one cluster: that of a row, or the beginning, which has zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    cluster: i64,
    xid: i64,
    id: i64,
    /// The row's time, in microseconds since 1970.
    at: i64,
}

impl Place {
    fn write(self) -> ChangeCursor {
        let Self { cluster, xid, id, at } = self;
        ChangeCursor(format!("{cluster:x}.{xid:x}.{id:x}.{at:x}"))
    }

    fn read(cursor: &ChangeCursor) -> Option<Self> {
        let mut numbers = cursor
            .0
            .split('.')
            .map(|number| i64::from_str_radix(number, 16).ok());
        let place = Self {
            cluster: numbers.next()??,
            xid: numbers.next()??,
            id: numbers.next()??,
            at: numbers.next()??,
        };
        // One place has one spelling.
        (numbers.next().is_none() && place.write() == *cursor).then_some(place)
    }
}

/// The feed, one statement a page.
pub(crate) struct Feed(pub(crate) Reads);

#[async_trait]
impl ChangeReader for Feed {
    async fn changes(&self, after: Option<ChangeCursor>, limit: u16) -> Result<ChangePage, ChangesError> {
        let after = match after {
            None => None,
            Some(cursor) => Some(Place::read(&cursor).ok_or(ChangesError::Malformed)?),
        };
        let (xid, id, at) = after.map_or((0, 0, 0), |place| (place.xid, place.id, place.at));
        let slice = Slice {
            xid,
            id,
            at: DateTime::from_timestamp_micros(at).ok_or(ChangesError::Malformed)?,
            rows: limit.clamp(1, CHANGES_MAX).into(),
        };
        let ask = self.0.ask(|lent| async move {
            slice
                .get_results::<(i64, bool, Option<FeedRow>)>(&mut lent.connection())
                .await
        });
        let (mut items, mut next) = (Vec::new(), None);
        for (cluster, known, row) in ask.await? {
            if !known || after.is_some_and(|place| place.cluster != cluster) {
                return Err(ChangesError::OtherHistory);
            }
            let (xid, id, at) = row
                .as_ref()
                .map_or((xid, id, at), |row| (row.xid, row.id, row.at.timestamp_micros()));
            next = Some(Place { cluster, xid, id, at });
            items.extend(row.map(ChangeItem::try_from).transpose()?);
        }
        let next = next.ok_or_else(|| kernel::StoreError::unexpected("the cluster has no identifier"))?;
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
    fn a_place_reads_back_and_nothing_else_is_one() {
        let place = Place {
            cluster: 7_710_183_783_564_038_062,
            xid: 4_000_000_000,
            id: 17,
            at: 1_790_000_000_123_456,
        };
        assert_eq!(Place::read(&place.write()), Some(place));
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
            assert_eq!(Place::read(&ChangeCursor(other.to_owned())), None, "{other}");
        }
    }
}
