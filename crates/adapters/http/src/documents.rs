//! The files that the OpenAPI document includes: examples and prose.

/// Includes an example of the OpenAPI document.
macro_rules! example {
    ($name:literal) => {
        || {
            ::web::schema::Node::parse(include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/openapi/examples/",
                $name,
                ".json"
            )))
        }
    };
}

/// Includes the Markdown file of an operation.
macro_rules! prose {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/", $name, ".md"))
    };
}

/// The ids that all examples share.
pub(crate) mod examples {
    use kernel::OfferId;

    pub(crate) const OFFER: &str = "01936b2e-8f6a-7c31-9a54-3f2d8c1b7e90";
    pub(crate) const ORDER: &str = "01936c01-52b7-7f0e-8d6e-6b1a9e24c7d3";
    pub(crate) const SHIPMENT: &str = "01936c4f-0b1a-7d2c-9e3f-4a5b6c7d8e9f";
    pub(crate) const WEBHOOK: &str = "01936d10-7a3b-7c4d-8e5f-6a7b8c9d0e1f";

    /// The items of the example order.
    pub(crate) fn offers() -> Vec<OfferId> {
        OFFER.parse().into_iter().collect()
    }
}

pub(crate) use {example, prose};
