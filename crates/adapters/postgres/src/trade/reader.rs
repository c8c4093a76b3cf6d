//! Orders outside a transaction, for their sellers.

use std::sync::Arc;

use async_trait::async_trait;
use diesel::{
    QueryResult,
    sql_types::{Array, BigInt, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Keyset, Page, PageSize, SellerId, StoreError};
use orders::{OrderFilter, OrderId, OrderNumber, OrderReader, OrderRef, OrderStatus, SellerOrder};
use uuid::Uuid;

use super::{
    page,
    row::{PartColumns, PartRow, part_columns},
};
use crate::{
    connector::Connector,
    gather::{Gatherer, Grouped},
    line::Line,
    listing::{self, Filter},
    settings::Gathering,
    statement::statement,
};

/// Reads orders for one server thread.
pub(crate) struct OrdersReader {
    by_id: ById,
    others: Line,
}

/// How single orders are read by id.
enum ById {
    Gathered(Gatherer<ManyParts>),
    OneByOne,
}

impl OrdersReader {
    pub(crate) fn new(connector: &Arc<Connector>, gathering: Gathering) -> Self {
        let by_id = match gathering {
            Gathering::Grouped => ById::Gathered(Gatherer::new(ManyParts, Arc::clone(connector))),
            Gathering::Router => ById::OneByOne,
        };
        Self {
            by_id,
            others: Line::new(Arc::clone(connector)),
        }
    }

    async fn by_number(&self, seller: SellerId, number: &OrderNumber) -> Result<Vec<PartRow>, StoreError> {
        let one = OneByNumber {
            seller: seller.uuid(),
            number: number.as_str().to_owned(),
        };
        let ask = self
            .others
            .ask(|link| async move { one.get_results::<PartRow>(&mut link.connection()).await });
        ask.await
    }

    async fn by_id(&self, seller: SellerId, order: OrderId) -> Result<Vec<PartRow>, StoreError> {
        let one = OnePart {
            seller: seller.uuid(),
            order: order.uuid(),
        };
        let ask = self
            .others
            .ask(|link| async move { one.get_results::<PartRow>(&mut link.connection()).await });
        ask.await
    }
}

#[async_trait]
impl OrderReader for OrdersReader {
    async fn order(&self, seller: SellerId, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError> {
        let mut rows = match (order, &self.by_id) {
            (OrderRef::Id(id), ById::Gathered(gatherer)) => return gatherer.ask((seller, *id)).await,
            (OrderRef::Id(id), ById::OneByOne) => self.by_id(seller, *id).await?,
            (OrderRef::Number(number), _) => self.by_number(seller, number).await?,
        };
        rows.pop().map(SellerOrder::try_from).transpose()
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

/// Single parts of any sellers in one statement.
struct ManyParts;

#[async_trait]
impl Grouped for ManyParts {
    const NAME: &'static str = "orders";
    type Question = (SellerId, OrderId);
    type Answer = Option<SellerOrder>;

    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        questions: &[Self::Question],
    ) -> QueryResult<Vec<Result<Option<SellerOrder>, StoreError>>> {
        let (sellers, orders) = questions
            .iter()
            .map(|(seller, order)| (seller.uuid(), order.uuid()))
            .unzip();
        let rows = Parts { sellers, orders }
            .get_results::<(i64, PartRow)>(&mut connection)
            .await?;
        let mut answers = questions.iter().map(|_| Ok(None)).collect::<Vec<_>>();
        for (n, row) in rows {
            let place = usize::try_from(n - 1).unwrap_or(usize::MAX);
            if let (Some(answer), Some(question)) = (answers.get_mut(place), questions.get(place)) {
                *answer = SellerOrder::try_from(row)
                    .and_then(|part| asked_for(part, *question))
                    .map(Some);
            }
        }
        Ok(answers)
    }
}

/// The last line between two sellers whose questions travel together.
fn asked_for(part: SellerOrder, question: (SellerId, OrderId)) -> Result<SellerOrder, StoreError> {
    if (part.seller, part.id) == question {
        return Ok(part);
    }
    Err(StoreError::unexpected(
        "a row came back for another question than its own",
    ))
}
