//! Bodies of offers.

use serde_json::{Value, json};

use crate::merged;

/// The id of the n-th offer of a test.
pub fn offer_id(n: usize) -> String {
    format!("01900000-0000-7000-8000-{n:012}")
}

/// The inverse of [`offer_id`].
pub fn number_of(id: &Value) -> usize {
    let digits = id.as_str().and_then(|id| id.rsplit('-').next());
    digits.expect("an id").parse().expect("an id of `offer_id`")
}

/// An offer with every field set; `changes` override its fields.
pub fn offer_body(n: usize, changes: Value) -> Value {
    let offer = json!({
        "title": format!("Kettle {n}"),
        "handle": format!("kettle-{n}"),
        "status": "published",
        "price": {"amount": 12_900, "currency": "PLN"},
        "stock": 7,
        "ean": "5901234123457",
        "brand": "Kettles & Co",
        "signature": format!("{n}|Kettles & Co|5901234123457"),
        "thumbnail": format!("https://img.example/{n}.webp"),
        "url": format!("https://shop.example/p/kettle-{n}"),
    });
    merged(offer, changes)
}

/// A line of an import: [`offer_body`] with the offer's id.
pub fn offer_line(n: usize, changes: Value) -> String {
    offer_body(n, merged(json!({"id": offer_id(n)}), changes)).to_string()
}
