//! The operations of `/v1`, one file for each.

mod list_offers;
mod me;
mod offer_view;
mod read_offer;
mod view;

pub(crate) use list_offers::ListOffers;
pub(crate) use me::ReadMe;
use offer_view::OfferView;
pub(crate) use read_offer::ReadOffer;
