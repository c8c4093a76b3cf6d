//! An offer as a row.

use chrono::{DateTime, Utc};
use diesel::{Queryable, sql_types as sql};
use kernel::{Money, OfferId, SellerId, StoreError};
use offers::{Offer, OfferStatus, Price, PriceSource, Stock};
use uuid::Uuid;

/// The columns of [`OfferRow`], of the table under its own name.
macro_rules! offer_columns {
    () => {
        "offers.seller_id, offers.id, offers.created_at, offers.updated_at, offers.price_amount, offers.stock, \
         offers.status, offers.price_source, offers.title, offers.handle, offers.ean, offers.brand, offers.signature, \
         offers.thumbnail, offers.url"
    };
}
pub(super) use offer_columns;

/// The types of these columns.
pub(super) type OfferColumns = (
    sql::Uuid,
    sql::Uuid,
    sql::Timestamptz,
    sql::Timestamptz,
    sql::Nullable<sql::BigInt>,
    sql::Nullable<sql::Integer>,
    sql::Text,
    sql::Nullable<sql::Text>,
    sql::Text,
    sql::Text,
    sql::Nullable<sql::Text>,
    sql::Nullable<sql::Text>,
    sql::Nullable<sql::Text>,
    sql::Nullable<sql::Text>,
    sql::Text,
);

#[derive(Queryable)]
pub(super) struct OfferRow {
    seller_id: Uuid,
    id: Uuid,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    price_amount: Option<i64>,
    stock: Option<i32>,
    status: String,
    price_source: Option<String>,
    title: String,
    handle: String,
    ean: Option<String>,
    brand: Option<String>,
    signature: Option<String>,
    thumbnail: Option<String>,
    url: String,
}

impl TryFrom<OfferRow> for Offer {
    type Error = StoreError;

    fn try_from(row: OfferRow) -> Result<Self, StoreError> {
        let key = (SellerId::from(row.seller_id), OfferId::from(row.id));
        let corrupt = |reason: String| StoreError::corrupt("offers", format!("{}, {}", key.0, key.1), reason);
        let status =
            OfferStatus::parse(&row.status).ok_or_else(|| corrupt(format!("status {:?}", row.status)))?;
        let price = price(row.price_amount, row.price_source.as_deref()).map_err(corrupt)?;
        let stock = row.stock.map(|pieces| Stock::new(pieces.into())).transpose();
        Ok(Self {
            seller: key.0,
            id: key.1,
            title: row.title,
            handle: row.handle,
            status,
            price,
            stock: stock.map_err(|invalid| corrupt(format!("stock {invalid}")))?,
            ean: row.ean,
            brand: row.brand,
            signature: row.signature,
            thumbnail: row.thumbnail,
            url: row.url,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

fn price(amount: Option<i64>, source: Option<&str>) -> Result<Option<Price>, String> {
    let (amount, source) = match (amount, source) {
        (None, None) => return Ok(None),
        (Some(amount), Some(source)) => (amount, source),
        (amount, source) => return Err(format!("price {amount:?} from {source:?}")),
    };
    let money = Money::pln(amount).map_err(|invalid| format!("price {amount} {invalid}"))?;
    let source = match source {
        MANUAL => PriceSource::Manual,
        AUTOMATIC => PriceSource::Automatic,
        other => return Err(format!("price from {other:?}")),
    };
    Ok(Some(Price { money, source }))
}

const MANUAL: &str = "manual";
const AUTOMATIC: &str = "automatic";

/// The word for who set a price.
pub(super) const fn source_word(source: PriceSource) -> &'static str {
    match source {
        PriceSource::Manual => MANUAL,
        PriceSource::Automatic => AUTOMATIC,
    }
}
