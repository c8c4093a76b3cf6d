//! Orders: place, read as a whole, pay, cancel, deliver, ship for the marketplace, erase the buyer.

mod view;

use std::collections::HashSet;

use accounts::plausible_address;
use kernel::{Invalid, SellerId};
use orders::{
    Buyer, Carrier, DeliveryPoint, Invoice, OrderNumber, OrderRef, Reason, SellerOrder, ShippingAddress,
    TrackingNumber, TrackingReport,
};
use serde_json::json;
use usecases::erase_buyer::{NoSuchOrder, erase_buyer};
use usecases::place_order::{Line, NewOrder, PlacementRefusal, place_order};
use usecases::ship_order::{
    MarketplaceShipment, ShippingRefusal, ask_carrier, check_marketplace_shipment,
    record_marketplace_shipment,
};
use usecases::transition_order::{self, OrderTransitionRefusal, Transition, transition_order};
use usecases::{LockSet, Row, Transaction};
use web::decode::{Shape, boolean, integer, list, object, one_of, parsed, text, text_of};
use web::operation::{Call, Incoming, Read, Write};
use web::reply::Reply;
use web::resources::money;
use web::{Code, Entry, Error, MapRefusal, Problem, Violations};

use crate::policy::{conflict, operator};
use crate::{Access, BackOffice};

/// The most lines in an order.
const MAX_ITEMS: usize = 1_000;
/// The longest text in an order, in characters.
const MAX_TEXT_LENGTH: usize = 500;

/// Takes over a buyer's order from the marketplace.
pub(crate) struct PlaceOrder(NewOrder);

impl Write<BackOffice> for PlaceOrder {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, call: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let body = new_order(call.state.ports.is_finished());
        incoming.json(&body).map(|order| Some(Self(order)))
    }

    fn locks(&self, _: &Call<BackOffice>) -> LockSet {
        self.0.locks()
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let randomness = call.state.ports.randomness.as_ref();
        let placed = place_order(tx, tx, randomness, &self.0, tx.now()).await;
        let placed = placed.map_refusal(placing_problem)?;
        Reply::created(&json!({
            "order_id": placed.id.to_string(),
            "order_number": placed.number.as_str(),
        }))
    }
}

/// An erasure by a program before 1.1 would leave delivery point and invoice: they are known only once the
/// schema `is_finished`.
fn new_order(is_finished: bool) -> impl Shape<Value = NewOrder> {
    object!(NewOrder {
        number as "order_number": nullable(text().checked(OrderNumber::new)),
        is_test: optional(boolean()).unwrap_or_default(),
        payment_method: nullable(words()),
        delivery_method: nullable(words()),
        buyer: nullable(buyer()),
        shipping_address: nullable(address()),
        delivery_point: nullable_if_known(delivery_point(), is_finished),
        invoice: nullable_if_known(invoice(), is_finished),
        items: required(list(line(), 1..=MAX_ITEMS)),
    })
}

fn buyer() -> impl Shape<Value = Buyer> {
    object!(Buyer {
        name: nullable(words()),
        email: nullable(text().checked(mail_address)),
        phone: nullable(words()),
    })
}

/// A shop may send an empty text for a missing address; the message says what to send instead.
fn mail_address(address: String) -> Result<String, Invalid> {
    if address.is_empty() {
        let rule = "must be an e-mail address; where there is none, send null";
        return Err(Invalid::new(rule));
    }
    plausible_address(address)
}

/// The address may be absent, but if present it needs a country (D125).
fn address() -> impl Shape<Value = ShippingAddress> {
    object!(ShippingAddress {
        line1: nullable(words()),
        line2: nullable(words()),
        postal_code: nullable(words()),
        city: nullable(words()),
        country: required(word()),
    })
}

fn delivery_point() -> impl Shape<Value = DeliveryPoint> {
    object!(DeliveryPoint {
        id: required(word()),
        name: nullable(words()),
        line1: nullable(words()),
        line2: nullable(words()),
        postal_code: nullable(words()),
        city: nullable(words()),
        country: nullable(word()),
    })
}

fn invoice() -> impl Shape<Value = Invoice> {
    object!(Invoice {
        company: nullable(words()),
        tax_id: nullable(words()),
        line1: nullable(words()),
        line2: nullable(words()),
        postal_code: nullable(words()),
        city: nullable(words()),
        country: nullable(word()),
    })
}

fn line() -> impl Shape<Value = Line> {
    object!(Line {
        seller as "seller_id": required(parsed()),
        offer as "offer_id": required(parsed()),
        quantity: required(integer(1..=i32::MAX)),
        unit_price: nullable(money()),
        title: nullable(words()),
        sku: nullable(words()),
    })
}

fn words() -> impl Shape<Value = String> {
    text_of(0..=MAX_TEXT_LENGTH)
}

fn word() -> impl Shape<Value = String> {
    text_of(1..=MAX_TEXT_LENGTH)
}

fn placing_problem(refusal: PlacementRefusal) -> Problem {
    match refusal {
        PlacementRefusal::Invalid(broken) => broken.into(),
        PlacementRefusal::NumberTaken => conflict(&refusal).at("order_number").into(),
        PlacementRefusal::InsufficientStock(lines) => {
            Problem::of(lines.into_iter().map(|(place, available)| {
                let message = format!("Only {available} in stock.");
                Entry::new(Code::InsufficientStock, message).at(format!("items[{place}].quantity"))
            }))
        }
    }
}

/// Reads an order with every seller's part.
pub(crate) struct ReadOrder(OrderRef);

impl Read<BackOffice> for ReadOrder {
    const SCOPE: Access = Access::Read;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        Ok(incoming.id(0).map(Self))
    }

    async fn execute(self, call: Call<BackOffice>) -> Result<Reply, Error> {
        let parts = call.state.orders.parts(&self.0).await?;
        let order = view::order(&parts, &[]).ok_or_else(Problem::not_found)?;
        Reply::ok(&order)
    }
}

/// Books the payment of an order, cancels it, or records its delivery, as the end of the path says.
pub(crate) struct MoveOrder {
    order: OrderRef,
    transition: Transition,
    parts: Vec<SellerOrder>,
}

impl Write<BackOffice> for MoveOrder {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.no_body()?;
        let transition = match incoming.head.uri.path().rsplit('/').next() {
            Some("payment") => Transition::Pay,
            Some("cancellation") => Transition::Cancel,
            Some("delivery") => Transition::Deliver,
            _ => return Ok(None),
        };
        Ok(incoming.id(0).map(|order| Self {
            order,
            transition,
            parts: Vec::new(),
        }))
    }

    async fn prepare(&mut self, call: &mut Call<BackOffice>) -> Result<(), Error> {
        self.parts = call.deadline.run(call.state.orders.parts(&self.order)).await??;
        Ok(())
    }

    fn locks(&self, _: &Call<BackOffice>) -> LockSet {
        transition_order::locks(&self.order, &self.parts, self.transition)
    }

    async fn apply(&self, _: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let parts = transition_order(tx, tx, &self.order, self.transition, tx.now()).await;
        let parts = parts.map_refusal(|refusal| match refusal {
            OrderTransitionRefusal::NoSuchOrder => Problem::not_found(),
            OrderTransitionRefusal::Impossible(refused) => transition_problem(refused),
        })?;
        // An order without parts was refused earlier, so the view always exists.
        Reply::ok(&view::order(&parts, view::BUYERS))
    }
}

/// Ships for the marketplace: one seller's part, or all parts. An order of several sellers can only be
/// shipped this way.
pub(crate) struct ShipOrder {
    shipment: MarketplaceShipment,
    /// Those whose parts it ships.
    sellers: HashSet<SellerId>,
    /// The carrier's answer about the parcel, once it was asked.
    tracking_report: Option<TrackingReport>,
}

impl Write<BackOffice> for ShipOrder {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let order = incoming.id::<OrderRef>(0);
        let shipment = object!(
            seller as "seller_id": nullable(parsed()),
            carrier: required(one_of(&Carrier::ALL, Carrier::as_str)),
            tracking_number: required(text().checked(TrackingNumber::new))
            => order.clone().map(|order| MarketplaceShipment { order, seller, carrier, tracking_number })
        );
        Ok(incoming.json(&shipment)?.map(|shipment| Self {
            shipment,
            sellers: HashSet::new(),
            tracking_report: None,
        }))
    }

    async fn prepare(&mut self, call: &mut Call<BackOffice>) -> Result<(), Error> {
        let (shipment, state) = (&self.shipment, &call.state);
        let checking = check_marketplace_shipment(state.orders.as_ref(), shipment);
        let parts = call.deadline.run(checking).await?.map_refusal(shipping_problem)?;
        self.sellers = parts.iter().map(|part| part.seller).collect();
        let is_test = parts.iter().any(|part| part.is_test);
        let (carriers, number) = (state.carriers.as_ref(), &shipment.tracking_number);
        let asking = ask_carrier(carriers, is_test, shipment.carrier, number);
        self.tracking_report = call.deadline.pause(asking).await;
        Ok(())
    }

    fn locks(&self, _: &Call<BackOffice>) -> LockSet {
        LockSet {
            sellers: self.sellers.clone(),
            ..LockSet::of_row(Row::Order(self.shipment.order.clone()))
        }
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (randomness, tracking) = (call.state.ports.randomness.as_ref(), call.state.settings.tracking);
        let (shipment, report) = (&self.shipment, self.tracking_report.as_ref());
        let recorded =
            record_marketplace_shipment(tx, randomness, shipment, report, tracking, tx.now()).await;
        let parts = recorded.map_refusal(shipping_problem)?;
        Reply::created(&view::shipped(&parts))
    }
}

fn shipping_problem(refusal: ShippingRefusal) -> Problem {
    match refusal {
        ShippingRefusal::NoSuchOrder => Problem::not_found(),
        ShippingRefusal::Items(broken) => broken.into(),
        ShippingRefusal::Impossible { refused, .. } => transition_problem(refused),
    }
}

/// Erases a buyer's personal data.
pub(crate) struct EraseBuyer(OrderRef);

impl Write<BackOffice> for EraseBuyer {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.no_body()?;
        Ok(incoming.id(0).map(Self))
    }

    fn locks(&self, _: &Call<BackOffice>) -> LockSet {
        LockSet::of_row(Row::Order(self.0.clone()))
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let erased = erase_buyer(tx, tx, operator(call)?, &self.0, tx.now()).await;
        let parts = erased.map_refusal(|NoSuchOrder| Problem::not_found())?;
        Reply::ok(&view::order(&parts, &[]))
    }
}

/// A transition that the state of a part does not allow, by the contract's code (D103).
fn transition_problem(refused: orders::CommandRefusal) -> Problem {
    let code = match refused.reason {
        Reason::Cancelled => Code::OrderCancelled,
        Reason::Unpaid => Code::OrderUnpaid,
        Reason::AlreadyShipped => Code::AlreadyShipped,
        Reason::SeveralSellers => Code::MultiSellerOrder,
    };
    Problem::new(code, format!("A part of {refused}."))
}
