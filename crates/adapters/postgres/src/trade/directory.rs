//! Whole orders outside a transaction, for the marketplace.

use async_trait::async_trait;
use diesel::sql_types::{Text, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::StoreError;
use orders::{OrderDirectory, OrderRef, SellerOrder};
use uuid::Uuid;

use super::row::{PartColumns, PartRow, part_columns};
use crate::{reads::Reads, statement::statement};

struct PartsById {
    order: Uuid,
}

statement!(PartsById => PartColumns:
    concat!("select ", part_columns!(), " from seller_orders o where order_id = "), order: SqlUuid,
    " order by seller_id");

struct PartsByNumber {
    number: String,
}

statement!(PartsByNumber => PartColumns:
    concat!("select ", part_columns!(), " from seller_orders o \
        where order_id = (select order_id from orders where number = "), number: Text,
    ") order by seller_id");

/// Reads every seller's part.
pub(crate) struct Directory(pub(crate) Reads);

#[async_trait]
impl OrderDirectory for Directory {
    async fn parts(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError> {
        let rows = match order {
            OrderRef::Id(id) => {
                let parts = PartsById { order: id.uuid() };
                self.0
                    .ask(|lent| async move { parts.get_results::<PartRow>(&mut lent.connection()).await })
                    .await?
            }
            OrderRef::Number(number) => {
                let parts = PartsByNumber {
                    number: number.as_str().to_owned(),
                };
                self.0
                    .ask(|lent| async move { parts.get_results::<PartRow>(&mut lent.connection()).await })
                    .await?
            }
        };
        rows.into_iter().map(SellerOrder::try_from).collect()
    }
}
