//! Offers: their rows, reading and saving them.

use std::collections::{BTreeSet, HashMap};

use ::offers::{
    Offer, OfferFilter, OfferReader, OfferStatus, OfferStore, Price, PriceSource, Product, Stock,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Json, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use kernel::{Change, Keyset, Money, OfferId, Page, PageSize, Precondition, Reader, SellerId, StoreError};
use serde::Serialize;
use usecases::Announcement;
use uuid::Uuid;

use crate::connection::shared::SharedConnection;
use crate::listing::{self, Filter, List, Listed, NEWEST, PageQuestion, Walked};
use crate::schema::offers;
use crate::sql::{Document, column};
use crate::statement::{Statement, TableRow, statements};
use crate::unit_of_work::{Tx, changing, expect_rows};

pub(crate) mod changes;

statements! {
    "offers.sql";
    OFFERS: (Array<SqlUuid>, Array<SqlUuid>) -> Walked<OfferRow> = "n, matches, is_end", OfferRow;
    INSERT_OFFERS: (Json);
    UPDATE_OFFERS: (SqlUuid, Json);
    SAVE_OFFERS: (SqlUuid, Json);
}

statements! {
    "offers/list.sql";
    PAGES: (
        Array<SqlUuid>, Array<Nullable<Text>>, Array<Timestamptz>, Array<SqlUuid>, Array<BigInt>, Array<Nullable<Timestamptz>>
    ) -> Walked<OfferRow> = "n, matches, is_end", OfferRow;
    UPDATED: (
        SqlUuid, Timestamptz, Nullable<Timestamptz>, Timestamptz, SqlUuid, Nullable<Text>, BigInt
    ) -> Walked<OfferRow> = "n, matches, is_end", OfferRow;
    BY_IDS: (SqlUuid, Array<SqlUuid>) -> Walked<OfferRow> = "n, matches, is_end", OfferRow;
    BY_CODE: (
        SqlUuid, Text, Json, Nullable<Timestamptz>, Timestamptz, SqlUuid, Nullable<Text>, BigInt
    ) -> Walked<OfferRow> = "n, matches, is_end", OfferRow;
}

/// Its names are those of the columns, also in the documents of [`INSERT_OFFERS`] and [`UPDATE_OFFERS`].
#[derive(Queryable, Selectable, Serialize)]
#[diesel(table_name = offers, check_for_backend(Pg))]
pub(crate) struct OfferRow {
    seller_id: Uuid,
    id: Uuid,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    price_amount: Option<i64>,
    stock: Option<i32>,
    status: String,
    price_source: Option<String>,
    external_id: Option<String>,
    #[diesel(embed)]
    #[serde(flatten)]
    product: ProductRow,
}

/// Declares the columns of a product, which are its fields.
macro_rules! product_row {
    ($($field:ident: $of:ty),+ $(,)?) => {
        #[derive(Queryable, Selectable, Serialize)]
        #[diesel(table_name = offers, check_for_backend(Pg))]
        pub(crate) struct ProductRow {
            $($field: $of),+
        }

        impl From<Product> for ProductRow {
            fn from(Product { $($field),+ }: Product) -> Self {
                Self { $($field),+ }
            }
        }

        impl From<ProductRow> for Product {
            fn from(ProductRow { $($field),+ }: ProductRow) -> Self {
                Self { $($field),+ }
            }
        }
    };
}

product_row! {
    title: String,
    handle: String,
    ean: Option<String>,
    brand: Option<String>,
    signature: Option<String>,
    thumbnail: Option<String>,
    url: String,
}

/// What changes without a feed. The product's texts, which may have ten kilobytes, are not written again.
#[derive(AsChangeset, Serialize)]
#[diesel(table_name = offers, treat_none_as_null = true)]
struct OfferState {
    #[diesel(skip_update)]
    id: Uuid,
    updated_at: DateTime<Utc>,
    price_amount: Option<i64>,
    stock: Option<i32>,
    status: &'static str,
    price_source: Option<String>,
    external_id: Option<String>,
}

impl From<Offer> for OfferState {
    fn from(offer: Offer) -> Self {
        Self {
            id: offer.id.uuid(),
            updated_at: offer.updated_at,
            price_amount: amount(&offer),
            stock: offer.stock.map(Stock::get),
            status: offer.status.as_str(),
            price_source: source(&offer).map(ToOwned::to_owned),
            external_id: offer.external_id,
        }
    }
}

impl TableRow for OfferRow {
    const TABLE: &'static str = "offers";
}

impl From<Offer> for OfferRow {
    fn from(offer: Offer) -> Self {
        Self {
            seller_id: offer.seller.uuid(),
            id: offer.id.uuid(),
            created_at: offer.created_at,
            updated_at: offer.updated_at,
            price_amount: amount(&offer),
            stock: offer.stock.map(Stock::get),
            status: offer.status.as_str().to_owned(),
            price_source: source(&offer).map(ToOwned::to_owned),
            external_id: offer.external_id,
            product: offer.product.into(),
        }
    }
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
            product: row.product.into(),
            status,
            price,
            stock: stock.map_err(|invalid| corrupt(format!("stock {invalid}")))?,
            external_id: row.external_id,
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
    let source = PriceSource::parse(source).ok_or_else(|| format!("price from {source:?}"))?;
    Ok(Some(Price { money, source }))
}

fn amount(offer: &Offer) -> Option<i64> {
    offer.price.map(|price| price.money.amount())
}

fn source(offer: &Offer) -> Option<&'static str> {
    offer.price.map(|price| price.source.as_str())
}

/// A seller's offers by creation time.
pub(crate) struct SellerOffers;

#[async_trait]
impl Listed for SellerOffers {
    const BY_ID_NAME: &'static str = "offers";
    const PAGES_NAME: &'static str = "offer_pages";
    /// Two batches of them.
    const SHARE: usize = 16;
    type Row = OfferRow;
    type Item = Offer;
    const BY_ID: Statement<(Array<SqlUuid>, Array<SqlUuid>), Walked<OfferRow>> = OFFERS;
    const BY_IDS: Statement<(SqlUuid, Array<SqlUuid>), Walked<OfferRow>> = BY_IDS;
    const PAGES: Statement<listing::PagesParameters, Walked<OfferRow>> = PAGES;
    const UPDATED: Statement<listing::UpdatedParameters, Walked<OfferRow>> = UPDATED;

    async fn of_seller(
        connection: &SharedConnection,
        seller: Uuid,
        id: Uuid,
    ) -> Result<Vec<OfferRow>, StoreError> {
        let offer = offers::table.find((seller, id));
        connection.rows(offer.select(OfferRow::as_select())).await
    }

    async fn page(
        connection: &SharedConnection,
        page: PageQuestion,
    ) -> Result<Vec<Walked<OfferRow>>, StoreError> {
        let Keyset { at, id } = page.after;
        let mut listed = offers::table
            .filter(offers::seller_id.eq(page.seller.uuid()))
            .filter(offers::created_at.le(at))
            .filter(offers::created_at.lt(at).or(offers::id.lt(id)))
            .order((offers::created_at.desc(), offers::id.desc()))
            .limit(page.rows)
            .select(OfferRow::as_select())
            .into_boxed();
        if let Some(status) = page.filter.status {
            listed = listed.filter(offers::status.eq(status));
        }
        let rows = connection.rows(listed).await?;
        Ok(rows.into_iter().map(|row| Walked::matching(row, false)).collect())
    }

    fn key(offer: &Offer) -> (SellerId, Keyset) {
        let (at, id) = (offer.created_at, offer.id.uuid());
        (offer.seller, Keyset { at, id })
    }
}

#[async_trait]
impl OfferReader for List<SellerOffers> {
    async fn offer(&self, reader: Reader, id: OfferId) -> Result<Option<Offer>, StoreError> {
        self.one(reader, id.uuid()).await
    }

    async fn offers_by_id(&self, reader: Reader, ids: &BTreeSet<OfferId>) -> Result<Vec<Offer>, StoreError> {
        self.by_ids(reader, ids.iter().map(|id| id.uuid()).collect())
            .await
    }

    async fn offers(
        &self,
        reader: Reader,
        filter: OfferFilter,
        after: Option<Keyset>,
        size: PageSize,
    ) -> Result<Page<Offer>, StoreError> {
        let OfferFilter {
            status,
            updated_after,
            codes,
        } = filter;
        let status = status.map(OfferStatus::as_str);
        let mut codes = codes.into_iter().map(|(code, text)| (code.name(), text));
        if let Some((code, text)) = codes.next() {
            let others = Document::of(&codes.collect::<HashMap<_, _>>())?;
            let Keyset { at, id } = after.unwrap_or(NEWEST);
            let (seller, rows) = (reader.seller, i64::from(size.get()) + 1);
            let values = (seller.uuid(), text, others, updated_after, at, id, status, rows);
            let by_code = BY_CODE.with_column("external_id", code).bind(values);
            return Self::page_of(seller, size, self.rows(reader, by_code).await?);
        }
        let filter = Filter {
            status,
            newer_than: None,
            updated_after,
        };
        self.page(reader, filter, after, size).await
    }
}

#[async_trait]
impl OfferStore<Announcement> for Tx {
    async fn lock_offers(&self, seller: SellerId, ids: &[OfferId]) -> Result<Vec<Offer>, StoreError> {
        // A statement for one row takes no arrays: PostgreSQL then keeps its generic plan, and would replan
        // for each array.
        let rows = if let [id] = ids {
            let offer = offers::table.find((seller.uuid(), id.uuid()));
            self.rows(offer.select(OfferRow::as_select()).for_no_key_update())
                .await?
        } else {
            let offers = offers::table
                .filter(offers::seller_id.eq(seller.uuid()))
                .filter(offers::id.eq_any(column(ids, |id| id.uuid())))
                .order(offers::id);
            self.rows(offers.select(OfferRow::as_select()).for_no_key_update())
                .await?
        };
        rows.into_iter().map(Offer::try_from).collect()
    }

    async fn save_offers(
        &self,
        seller: SellerId,
        changes: Vec<Change<Offer, Announcement>>,
    ) -> Result<(), StoreError> {
        let states = self.take_announcements(seller, changes)?;
        let mut states: Vec<_> = states
            .into_iter()
            .map(|change| OfferState::from(change.after))
            .collect();
        if states.len() > 1 {
            let update = SAVE_OFFERS.bind((seller.uuid(), Document::of(&states)?));
            self.write_later(changing("offers", states.len(), update));
        } else if let Some(state) = states.pop() {
            let offer = offers::table.find((seller.uuid(), state.id));
            self.write_later(changing("offers", 1, diesel::update(offer).set(state)));
        }
        Ok(())
    }

    async fn save_fed_offers(
        &self,
        seller: SellerId,
        changes: Vec<Change<Offer, Announcement>>,
    ) -> Result<(), StoreError> {
        let (new, known): (Vec<_>, Vec<_>) = self
            .take_announcements(seller, changes)?
            .into_iter()
            .partition(|change| change.precondition == Precondition::MustNotExist);
        let rows = |changes: Vec<Change<Offer, Announcement>>| {
            let after = changes.into_iter().map(|change| change.after);
            after.map(OfferRow::from).collect::<Vec<_>>()
        };
        let (new, known) = (rows(new), rows(known));
        if !known.is_empty() {
            let update = UPDATE_OFFERS.bind((seller.uuid(), Document::of(&known)?));
            self.write_later(changing("offers", known.len(), update));
        }
        if !new.is_empty() {
            // Sent at once: the caller has to know whether an offer was created meanwhile.
            let inserted = self.execute(INSERT_OFFERS.bind((Document::of(&new)?,))).await?;
            expect_rows("offers", inserted, new.len())?;
        }
        Ok(())
    }
}

impl Tx {
    /// Moves the announcements to the outbox. The changes come back in the order of ids, so that two transactions that
    /// create the same offers conflict at the first one and cannot deadlock.
    fn take_announcements(
        &self,
        seller: SellerId,
        mut changes: Vec<Change<Offer, Announcement>>,
    ) -> Result<Vec<Change<Offer, Announcement>>, StoreError> {
        if let Some(foreign) = changes.iter().find(|change| change.after.seller != seller) {
            return Err(StoreError::unexpected(format!(
                "offer {} is another seller's",
                foreign.after.id
            )));
        }
        for change in &mut changes {
            self.outbox().extend(change.events.drain(..));
        }
        self.mark_distributed_write();
        changes.sort_unstable_by_key(|change| change.after.id);
        Ok(changes)
    }
}
