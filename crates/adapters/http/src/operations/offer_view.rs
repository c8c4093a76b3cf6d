//! An offer as sellers see it (contract: Offer).

use offers::{Offer, OfferStatus, Stock};
use web::schema::{self, Node, date_time, string, uri, uuid};
use web::timestamps::Timestamp;

use super::MoneyView;
use super::view::view;

view! {
    /// An offer with the chosen fields.
    OfferView of offer: Offer, of 768 bytes, named "Offer", "A product that the seller lists." {
        "id": uuid() => offer.id.uuid(),
        "title": string() => offer.title,
        "handle": string().said("The slug of the product's page.") => offer.handle,
        "status": status() => offer.status.as_str(),
        "price": MoneyView::schema().or_null().said("`null` where the offer has no PLN price.")
            => offer.price.map(|price| MoneyView::of(price.money)),
        "stock": schema::integer(0, i32::MAX.into()).or_null().said("Pieces; `null` where the offer has no inventory level.")
            => offer.stock.map(Stock::get),
        "ean": string().or_null() => offer.ean,
        "brand": string().or_null() => offer.brand,
        "signature": string().or_null().said("Catalogue id, brand and EAN, separated by `|`.") => offer.signature,
        "thumbnail": uri().or_null() => offer.thumbnail,
        "url": uri().said("The product's page.") => offer.url,
        "created_at": date_time() => Timestamp::new(offer.created_at),
        "updated_at": date_time().said("Moves with every other field.") => Timestamp::new(offer.updated_at),
    }
}

/// Contract: Offer.
pub(super) fn status() -> Node {
    string()
        .one_of(OfferStatus::ALL.map(OfferStatus::as_str))
        .said("`proposed` waits for moderation, `rejected` was refused by it and is hidden.")
        .named("OfferStatus")
}

/// The whole of an offer.
pub(super) fn example() -> Node {
    Node::parse(
        r#"{
            "id": "01936b2e-8f6a-7c31-9a54-3f2d8c1b7e90", "title": "Whistling kettle, 2 l", "handle": "whistling-kettle-2-l",
            "status": "published", "price": {"amount": 12900, "currency": "PLN"}, "stock": 14, "ean": "5901234123457",
            "brand": "Kettles & Co", "signature": "KT-200|Kettles & Co|5901234123457",
            "thumbnail": "https://cdn.example.com/kettle.jpg", "url": "https://market.example.com/p/whistling-kettle-2-l",
            "created_at": "2026-10-02T07:15:00.000000Z", "updated_at": "2026-11-19T12:30:41.518203Z"
        }"#,
    )
}
