//! Offers: what one is, its status machine, price and stock rules, and the ports that keep it.

mod feed;
mod offer;
mod patch;
mod ports;
mod status;
mod stock;
mod text;

pub use feed::{Fed, OfferFeed};
pub use offer::{Offer, OfferEvent, Price, PriceSource, Stock};
pub use patch::{AutomaticPriceRefusal, OfferPatch, PatchRefusal, SellerStatus};
pub use ports::{OfferFilter, OfferReader, OfferStore};
pub use status::{Decision, OfferStatus};
pub use stock::Short;
pub use text::{OptionalText, WebAddress, handle, optional_text, title, web_address};

#[cfg(any(test, feature = "mocks"))]
pub use ports::MockOfferReader;
