//! The marketplace erases a buyer's personal data.

use chrono::{DateTime, Utc};
use oauth::{Action, PanelStore};
use orders::{BuyerNotifier, OrderRef, OrderStore, SellerOrder};

use crate::{ActingOperator, Failure, failure::refuse};

/// Why nothing is erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such order.
    #[error("there is no such order")]
    NoSuchOrder,
}

/// Erases the buyer of an order from every seller's part and from the mails about it, sent or not, and returns what the parts
/// are now. Remembered answers hold no buyer. Repeating is harmless.
pub async fn erase_buyer(
    (orders, buyers, panel): (&dyn OrderStore, &dyn BuyerNotifier, &dyn PanelStore),
    by: ActingOperator,
    order: &OrderRef,
    now: DateTime<Utc>,
) -> Result<Vec<SellerOrder>, Failure<Refusal>> {
    let parts = orders.lock_order(order).await?;
    let Some(id) = parts.first().map(|part| part.id) else {
        return refuse(Refusal::NoSuchOrder);
    };
    let (mut after, mut changes) = (Vec::new(), Vec::new());
    for part in parts {
        let holds_buyer = part.buyer.is_some() || part.shipping_address.is_some();
        let change = part.erase_buyer(now);
        after.push(change.after.clone());
        if holds_buyer {
            changes.push(change);
        }
    }
    if !changes.is_empty() {
        orders.save_parts(changes).await?;
        by.note(panel, Action::BuyerErased, id).await?;
    }
    buyers.forget_mails(id).await?;
    Ok(after)
}

#[cfg(test)]
mod tests {
    use oauth::MockPanelStore;
    use orders::{MockBuyerNotifier, MockOrderStore};

    use super::*;
    use crate::test_support::{now, part};

    async fn erase(parts: Vec<SellerOrder>, times: usize) -> Result<Vec<SellerOrder>, Failure<Refusal>> {
        let (mut orders, mut buyers, mut panel) = (
            MockOrderStore::new(),
            MockBuyerNotifier::new(),
            MockPanelStore::new(),
        );
        let reference = OrderRef::Id(uuid::Uuid::from_u128(9).into());
        orders.expect_lock_order().return_once(move |_| Ok(parts));
        orders.expect_save_parts().times(times).returning(|_| Ok(()));
        buyers.expect_forget_mails().returning(|_| Ok(()));
        panel
            .expect_note()
            .times(times)
            .withf(|_, _, action, _| *action == Action::BuyerErased)
            .returning(|_, _, _, _| Ok(()));
        let stores: (&dyn OrderStore, &dyn BuyerNotifier, &dyn PanelStore) = (&orders, &buyers, &panel);
        erase_buyer(stores, ActingOperator::CommandLine, &reference, now()).await
    }

    #[tokio::test]
    async fn the_first_time_erases_and_is_noted() {
        let after = erase(vec![part(1, 1), part(2, 1)], 1).await.unwrap();
        assert!(after.iter().all(|part| part.buyer.is_none()));
        assert_eq!(erase(after.clone(), 0).await.unwrap(), after);
        assert!(matches!(
            erase(Vec::new(), 0).await,
            Err(Failure::Refused(Refusal::NoSuchOrder))
        ));
    }
}
