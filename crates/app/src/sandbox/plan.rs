//! The seed data in `seed.toml`: sellers with their applications, offers in every status, orders at every
//! stage.

use anyhow::Context as _;
use figment::providers::{Format as _, Toml};
use orders::{Buyer, DeliveryPoint, Invoice, ShippingAddress};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    /// In order of their numbers.
    pub(super) sellers: Vec<SellerPlan>,
    /// The nth is the buyer of each seller's nth order.
    pub(super) customers: Vec<Customer>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Customer {
    pub(super) payment_method: String,
    pub(super) delivery_method: String,
    pub(super) buyer: Buyer,
    pub(super) shipping_address: ShippingAddress,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SellerPlan {
    pub(super) name: String,
    /// The part of the e-mail address before the `@`.
    pub(super) mailbox: String,
    pub(super) domain: String,
    /// The first one is for the seller's own use.
    pub(super) applications: Vec<ApplicationPlan>,
    /// As the back office takes them, newest first. The first one is published, with price and stock.
    pub(super) offers: Vec<Value>,
    /// Oldest first.
    pub(super) orders: Vec<OrderPlan>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplicationPlan {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) domain: String,
    pub(super) purpose: String,
    pub(super) client_type: String,
    pub(super) scopes: Vec<String>,
    /// The status that an operator sets after the registration: `active` or `suspended`.
    pub(super) status: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderPlan {
    pub(super) minutes_ago: i64,
    #[serde(default)]
    pub(super) is_test: bool,
    pub(super) steps: Vec<OrderStep>,
    /// Index of the seller, index of the offer, quantity.
    pub(super) lines: Vec<(usize, usize, i32)>,
    pub(super) delivery_point: Option<DeliveryPoint>,
    pub(super) invoice: Option<Invoice>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OrderStep {
    Pay,
    Cancel,
    /// Carrier and tracking number.
    Ship([String; 2]),
    Deliver,
}

impl Plan {
    pub(super) fn read() -> anyhow::Result<Self> {
        Toml::from_str(include_str!("seed.toml")).context("the sandbox's seed cannot be read")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_offer_has_a_valid_ean_of_its_own() {
        let mut eans = BTreeSet::new();
        let sellers = Plan::read().unwrap().sellers;
        for offer in sellers.into_iter().flat_map(|seller| seller.offers) {
            let ean = offer["ean"].as_str().unwrap();
            let digits = ean.bytes().zip([1, 3].into_iter().cycle());
            let weighted = digits.map(|(digit, weight)| u32::from(digit - b'0') * weight);
            assert_eq!((ean.len(), weighted.sum::<u32>() % 10), (13, 0), "{offer}");
            assert!(eans.insert(ean.to_owned()), "{offer}");
        }
    }
}
