//! Orders within a transaction.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::sql_types::{Bool, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use kernel::{Change, SellerId, StoreError};
use orders::{OrderEvent, OrderId, OrderNumber, OrderRef, OrderStore, SellerOrder};
use usecases::Transaction;
use uuid::Uuid;

use super::{
    parcels,
    row::{PartColumns, PartRow, part_columns},
    save::SavePart,
};
use crate::{pending::expect_rows, statement::statement, transaction::Tx};

struct LockPart {
    seller: Uuid,
    order: Uuid,
}

statement!(LockPart => PartColumns:
    concat!("select ", part_columns!(), " from seller_orders o where seller_id = "), seller: SqlUuid,
    " and order_id = ", order: SqlUuid, " for no key update");

struct LockPartByNumber<'a> {
    seller: Uuid,
    number: &'a str,
}

statement!(LockPartByNumber<'_> => PartColumns:
    concat!("select ", part_columns!(), " from seller_orders o where seller_id = "), seller: SqlUuid,
    " and number = ", number: Text, " for no key update");

struct LockOrder {
    order: Uuid,
}

statement!(LockOrder => PartColumns:
    concat!("select ", part_columns!(), " from seller_orders o where order_id = "), order: SqlUuid,
    " order by seller_id for no key update");

struct LockOrderByNumber<'a> {
    number: &'a str,
}

statement!(LockOrderByNumber<'_> => PartColumns:
    concat!("select ", part_columns!(), " from seller_orders o \
        where order_id = (select order_id from orders where number = "), number: Text,
    ") order by seller_id for no key update");

struct Open<'a> {
    order: Uuid,
    number: &'a str,
    is_test: bool,
    placed_at: DateTime<Utc>,
}

statement!(Open<'_> => ():
    "insert into orders (order_id, number, is_test, created_at) values (", order: SqlUuid,
    ", ", number: Text,
    ", ", is_test: Bool,
    ", ", placed_at: Timestamptz, ")");

#[async_trait]
impl OrderStore for Tx {
    async fn lock_part(&self, seller: SellerId, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError> {
        let seller = seller.uuid();
        let mut rows = match order {
            OrderRef::Id(id) => {
                let lock = LockPart {
                    seller,
                    order: id.uuid(),
                };
                self.run(lock.get_results::<PartRow>(&mut self.connection()))
                    .await?
            }
            OrderRef::Number(number) => {
                let lock = LockPartByNumber {
                    seller,
                    number: number.as_str(),
                };
                self.run(lock.get_results::<PartRow>(&mut self.connection()))
                    .await?
            }
        };
        rows.pop().map(SellerOrder::try_from).transpose()
    }

    async fn lock_order(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError> {
        let rows = match order {
            OrderRef::Id(id) => {
                let lock = LockOrder { order: id.uuid() };
                self.run(lock.get_results::<PartRow>(&mut self.connection()))
                    .await?
            }
            OrderRef::Number(number) => {
                let lock = LockOrderByNumber {
                    number: number.as_str(),
                };
                self.run(lock.get_results::<PartRow>(&mut self.connection()))
                    .await?
            }
        };
        rows.into_iter().map(SellerOrder::try_from).collect()
    }

    async fn open_order(
        &self,
        order: OrderId,
        number: &OrderNumber,
        is_test: bool,
        placed_at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let open = Open {
            order: order.uuid(),
            number: number.as_str(),
            is_test,
            placed_at,
        };
        // Sent at once: that the number is taken is for the caller to know.
        expect_rows("orders", self.run(open.execute(&mut self.connection())).await?, 1)
    }

    async fn save_parts(&self, mut changes: Vec<Change<SellerOrder, OrderEvent>>) -> Result<(), StoreError> {
        changes.sort_unstable_by_key(|change| (change.after.seller, change.after.id));
        for change in changes {
            self.tell(|outbox| {
                for event in &change.events {
                    outbox.order(change.after.seller, event, self.now());
                }
            });
            let parcel = parcels::consequence(&change, self.tools().schedule, self.now());
            self.write_later(Box::new(SavePart(change)));
            if let Some(parcel) = parcel {
                self.write_later(parcel);
            }
        }
        Ok(())
    }
}
