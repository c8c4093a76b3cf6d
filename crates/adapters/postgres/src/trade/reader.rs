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
    batch::{BatchQuery, Batcher, answers_by_place},
    connector::Connector,
    listing::{self, Filter},
    shared_connection::SharedConnection,
    statement::statement,
};

/// Reads orders for one server thread.
pub(crate) struct OrdersReader {
    by_id: Batcher<ById>,
    others: SharedConnection,
}

impl OrdersReader {
    pub(crate) fn new(connector: &Arc<Connector>) -> Self {
        Self {
            by_id: Batcher::new(ById, Arc::clone(connector)),
            others: SharedConnection::new(Arc::clone(connector), "order_pages"),
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
            OrderRef::Id(id) => self.by_id.ask((seller, id.uuid())).await,
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
struct ById;

#[async_trait]
impl BatchQuery for ById {
    const NAME: &'static str = "orders";
    type Question = (SellerId, Uuid);
    type Answer = Option<SellerOrder>;

    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        questions: &[(SellerId, Uuid)],
    ) -> QueryResult<Vec<Result<Option<SellerOrder>, StoreError>>> {
        let (sellers, orders) = questions.iter().map(|(seller, id)| (seller.uuid(), *id)).unzip();
        let rows = Parts { sellers, orders }
            .get_results::<(i64, PartRow)>(&mut connection)
            .await?;
        Ok(answers_by_place(questions, rows, |part: &SellerOrder| {
            (part.seller, part.id.uuid())
        }))
    }
}
