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
    batch::{BatchQuery, Batcher, answers_by_place},
    connector::Connector,
    listing::{self, Filter},
    shared_connection::SharedConnection,
    statement::statement,
};

/// Reads offers for one server thread.
pub(crate) struct OffersReader {
    by_id: Batcher<ById>,
    pages: SharedConnection,
}

impl OffersReader {
    pub(crate) fn new(connector: &Arc<Connector>) -> Self {
        Self {
            by_id: Batcher::new(ById, Arc::clone(connector)),
            pages: SharedConnection::new(Arc::clone(connector), "offer_pages"),
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
            status: filter.status.map(offers::OfferStatus::as_str),
            newer_than: None,
            updated_after: filter.updated_after,
        };
        listing::read::<page::Offers>(&self.pages, seller, filter, after, size).await
    }
}

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
struct ById;

#[async_trait]
impl BatchQuery for ById {
    const NAME: &'static str = "offers";
    type Question = (SellerId, Uuid);
    type Answer = Option<Offer>;

    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        questions: &[(SellerId, Uuid)],
    ) -> QueryResult<Vec<Result<Option<Offer>, StoreError>>> {
        let (sellers, ids) = questions.iter().map(|(seller, id)| (seller.uuid(), *id)).unzip();
        let rows = Offers { sellers, ids }
            .get_results::<(i64, OfferRow)>(&mut connection)
            .await?;
        Ok(answers_by_place(questions, rows, |offer: &Offer| {
            (offer.seller, offer.id.uuid())
        }))
    }
}
