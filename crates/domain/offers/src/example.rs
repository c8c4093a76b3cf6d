//! An example for tests, so that they name an offer's optional fields only where they are about them.

use chrono::{DateTime, Utc};
use kernel::{OfferId, SellerId};

use crate::{Offer, OfferStatus};

impl Offer {
    /// A published kettle with its mandatory fields alone.
    pub fn example(seller: SellerId, id: OfferId, at: DateTime<Utc>) -> Self {
        Self {
            seller,
            id,
            title: "Kettle".to_owned(),
            handle: "kettle".to_owned(),
            status: OfferStatus::Published,
            price: None,
            stock: None,
            ean: None,
            brand: None,
            signature: None,
            thumbnail: None,
            url: "https://shop.example/kettle".to_owned(),
            external_id: None,
            created_at: at,
            updated_at: at,
        }
    }
}
