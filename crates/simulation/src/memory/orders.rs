//! Orders and the mails about them: within a transaction, and as they are read outside of one.

use ::orders::{
    BuyerNotifier, OrderDirectory, OrderEvent, OrderFilter, OrderId, OrderNumber, OrderReader, OrderRef,
    OrderStore, SellerOrder, ShipmentMail,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{Change, Keyset, Page, PageSize, SellerId, StoreError, Version};

use super::{
    Database, Link, NOBODY, Stored, TxId,
    locks::{Row, Strength},
    transaction::Tx,
};

/// The parts of an order that a transaction sees, one seller's or all, in the order of their sellers.
fn parts(stored: &Stored, tx: TxId, order: &OrderRef, seller: Option<SellerId>) -> Vec<SellerOrder> {
    let id = match order {
        OrderRef::Id(id) => Some(*id),
        OrderRef::Number(number) => stored
            .tables
            .numbers
            .get(tx, &number.as_str().to_owned())
            .copied(),
    };
    let Some(id) = id else { return Vec::new() };
    let suits = |key: &(OrderId, SellerId)| key.0 == id && seller.is_none_or(|seller| key.1 == seller);
    let rows = stored.tables.parts.select(tx, |key, _| suits(key));
    rows.into_iter().map(|(_, part)| part).collect()
}

pub(super) async fn lock_parts(
    database: Database,
    tx: TxId,
    order: OrderRef,
    seller: Option<SellerId>,
) -> Result<Vec<SellerOrder>, StoreError> {
    let mut locked = Vec::new();
    for part in database.at_once(|stored| parts(stored, tx, &order, seller)) {
        let key = (part.id, part.seller);
        database
            .lock(tx, Row::Part(key.0, key.1), Strength::NoKeyUpdate)
            .await?;
        locked.extend(database.at_once(|stored| stored.tables.parts.get(tx, &key).cloned()));
    }
    Ok(locked)
}

#[async_trait]
impl OrderStore for Tx {
    async fn lock_part(&self, seller: SellerId, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError> {
        let order = order.clone();
        let mut parts = self
            .run(|database, tx| lock_parts(database, tx, order, Some(seller)))
            .await?;
        Ok(parts.pop())
    }

    async fn lock_order(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError> {
        let order = order.clone();
        self.run(|database, tx| lock_parts(database, tx, order, None))
            .await
    }

    async fn open_order(
        &self,
        order: OrderId,
        number: &OrderNumber,
        _is_test: bool,
        _placed_at: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let number = number.as_str().to_owned();
        self.run(|database, tx| async move {
            database
                .lock(tx, Row::Number(number.clone()), Strength::Update)
                .await?;
            database.at_once(|stored| {
                if stored.tables.numbers.get(tx, &number).is_some() {
                    return Err(StoreError::Conflict {
                        constraint: "orders_number_key".to_owned(),
                    });
                }
                stored.tables.numbers.put(tx, number, order);
                Ok(())
            })
        })
        .await
    }

    async fn save_parts(&self, mut changes: Vec<Change<SellerOrder, OrderEvent>>) -> Result<(), StoreError> {
        changes.sort_unstable_by_key(|change| (change.after.seller, change.after.id));
        self.tell(|outbox| {
            for change in &changes {
                for event in &change.events {
                    outbox.order(change.after.seller, event, usecases::Transaction::now(self));
                }
            }
        });
        self.run(|database, tx| async move {
            for change in changes {
                save(&database, tx, change).await?;
            }
            Ok(())
        })
        .await
    }
}

async fn save(
    database: &Database,
    tx: TxId,
    change: Change<SellerOrder, OrderEvent>,
) -> Result<(), StoreError> {
    let part = change.after;
    let key = (part.id, part.seller);
    database
        .lock(tx, Row::Part(key.0, key.1), Strength::NoKeyUpdate)
        .await?;
    database.at_once(|stored| {
        let is_there = stored.tables.parts.get(tx, &key).is_some();
        if is_there == (change.before == Version::Absent) {
            return Err(StoreError::unexpected(
                "0 rows of seller_orders were saved instead of 1",
            ));
        }
        stored.tables.parts.put(tx, key, part);
        Ok(())
    })
}

#[async_trait]
impl BuyerNotifier for Tx {
    async fn queue_mail(&self, mail: ShipmentMail) -> Result<(), StoreError> {
        self.run(|database, tx| async move {
            database.at_once(|stored| stored.tables.mails.put(tx, mail.id, mail));
            Ok(())
        })
        .await
    }

    async fn forget_mails(&self, order: OrderId) -> Result<(), StoreError> {
        self.run(|database, tx| async move {
            database.at_once(|stored| {
                for (id, _) in stored.tables.mails.select(tx, |_, mail| mail.order == order) {
                    stored.tables.mails.remove(tx, &id);
                }
            });
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl OrderReader for Link {
    async fn order(&self, seller: SellerId, order: &OrderRef) -> Result<Option<SellerOrder>, StoreError> {
        Ok(self.read(order, Some(seller)).await?.pop())
    }

    async fn orders(
        &self,
        seller: SellerId,
        filter: OrderFilter,
        after: Option<Keyset>,
        size: PageSize,
    ) -> Result<Page<SellerOrder>, StoreError> {
        Err(StoreError::unexpected(format!(
            "no lists are kept here: {size:?} after {after:?} of {seller}, {filter:?}"
        )))
    }
}

#[async_trait]
impl OrderDirectory for Link {
    async fn parts(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError> {
        self.read(order, None).await
    }
}

impl Link {
    async fn read(&self, order: &OrderRef, seller: Option<SellerId>) -> Result<Vec<SellerOrder>, StoreError> {
        let (database, order) = (self.database.clone(), order.clone());
        let read = async move {
            let read = |stored: &mut Stored| parts(stored, NOBODY, &order, seller);
            Ok(database.at_once(read))
        };
        self.ask(read).await
    }
}
