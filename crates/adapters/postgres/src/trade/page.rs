//! The list of a seller's orders.

use async_trait::async_trait;
use diesel_async::RunQueryDsl;
use kernel::{Keyset, StoreError};
use orders::SellerOrder;

use super::row::{PartColumns, PartRow, part_columns};
use crate::{
    listing::{Listed, Slice},
    shared_connection::SharedConnection,
};

/// A seller's parts of orders, by when they were placed; without test orders.
#[derive(Clone, Copy)]
pub(super) struct Parts;

#[async_trait]
impl Listed for Parts {
    const TABLE: &'static str = "seller_orders o";
    const NAME: &'static str = "o";
    const COLUMNS: &'static str = part_columns!();
    const AT: &'static str = "placed_at";
    const ID: &'static str = "order_id";
    const ONLY: &'static str = " and not is_test";
    type Columns = PartColumns;
    type Item = SellerOrder;

    async fn rows(connection: &SharedConnection, slice: Slice<Self>) -> Result<Vec<SellerOrder>, StoreError> {
        let rows =
            connection.ask(|link| async move { slice.get_results::<PartRow>(&mut link.connection()).await });
        rows.await?.into_iter().map(SellerOrder::try_from).collect()
    }

    fn position(part: &SellerOrder) -> Keyset {
        Keyset {
            at: part.placed_at,
            id: part.id.uuid(),
        }
    }
}
