//! Orders and mails in memory.

use std::sync::Arc;

use async_trait::async_trait;
use kernel::StoreError;
use orders::{OrderDirectory, OrderId, OrderRef, SellerOrder};
use usecases::MockTransaction;

use super::{Mine, Rows, Store, conflict};

impl Rows {
    fn id_of(&self, order: &OrderRef) -> Option<OrderId> {
        match order {
            OrderRef::Id(id) => Some(*id),
            OrderRef::Number(number) => self.numbers.get(number.as_str()).copied(),
        }
    }

    /// An order's parts, in the order of their sellers.
    pub(crate) fn parts(&self, order: &OrderRef) -> Vec<SellerOrder> {
        let id = self.id_of(order);
        let parts = self.orders.values().filter(|part| Some(part.id) == id);
        parts.cloned().collect()
    }
}

#[async_trait]
impl OrderDirectory for Store {
    async fn parts(&self, order: &OrderRef) -> Result<Vec<SellerOrder>, StoreError> {
        self.check()?;
        Ok(self.rows().parts(order))
    }
}

pub(super) fn expect(tx: &mut MockTransaction, mine: &Mine) {
    let rows = Arc::clone(mine);
    tx.expect_lock_order()
        .returning(move |order| Ok(rows.lock().unwrap().parts(order)));
    let rows = Arc::clone(mine);
    tx.expect_open_order().returning(move |id, number, _, _| {
        let mut rows = rows.lock().unwrap();
        if rows.numbers.contains_key(number.as_str()) {
            return Err(conflict("orders_number_key"));
        }
        rows.numbers.insert(number.as_str().to_owned(), id);
        Ok(())
    });
    let rows = Arc::clone(mine);
    tx.expect_save_parts().returning(move |changes| {
        let mut rows = rows.lock().unwrap();
        for change in changes {
            rows.order_events.extend(
                change
                    .events
                    .iter()
                    .map(|event| (change.after.seller, event.kind)),
            );
            rows.orders
                .insert((change.after.id, change.after.seller), change.after);
        }
        Ok(())
    });
    let rows = Arc::clone(mine);
    tx.expect_queue_mail().returning(move |mail| {
        rows.lock().unwrap().mails.push(mail);
        Ok(())
    });
    let rows = Arc::clone(mine);
    tx.expect_forget_mails().returning(move |order| {
        rows.lock().unwrap().mails.retain(|mail| mail.order != order);
        Ok(())
    });
}
