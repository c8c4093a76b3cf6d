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
    gather::{Gatherer, Grouped},
    line::Line,
    listing::{self, Filter},
    settings::Gathering,
    statement::statement,
};

/// Reads offers for one server thread.
pub(crate) struct OffersReader {
    by_id: ById,
    pages: Line,
}

/// How single offers are read.
enum ById {
    Gathered(Gatherer<ManyOffers>),
    OneByOne(Line),
}

impl OffersReader {
    pub(crate) fn new(connector: &Arc<Connector>, gathering: Gathering) -> Self {
        let by_id = match gathering {
            Gathering::Grouped => ById::Gathered(Gatherer::new(ManyOffers, Arc::clone(connector))),
            Gathering::Router => ById::OneByOne(Line::new(Arc::clone(connector))),
        };
        Self {
            by_id,
            pages: Line::new(Arc::clone(connector)),
        }
    }
}

#[async_trait]
impl OfferReader for OffersReader {
    async fn offer(&self, seller: SellerId, id: OfferId) -> Result<Option<Offer>, StoreError> {
        match &self.by_id {
            ById::Gathered(gatherer) => gatherer.ask((seller, id)).await,
            ById::OneByOne(line) => {
                let one = OneOffer {
                    seller: seller.uuid(),
                    id: id.uuid(),
                };
                let ask =
                    line.ask(|link| async move { one.get_results::<OfferRow>(&mut link.connection()).await });
                ask.await?.pop().map(Offer::try_from).transpose()
            }
        }
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

/// Single offers of any sellers in one statement.
struct ManyOffers;

#[async_trait]
impl Grouped for ManyOffers {
    const NAME: &'static str = "offers";
    type Question = (SellerId, OfferId);
    type Answer = Option<Offer>;

    async fn answer(
        &self,
        mut connection: &AsyncPgConnection,
        questions: &[Self::Question],
    ) -> QueryResult<Vec<Result<Option<Offer>, StoreError>>> {
        let (sellers, ids) = questions
            .iter()
            .map(|(seller, id)| (seller.uuid(), id.uuid()))
            .unzip();
        let rows = Offers { sellers, ids }
            .get_results::<(i64, OfferRow)>(&mut connection)
            .await?;
        let mut answers = questions.iter().map(|_| Ok(None)).collect::<Vec<_>>();
        for (n, row) in rows {
            let place = usize::try_from(n - 1).unwrap_or(usize::MAX);
            if let (Some(answer), Some(question)) = (answers.get_mut(place), questions.get(place)) {
                *answer = Offer::try_from(row)
                    .and_then(|offer| asked_for(offer, *question))
                    .map(Some);
            }
        }
        Ok(answers)
    }
}

/// The last line between two sellers whose questions travel together.
fn asked_for(offer: Offer, question: (SellerId, OfferId)) -> Result<Offer, StoreError> {
    if (offer.seller, offer.id) == question {
        return Ok(offer);
    }
    Err(StoreError::unexpected(
        "a row came back for another question than its own",
    ))
}
