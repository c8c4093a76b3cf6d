//! Texts of several tables that have a type of their own, or what is wrong with them.

use orders::{Carrier, OrderNumber, TrackingNumber};

pub(super) fn carrier(word: &str) -> Result<Carrier, String> {
    Carrier::parse(word).ok_or_else(|| format!("carrier {word:?}"))
}

pub(super) fn tracking_number(number: String) -> Result<TrackingNumber, String> {
    TrackingNumber::new(number).map_err(|invalid| format!("tracking_number {invalid}"))
}

pub(super) fn order_number(number: String) -> Result<OrderNumber, String> {
    OrderNumber::new(number).map_err(|invalid| format!("number {invalid}"))
}
