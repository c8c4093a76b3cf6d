//! Orders and their parts, and the units of work of sellers and the marketplace.

use std::time::Duration;
use usecases::change_offer::OfferChangeRefusal;
use usecases::place_order::PlacementRefusal;
use usecases::ship_order::ShippingRefusal;
use usecases::transition_order::OrderTransitionRefusal;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use kernel::{
    Claim, Claimed, Fingerprint, IdempotencyKey, KeySpace, Money, OfferId, SellerId, StoredResponse,
    TransactionError,
};
use offers::{Decision, Offer, OfferPatch, PatchRefusal, Stock, StockChange};
use orders::{
    Buyer, Carrier, Cause, Correction, DeliveryPoint, Invoice, NewShipment, OrderId, OrderItem, OrderNumber,
    OrderRef, OrderState, PollSchedule, SellerOrder, ShipmentMail, ShippingAddress, TrackingNumber,
    TrackingReport, TrackingStatus,
};
use usecases::transition_order::Transition;
use usecases::{
    Announcement, Failure, LockSet, Retryable, Transaction, UnitOfWork, change_offer, place_order,
    ship_order, transition_order,
};

use super::{Fixture, TestRandomness, created, id, instant, number};

/// The lease of an idempotency key.
pub(crate) const LEASE: Duration = Duration::from_mins(1);

pub(crate) const SCHEDULE: PollSchedule = PollSchedule {
    interval: TimeDelta::minutes(10),
};

impl Fixture {
    /// Saves new parts in any state, and their orders.
    pub(crate) async fn save(&self, parts: &[SellerOrder]) {
        let save = async |tx: &dyn Transaction| {
            for (n, part) in parts.iter().enumerate() {
                if !parts[..n].iter().any(|earlier| earlier.id == part.id) {
                    let of_order = parts.iter().filter(|other| other.id == part.id);
                    let sellers = of_order.map(|other| other.seller).collect();
                    let opened = tx.open_order(part.id, &part.number, part.is_test, &sellers, part.placed_at);
                    opened.await.unwrap();
                }
            }
            let changes = parts.iter().map(|part| created(part.clone()));
            tx.save_parts(changes.collect()).await.unwrap();
        };
        self.tx(save).await;
    }

    /// Runs `work` in a transaction of its own; it must succeed.
    pub(crate) async fn run<W: Work>(&self, work: &W) -> W::Done {
        transact(&*self.database.units(), work).await.unwrap()
    }

    /// Places an order of one piece of each offer.
    pub(crate) async fn place_order(&self, items: &[(SellerId, OfferId)]) -> OrderRef {
        OrderRef::Id(self.run(&PlaceOrder(request(items))).await.id)
    }

    pub(crate) async fn claim_key(&self, claim: &Claim) -> Claimed {
        self.database.claims().claim(claim, LEASE).await.unwrap()
    }

    /// Stores a response under a key.
    pub(crate) async fn complete(&self, claim: &Claim, body: &str) {
        self.tx(async |tx| tx.complete(claim, &answer(body)).await.unwrap())
            .await;
    }
}

/// A use case with its input, to be run in a transaction.
#[async_trait]
pub(crate) trait Work: Sync {
    type Done: Send;
    type Error: Retryable + std::fmt::Debug + Send;

    async fn run(&self, tx: &dyn Transaction) -> Result<Self::Done, Self::Error>;
}

pub(crate) async fn transact<W: Work>(units: &dyn UnitOfWork, work: &W) -> Result<W::Done, W::Error> {
    usecases::transact(units, &LockSet::default(), work, |tx, work| work.run(tx)).await
}

pub(crate) struct PlaceOrder(pub(crate) place_order::NewOrder);

#[async_trait]
impl Work for PlaceOrder {
    type Done = place_order::Placed;
    type Error = Failure<PlacementRefusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Self::Done, Self::Error> {
        place_order::place_order(tx, tx, &TestRandomness, &self.0, tx.now()).await
    }
}

pub(crate) struct TransitionOrder(pub(crate) OrderRef, pub(crate) Transition);

#[async_trait]
impl Work for TransitionOrder {
    type Done = Vec<SellerOrder>;
    type Error = Failure<OrderTransitionRefusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Self::Done, Self::Error> {
        transition_order::transition_order(tx, tx, &self.0, self.1, tx.now()).await
    }
}

pub(crate) struct ReportShipment(pub(crate) SellerId, pub(crate) OrderRef);

#[async_trait]
impl Work for ReportShipment {
    type Done = SellerOrder;
    type Error = Failure<ShippingRefusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Self::Done, Self::Error> {
        let report = ship_order::Report {
            order: self.1.clone(),
            carrier: Carrier::Dpd,
            tracking_number: tracking_number(),
            item_ids: Vec::new(),
        };
        let (randomness, now) = (&TestRandomness, tx.now());
        ship_order::record_report(tx, randomness, self.0, &report, None, SCHEDULE, now).await
    }
}

/// Another carrier of a part's shipment.
pub(crate) struct CorrectShipment<'a>(pub(crate) &'a SellerOrder, pub(crate) Carrier);

#[async_trait]
impl Work for CorrectShipment<'_> {
    type Done = SellerOrder;
    type Error = Failure<ship_order::CorrectionRefusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Self::Done, Self::Error> {
        let Self(part, carrier) = self;
        let correction = Correction {
            carrier: Some(*carrier),
            tracking_number: None,
        };
        let (order, randomness, now) = (OrderRef::Id(part.id), &TestRandomness, tx.now());
        let shipment = (&order, part.shipment().unwrap().id);
        ship_order::correct_shipment(tx, randomness, part.seller, shipment, &correction, SCHEDULE, now).await
    }
}

pub(crate) struct SetStock(pub(crate) SellerId, pub(crate) OfferId, pub(crate) i64);

#[async_trait]
impl Work for SetStock {
    type Done = Offer;
    type Error = Failure<OfferChangeRefusal<Vec<PatchRefusal>>>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Self::Done, Self::Error> {
        let patch = OfferPatch {
            stock: Stock::new(self.2).ok().map(StockChange::Set),
            ..OfferPatch::default()
        };
        change_offer::patch_offer(tx, self.0, self.1, patch, tx.now()).await
    }
}

pub(crate) struct ModerateOffer(pub(crate) SellerId, pub(crate) OfferId, pub(crate) Decision);

#[async_trait]
impl Work for ModerateOffer {
    type Done = ();
    type Error = TransactionError;

    async fn run(&self, tx: &dyn Transaction) -> Result<(), TransactionError> {
        let before = tx.lock_offers(self.0, &[self.1]).await?.remove(0);
        let change = Announcement::of_offer(before.moderate(self.2, tx.now()), tx.now());
        Ok(tx.save_offers(self.0, vec![change]).await?)
    }
}

/// An unpaid part with every field set, placed at this time.
pub(crate) fn part(seller: SellerId, placed_at: DateTime<Utc>) -> SellerOrder {
    let item = |quantity| OrderItem {
        offer: id().into(),
        title: Some("Czajnik „żółty” \\ 1,7 l".to_owned()),
        handle: Some("czajnik".to_owned()),
        sku: Some("CZ-17".to_owned()),
        quantity,
        taken: quantity,
        unit_price: Money::pln(12_999).ok(),
    };
    let bare = OrderItem {
        title: None,
        handle: None,
        sku: None,
        taken: 0,
        unit_price: None,
        ..item(1)
    };
    SellerOrder {
        seller,
        id: id().into(),
        number: order_number(),
        is_test: false,
        several_sellers: false,
        payment_method: Some("blik".to_owned()),
        delivery_method: None,
        placed_at,
        buyer: Some(Buyer {
            name: Some("Żaneta Ćwiąkała".to_owned()),
            email: Some("zaneta@example.com".to_owned()),
            phone: None,
        }),
        shipping_address: Some(ShippingAddress {
            line1: Some("ul. Prosta 1".to_owned()),
            line2: None,
            postal_code: Some("00-001".to_owned()),
            city: Some("Łódź".to_owned()),
            country: "PL".to_owned(),
        }),
        delivery_point: Some(DeliveryPoint {
            id: "LOD01M".to_owned(),
            name: Some("Paczkomat „Rynek”".to_owned()),
            line1: None,
            line2: None,
            postal_code: None,
            city: Some("Łódź".to_owned()),
            country: None,
        }),
        invoice: Some(Invoice {
            tax_id: Some("5260250274".to_owned()),
            ..Invoice::default()
        }),
        items: vec![item(2), bare],
        state: OrderState::Pending,
        updated_at: placed_at,
    }
}

pub(crate) fn order_number() -> OrderNumber {
    OrderNumber::new(format!("N-{}", number())).unwrap()
}

pub(crate) fn tracking_number() -> TrackingNumber {
    TrackingNumber::new(format!("TN-{}", number())).unwrap()
}

pub(crate) fn shipment(carrier: Carrier) -> NewShipment {
    NewShipment {
        id: id().into(),
        carrier,
        tracking_number: tracking_number(),
        tracking_report: None,
    }
}

/// A carrier's report about a parcel.
pub(crate) fn tracking_report(status: TrackingStatus, at: Option<DateTime<Utc>>) -> TrackingReport {
    TrackingReport {
        status,
        at,
        raw_code: String::new(),
    }
}

/// The part a minute later, paid.
pub(crate) fn paid(part: SellerOrder) -> SellerOrder {
    let at = part.placed_at + TimeDelta::minutes(1);
    part.pay(at).unwrap().after
}

/// The part two minutes later, shipped.
pub(crate) fn shipped(part: SellerOrder, carrier: Carrier) -> SellerOrder {
    let at = part.placed_at + TimeDelta::minutes(2);
    let shipped = paid(part).ship(shipment(carrier), Cause::Marketplace, at);
    shipped.unwrap().after
}

/// A mail to the buyer of an order.
pub(crate) fn mail(order: OrderId) -> ShipmentMail {
    ShipmentMail {
        id: id().into(),
        order,
        number: order_number(),
        to: "zaneta@example.com".to_owned(),
        name: Some("Żaneta".to_owned()),
        carrier: Carrier::PocztaPolska,
        tracking_number: tracking_number(),
        is_correction: false,
    }
}

/// An order of one piece of each offer.
pub(crate) fn request(items: &[(SellerId, OfferId)]) -> place_order::NewOrder {
    let items = items.iter().map(|(seller, offer)| place_order::Line {
        seller: *seller,
        offer: *offer,
        quantity: 1,
        unit_price: None,
        title: None,
        sku: None,
    });
    place_order::NewOrder {
        number: None,
        is_test: false,
        payment_method: None,
        delivery_method: None,
        buyer: part(id().into(), instant()).buyer,
        shipping_address: None,
        delivery_point: None,
        invoice: None,
        items: items.collect(),
    }
}

/// A new claim on a seller's key.
pub(crate) fn claim(seller: SellerId, key: &str, body: &str) -> Claim {
    Claim {
        space: KeySpace::Seller(seller),
        key: IdempotencyKey::new(key.as_bytes()).unwrap(),
        fingerprint: Fingerprint::of(&[b"PATCH", body.as_bytes()]),
        fence: id(),
    }
}

/// The same request again, with a new fence.
pub(crate) fn again(claim: &Claim) -> Claim {
    Claim {
        fence: id(),
        ..claim.clone()
    }
}

pub(crate) fn answer(body: &str) -> StoredResponse {
    StoredResponse {
        status: 200,
        body: body.as_bytes().to_vec(),
        // As short as a real one, however long the body is.
        etag: Some(format!("\"{body:.9}\"")),
    }
}
