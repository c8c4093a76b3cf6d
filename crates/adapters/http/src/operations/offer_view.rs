//! An offer as sellers see it (contract: Offer).

use offers::{Offer, Stock};
use web::timestamps::Timestamp;

use super::MoneyView;
use super::view::view;

view! {
    /// An offer with the chosen fields.
    OfferView of offer: Offer, of 768 bytes {
        "id" => offer.id.uuid(),
        "title" => offer.title,
        "handle" => offer.handle,
        "status" => offer.status.as_str(),
        "price" => offer.price.map(|price| MoneyView::of(price.money)),
        "stock" => offer.stock.map(Stock::get),
        "ean" => offer.ean,
        "brand" => offer.brand,
        "signature" => offer.signature,
        "thumbnail" => offer.thumbnail,
        "url" => offer.url,
        "created_at" => Timestamp::new(offer.created_at),
        "updated_at" => Timestamp::new(offer.updated_at),
    }
}
