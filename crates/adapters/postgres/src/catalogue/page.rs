//! The list of a seller's offers.

use async_trait::async_trait;
use diesel_async::RunQueryDsl;
use kernel::{Keyset, StoreError};
use offers::Offer;

use super::row::{OfferColumns, OfferRow, offer_columns};
use crate::{
    listing::{Listed, Slice},
    shared_connection::SharedConnection,
};

/// Offers, by when they were created.
#[derive(Clone, Copy)]
pub(super) struct Offers;

#[async_trait]
impl Listed for Offers {
    const TABLE: &'static str = "offers";
    const NAME: &'static str = "offers";
    const COLUMNS: &'static str = offer_columns!();
    const AT: &'static str = "created_at";
    const ID: &'static str = "id";
    const ONLY: &'static str = "";
    type Columns = OfferColumns;
    type Item = Offer;

    async fn rows(connection: &SharedConnection, slice: Slice<Self>) -> Result<Vec<Offer>, StoreError> {
        let rows =
            connection.ask(|link| async move { slice.get_results::<OfferRow>(&mut link.connection()).await });
        rows.await?.into_iter().map(Offer::try_from).collect()
    }

    fn position(offer: &Offer) -> Keyset {
        Keyset {
            at: offer.created_at,
            id: offer.id.uuid(),
        }
    }
}
