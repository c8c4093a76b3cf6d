//! Sellers, within a transaction and outside.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{SellerId, StoreError};
use oauth::{NewSeller, PasswordHash, Seller, SellerReader, SellerStore};
use uuid::Uuid;

use crate::{
    connection::pool::Autocommit,
    sql::{row, sql},
    unit_of_work::Tx,
    webhooks::{Ended, end_subscriptions},
};

row! {
    pub(super) struct SellerRow {
        id: Uuid,
        seller_no: i32,
        name: String,
        email: String,
        created_at: DateTime<Utc>,
        closed_at: Option<DateTime<Utc>>,
    }
}

impl TryFrom<SellerRow> for Seller {
    type Error = StoreError;

    fn try_from(row: SellerRow) -> Result<Self, StoreError> {
        if row.seller_no < 1 {
            let reason = format!("seller_no {}", row.seller_no);
            return Err(StoreError::corrupt("sellers", row.id, reason));
        }
        Ok(Self {
            id: row.id.into(),
            seller_no: row.seller_no,
            name: row.name,
            email: row.email,
            created_at: row.created_at,
            closed_at: row.closed_at,
        })
    }
}

/// Reads sellers outside a transaction.
pub(crate) struct Sellers(pub(crate) Autocommit);

#[async_trait]
impl SellerReader for Sellers {
    async fn seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError> {
        let seller = sql!(SellerRow: "select id, seller_no, name, email, created_at, closed_at from sellers where id = ",
            id.uuid(), "");
        self.0.row(seller).await?.map(Seller::try_from).transpose()
    }

    async fn sellers(&self, after: i32, limit: u16) -> Result<Vec<Seller>, StoreError> {
        let some = sql!(SellerRow: "select id, seller_no, name, email, created_at, closed_at from sellers where seller_no > ",
            after, " order by seller_no limit ", i64::from(limit), "");
        self.0
            .rows(some)
            .await?
            .into_iter()
            .map(Seller::try_from)
            .collect()
    }
}

#[async_trait]
impl SellerStore for Tx {
    async fn add_seller(&self, seller: NewSeller) -> Result<Seller, StoreError> {
        let password = seller.password.as_ref().map(PasswordHash::as_str);
        let insert = sql!(SellerRow: "insert into sellers (id, name, email, password_hash, created_at) values (",
            seller.id.uuid(), ", ", seller.name.as_str(), ", ", seller.email.as_str(), ", ", password, ", ", seller.created_at,
            ") returning id, seller_no, name, email, created_at, closed_at");
        let row = self.row(insert).await?;
        row.ok_or_else(|| StoreError::unexpected("a seller was not stored"))?
            .try_into()
    }

    async fn lock_seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError> {
        let lock = sql!(SellerRow: "select id, seller_no, name, email, created_at, closed_at from sellers where id = ",
            id.uuid(), " for no key update");
        self.row(lock).await?.map(Seller::try_from).transpose()
    }

    async fn close_seller(&self, id: SellerId, at: DateTime<Utc>) -> Result<bool, StoreError> {
        let close = sql!((): "update sellers set closed_at = coalesce(closed_at, ", at, ") where id = ", id.uuid(), "");
        let closed = self.execute(close).await? == 1;
        if closed {
            end_subscriptions(self, Ended::Seller(id)).await?;
        }
        Ok(closed)
    }
}
