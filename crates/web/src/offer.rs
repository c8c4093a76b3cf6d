//! An offer as JSON, for both listeners: what a response shows of it, and how the marketplace feeds it.

use kernel::OfferId;
use offers::{Offer, OfferInput, OfferStatus, Stock};

use crate::decode::{Shape, integer, object, one_of, parsed, text};
use crate::money::{MoneyView, money};
use crate::schema::{self, Node, date_time, string, uri, uuid};
use crate::timestamps::Timestamp;
use crate::view::View;

crate::view! {
    /// Contract: Offer.
    pub OfferView<'a> of offer: &'a Offer, named "Offer", "A product that the seller lists." {
        "id": uuid() => offer.id.uuid(),
        "title": string() => offer.title,
        "handle": string().describe("The slug of the product's page.") => offer.handle,
        "status": status() => offer.status.as_str(),
        "price": MoneyView::schema().or_null().describe("`null` where the offer has no PLN price.")
            => offer.price.map(|price| MoneyView::whole(price.money)),
        "stock": schema::integer(0, i32::MAX.into()).or_null().describe("Pieces; `null` where the offer has no inventory level.")
            => offer.stock.map(Stock::get),
        "ean": string().or_null() => offer.ean,
        "brand": string().or_null() => offer.brand,
        "signature": string().or_null().describe("Catalogue id, brand and EAN, separated by `|`.") => offer.signature,
        "thumbnail": uri().or_null() => offer.thumbnail,
        "url": uri().describe("The product's page.") => offer.url,
        "created_at": date_time() => Timestamp::new(offer.created_at),
        "updated_at": date_time().describe("Moves with every other field.") => Timestamp::new(offer.updated_at),
    }
}

/// An offer as the marketplace feeds it: a nullable field may be absent, which means null (D99). The id is known from the path of a PUT; a
/// line of an import has it (D100).
pub fn offer_input(id: Option<OfferId>) -> impl Shape<Value = OfferInput> {
    object!(OfferInput {
        id: unless_known(parsed(), id),
        title: required(text().checked(offers::title)),
        handle: required(text().checked(offers::handle)),
        status: required(one_of(&OfferStatus::ALL, OfferStatus::as_str)),
        price: nullable(money()),
        stock: nullable(stock()),
        ean: nullable(text().checked(offers::short_text)),
        brand: nullable(text().checked(offers::short_text)),
        signature: nullable(text().checked(offers::short_text)),
        thumbnail: nullable(text().checked(offers::web_address)),
        url: required(text().checked(offers::web_address)),
    })
}

/// The schema of a status.
pub fn status() -> Node {
    string()
        .one_of(OfferStatus::ALL.map(OfferStatus::as_str))
        .describe("`proposed` waits for moderation, `rejected` was refused by it and is hidden.")
        .named("OfferStatus")
}

/// A stock to be set.
pub fn stock() -> impl Shape<Value = Stock> {
    integer(0..=i64::from(i32::MAX)).checked(Stock::new)
}
