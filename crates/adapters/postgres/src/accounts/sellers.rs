//! Sellers, within a transaction and outside.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::{
    ExpressionMethods, OptionalExtension, QueryDsl, Queryable, Selectable, SelectableHelper, pg::Pg,
    sql_types as sql,
};
use diesel_async::RunQueryDsl;
use kernel::{SellerId, StoreError};
use oauth::{NewSeller, Seller, SellerReader, SellerStore};
use uuid::Uuid;

use crate::{
    reads::Reads,
    schema::{coalesce_instant, sellers},
    transaction::Tx,
    webhooks::{Ended, end_subscriptions},
};

/// The types of the columns of [`SellerRow`]: `id, seller_no, name, email, created_at, closed_at`.
pub(crate) type SellerColumns = (
    sql::Uuid,
    sql::Integer,
    sql::Text,
    sql::Text,
    sql::Timestamptz,
    sql::Nullable<sql::Timestamptz>,
);

#[derive(Queryable, Selectable)]
#[diesel(table_name = sellers, check_for_backend(Pg))]
pub(crate) struct SellerRow {
    id: Uuid,
    seller_no: i32,
    name: String,
    email: String,
    created_at: DateTime<Utc>,
    closed_at: Option<DateTime<Utc>>,
}

impl TryFrom<SellerRow> for Seller {
    type Error = StoreError;

    fn try_from(row: SellerRow) -> Result<Self, StoreError> {
        if row.seller_no < 1 {
            return Err(StoreError::corrupt(
                "sellers",
                row.id,
                format!("seller_no {}", row.seller_no),
            ));
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
pub(crate) struct Sellers(pub(crate) Reads);

#[async_trait]
impl SellerReader for Sellers {
    async fn seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError> {
        let seller = sellers::table.find(id.uuid()).select(SellerRow::as_select());
        let ask = self
            .0
            .ask(|lent| async move { seller.get_result(&mut lent.connection()).await.optional() });
        ask.await?.map(Seller::try_from).transpose()
    }

    async fn sellers(&self, after: i32, limit: u16) -> Result<Vec<Seller>, StoreError> {
        let some = sellers::table
            .filter(sellers::seller_no.gt(after))
            .order(sellers::seller_no)
            .limit(limit.into())
            .select(SellerRow::as_select());
        let rows = self
            .0
            .ask(|lent| async move { some.get_results(&mut lent.connection()).await })
            .await?;
        rows.into_iter().map(Seller::try_from).collect()
    }
}

#[async_trait]
impl SellerStore for Tx {
    async fn add_seller(&self, seller: NewSeller) -> Result<Seller, StoreError> {
        let insert = diesel::insert_into(sellers::table)
            .values((
                sellers::id.eq(seller.id.uuid()),
                sellers::name.eq(seller.name.as_str()),
                sellers::email.eq(seller.email.as_str()),
                sellers::password_hash.eq(seller.password.as_ref().map(oauth::PasswordHash::as_str)),
                sellers::created_at.eq(seller.created_at),
            ))
            .returning(SellerRow::as_returning());
        self.run(insert.get_result(&mut self.connection()))
            .await?
            .try_into()
    }

    async fn lock_seller(&self, id: SellerId) -> Result<Option<Seller>, StoreError> {
        let locked = sellers::table
            .filter(sellers::id.eq(id.uuid()))
            .select(SellerRow::as_select())
            .for_no_key_update();
        let row = self
            .run(async { locked.get_result(&mut self.connection()).await.optional() })
            .await?;
        row.map(Seller::try_from).transpose()
    }

    async fn close_seller(&self, id: SellerId, at: DateTime<Utc>) -> Result<bool, StoreError> {
        let close = diesel::update(sellers::table.find(id.uuid()))
            .set(sellers::closed_at.eq(coalesce_instant(sellers::closed_at, at)));
        let closed = self.run(close.execute(&mut self.connection())).await? == 1;
        if closed {
            end_subscriptions(self, Ended::Seller(id)).await?;
        }
        Ok(closed)
    }
}
