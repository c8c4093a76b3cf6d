//! The keys of what the bench of the writing endpoints measures.

/// pgbench: the writes of a change.
pub(crate) const PATCH_ROWS: &str = "patch-rows";
/// A keyed change of an offer.
pub(crate) const PATCH: &str = "patch";
/// pgbench: the writes of a shipment.
pub(crate) const SHIPMENT_ROWS: &str = "shipment-rows";
/// A keyed shipment.
pub(crate) const SHIPMENT: &str = "shipment";
/// pgbench: the writes of a placed order.
pub(crate) const PLACING_ROWS: &str = "placing-rows";
/// A keyed placing of an order.
pub(crate) const PLACING: &str = "placing";
/// The first page of orders.
pub(crate) const ORDERS: &str = "orders";
/// A deep page of orders.
pub(crate) const DEEP: &str = "orders-deep";

/// All of them.
pub(crate) const ALL: [&str; 8] = [
    PATCH_ROWS,
    PATCH,
    SHIPMENT_ROWS,
    SHIPMENT,
    PLACING_ROWS,
    PLACING,
    ORDERS,
    DEEP,
];
