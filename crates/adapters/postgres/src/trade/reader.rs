//! Orders outside a transaction, for their sellers.

use std::sync::Arc;

use async_trait::async_trait;
use diesel::{
    QueryResult,
    sql_types::{Array, BigInt, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Keyset, Page, PageSize, SellerId, StoreError};
use orders::{OrderFilter, OrderNumber, OrderReader, OrderRef, OrderStatus, SellerOrder};
use uuid::Uuid;

use super::{
    page,
    row::{PartColumns, PartRow, part_columns},
};
use crate::{
    connector::Connector,
    keyed::{ById, Keyed},
    line::Line,
    listing::{self, Filter},
    settings::Gathering,
    statement::statement,
};

/// Reads orders for one server thread.
pub(crate) struct OrdersReader {
    by_id: ById<Single>,
    others: Line,
}

impl OrdersReader {
    pub(crate) fn new(connector: &Arc<Connector>, gathering: Gathering) -> Self {
        Self {
            by_id: ById::new(connector, gathering),
            others: Line::new(Arc::clone(connector), "order_pages"),
        }
    }

    async fn by_number(
        &self,
        seller: SellerId,
        number: &OrderNumber,
    ) -> Result<Option<SellerOrder>, StoreError> {
        let one = OneByNumber {
            seller: seller.uuid(),
            number: number.as_str().to_owned(),
        };
        let ask = self
            .others
            .ask(|link| async move { one.get_results::<PartRow>(&mut link.connection()).await });
        ask.await?.pop().map(SellerOrder::try_from).transpose()
    }
}

#[async_trait]
impl OrderReader for OrdersReader {
    async fn order(&self, seller: SellerId, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError> {
        match order {
            OrderRef::Id(id) => self.by_id.read(seller, id.uuid()).await,
            OrderRef::Number(number) => self.by_number(seller, number).await,
        }
    }

    async fn orders(
        &self,
        seller: SellerId,
        filter: OrderFilter,
        after: Option<Keyset>,
        size: PageSize,
    ) -> Result<Page<SellerOrder>, StoreError> {
        let filter = Filter {
            status: filter.status.map(OrderStatus::as_str),
            newer_than: filter.placed_after,
            updated_after: filter.updated_after,
        };
        listing::read::<page::Parts>(&self.others, seller, filter, after, size).await
    }
}

struct OnePart {
    seller: Uuid,
    order: Uuid,
}

statement!(OnePart => PartColumns:
    concat!("select ", part_columns!(), " from seller_orders o where seller_id = "), seller: SqlUuid,
    " and order_id = ", order: SqlUuid, "");

struct OneByNumber {
    seller: Uuid,
    number: String,
}

statement!(OneByNumber => PartColumns:
    concat!("select ", part_columns!(), " from seller_orders o where seller_id = "), seller: SqlUuid,
    " and number = ", number: Text, "");

/// The keys are handed in by a subquery, so that one plan is kept for lists of any length.
struct Parts {
    sellers: Vec<Uuid>,
    orders: Vec<Uuid>,
}

statement!(Parts => (BigInt, PartColumns):
    concat!("select k.n, ", part_columns!(), " from unnest((select "), sellers: Array<SqlUuid>,
    "::uuid[]), (select ", orders: Array<SqlUuid>,
    "::uuid[])) with ordinality as k (seller_id, order_id, n) \
     join seller_orders o on o.seller_id = k.seller_id and o.order_id = k.order_id");

/// Parts by their orders' ids.
struct Single;

#[async_trait]
impl Keyed for Single {
    const NAME: &'static str = "orders";
    type Row = PartRow;
    type Item = SellerOrder;

    fn key(part: &SellerOrder) -> (SellerId, Uuid) {
        (part.seller, part.id.uuid())
    }

    async fn one(mut connection: &AsyncPgConnection, seller: Uuid, order: Uuid) -> QueryResult<Vec<PartRow>> {
        OnePart { seller, order }.get_results(&mut connection).await
    }

    async fn many(
        mut connection: &AsyncPgConnection,
        sellers: Vec<Uuid>,
        orders: Vec<Uuid>,
    ) -> QueryResult<Vec<(i64, PartRow)>> {
        Parts { sellers, orders }.get_results(&mut connection).await
    }
}
