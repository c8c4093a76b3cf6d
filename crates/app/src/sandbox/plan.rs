//! The seed data in `seed.toml`: sellers with their applications, offers in every status, orders at every
//! stage.

use anyhow::Context as _;
use figment::providers::{Format as _, Toml};
use kernel::{Money, OfferId};
use offers::{OfferInput, OfferStatus, Stock};
use orders::{Buyer, ShippingAddress};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    /// In order of their numbers.
    pub(super) sellers: Vec<SellerPlan>,
    /// Name and mailbox.
    buyers: Vec<[String; 2]>,
    /// Street, postal code and city.
    addresses: Vec<[String; 3]>,
    /// Payment and delivery.
    methods: Vec<[String; 2]>,
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
    /// Newest first. The first one is published, with price and stock.
    pub(super) offers: Vec<OfferPlan>,
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
pub(super) struct OfferPlan {
    title: String,
    handle: String,
    brand: Option<String>,
    ean: String,
    /// In grosze.
    price: Option<i64>,
    stock: Option<i64>,
    status: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OrderPlan {
    pub(super) minutes_ago: i64,
    #[serde(default)]
    pub(super) is_test: bool,
    pub(super) steps: Vec<Step>,
    /// Index of the seller, index of the offer, quantity.
    pub(super) lines: Vec<(usize, usize, i32)>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
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

    /// The buyer of a seller's nth order, the address, and the methods of payment and delivery.
    pub(super) fn buyer(&self, n: usize) -> Option<(Buyer, ShippingAddress, [String; 2])> {
        let [name, mailbox] = pick(&self.buyers, n)?;
        let [street, code, city] = pick(&self.addresses, n)?;
        let buyer = Buyer {
            name: Some(name.clone()),
            email: Some(format!("{mailbox}@poczta.example")),
            phone: Some(format!("+48 500 000 {n:03}")),
        };
        let address = ShippingAddress {
            line1: Some(format!("{street} {}", 3 + n)),
            line2: Some(format!("m. {}", 1 + n)).filter(|_| n.is_multiple_of(3)),
            postal_code: Some(code.clone()),
            city: Some(city.clone()),
            country: "PL".to_owned(),
        };
        Some((buyer, address, pick(&self.methods, n)?.clone()))
    }
}

fn pick<T>(all: &[T], n: usize) -> Option<&T> {
    all.iter().cycle().nth(n)
}

impl OfferPlan {
    /// The shop's own name for it; none without a brand.
    pub(super) fn sku(&self) -> Option<String> {
        self.brand.as_ref().map(|_| self.handle.to_uppercase())
    }

    /// The offer as the marketplace sends it for the shop at this domain.
    pub(super) fn feed(&self, id: OfferId, domain: &str) -> anyhow::Result<OfferInput> {
        let (handle, ean) = (&self.handle, &self.ean);
        let signature = |brand: &String| format!("{handle}|{brand}|{ean}");
        let thumbnail = |_| format!("https://img.{domain}/{handle}.jpg");
        Ok(OfferInput {
            id,
            title: self.title.clone(),
            status: OfferStatus::parse(&self.status).context("unknown status")?,
            price: self.price.map(Money::pln).transpose()?,
            stock: self.stock.map(Stock::new).transpose()?,
            signature: self.brand.as_ref().map(signature),
            thumbnail: self.brand.as_ref().map(thumbnail),
            brand: self.brand.clone(),
            ean: Some(ean.clone()),
            url: format!("https://{domain}/p/{handle}"),
            handle: handle.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use uuid::Uuid;

    use super::*;

    #[test]
    fn every_offer_keeps_the_rules_of_the_feed_and_has_a_number_of_its_own() {
        let mut eans = BTreeSet::new();
        for seller in Plan::read().unwrap().sellers {
            for plan in &seller.offers {
                let offer = plan.feed(Uuid::nil().into(), &seller.domain).unwrap();
                assert!(offers::title(offer.title.clone()).is_ok(), "{offer:?}");
                assert!(offers::handle(offer.handle.clone()).is_ok(), "{offer:?}");
                assert!(offers::web_address(offer.url.clone()).is_ok(), "{offer:?}");
                let parts = offer.signature.iter().map(|text| text.split('|').count());
                assert!(parts.eq(offer.brand.iter().map(|_| 3)), "{offer:?}");
                let digits = plan.ean.bytes().zip([1, 3].into_iter().cycle());
                let weighted = digits.map(|(digit, weight)| u32::from(digit - b'0') * weight);
                assert_eq!((plan.ean.len(), weighted.sum::<u32>() % 10), (13, 0), "{offer:?}");
                assert!(eans.insert(plan.ean.clone()), "{offer:?}");
            }
        }
    }
}
