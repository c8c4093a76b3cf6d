//! Offers: their rows, reading and saving them.

use std::sync::Arc;

use ::offers::{Offer, OfferFilter, OfferReader, OfferStatus, OfferStore, Price, PriceSource, Stock};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Change, Keyset, Money, OfferId, Page, PageSize, Precondition, SellerId, StoreError};
use usecases::Announcement;
use uuid::Uuid;

use crate::batch::{BatchQuery, Batcher, Placed, answers_by_place, answers_by_seller};
use crate::connection::Connector;
use crate::layout::Layout;
use crate::listing::{self, Filter, List, Listed, Walked};
use crate::schema::offers;
use crate::slow_reads::SlowReads;
use crate::sql::column;
use crate::statement::{Bind, Statement, statements};
use crate::unit_of_work::{Tx, changing, expect_rows};

pub(crate) mod changes;

statements! {
    "offers.sql";
    OFFERS: (Array<SqlUuid>, Array<SqlUuid>) -> Placed<OfferRow>;
    INSERT_OFFERS: (
        SqlUuid, Array<SqlUuid>, Array<Timestamptz>, Array<Timestamptz>, Array<Nullable<BigInt>>,
        Array<Nullable<Integer>>, Array<Text>, Array<Nullable<Text>>, Array<Text>, Array<Text>, Array<Nullable<Text>>,
        Array<Nullable<Text>>, Array<Nullable<Text>>, Array<Nullable<Text>>, Array<Text>
    );
    UPDATE_OFFERS: (
        SqlUuid, Array<SqlUuid>, Array<Timestamptz>, Array<Timestamptz>, Array<Nullable<BigInt>>,
        Array<Nullable<Integer>>, Array<Text>, Array<Nullable<Text>>, Array<Text>, Array<Text>, Array<Nullable<Text>>,
        Array<Nullable<Text>>, Array<Nullable<Text>>, Array<Nullable<Text>>, Array<Text>
    );
}

statements! {
    "offers/list.sql";
    PAGES: (
        Array<SqlUuid>, Array<Nullable<Text>>, Array<Timestamptz>, Array<SqlUuid>, Array<BigInt>
    ) -> Placed<OfferRow>;
    PAGE: (SqlUuid, Nullable<Timestamptz>, Timestamptz, SqlUuid, BigInt) -> OfferRow;
    PAGE_OF_STATUS: (SqlUuid, Nullable<Timestamptz>, Timestamptz, SqlUuid, BigInt, Text) -> OfferRow;
    UPDATED: (
        SqlUuid, Timestamptz, Nullable<Timestamptz>, Timestamptz, SqlUuid, Nullable<Text>, BigInt
    ) -> Walked<OfferRow>;
}

#[derive(Queryable, Selectable, QueryableByName, AsChangeset)]
#[diesel(table_name = offers, primary_key(seller_id, id), treat_none_as_null = true, check_for_backend(Pg))]
pub(crate) struct OfferRow {
    seller_id: Uuid,
    id: Uuid,
    #[diesel(skip_update)]
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
            title: offer.title,
            handle: offer.handle,
            ean: offer.ean,
            brand: offer.brand,
            signature: offer.signature,
            thumbnail: offer.thumbnail,
            url: offer.url,
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
    let source = PriceSource::parse(source).ok_or_else(|| format!("price from {source:?}"))?;
    Ok(Some(Price { money, source }))
}

fn amount(offer: &Offer) -> Option<i64> {
    offer.price.map(|price| price.money.amount())
}

fn source(offer: &Offer) -> Option<&'static str> {
    offer.price.map(|price| price.source.as_str())
}

/// Reads offers for one server thread.
pub(crate) struct OffersReader {
    by_id: Batcher<ById>,
    list: List<ByCreation>,
}

impl OffersReader {
    pub(crate) fn new(connector: &Arc<Connector>, slow: &Arc<SlowReads>, layout: Layout) -> Self {
        Self {
            by_id: Batcher::new(ById(layout), Arc::clone(connector)),
            list: List::new(connector, slow, layout),
        }
    }
}

#[async_trait]
impl OfferReader for OffersReader {
    async fn offer(&self, seller: SellerId, id: OfferId) -> Result<Option<Offer>, StoreError> {
        self.by_id.ask((seller, id.uuid())).await
    }

    async fn offers(
        &self,
        seller: SellerId,
        filter: OfferFilter,
        after: Option<Keyset>,
        size: PageSize,
    ) -> Result<Page<Offer>, StoreError> {
        let filter = Filter {
            status: filter.status.map(OfferStatus::as_str),
            newer_than: None,
            updated_after: filter.updated_after,
        };
        self.list.read(seller, filter, after, size).await
    }
}

/// Offers by their ids.
struct ById(Layout);

#[async_trait]
impl BatchQuery for ById {
    const NAME: &'static str = "offers";
    type Question = (SellerId, Uuid);
    type Answer = Option<Offer>;

    async fn answer(
        &self,
        connection: &AsyncPgConnection,
        questions: &[(SellerId, Uuid)],
    ) -> QueryResult<Vec<Result<Option<Offer>, StoreError>>> {
        if self.0 == Layout::Citus {
            let of_seller = async |seller: Uuid, ids: Vec<Uuid>| {
                offers::table
                    .filter(offers::seller_id.eq(seller))
                    .filter(offers::id.eq_any(ids))
                    .select((offers::id, OfferRow::as_select()))
                    .get_results::<(Uuid, OfferRow)>(&mut { connection })
                    .await
            };
            return answers_by_seller(questions, of_seller).await;
        }
        let keys: (Vec<_>, Vec<_>) = questions.iter().map(|(seller, id)| (seller.uuid(), *id)).unzip();
        let rows = OFFERS.bind(keys);
        let rows = rows.get_results::<Placed<OfferRow>>(&mut { connection }).await?;
        let rows = rows.into_iter().map(|placed| (placed.n, placed.row)).collect();
        Ok(answers_by_place(questions, rows, |offer: &Offer| {
            (offer.seller, offer.id.uuid())
        }))
    }
}

/// A seller's offers by creation time.
struct ByCreation;

impl Listed for ByCreation {
    const NAME: &'static str = "offer_pages";
    type Row = OfferRow;
    type Item = Offer;
    const PAGES: Statement<listing::PagesParameters, Placed<OfferRow>> = PAGES;
    const PAGE: Statement<listing::PageParameters, OfferRow> = PAGE;
    const PAGE_OF_STATUS: Statement<listing::PageOfStatusParameters, OfferRow> = PAGE_OF_STATUS;
    const UPDATED: Statement<listing::UpdatedParameters, Walked<OfferRow>> = UPDATED;

    fn key(offer: &Offer) -> (SellerId, Keyset) {
        let (at, id) = (offer.created_at, offer.id.uuid());
        (offer.seller, Keyset { at, id })
    }
}

#[async_trait]
impl OfferStore<Announcement> for Tx {
    async fn lock_offers(&self, seller: SellerId, ids: &[OfferId]) -> Result<Vec<Offer>, StoreError> {
        // A statement for one row takes no arrays: PostgreSQL then keeps its generic plan, and would replan for each array.
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
        mut changes: Vec<Change<Offer, Announcement>>,
    ) -> Result<(), StoreError> {
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
        // Sorted, so that two transactions that create the same offers conflict at the first one and cannot deadlock.
        changes.sort_unstable_by_key(|change| change.after.id);
        let (new, known): (Vec<_>, Vec<_>) = changes
            .into_iter()
            .partition(|change| change.precondition == Precondition::MustNotExist);
        let rows = |changes: Vec<Change<Offer, Announcement>>| {
            let after = changes.into_iter().map(|change| change.after);
            after.map(OfferRow::from).collect::<Vec<_>>()
        };
        let (new, mut known) = (rows(new), rows(known));
        if known.len() > 1 {
            let update = UPDATE_OFFERS.bind(columns(seller, &known));
            self.write_later(changing("offers", known.len(), update));
        } else if let Some(row) = known.pop() {
            // Without arrays PostgreSQL keeps its generic plan.
            let offer = offers::table.find((row.seller_id, row.id));
            self.write_later(changing("offers", 1, diesel::update(offer).set(row)));
        }
        if !new.is_empty() {
            // Sent at once: the caller has to know whether an offer was created meanwhile.
            let inserted = self.execute(INSERT_OFFERS.bind(columns(seller, &new))).await?;
            expect_rows("offers", inserted, new.len())?;
        }
        Ok(())
    }
}

/// The parameters of [`INSERT_OFFERS`] and [`UPDATE_OFFERS`].
type Columns = (
    SqlUuid,
    Array<SqlUuid>,
    Array<Timestamptz>,
    Array<Timestamptz>,
    Array<Nullable<BigInt>>,
    Array<Nullable<Integer>>,
    Array<Text>,
    Array<Nullable<Text>>,
    Array<Text>,
    Array<Text>,
    Array<Nullable<Text>>,
    Array<Nullable<Text>>,
    Array<Nullable<Text>>,
    Array<Nullable<Text>>,
    Array<Text>,
);

fn columns(seller: SellerId, rows: &[OfferRow]) -> impl Bind<Columns> + Send + Sync + use<> {
    (
        seller.uuid(),
        column(rows, |row| row.id),
        column(rows, |row| row.created_at),
        column(rows, |row| row.updated_at),
        column(rows, |row| row.price_amount),
        column(rows, |row| row.stock),
        column(rows, |row| row.status.clone()),
        column(rows, |row| row.price_source.clone()),
        column(rows, |row| row.title.clone()),
        column(rows, |row| row.handle.clone()),
        column(rows, |row| row.ean.clone()),
        column(rows, |row| row.brand.clone()),
        column(rows, |row| row.signature.clone()),
        column(rows, |row| row.thumbnail.clone()),
        column(rows, |row| row.url.clone()),
    )
}
