//! Many offers in one statement: each column travels as one array.

use chrono::{DateTime, Utc};
use diesel::sql_types::{Array, BigInt, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use offers::Offer;
use uuid::Uuid;

use super::row::source_word;
use crate::statement::statement;

/// The columns of some offers of one seller.
#[derive(Default)]
pub(super) struct Columns<'a> {
    ids: Vec<Uuid>,
    created: Vec<DateTime<Utc>>,
    updated: Vec<DateTime<Utc>>,
    amounts: Vec<Option<i64>>,
    sources: Vec<Option<&'static str>>,
    stocks: Vec<Option<i32>>,
    statuses: Vec<&'static str>,
    titles: Vec<&'a str>,
    handles: Vec<&'a str>,
    eans: Vec<Option<&'a str>>,
    brands: Vec<Option<&'a str>>,
    signatures: Vec<Option<&'a str>>,
    thumbnails: Vec<Option<&'a str>>,
    urls: Vec<&'a str>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(offers: &'a [Offer]) -> Self {
        let mut columns = Self::default();
        for offer in offers {
            columns.push(offer);
        }
        columns
    }

    fn push(&mut self, offer: &'a Offer) {
        self.ids.push(offer.id.uuid());
        self.created.push(offer.created_at);
        self.updated.push(offer.updated_at);
        self.amounts.push(offer.price.map(|price| price.money.amount()));
        self.sources
            .push(offer.price.map(|price| source_word(price.source)));
        self.stocks.push(offer.stock.map(offers::Stock::get));
        self.statuses.push(offer.status.as_str());
        self.titles.push(&offer.title);
        self.handles.push(&offer.handle);
        self.eans.push(offer.ean.as_deref());
        self.brands.push(offer.brand.as_deref());
        self.signatures.push(offer.signature.as_deref());
        self.thumbnails.push(offer.thumbnail.as_deref());
        self.urls.push(&offer.url);
    }
}

/// Makes offers; one that exists is a conflict on `offers_pkey`.
pub(super) struct Insert<'a> {
    pub(super) seller: Uuid,
    pub(super) rows: Columns<'a>,
}

statement!(Insert<'_> => ():
    "insert into offers (seller_id, id, created_at, updated_at, price_amount, price_source, stock, status, title, handle, \
     ean, brand, signature, thumbnail, url) select ", seller: SqlUuid,
    ", * from unnest(", rows.ids: Array<SqlUuid>,
    ", ", rows.created: Array<Timestamptz>,
    ", ", rows.updated: Array<Timestamptz>,
    ", ", rows.amounts: Array<Nullable<BigInt>>,
    ", ", rows.sources: Array<Nullable<Text>>,
    ", ", rows.stocks: Array<Nullable<Integer>>,
    ", ", rows.statuses: Array<Text>,
    ", ", rows.titles: Array<Text>,
    ", ", rows.handles: Array<Text>,
    ", ", rows.eans: Array<Nullable<Text>>,
    ", ", rows.brands: Array<Nullable<Text>>,
    ", ", rows.signatures: Array<Nullable<Text>>,
    ", ", rows.thumbnails: Array<Nullable<Text>>,
    ", ", rows.urls: Array<Text>, ")");

/// Replaces offers that are there.
pub(super) struct Update<'a> {
    pub(super) seller: Uuid,
    pub(super) rows: Columns<'a>,
}

statement!(Update<'_> => ():
    "update offers set updated_at = u.updated_at, price_amount = u.price_amount, price_source = u.price_source, \
     stock = u.stock, status = u.status, title = u.title, handle = u.handle, ean = u.ean, brand = u.brand, \
     signature = u.signature, thumbnail = u.thumbnail, url = u.url \
     from unnest(", rows.ids: Array<SqlUuid>,
    ", ", rows.updated: Array<Timestamptz>,
    ", ", rows.amounts: Array<Nullable<BigInt>>,
    ", ", rows.sources: Array<Nullable<Text>>,
    ", ", rows.stocks: Array<Nullable<Integer>>,
    ", ", rows.statuses: Array<Text>,
    ", ", rows.titles: Array<Text>,
    ", ", rows.handles: Array<Text>,
    ", ", rows.eans: Array<Nullable<Text>>,
    ", ", rows.brands: Array<Nullable<Text>>,
    ", ", rows.signatures: Array<Nullable<Text>>,
    ", ", rows.thumbnails: Array<Nullable<Text>>,
    ", ", rows.urls: Array<Text>,
    ") as u (id, updated_at, price_amount, price_source, stock, status, title, handle, ean, brand, signature, thumbnail, \
     url) where offers.id = u.id and offers.seller_id = ", seller: SqlUuid, "");
