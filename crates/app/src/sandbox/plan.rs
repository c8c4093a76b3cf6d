//! What is seeded, from `seed.toml`: sellers with their applications, offers in every status, orders at every stage.

use anyhow::Context as _;
use chrono::TimeDelta;
use figment::providers::{Format as _, Toml};
use kernel::{Money, OfferId};
use offers::{OfferFeed, OfferStatus, Stock};
use orders::{Buyer, Carrier, OrderNumber, ShippingAddress};
use serde::Deserialize;
use usecases::manage_application::Move;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    /// In the order of their numbers.
    pub(super) sellers: Vec<SellerPlan>,
    /// Name and mailbox.
    buyers: Vec<[String; 2]>,
    /// Street, postal code and city.
    addresses: Vec<[String; 3]>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SellerPlan {
    pub(super) name: String,
    /// The part of its e-mail address before the `@`.
    pub(super) mailbox: String,
    pub(super) domain: String,
    /// The first one is for own use.
    pub(super) applications: Vec<ApplicationPlan>,
    ean_prefix: String,
    products: Vec<Product>,
    /// Added to a product's title, and to its handle.
    variants: Vec<[String; 2]>,
    minutes_between_orders: i64,
    /// How far the ordinary orders have come, the oldest first.
    orders: Vec<Stage>,
}

/// Title, handle, brand, and price in grosze.
#[derive(Debug, Deserialize)]
struct Product(String, String, String, i64);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplicationPlan {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) domain: String,
    pub(super) purpose: String,
    pub(super) client_type: String,
    pub(super) scopes: Vec<String>,
    /// What the operator does after the registration.
    #[serde(default)]
    pub(super) moves: Vec<OperatorMove>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OperatorMove {
    Accept,
    Suspend,
}

impl From<OperatorMove> for Move {
    fn from(step: OperatorMove) -> Self {
        match step {
            OperatorMove::Accept => Self::Accept,
            OperatorMove::Suspend => Self::Suspend,
        }
    }
}

/// How far an order has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    Placed,
    CalledOff,
    Paid,
    PaidAndCalledOff,
    /// The parcel is on its way.
    Shipped,
    Delivered,
}

/// What is special about an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ordinary,
    /// It holds items of the next seller too.
    TwoSellers,
    Test,
}

impl Plan {
    pub(super) fn read() -> anyhow::Result<Self> {
        Toml::from_str(include_str!("seed.toml")).context("the sandbox's seed cannot be read")
    }

    /// The orders, each seller's oldest first. Those of the first seller reach back twelve days, the others' a day.
    pub(super) fn orders(&self) -> Vec<OrderPlan> {
        let mut plans = Vec::new();
        for (seller, plan) in self.sellers.iter().enumerate() {
            let special: &[Kind] = match seller {
                0 => &[Kind::TwoSellers, Kind::Test],
                _ => &[],
            };
            let minutes = plan.minutes_between_orders;
            let ordinary = plan.orders.iter().map(|stage| (*stage, Kind::Ordinary, minutes));
            let special = special.iter().map(|kind| (Stage::Paid, *kind, 41));
            let orders = ordinary.clone().chain(special.clone()).enumerate();
            plans.extend(orders.map(|(n, (stage, kind, minutes))| {
                let count = plan.orders.len() + if kind == Kind::Ordinary { 0 } else { special.len() };
                let steps = i64::try_from(count - n).unwrap_or_default();
                OrderPlan {
                    seller,
                    n,
                    age: TimeDelta::minutes(steps * minutes + 7),
                    stage,
                    kind,
                }
            }));
        }
        plans
    }

    pub(super) fn buyer(&self, order: &OrderPlan) -> Buyer {
        let (name, mailbox) = pick(&self.buyers, order.n).map_or(("", ""), |[name, mailbox]| (name, mailbox));
        Buyer {
            name: Some(name.to_owned()),
            email: Some(format!("{mailbox}@poczta.example")),
            phone: Some(format!("+48 500 000 {:03}", order.n)),
        }
    }

    pub(super) fn address(&self, order: &OrderPlan) -> ShippingAddress {
        let empty = || Default::default();
        let [street, code, city] = pick(&self.addresses, order.n).cloned().unwrap_or_else(empty);
        let n = order.n;
        ShippingAddress {
            line1: Some(format!("{street} {}", 3 + n)),
            line2: Some(format!("m. {}", 1 + n)).filter(|_| n.is_multiple_of(3)),
            postal_code: Some(code),
            city: Some(city),
            country: "PL".to_owned(),
        }
    }
}

fn pick<T>(all: &[T], n: usize) -> Option<&T> {
    all.iter().cycle().nth(n)
}

/// An offer to be fed as if it had been fed `age` ago.
pub(super) struct OfferPlan {
    pub(super) feed: OfferFeed,
    pub(super) age: TimeDelta,
}

impl SellerPlan {
    /// The offers, newest first; `id` makes their ids. The first one is published, with price and stock.
    pub(super) fn offers(&self, mut id: impl FnMut() -> OfferId) -> Vec<OfferPlan> {
        let variants = self.variants.iter();
        let pairs = variants.flat_map(|variant| self.products.iter().map(move |product| (product, variant)));
        let offer = |(n, (product, variant))| OfferPlan {
            feed: self.offer(n, product, variant, id()),
            age: TimeDelta::minutes(n * 311 + 12),
        };
        (0..).zip(pairs).map(offer).collect()
    }

    fn offer(&self, n: i64, product: &Product, [variant, suffix]: &[String; 2], id: OfferId) -> OfferFeed {
        let (Product(title, handle, brand, price), domain) = (product, &self.domain);
        let handle = format!("{handle}-{suffix}");
        let ean = ean(&self.ean_prefix, n);
        let (status, priced, stocked) = match n % 12 {
            3 => (OfferStatus::Draft, false, true),
            5 => (OfferStatus::Proposed, true, false),
            7 => (OfferStatus::Rejected, true, true),
            8 => (OfferStatus::Published, false, true),
            9 => (OfferStatus::Published, true, false),
            11 => (OfferStatus::Draft, false, false),
            _ => (OfferStatus::Published, true, true),
        };
        OfferFeed {
            id,
            title: format!("{title}, {variant}"),
            status,
            price: Money::pln(*price).ok().filter(|_| priced),
            stock: Stock::new((n * 7 + 12) % 40).ok().filter(|_| stocked),
            brand: Some(brand.clone()).filter(|brand| !brand.is_empty()),
            signature: Some(format!("K{:06}|{brand}|{ean}", 1_000 + n)).filter(|_| !brand.is_empty()),
            ean: Some(ean),
            thumbnail: Some(format!("https://img.{domain}/{handle}.jpg")).filter(|_| n % 9 != 8),
            url: format!("https://{domain}/p/{handle}"),
            handle,
        }
    }
}

/// An EAN-13: seven digits, five of a number, a check digit.
fn ean(prefix: &str, n: i64) -> String {
    let digits = format!("{prefix}{n:05}");
    let weights = [1, 3].into_iter().cycle();
    let weighted = digits
        .bytes()
        .zip(weights)
        .map(|(digit, weight)| u32::from(digit - b'0') * weight);
    let check = (10 - weighted.sum::<u32>() % 10) % 10;
    format!("{digits}{check}")
}

/// An order to be seeded as if it had been placed `age` ago.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrderPlan {
    /// The seller's place among those that are seeded.
    pub(super) seller: usize,
    /// Which of the seller's orders it is, from 0.
    pub(super) n: usize,
    pub(super) age: TimeDelta,
    pub(super) stage: Stage,
    pub(super) kind: Kind,
}

impl OrderPlan {
    /// The number of the order at the seller with this number.
    pub(super) fn number(&self, seller_no: i32) -> OrderNumber {
        OrderNumber::from_trusted(format!("ZAM-{seller_no}-{}", 1_001 + self.n))
    }

    /// How many sellers' items are in it.
    pub(super) fn sellers(&self) -> usize {
        if self.kind == Kind::TwoSellers { 2 } else { 1 }
    }

    /// How many different offers are in it.
    pub(super) const fn lines(&self) -> usize {
        1 + self.n % 3
    }

    /// How many pieces of the offer at this place.
    pub(super) fn quantity(&self, place: usize) -> i32 {
        i32::from((self.n + place).is_multiple_of(4)) + 1
    }

    /// How the buyer pays, and wants it delivered.
    pub(super) const fn methods(&self) -> (&'static str, &'static str) {
        match self.n % 3 {
            0 => ("blik", "courier"),
            1 => ("card", "parcel_locker"),
            _ => ("transfer", "courier"),
        }
    }

    /// Who carries it, by which number, and whether the carrier has said yet that it is on its way.
    pub(super) fn parcel(&self) -> (Carrier, String, bool) {
        let carrier = pick(&Carrier::ALL, self.n).copied().unwrap_or(Carrier::Other);
        let digits = 6_280_000_000_u64 + u64::try_from(self.n).unwrap_or_default() * 7_919;
        // The sandbox's carriers report a number with this word as on its way, for as long as they are asked.
        let is_known = self.stage == Stage::Shipped && self.n.is_multiple_of(2) && carrier != Carrier::Other;
        let word = if is_known { "TRANSIT" } else { "" };
        (carrier, format!("{word}{digits}"), is_known)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use oauth::{ApplicationStatus, Scope, application_name};
    use orders::TrackingNumber;
    use uuid::Uuid;

    use super::*;

    fn plan() -> Plan {
        Plan::read().unwrap()
    }

    fn offers(seller: &SellerPlan) -> Vec<OfferFeed> {
        let mut id = 0;
        let next = || {
            id += 1;
            OfferId::from(Uuid::from_u128(id))
        };
        seller.offers(next).into_iter().map(|offer| offer.feed).collect()
    }

    #[test]
    fn the_first_catalogue_fills_more_than_one_page() {
        assert!(offers(&plan().sellers[0]).len() > usize::from(kernel::PAGE_DEFAULT) + 10);
    }

    #[test]
    fn every_catalogue_has_every_status_and_offers_with_and_without_price_and_stock() {
        let plan = plan();
        for seller in &plan.sellers {
            let (name, offers) = (&seller.name, offers(seller));
            for status in OfferStatus::ALL {
                assert!(
                    offers.iter().any(|offer| offer.status == status),
                    "{name} {status:?}"
                );
            }
            for (price, stock) in [(true, true), (true, false), (false, true)] {
                let some = offers
                    .iter()
                    .any(|offer| (offer.price.is_some(), offer.stock.is_some()) == (price, stock));
                assert!(some, "{name}: price {price}, stock {stock}");
            }
            let first = &offers[0];
            assert!(first.status == OfferStatus::Published && first.price.is_some() && first.stock.is_some());
        }
        let neither = |offer: &OfferFeed| offer.price.is_none() && offer.stock.is_none();
        assert!(offers(&plan.sellers[0]).iter().any(neither));
    }

    #[test]
    fn every_offer_keeps_the_rules_of_the_feed() {
        for offer in plan().sellers.iter().flat_map(offers) {
            assert!(offers::title(offer.title.clone()).is_ok(), "{}", offer.title);
            assert!(offers::handle(offer.handle.clone()).is_ok(), "{}", offer.handle);
            assert!(offers::web_address(offer.url.clone()).is_ok(), "{}", offer.url);
        }
    }

    #[test]
    fn handles_and_article_numbers_are_unique() {
        let all = offers(&plan().sellers[0]);
        let handles = all.iter().map(|offer| &offer.handle).collect::<BTreeSet<_>>();
        let eans = all.iter().map(|offer| &offer.ean).collect::<BTreeSet<_>>();
        assert_eq!((handles.len(), eans.len()), (all.len(), all.len()));
        assert_eq!(ean("5901234", 12345), "5901234123457", "a known one");
    }

    fn status(plan: &ApplicationPlan) -> ApplicationStatus {
        let purpose = oauth::Purpose::parse(&plan.purpose).unwrap();
        plan.moves
            .iter()
            .fold(purpose.first_status(), |status, step| match step {
                OperatorMove::Accept => status.accept().unwrap(),
                OperatorMove::Suspend => status.suspend().unwrap(),
            })
    }

    #[test]
    fn every_seller_has_an_application_of_its_own_and_the_first_one_has_all_kinds() {
        let plan = plan();
        for seller in &plan.sellers {
            let own = &seller.applications[0];
            assert_eq!(own.purpose, "own_use", "{}", own.name);
            let holds = |scope: &Scope| own.scopes.iter().any(|name| name == scope.as_str());
            assert!(Scope::IN_USE.iter().all(holds), "{}", own.name);
        }
        let first = &plan.sellers[0].applications;
        let all = Scope::ALL.iter().map(|scope| scope.as_str()).collect::<Vec<_>>();
        assert_eq!(first[0].scopes, all);
        let others = first[1..].iter().map(status).collect::<Vec<_>>();
        assert_eq!(
            others,
            [
                ApplicationStatus::Active,
                ApplicationStatus::Pending,
                ApplicationStatus::Suspended,
                ApplicationStatus::Active,
            ]
        );
        assert_eq!(first.last().unwrap().client_type, "public");
    }

    #[test]
    fn names_leave_room_for_a_number() {
        for plan in plan().sellers.iter().flat_map(|seller| &seller.applications) {
            assert!(
                application_name(format!("{} 99999", plan.name)).is_ok(),
                "{}",
                plan.name
            );
        }
    }

    const STAGES: [Stage; 6] = [
        Stage::Placed,
        Stage::CalledOff,
        Stage::Paid,
        Stage::PaidAndCalledOff,
        Stage::Shipped,
        Stage::Delivered,
    ];

    #[test]
    fn the_first_seller_has_orders_at_every_stage_and_enough_to_page() {
        let orders = plan().orders();
        let of = |seller| orders.iter().filter(move |order| order.seller == seller);
        assert!(of(0).filter(|order| order.kind != Kind::Test).count() > 25);
        for stage in STAGES {
            assert!(of(0).any(|order| order.stage == stage), "{stage:?}");
        }
        for kind in [Kind::TwoSellers, Kind::Test] {
            let special = orders
                .iter()
                .filter(|order| order.kind == kind)
                .collect::<Vec<_>>();
            assert!(matches!(special[..], [order] if order.seller == 0 && order.stage == Stage::Paid));
        }
        for seller in 1..3 {
            assert!(of(seller).any(|order| order.stage == Stage::Paid));
        }
    }

    #[test]
    fn numbers_are_orders_numbers_each_its_own_and_rise_with_time() {
        let orders = plan().orders();
        let numbers = orders.iter().map(|order| {
            let number = order.number(i32::try_from(order.seller).unwrap());
            assert!(
                OrderNumber::new(number.as_str().to_owned()).is_ok(),
                "{}",
                number.as_str()
            );
            number.as_str().to_owned()
        });
        assert_eq!(numbers.collect::<BTreeSet<_>>().len(), orders.len());
        let first = orders
            .iter()
            .filter(|order| order.seller == 0)
            .collect::<Vec<_>>();
        assert!(first.windows(2).all(|two| two[0].age > two[1].age));
    }

    #[test]
    fn parcels_have_numbers_and_only_those_on_their_way_are_known_to_carriers() {
        for order in plan().orders() {
            let (_, number, is_known) = order.parcel();
            assert_eq!(number.contains("TRANSIT"), is_known);
            assert!(TrackingNumber::new(number).is_ok());
        }
    }
}
