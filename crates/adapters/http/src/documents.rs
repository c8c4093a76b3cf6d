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

/// Documents an operation: its id, which names its Markdown file, and its tag.
macro_rules! docs {
    ($id:literal, $tag:literal) => {
        ::web::openapi::Docs::new(
            $id,
            $tag,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/", $id, ".md")),
        )
    };
}

/// The ids that all examples share.
pub(crate) mod examples {
    use kernel::OfferId;

    pub(crate) const OFFER: &str = "01936b2e-8f6a-7c31-9a54-3f2d8c1b7e90";
    pub(crate) const ORDER: &str = "01936c01-52b7-7f0e-8d6e-6b1a9e24c7d3";
    pub(crate) const SHIPMENT: &str = "01936c4f-0b1a-7d2c-9e3f-4a5b6c7d8e9f";
    pub(crate) const WEBHOOK: &str = "01936d10-7a3b-7c4d-8e5f-6a7b8c9d0e1f";
    pub(crate) const DELIVERY: &str = "01936d22-1f2e-7d3c-8b4a-596877869504";

    /// The body of the example delivery.
    pub(crate) const DELIVERY_BODY: &str = concat!(
        r#"{"id":"01936d22-1f2e-7d3c-8b4a-596877869504","event":"order.paid","occurred_at":"2026-11-19T08:03:54.120008Z","#,
        r#""data":{"order_id":"01936c01-52b7-7f0e-8d6e-6b1a9e24c7d3","order_number":"ZAM-1-1001","#,
        r#""seller_id":"01936a00-1c2d-7e3f-8a4b-5c6d7e8f9a0b","event_id":"01936d22-1f2e-7d3c-8b4a-596877869510"}}"#,
    );

    /// The items of the example order.
    pub(crate) fn offers() -> Vec<OfferId> {
        OFFER.parse().into_iter().collect()
    }
}

pub(crate) use {docs, example};
