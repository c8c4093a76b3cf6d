//! What a target is, and the table of them.

use crate::targets::{
    addresses, basic, carriers, credentials, feeds, forms, headers, json, offices, panels, public, queries,
    receivers, sealed, shapes, times,
};

/// A reader of strangers' bytes, and what must hold of it.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, for reports and for choosing it.
    pub name: &'static str,
    /// Reads the bytes, and panics where something does not hold.
    pub run: fn(&[u8]),
    /// Inputs to begin with: good ones, and bad ones of each kind.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that mean something to this reader.
    pub words: &'static [&'static str],
    /// Shapes of input that may cost more than their length: what comes before, what is repeated (a `#` in it is a number that
    /// counts on), what comes after.
    pub grows: &'static [(&'static str, &'static str, &'static str)],
}

/// Every target.
pub const TABLE: &[Target] = &[
    json::TARGET,
    shapes::TARGET,
    queries::TARGET,
    forms::TARGET,
    headers::TARGET,
    basic::TARGET,
    times::TARGET,
    credentials::TARGET,
    sealed::TARGET,
    addresses::WEBHOOKS,
    addresses::REDIRECTS,
    addresses::AUTHORIZATIONS,
    carriers::INPOST,
    carriers::DHL,
    carriers::POCZTA_POLSKA,
    carriers::DPD,
    carriers::GLS,
    carriers::UPS,
    carriers::FEDEX,
    feeds::TARGET,
    public::API,
    public::OAUTH,
    offices::TARGET,
    panels::TARGET,
    receivers::TARGET,
];

/// The target of this name.
pub fn named(name: &str) -> Option<&'static Target> {
    TABLE.iter().find(|target| target.name == name)
}
