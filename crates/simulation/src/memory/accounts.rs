//! Accounts within a transaction.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use oauth::{NewSeller, Seller, SellerStore, is_same_address};

use super::{
    locks::{Row, Strength},
    subscriptions::end_subscriptions,
    transaction::Tx,
};

#[async_trait]
impl SellerStore for Tx {
    async fn add_seller(&self, new: NewSeller) -> Result<Seller, StoreError> {
        self.run(|database, tx| async move {
            let email = new.email.as_str().to_owned();
            database
                .lock(tx, Row::Email(email.to_ascii_lowercase()), Strength::Update)
                .await?;
            database.at_once(|stored| {
                let sellers = &mut stored.tables.sellers;
                let known = sellers.select(tx, |_, _| true);
                if known
                    .iter()
                    .any(|(_, other)| is_same_address(&other.email, &email))
                {
                    return Err(StoreError::Conflict {
                        constraint: "sellers_email_key".to_owned(),
                    });
                }
                let seller = Seller {
                    id: new.id,
                    seller_no: i32::try_from(known.len()).unwrap_or(i32::MAX).saturating_add(1),
                    name: new.name.as_str().to_owned(),
                    email,
                    created_at: new.created_at,
                    closed_at: None,
                };
                sellers.put(tx, seller.id, seller.clone());
                Ok(seller)
            })
        })
        .await
    }

    async fn lock_seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError> {
        self.run(|database, tx| async move {
            database.lock(tx, Row::Seller(id), Strength::NoKeyUpdate).await?;
            Ok(database.at_once(|stored| stored.tables.sellers.get(tx, &id).cloned()))
        })
        .await
    }

    async fn close_seller(&self, id: SellerId, at: DateTime<Utc>) -> Result<bool, StoreError> {
        self.run(|database, tx| async move {
            database.lock(tx, Row::Seller(id), Strength::NoKeyUpdate).await?;
            let closed = database.at_once(|stored| {
                let close = |seller: &mut Seller| seller.closed_at = seller.closed_at.or(Some(at));
                stored.tables.sellers.change(tx, &id, close)
            });
            if closed {
                end_subscriptions(&database, tx, |row| row.new.seller == id).await?;
            }
            Ok(closed)
        })
        .await
    }
}
