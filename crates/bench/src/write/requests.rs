//! What the load writes: changes of offers and shipments, each under a key of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use anyhow::Context as _;

use super::trade::{Trade, order_id_hole};
use crate::catalogue::{self, Catalogue};
use crate::requests::{Requests, Source, Template, keyed};

/// The first half of every idempotency key; 16 digits follow, as in the scripts.
pub(super) const KEY_HIGH: &str = "0199000000007000";
/// Prices are of seven digits, from this one on.
pub(super) const LOWEST_PRICE: u64 = 1_000_000;

/// Numbers that never come twice and lie all over the place, as keys do: what was asked once more is answered from memory,
/// and what lies close together costs PostgreSQL less.
#[derive(Debug)]
struct Fresh(AtomicU64);

impl Fresh {
    /// Those of the n-th kind of requests; no two kinds have one in common.
    fn of_kind(n: u64) -> Self {
        Self(AtomicU64::new(n << 40))
    }

    /// The finalizer of `SplitMix64`, which gives each count another number.
    fn next(&self) -> u64 {
        let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        let mixed = count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// `PATCH /v1/offers/{id}` with another price for a random offer of all.
#[derive(Debug)]
pub(super) struct Patches {
    catalogue: Catalogue,
    templates: Vec<Template>,
    fresh: Fresh,
}

impl Patches {
    /// Of all sellers' offers, `tokens` in the sellers' order.
    pub(super) fn of_all(catalogue: Catalogue, tokens: &[&str]) -> Requests {
        let path = format!("/v1/offers/{}", catalogue::offer_id_hole());
        let (key, body) = (key_hole(), r#"{"price":{"amount":#######,"currency":"PLN"}}"#);
        let template = |token: &&str| Template::new(keyed("PATCH", &path, token, &key, body));
        Arc::new(Self {
            catalogue,
            templates: tokens.iter().map(template).collect(),
            fresh: Fresh::of_kind(0),
        })
    }
}

impl Source for Patches {
    fn write(&self, _: &mut fastrand::Rng, into: &mut Vec<u8>) -> anyhow::Result<()> {
        let fresh = self.fresh.next();
        let offer = fresh % self.catalogue.offers;
        let price = LOWEST_PRICE + (fresh >> 40) % LOWEST_PRICE;
        let template = of_seller(&self.templates, self.catalogue.seller_of(offer))?;
        template.write(&[offer, fresh, price], into)
    }
}

/// `POST /orders` of the back office: one piece of a random offer of all but the first seller's, whose lists stay as they are.
#[derive(Debug)]
pub(super) struct Placings {
    catalogue: Catalogue,
    templates: Vec<Template>,
    fresh: Fresh,
}

/// What a placed order says beside its item.
const ORDER: &str = concat!(
    r#"{"payment_method":"blik","delivery_method":"courier","#,
    r#""buyer":{"name":"Ewa Kowalska","email":"ewa@poczta.example","phone":"+48 600 100 200"},"#,
    r#""shipping_address":{"line1":"Prosta 1","postal_code":"00-001","city":"Warszawa","country":"PL"},"items":[{"#
);

impl Placings {
    /// Of all but the first seller's offers, `sellers` being ids in the catalogue's order.
    pub(super) fn of_all(catalogue: Catalogue, sellers: &[&str], operator: &str) -> Requests {
        let (key, offer) = (key_hole(), catalogue::offer_id_hole());
        let template = |seller: &&str| {
            let body = format!(r#"{ORDER}"seller_id":"{seller}","offer_id":"{offer}","quantity":1}}]}}"#);
            Template::new(keyed("POST", "/orders", operator, &key, &body))
        };
        Arc::new(Self {
            catalogue,
            templates: sellers.iter().map(template).collect(),
            fresh: Fresh::of_kind(2),
        })
    }
}

impl Source for Placings {
    fn write(&self, _: &mut fastrand::Rng, into: &mut Vec<u8>) -> anyhow::Result<()> {
        let fresh = self.fresh.next();
        let largest = self.catalogue.largest();
        let offer = largest + fresh % (self.catalogue.offers - largest);
        let template = of_seller(&self.templates, self.catalogue.seller_of(offer))?;
        template.write(&[fresh, offer], into)
    }
}

/// `POST /v1/orders/{id}/shipments` of random orders, each once.
#[derive(Debug)]
pub(super) struct Shipments {
    trade: Trade,
    templates: Vec<Template>,
    order: Vec<u32>,
    next: AtomicUsize,
    fresh: Fresh,
}

impl Shipments {
    /// Of the orders that are the server's to ship.
    pub(super) fn of_all(trade: Trade, tokens: &[&str]) -> anyhow::Result<Requests> {
        let path = format!("/v1/orders/{}/shipments", order_id_hole());
        let body = r#"{"carrier":"other","tracking_number":"BENCH############"}"#;
        let key = key_hole();
        let template = |token: &&str| Template::new(keyed("POST", &path, token, &key, body));
        let mut order: Vec<u32> = (0..u32::try_from(trade.servers())?).collect();
        fastrand::Rng::with_seed(1).shuffle(&mut order);
        Ok(Arc::new(Self {
            trade,
            templates: tokens.iter().map(template).collect(),
            order,
            next: AtomicUsize::new(0),
            fresh: Fresh::of_kind(1),
        }))
    }
}

impl Source for Shipments {
    fn write(&self, _: &mut fastrand::Rng, into: &mut Vec<u8>) -> anyhow::Result<()> {
        let next = self.order.get(self.next.fetch_add(1, Ordering::Relaxed));
        let next = next.context("all orders are shipped; take more of them (--orders), or fewer rounds")?;
        let (order, seller) = self.trade.to_ship(u64::from(*next));
        let template = of_seller(&self.templates, seller)?;
        template.write(&[order, self.fresh.next(), order], into)
    }
}

fn key_hole() -> String {
    format!("{KEY_HIGH}################")
}

fn of_seller(templates: &[Template], seller: u64) -> anyhow::Result<&Template> {
    templates
        .get(usize::try_from(seller)?)
        .context("a seller has no token")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn written(requests: &Requests) -> anyhow::Result<String> {
        let mut request = Vec::new();
        requests.write(&mut fastrand::Rng::with_seed(1), &mut request)?;
        Ok(String::from_utf8(request)?)
    }

    fn after<'a>(request: &'a str, name: &str) -> &'a str {
        let (_, rest) = request.split_once(name).unwrap();
        rest.split([' ', '\r', '/', '"', ',']).next().unwrap()
    }

    #[test]
    fn every_change_has_a_key_of_its_own_and_its_sellers_token() {
        let catalogue = Catalogue::new(100, 3);
        let requests = Patches::of_all(catalogue, &["t0", "t1", "t2"]);
        let mut keys = BTreeSet::new();
        for _ in 0..500 {
            let request = written(&requests).unwrap();
            assert!(keys.insert(after(&request, "Idempotency-Key: ").to_owned()));
            let id = after(&request, "PATCH /v1/offers/");
            let offer = (0..100).find(|offer| catalogue::offer_id(*offer) == id).unwrap();
            let token = format!("t{}", catalogue.seller_of(offer));
            assert_eq!(after(&request, "Bearer "), token, "{request}");
            let body = request.split_once("\r\n\r\n").unwrap().1;
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            assert!(body["price"]["amount"].as_u64().unwrap() >= LOWEST_PRICE);
        }
    }

    #[test]
    fn an_order_is_of_an_offer_and_its_seller() {
        let catalogue = Catalogue::new(100, 3);
        let requests = Placings::of_all(catalogue, &["s0", "s1", "s2"], "op");
        for _ in 0..100 {
            let request = written(&requests).unwrap();
            let body = request.split_once("\r\n\r\n").unwrap().1;
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            let item = &body["items"][0];
            let offer = (0..100)
                .find(|offer| item["offer_id"] == catalogue::offer_id(*offer))
                .unwrap();
            let seller = catalogue.seller_of(offer);
            assert!(seller > 0);
            assert_eq!(item["seller_id"], format!("s{seller}"));
        }
    }

    #[test]
    fn every_order_is_shipped_once() {
        let trade = Trade {
            orders: 100,
            sellers: 3,
        };
        let requests = Shipments::of_all(trade, &["t0", "t1", "t2"]).unwrap();
        let mut orders = BTreeSet::new();
        for _ in 0..trade.servers() {
            let request = written(&requests).unwrap();
            assert!(orders.insert(after(&request, "POST /v1/orders/").to_owned()));
            assert!(
                !request.contains('#') && !request.contains("Bearer t0"),
                "{request}"
            );
        }
        assert!(written(&requests).unwrap_err().to_string().contains("--orders"));
    }
}
