//! Items of the change feed as rows.

use async_trait::async_trait;
use changes::{ChangeItem, ChangeKind, Detail, Topic};
use chrono::{DateTime, Utc};
use diesel::{
    Queryable,
    sql_types::{self as sql, Array, BigInt, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Money, StoreError};
use offers::{OfferStatus, Stock};
use uuid::Uuid;

use crate::{
    error::store_error,
    pending::{Write, expect_rows},
    statement::statement,
};

/// Items of one seller, in order.
pub(super) struct FeedRows(pub(super) Vec<ChangeItem>);

/// The columns of some items. Their ids rise in this order.
#[derive(Default)]
struct Insert {
    sellers: Vec<Uuid>,
    at: Vec<DateTime<Utc>>,
    kinds: Vec<&'static str>,
    offers: Vec<Option<Uuid>>,
    orders: Vec<Option<Uuid>>,
    clients: Vec<Option<Uuid>>,
    amounts: Vec<Option<i64>>,
    stocks: Vec<Option<i32>>,
    statuses: Vec<Option<&'static str>>,
}

statement!(Insert => ():
    "insert into changes (seller_id, at, kind, offer_id, order_id, client_id, price_amount, stock, status) \
     select * from unnest(", sellers: Array<SqlUuid>,
    ", ", at: Array<Timestamptz>,
    ", ", kinds: Array<Text>,
    ", ", offers: Array<Nullable<SqlUuid>>,
    ", ", orders: Array<Nullable<SqlUuid>>,
    ", ", clients: Array<Nullable<SqlUuid>>,
    ", ", amounts: Array<Nullable<BigInt>>,
    ", ", stocks: Array<Nullable<Integer>>,
    ", ", statuses: Array<Nullable<Text>>, ")");

impl Insert {
    fn push(&mut self, item: &ChangeItem) {
        self.sellers.push(item.seller.uuid());
        self.at.push(item.at);
        self.kinds.push(item.kind.as_str());
        let (offer, order, client) = match item.topic {
            Topic::Offer(id) => (Some(id.uuid()), None, None),
            Topic::Order(id) => (None, Some(id.uuid()), None),
            Topic::Application(id) => (None, None, Some(id.uuid())),
        };
        self.offers.push(offer);
        self.orders.push(order);
        self.clients.push(client);
        let (amount, stock, status) = match item.detail {
            Detail::Price(price) => (Some(price.amount()), None, None),
            Detail::Stock(stock) => (None, Some(stock.get()), None),
            Detail::Status(status) => (None, None, Some(status.as_str())),
            Detail::Nothing => (None, None, None),
        };
        self.amounts.push(amount);
        self.stocks.push(stock);
        self.statuses.push(status);
    }
}

#[async_trait]
impl Write for FeedRows {
    async fn send(&self, mut connection: &AsyncPgConnection) -> Result<(), StoreError> {
        let mut insert = Insert::default();
        for item in &self.0 {
            insert.push(item);
        }
        let rows = insert.execute(&mut connection).await.map_err(store_error)?;
        expect_rows("changes", rows, self.0.len())
    }
}

/// The columns of [`FeedRow`], of the table under the name `f`.
macro_rules! feed_columns {
    () => {
        "f.xid, f.id, f.seller_id, f.at, f.kind, f.offer_id, f.order_id, f.client_id, f.price_amount, f.stock, f.status"
    };
}
pub(crate) use feed_columns;

/// The types of these columns.
pub(crate) type FeedColumns = (
    BigInt,
    BigInt,
    SqlUuid,
    Timestamptz,
    Text,
    Nullable<SqlUuid>,
    Nullable<SqlUuid>,
    Nullable<SqlUuid>,
    Nullable<BigInt>,
    Nullable<Integer>,
    Nullable<sql::Text>,
);

#[derive(Queryable)]
pub(crate) struct FeedRow {
    pub(crate) xid: i64,
    pub(crate) id: i64,
    seller_id: Uuid,
    pub(crate) at: DateTime<Utc>,
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
