//! Offers outside a transaction.

use std::sync::Arc;

use async_trait::async_trait;
use diesel::{
    QueryResult,
    sql_types::{Array, BigInt, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use kernel::{Keyset, OfferId, Page, PageSize, SellerId, StoreError};
use offers::{Offer, OfferFilter, OfferReader};
use uuid::Uuid;

use super::{
    page,
    row::{OfferColumns, OfferRow, offer_columns},
};
use crate::{
    connector::Connector,
    keyed::{ById, Keyed},
    line::Line,
    listing::{self, Filter},
    settings::Gathering,
    statement::statement,
};

/// Reads offers for one server thread.
pub(crate) struct OffersReader {
    by_id: ById<Single>,
    pages: Line,
}

impl OffersReader {
    pub(crate) fn new(connector: &Arc<Connector>, gathering: Gathering) -> Self {
        Self {
            by_id: ById::new(connector, gathering),
            pages: Line::new(Arc::clone(connector), "offer_pages"),
        }
    }
}

#[async_trait]
impl OfferReader for OffersReader {
    async fn offer(&self, seller: SellerId, id: OfferId) -> Result<Option<Offer>, StoreError> {
        self.by_id.read(seller, id.uuid()).await
    }

    async fn offers(
        &self,
        seller: SellerId,
        filter: OfferFilter,
        after: Option<Keyset>,
        size: PageSize,
    ) -> Result<Page<Offer>, StoreError> {
        let filter = Filter {
            status: filter.status.map(offers::OfferStatus::as_str),
            newer_than: None,
            updated_after: filter.updated_after,
        };
        listing::read::<page::Offers>(&self.pages, seller, filter, after, size).await
    }
}

struct OneOffer {
    seller: Uuid,
    id: Uuid,
}

statement!(OneOffer => OfferColumns:
    concat!("select ", offer_columns!(), " from offers where seller_id = "), seller: SqlUuid,
    " and id = ", id: SqlUuid, "");

/// The keys are handed in by a subquery: as bare parameters, a short list of them would be planned anew at each run, since
/// the planner takes a plan for so few rows to be cheaper than the one that it keeps.
struct Offers {
    sellers: Vec<Uuid>,
    ids: Vec<Uuid>,
}

statement!(Offers => (BigInt, OfferColumns):
    concat!("select k.n, ", offer_columns!(), " from unnest((select "), sellers: Array<SqlUuid>,
    "::uuid[]), (select ", ids: Array<SqlUuid>,
    "::uuid[])) with ordinality as k (seller_id, id, n) join offers on offers.seller_id = k.seller_id and offers.id = k.id");

/// Offers by their ids.
struct Single;

#[async_trait]
impl Keyed for Single {
    const NAME: &'static str = "offers";
    type Row = OfferRow;
    type Item = Offer;

    fn key(offer: &Offer) -> (SellerId, Uuid) {
        (offer.seller, offer.id.uuid())
    }

    async fn one(mut connection: &AsyncPgConnection, seller: Uuid, id: Uuid) -> QueryResult<Vec<OfferRow>> {
        OneOffer { seller, id }.get_results(&mut connection).await
    }

    async fn many(
        mut connection: &AsyncPgConnection,
        sellers: Vec<Uuid>,
        ids: Vec<Uuid>,
    ) -> QueryResult<Vec<(i64, OfferRow)>> {
        Offers { sellers, ids }.get_results(&mut connection).await
    }
}
