//! Orders, one row per seller's part: reading and saving them.

mod documents;
mod row;

use std::collections::BTreeSet;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::dsl::AsSelect;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Json, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use kernel::{Change, Keyset, MailId, Page, PageSize, Precondition, Reader, SellerId, StoreError};
use orders::{
    BuyerSearch, OrderDirectory, OrderFilter, OrderId, OrderNumber, OrderReader, OrderRef, OrderStatus,
    OrderStore, SellerOrder, ShipmentMail, TrackedParcel,
};
use usecases::{Announcement, LockSet};
use uuid::Uuid;

use self::row::{MutableColumns, PartRow};
use crate::connection::{pool::Autocommit, shared::SharedConnection};
use crate::layout::Layout;
use crate::listing::{self, Filter, List, Listed, PageQuestion, Walked};
use crate::schema::{self, api_now, mails, parcels, seller_orders};
use crate::statement::{Statement, statements};
use crate::unit_of_work::{Tx, changing, changing_any, expect_rows};

pub(crate) use self::row::{order_number, parse_carrier, parse_tracking_number};

/// The bytes of items with which a page ends; a literal in `orders.sql`.
const PAGE_LENGTH: i64 = 1_048_576;

diesel::define_sql_function! {
    fn pg_column_size(value: Json) -> Integer;
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = seller_orders, check_for_backend(Pg))]
struct LengthRow {
    items_length: Option<i32>,
    #[diesel(select_expression = pg_column_size(seller_orders::items))]
    size: i32,
}

/// A seller's parts by placement time, without test orders.
pub(crate) struct SellerParts;

statements! {
    "orders.sql";
    PARTS: (Array<SqlUuid>, Array<SqlUuid>) -> Walked<PartRow> = "n, matches, is_end", PartRow;
    BY_IDS: (SqlUuid, Array<SqlUuid>) -> Walked<PartRow> = "n, matches, is_end", PartRow;
    FIND_BY_BUYER: (Text, SqlUuid, BigInt) -> SearchedPart;
    PAGES: (
        Array<SqlUuid>, Array<Nullable<Text>>, Array<Timestamptz>, Array<SqlUuid>, Array<BigInt>, Array<Nullable<Timestamptz>>
    ) -> Walked<PartRow> = "n, matches, is_end", PartRow;
    UPDATED: (
        SqlUuid, Timestamptz, Nullable<Timestamptz>, Timestamptz, SqlUuid, Nullable<Text>, BigInt
    ) -> Walked<PartRow> = "n, matches, is_end", PartRow;
}

#[async_trait]
impl Listed for SellerParts {
    const BY_ID_NAME: &'static str = "orders";
    const PAGES_NAME: &'static str = "order_pages";
    /// Each may have a megabyte.
    const SHARE: usize = 2;
    type Row = PartRow;
    type Item = SellerOrder;
    const BY_ID: Statement<(Array<SqlUuid>, Array<SqlUuid>), Walked<PartRow>> = PARTS;
    const BY_IDS: Statement<(SqlUuid, Array<SqlUuid>), Walked<PartRow>> = BY_IDS;
    const PAGES: Statement<listing::PagesParameters, Walked<PartRow>> = PAGES;
    const UPDATED: Statement<listing::UpdatedParameters, Walked<PartRow>> = UPDATED;

    async fn of_seller(
        connection: &SharedConnection,
        seller: Uuid,
        id: Uuid,
    ) -> Result<Vec<PartRow>, StoreError> {
        let part = seller_orders::table.find((seller, id));
        connection.rows(part.select(PartRow::as_select())).await
    }

    async fn page(
        connection: &SharedConnection,
        page: PageQuestion,
    ) -> Result<Vec<Walked<PartRow>>, StoreError> {
        let (Keyset { at, id }, rows) = (page.after, page.rows);
        let listed = || {
            let mut listed = seller_orders::table
                .filter(seller_orders::seller_id.eq(page.seller.uuid()))
                // Not a comparison with a parameter: the index holds these rows alone.
                .filter(diesel::dsl::not(seller_orders::is_test))
                .filter(seller_orders::placed_at.le(at))
                .filter(seller_orders::placed_at.lt(at).or(seller_orders::order_id.lt(id)))
                .order((seller_orders::placed_at.desc(), seller_orders::order_id.desc()))
                .into_boxed();
            if let Some(status) = page.filter.status {
                listed = listed.filter(seller_orders::status.eq(status));
            }
            if let Some(newer_than) = page.filter.newer_than {
                listed = listed.filter(seller_orders::placed_at.gt(newer_than));
            }
            listed
        };
        let lengths = connection
            .rows(listed().limit(rows).select(LengthRow::as_select()))
            .await?;
        let mut read = 0;
        let end = lengths.iter().position(|row| {
            read += i64::from(row.items_length.unwrap_or(row.size));
            read >= PAGE_LENGTH
        });
        let end = end.filter(|end| end + 1 < lengths.len());
        let rows = end.map_or(rows, |end| i64::try_from(end + 1).unwrap_or(rows));
        let parts = connection
            .rows(listed().limit(rows).select(PartRow::as_select()))
            .await?;
        let walked = |(n, row)| Walked::matching(row, end == Some(n));
        Ok(parts.into_iter().enumerate().map(walked).collect())
    }

    fn key(part: &SellerOrder) -> (SellerId, Keyset) {
        let (at, id) = (part.placed_at, part.id.uuid());
        (part.seller, Keyset { at, id })
    }
}

#[async_trait]
impl OrderReader for List<SellerParts> {
    async fn order(&self, reader: Reader, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError> {
        let number = match order {
            OrderRef::Id(id) => return self.one(reader, id.uuid()).await,
            OrderRef::Number(number) => number.as_str().to_owned(),
        };
        let part = seller_orders::table
            .filter(seller_orders::seller_id.eq(reader.seller.uuid()))
            .filter(seller_orders::number.eq(number))
            .select(PartRow::as_select());
        let read = self
            .by_id
            .alone(reader, |connection| async move { connection.rows(part).await });
        read.await?.pop().map(SellerOrder::try_from).transpose()
    }

    async fn orders_by_id(
        &self,
        reader: Reader,
        ids: &BTreeSet<OrderId>,
    ) -> Result<Vec<SellerOrder>, StoreError> {
        self.by_ids(reader, ids.iter().map(|id| id.uuid()).collect())
            .await
    }

    async fn orders(
        &self,
        reader: Reader,
        filter: OrderFilter,
        after: Option<Keyset>,
        size: PageSize,
    ) -> Result<Page<SellerOrder>, StoreError> {
        let OrderFilter {
            status,
            placed_after,
            updated_after,
        } = filter;
        let filter = Filter {
            status: status.map(OrderStatus::as_str),
            newer_than: placed_after,
            updated_after,
        };
        self.page(reader, filter, after, size).await
    }
}

/// An order in the directory.
#[derive(Queryable, Selectable)]
#[diesel(table_name = schema::orders, check_for_backend(Pg))]
pub(crate) struct DirectoryRow {
    pub(crate) order_id: Uuid,
    pub(crate) sellers: Option<Vec<Uuid>>,
}

fn directory_row(order: &OrderRef) -> schema::orders::BoxedQuery<'_, Pg, AsSelect<DirectoryRow, Pg>> {
    let known = schema::orders::table
        .select(DirectoryRow::as_select())
        .into_boxed();
    match order {
        OrderRef::Id(id) => known.filter(schema::orders::order_id.eq(id.uuid())),
        OrderRef::Number(number) => known.filter(schema::orders::number.eq(number.as_str())),
    }
}

/// All parts of an order.
fn of_order(
    order: &OrderRef,
) -> Box<dyn BoxableExpression<seller_orders::table, Pg, SqlType = Nullable<Bool>> + '_> {
    let of = seller_orders::order_id.nullable();
    match order {
        OrderRef::Id(id) => Box::new(of.eq(id.uuid())),
        OrderRef::Number(number) => Box::new(
            of.eq(schema::orders::table
                .filter(schema::orders::number.eq(number.as_str()))
                .select(schema::orders::order_id)
                .single_value()),
        ),
    }
}

/// The parts of an order on Citus, read seller by seller. Fails if one cannot be seen. After a crash during a
/// commit this lasts until Citus has recovered it: half an order must not pass for a whole one.
async fn seller_by_seller<F>(
    order: Option<DirectoryRow>,
    part: impl Fn((Uuid, Uuid)) -> F,
) -> Result<Vec<PartRow>, StoreError>
where
    F: Future<Output = Result<Option<PartRow>, StoreError>>,
{
    let Some(order) = order else { return Ok(Vec::new()) };
    let sellers = order.sellers.unwrap_or_default();
    let mut parts = Vec::new();
    for seller in &sellers {
        parts.extend(part((*seller, order.order_id)).await?);
    }
    if parts.len() == sellers.len() {
        return Ok(parts);
    }
    Err(StoreError::Unavailable(
        "a part of the order is not committed yet".into(),
    ))
}

/// Reads every seller's part of an order, for the marketplace.
pub(crate) struct WholeOrders {
    pub(crate) statements: Autocommit,
    pub(crate) layout: Layout,
}

/// A part passed by a search, with the order's number if it is the buyer's.
#[derive(QueryableByName)]
#[diesel(table_name = seller_orders)]
struct SearchedPart {
    order_id: Uuid,
    #[diesel(sql_type = Nullable<Text>)]
    number: Option<String>,
    placed_at: DateTime<Utc>,
}

#[async_trait]
impl OrderDirectory for WholeOrders {
    async fn parts(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError> {
        let parts = seller_orders::table.select(PartRow::as_select());
        let readers = self.statements.sharing(LockSet::of_readers());
        let rows = match self.layout {
            Layout::Citus => {
                let known = readers.row(directory_row(order)).await?;
                seller_by_seller(known, |key| readers.row(parts.find(key))).await?
            }
            Layout::Single => {
                let parts = parts.filter(of_order(order)).order(seller_orders::seller_id);
                readers.rows(parts).await?
            }
        };
        rows.into_iter().map(SellerOrder::try_from).collect()
    }

    /// No index leads to a buyer: it would make each change of an order dearer, for a search that is made a
    /// few times a month. On Citus this goes to every shard.
    async fn find_by_buyer(
        &self,
        email: &str,
        after: Option<OrderId>,
        limit: u16,
    ) -> Result<BuyerSearch, StoreError> {
        let after = after.map_or(Uuid::nil(), OrderId::uuid);
        let search = FIND_BY_BUYER.bind((email, after, i64::from(limit)));
        let rows = self.statements.rows(search).await?;
        Ok(BuyerSearch {
            next: rows.last().map(|row| row.order_id.into()),
            found: rows
                .into_iter()
                .filter_map(|row| Some((row.placed_at, row.number?, row.order_id.into())))
                .collect(),
        })
    }
}

#[async_trait]
impl OrderStore<Announcement> for Tx {
    async fn lock_part(&self, seller: SellerId, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError> {
        use seller_orders::{number, order_id};
        let part = seller_orders::table
            .filter(seller_orders::seller_id.eq(seller.uuid()))
            .select(PartRow::as_select())
            .for_no_key_update();
        let row = match order {
            OrderRef::Id(id) => self.row(part.filter(order_id.eq(id.uuid()))).await?,
            OrderRef::Number(named) => self.row(part.filter(number.eq(named.as_str()))).await?,
        };
        row.map(SellerOrder::try_from).transpose()
    }

    async fn lock_order(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError> {
        let parts = seller_orders::table
            .select(PartRow::as_select())
            .for_no_key_update();
        let rows = match self.units.layout {
            Layout::Citus => {
                let known = self.row(directory_row(order)).await?;
                seller_by_seller(known, |key| self.row(parts.find(key))).await?
            }
            Layout::Single => {
                let parts = parts.filter(of_order(order)).order(seller_orders::seller_id);
                self.rows(parts).await?
            }
        };
        rows.into_iter().map(SellerOrder::try_from).collect()
    }

    async fn open_order(
        &self,
        order: OrderId,
        number: &OrderNumber,
        is_test: bool,
        sellers: &BTreeSet<SellerId>,
        placed_at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let sellers = sellers.iter().map(|seller| seller.uuid()).collect::<Vec<_>>();
        // Sent at once: the caller has to know whether the number is taken.
        let opened = self.execute(diesel::insert_into(schema::orders::table).values((
            schema::orders::order_id.eq(order.uuid()),
            schema::orders::number.eq(number.as_str()),
            schema::orders::is_test.eq(is_test),
            schema::orders::sellers.eq(sellers),
            schema::orders::created_at.eq(placed_at),
        )));
        expect_rows("orders", opened.await?, 1)
    }

    async fn save_parts(
        &self,
        mut changes: Vec<Change<SellerOrder, Announcement>>,
    ) -> Result<(), StoreError> {
        changes.sort_unstable_by_key(|change| (change.after.seller, change.after.id));
        self.mark_distributed_write();
        for change in changes {
            self.outbox().extend(change.events);
            let part = change.after;
            self.write_later(if change.precondition == Precondition::MustNotExist {
                let row = PartRow::try_from(part)?;
                let length = seller_orders::items_length.eq(row.items_length());
                let insert = diesel::insert_into(seller_orders::table).values((row, length));
                changing("seller_orders", 1, insert)
            } else {
                let update = diesel::update(seller_orders::table.find((part.seller.uuid(), part.id.uuid())))
                    .set(MutableColumns::of(&part)?);
                changing("seller_orders", 1, update)
            });
        }
        Ok(())
    }

    async fn begin_tracking(&self, parcel: TrackedParcel) -> Result<(), StoreError> {
        let insert = diesel::insert_into(parcels::table).values((
            parcels::seller_id.eq(parcel.seller.uuid()),
            parcels::order_id.eq(parcel.order.uuid()),
            parcels::shipped_at.eq(parcel.shipped_at),
            parcels::due_at.eq(parcel.due_at),
            parcels::carrier.eq(parcel.carrier.as_str()),
            parcels::tracking_number.eq(parcel.tracking_number.as_str().to_owned()),
        ));
        self.write_later(changing("parcels", 1, insert));
        Ok(())
    }

    async fn end_tracking(&self, seller: SellerId, order: OrderId) -> Result<(), StoreError> {
        let parcel = parcels::table.find((seller.uuid(), order.uuid()));
        self.write_later(changing_any(diesel::delete(parcel)));
        Ok(())
    }

    async fn queue_mail(&self, mail: ShipmentMail) -> Result<(), StoreError> {
        let insert = diesel::insert_into(mails::table).values((
            mails::id.eq(mail.id.uuid()),
            mails::order_id.eq(mail.order.uuid()),
            mails::order_number.eq(mail.number.as_str().to_owned()),
            mails::recipient.eq(mail.to),
            mails::recipient_name.eq(mail.name),
            mails::carrier.eq(mail.carrier.as_str()),
            mails::tracking_number.eq(mail.tracking_number.as_str().to_owned()),
            mails::is_correction.eq(mail.is_correction),
        ));
        self.write_later(changing("mails", 1, insert));
        Ok(())
    }

    async fn requeue_mail(&self, mail: MailId) -> Result<Option<OrderId>, StoreError> {
        let given_up = mails::table
            .find(mail.uuid())
            .filter(mails::dead_at.is_not_null());
        let requeue = diesel::update(given_up)
            .set((
                mails::due_at.eq(api_now().nullable()),
                mails::dead_at.eq(None::<DateTime<Utc>>),
                mails::attempts.eq(0),
            ))
            .returning(RequeuedMail::as_returning());
        Ok(self.row(requeue).await?.map(|mail| mail.order_id.into()))
    }

    async fn drop_retried_mails(&self, order: OrderId) -> Result<(), StoreError> {
        let overtaken = mails::table
            .filter(mails::order_id.eq(order.uuid()))
            .filter(mails::sent_at.is_null())
            .filter(mails::attempts.gt(0))
            // One that is being sent is dropped later, if that fails.
            .filter(mails::fence.is_null());
        self.write_later(changing_any(diesel::delete(overtaken)));
        Ok(())
    }

    async fn forget_mails(&self, order: OrderId) -> Result<(), StoreError> {
        let theirs = mails::table.filter(mails::order_id.eq(order.uuid()));
        self.write_later(changing_any(diesel::delete(theirs)));
        Ok(())
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = mails, check_for_backend(Pg))]
struct RequeuedMail {
    order_id: Uuid,
}
