//! One offer in one statement, which is how sellers change them.

use chrono::{DateTime, Utc};
use diesel::sql_types::{BigInt, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use offers::{Offer, Stock};
use uuid::Uuid;

use super::row::source_word;
use crate::statement::statement;

/// Replaces an offer that is there.
pub(super) struct UpdateOne<'a> {
    seller: Uuid,
    id: Uuid,
    updated_at: DateTime<Utc>,
    amount: Option<i64>,
    source: Option<&'static str>,
    stock: Option<i32>,
    status: &'static str,
    title: &'a str,
    handle: &'a str,
    ean: Option<&'a str>,
    brand: Option<&'a str>,
    signature: Option<&'a str>,
    thumbnail: Option<&'a str>,
    url: &'a str,
}

statement!(UpdateOne<'_> => ():
    "update offers set updated_at = ", updated_at: Timestamptz,
    ", price_amount = ", amount: Nullable<BigInt>,
    ", price_source = ", source: Nullable<Text>,
    ", stock = ", stock: Nullable<Integer>,
    ", status = ", status: Text,
    ", title = ", title: Text,
    ", handle = ", handle: Text,
    ", ean = ", ean: Nullable<Text>,
    ", brand = ", brand: Nullable<Text>,
    ", signature = ", signature: Nullable<Text>,
    ", thumbnail = ", thumbnail: Nullable<Text>,
    ", url = ", url: Text,
    " where seller_id = ", seller: SqlUuid,
    " and id = ", id: SqlUuid, "");

impl<'a> UpdateOne<'a> {
    pub(super) fn of(offer: &'a Offer) -> Self {
        Self {
            seller: offer.seller.uuid(),
            id: offer.id.uuid(),
            updated_at: offer.updated_at,
            amount: offer.price.map(|price| price.money.amount()),
            source: offer.price.map(|price| source_word(price.source)),
            stock: offer.stock.map(Stock::get),
            status: offer.status.as_str(),
            title: &offer.title,
            handle: &offer.handle,
            ean: offer.ean.as_deref(),
            brand: offer.brand.as_deref(),
            signature: offer.signature.as_deref(),
            thumbnail: offer.thumbnail.as_deref(),
            url: &offer.url,
        }
    }
}
