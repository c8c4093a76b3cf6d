//! Offers: their rows, reading and saving them.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::QueryResult;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Change, Keyset, Money, OfferId, Page, PageSize, Precondition, SellerId, StoreError};
use offers::{
    Offer, OfferEvent, OfferFilter, OfferReader, OfferStatus, OfferStore, Price, PriceSource, Stock,
};
use usecases::{Announcement, Transaction};
use uuid::Uuid;

use crate::batch::{BatchQuery, Batcher, answers_by_place, answers_by_seller};
use crate::connection::Connector;
use crate::connection::error::store_error;
use crate::layout::Layout;
use crate::listing::{Filter, List, Listed};
use crate::slow_reads::SlowReads;
use crate::sql::{column, row, sql};
use crate::unit_of_work::{Tx, Write, expect_rows};

/// The columns of [`OfferRow`].
macro_rules! offer_columns {
    () => {
        "offers.seller_id, offers.id, offers.created_at, offers.updated_at, offers.price_amount, offers.stock, \
         offers.status, offers.price_source, offers.title, offers.handle, offers.ean, offers.brand, offers.signature, \
         offers.thumbnail, offers.url"
    };
}

/// Below the macro, which it uses.
pub(crate) mod changes;

row! {
    pub(crate) struct OfferRow {
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
            let of_seller = async |seller, ids| {
                sql!((Uuid, OfferRow):
                    concat!("select offers.id, ", offer_columns!(), " from offers where seller_id = "), seller,
                    " and id = any(", ids, ")")
                .get_results::<(Uuid, OfferRow)>(&mut { connection })
                .await
            };
            return answers_by_seller(questions, of_seller).await;
        }
        let (sellers, ids): (Vec<_>, Vec<_>) =
            questions.iter().map(|(seller, id)| (seller.uuid(), *id)).unzip();
        // A subquery passes the keys: with bare parameters a short list would be replanned at each run, since the
        // planner estimates a lower cost for so few rows than for the generic plan.
        let rows = sql!((i64, OfferRow):
            concat!("select k.n, ", offer_columns!(), " from unnest((select "), sellers, "::uuid[]), (select ", ids,
            "::uuid[])) with ordinality as k (seller_id, id, n) join offers on offers.seller_id = k.seller_id and offers.id = k.id");
        let rows = rows.get_results::<(i64, OfferRow)>(&mut { connection }).await?;
        Ok(answers_by_place(questions, rows, |offer: &Offer| {
            (offer.seller, offer.id.uuid())
        }))
    }
}

/// A seller's offers by creation time.
#[derive(Clone, Copy)]
struct ByCreation;

impl Listed for ByCreation {
    const STATEMENT: &'static str = "offer_pages";
    const TABLE: &'static str = "offers";
    const NAME: &'static str = "offers";
    const COLUMNS: &'static str = offer_columns!();
    const AT: &'static str = "created_at";
    const ID: &'static str = "id";
    const ONLY: &'static str = "";
    type Row = OfferRow;
    type Item = Offer;

    fn key(offer: &Offer) -> (SellerId, Keyset) {
        let (at, id) = (offer.created_at, offer.id.uuid());
        (offer.seller, Keyset { at, id })
    }
}

#[async_trait]
impl OfferStore for Tx {
    async fn lock_offers(&self, seller: SellerId, ids: &[OfferId]) -> Result<Vec<Offer>, StoreError> {
        let seller = seller.uuid();
        // A statement for one row takes no arrays: PostgreSQL then keeps its generic plan, and would replan for each array.
        let rows: Vec<OfferRow> = if let [id] = ids {
            self.rows(sql!(OfferRow:
                concat!("select ", offer_columns!(), " from offers where seller_id = "), seller, " and id = ", id.uuid(),
                " for no key update"))
                .await?
        } else {
            let ids: Vec<_> = ids.iter().map(|id| id.uuid()).collect();
            self.rows(sql!(OfferRow:
                concat!("select ", offer_columns!(), " from offers where seller_id = "), seller, " and id = any(", ids,
                ") order by id for no key update"))
                .await?
        };
        rows.into_iter().map(Offer::try_from).collect()
    }

    async fn save_offers(
        &self,
        seller: SellerId,
        mut changes: Vec<Change<Offer, OfferEvent>>,
    ) -> Result<(), StoreError> {
        if let Some(foreign) = changes.iter().find(|change| change.after.seller != seller) {
            return Err(StoreError::unexpected(format!(
                "offer {} is another seller's",
                foreign.after.id
            )));
        }
        for event in changes.iter().flat_map(|change| &change.events) {
            self.outbox()
                .add(Announcement::of_offer(seller, event, self.now()));
        }
        self.mark_distributed_write();
        // Sorted, so that two transactions that create the same offers conflict at the first one and cannot deadlock.
        changes.sort_unstable_by_key(|change| change.after.id);
        let (new, known): (Vec<_>, Vec<_>) = changes
            .into_iter()
            .partition(|change| change.precondition == Precondition::MustNotExist);
        let after = |changes: Vec<Change<Offer, OfferEvent>>| {
            changes.into_iter().map(|change| change.after).collect::<Vec<_>>()
        };
        if !known.is_empty() {
            let offers = after(known);
            self.write_later(Box::new(KnownOffers { seller, offers }));
        }
        if !new.is_empty() {
            let new = after(new);
            // Sent at once: the caller has to know whether an offer was created meanwhile.
            let inserted = self.run(insert(seller, &new, self.connection())).await?;
            expect_rows("offers", inserted, new.len())?;
        }
        Ok(())
    }
}

/// Locked offers with their changes.
struct KnownOffers {
    seller: SellerId,
    offers: Vec<Offer>,
}

#[async_trait]
impl Write for KnownOffers {
    async fn send(&self, connection: &AsyncPgConnection) -> Result<(), StoreError> {
        let updated = match self.offers.as_slice() {
            [offer] => update_one(offer, connection).await,
            offers => update(self.seller, offers, connection).await,
        };
        expect_rows("offers", updated.map_err(store_error)?, self.offers.len())
    }
}

/// Updates one offer. Without arrays PostgreSQL keeps its generic plan.
async fn update_one(offer: &Offer, mut connection: &AsyncPgConnection) -> QueryResult<usize> {
    sql!(():
        "update offers set updated_at = ", offer.updated_at, ", price_amount = ", amount(offer),
        ", price_source = ", source(offer), ", stock = ", offer.stock.map(Stock::get), ", status = ",
        offer.status.as_str(), ", title = ", offer.title.as_str(), ", handle = ", offer.handle.as_str(),
        ", ean = ", offer.ean.as_deref(), ", brand = ", offer.brand.as_deref(), ", signature = ",
        offer.signature.as_deref(), ", thumbnail = ", offer.thumbnail.as_deref(), ", url = ", offer.url.as_str(),
        " where seller_id = ", offer.seller.uuid(), " and id = ", offer.id.uuid(), "")
    .execute(&mut connection)
    .await
}

/// Inserts offers; an existing one is a conflict on `offers_pkey`.
async fn insert(
    seller: SellerId,
    offers: &[Offer],
    mut connection: &AsyncPgConnection,
) -> QueryResult<usize> {
    sql!(():
        "insert into offers (seller_id, id, created_at, updated_at, price_amount, price_source, stock, status, title, handle, \
         ean, brand, signature, thumbnail, url) select ", seller.uuid(), ", * from unnest(",
        column(offers, |offer| offer.id.uuid()), ", ", column(offers, |offer| offer.created_at), ", ",
        column(offers, |offer| offer.updated_at), ", ", column(offers, amount), ", ", column(offers, source), ", ",
        column(offers, |offer| offer.stock.map(Stock::get)), ", ", column(offers, |offer| offer.status.as_str()),
        ", ", column(offers, |offer| offer.title.as_str()), ", ", column(offers, |offer| offer.handle.as_str()),
        ", ", column(offers, |offer| offer.ean.as_deref()), ", ", column(offers, |offer| offer.brand.as_deref()),
        ", ", column(offers, |offer| offer.signature.as_deref()), ", ",
        column(offers, |offer| offer.thumbnail.as_deref()), ", ", column(offers, |offer| offer.url.as_str()), ")")
    .execute(&mut connection)
    .await
}

/// Updates existing offers.
async fn update(
    seller: SellerId,
    offers: &[Offer],
    mut connection: &AsyncPgConnection,
) -> QueryResult<usize> {
    sql!(():
        "update offers set updated_at = u.updated_at, price_amount = u.price_amount, price_source = u.price_source, \
         stock = u.stock, status = u.status, title = u.title, handle = u.handle, ean = u.ean, brand = u.brand, \
         signature = u.signature, thumbnail = u.thumbnail, url = u.url \
         from unnest(", column(offers, |offer| offer.id.uuid()), ", ", column(offers, |offer| offer.updated_at),
        ", ", column(offers, amount), ", ", column(offers, source), ", ",
        column(offers, |offer| offer.stock.map(Stock::get)), ", ", column(offers, |offer| offer.status.as_str()),
        ", ", column(offers, |offer| offer.title.as_str()), ", ", column(offers, |offer| offer.handle.as_str()),
        ", ", column(offers, |offer| offer.ean.as_deref()), ", ", column(offers, |offer| offer.brand.as_deref()),
        ", ", column(offers, |offer| offer.signature.as_deref()), ", ",
        column(offers, |offer| offer.thumbnail.as_deref()), ", ", column(offers, |offer| offer.url.as_str()),
        ") as u (id, updated_at, price_amount, price_source, stock, status, title, handle, ean, brand, signature, thumbnail, \
         url) where offers.id = u.id and offers.seller_id = ", seller.uuid(), "")
    .execute(&mut connection)
    .await
}
