//! A whole offer as the marketplace sends it: the body of a PUT, and a line of an import.

use kernel::{Money, OfferId};
use offers::{OfferFeed, OfferStatus, OptionalText, Stock, WebAddress};
use web::decode::{Field, FieldSet, Place, Shape, integer, nullable, object, one_of, required, text};
use web::json::Object;

use crate::money::money;
use crate::ruled::rule;

/// The fields of an offer in the contract's order, from `title` to `url`.
pub(crate) type Fields = (
    String,
    String,
    OfferStatus,
    Option<Money>,
    Option<Stock>,
    OptionalText,
    OptionalText,
    OptionalText,
    Option<WebAddress>,
    WebAddress,
);

/// The body of a PUT: the nullable fields may be absent, which is null (D99).
pub(crate) fn body() -> impl Shape<Value = Fields> {
    object(fields())
}

/// A line of an import: `id` beside the fields of a PUT (D100).
pub(crate) fn line() -> impl Shape<Value = OfferFeed> {
    object(WithId(fields())).map(|(id, fields)| feed(id, fields))
}

/// The offer of this id with these fields.
pub(crate) fn feed(id: OfferId, fields: Fields) -> OfferFeed {
    let (title, handle, status, price, stock, ean, brand, signature, thumbnail, url) = fields;
    OfferFeed {
        id,
        title,
        handle,
        status,
        price,
        stock,
        ean,
        brand,
        signature,
        thumbnail,
        url,
    }
}

fn fields() -> impl FieldSet<Values = Fields> {
    (
        required("title", text().checked(rule(offers::title))),
        required("handle", text().checked(rule(offers::handle))),
        required("status", one_of(&OfferStatus::ALL, OfferStatus::as_str)),
        nullable("price", money()),
        nullable(
            "stock",
            integer(0..=i64::from(i32::MAX)).checked(rule(Stock::new)),
        ),
        nullable("ean", text().checked(rule(offers::optional_text))),
        nullable("brand", text().checked(rule(offers::optional_text))),
        nullable("signature", text().checked(rule(offers::optional_text))),
        nullable("thumbnail", text().checked(rule(offers::web_address))),
        required("url", text().checked(rule(offers::web_address))),
    )
}

/// A table with `id` before its other fields.
struct WithId<F>(F);

impl<F: FieldSet> FieldSet for WithId<F> {
    type Values = (OfferId, F::Values);

    fn names(&self) -> Vec<&'static str> {
        let mut names = vec![id().name()];
        names.extend(self.0.names());
        names
    }

    fn read(&self, object: &mut Object, place: &mut Place<'_>) -> Option<Self::Values> {
        let id = id().read(object, place);
        let others = self.0.read(object, place);
        id.zip(others)
    }
}

fn id() -> impl Field<Value = OfferId> {
    required("id", text().checked(rule(|id: String| id.parse())))
}
