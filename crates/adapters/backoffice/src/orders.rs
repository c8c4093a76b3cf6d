//! Orders: place, read as a whole, pay, cancel, deliver, ship for the marketplace, erase the buyer.

mod view;

use std::marker::PhantomData;
use std::str::FromStr;

use accounts::Email;
use actix_web::http::Method;
use kernel::{Invalid, SellerId};
use orders::{
    Buyer, Carrier, OrderNumber, OrderRef, Reason, ShippingAddress, TrackingNumber, TrackingReport,
};
use serde_json::json;
use usecases::erase_buyer::{NoSuchOrder, erase_buyer};
use usecases::place_order::{self, Line, NewOrder, place_order};
use usecases::ship_order::{
    self, MarketplaceShipment, ask_carrier, check_marketplace_shipment, record_marketplace_shipment,
};
use usecases::transition_order::{self, Transition, transition_order};
use usecases::{LockSet, Row, Transaction};
use web::decode::{
    FieldSet, Shape, Text, boolean, integer, list, nullable, object, one_of, optional, required, text,
};
use web::money::money;
use web::operation::{Call, Incoming, Operation, Read, Write};
use web::reply::Reply;
use web::{Code, Entry, Error, MapRefusal, Problem, Violations, to_sentence};

use crate::policy::operator;
use crate::validation::{self, rule};
use crate::{Access, BackOffice};
use view::{OrderView, ShippedView};

/// The most lines in an order.
const MAX_ITEMS: usize = 1_000;
/// The longest text in an order, in characters.
const MAX_TEXT_LENGTH: usize = 500;

/// Takes over a buyer's order from the marketplace.
pub(crate) struct PlaceOrder {
    order: NewOrder,
}

impl Operation<BackOffice> for PlaceOrder {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/orders";
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let order = incoming.json_alone(&new_order())?;
        Ok(Some(Self { order }))
    }
}

impl Write<BackOffice> for PlaceOrder {
    fn locks(&self, _: &Call<BackOffice>) -> LockSet {
        self.order.locks()
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let randomness = call.state.randomness.as_ref();
        let placed = place_order(tx, tx, randomness, &self.order, tx.now())
            .await
            .map_refusal(placing_problem)?;
        Reply::created(&json!({
            "order_id": placed.id.to_string(),
            "order_number": placed.number.as_str(),
        }))
    }
}

fn new_order() -> impl Shape<Value = NewOrder> {
    object((
        nullable("order_number", text().checked(rule(OrderNumber::new))),
        optional("is_test", boolean()),
        nullable("payment_method", words()),
        nullable("delivery_method", words()),
        nullable("buyer", buyer()),
        nullable("shipping_address", address()),
        required("items", list(line()).at_least(1).at_most(MAX_ITEMS)),
    ))
    .map(
        |(number, is_test, payment_method, delivery_method, buyer, shipping_address, items)| NewOrder {
            number,
            is_test: is_test.unwrap_or_default(),
            payment_method,
            delivery_method,
            buyer,
            shipping_address,
            items,
        },
    )
}

fn buyer() -> impl Shape<Value = Buyer> {
    object((
        nullable("name", words()),
        nullable("email", text().checked(rule(mail_address))),
        nullable("phone", words()),
    ))
    .map(|(name, email, phone)| Buyer {
        name,
        email: email.map(|email| email.as_str().to_owned()),
        phone,
    })
}

/// A shop may send an empty text for a missing address; the message says what to send instead.
fn mail_address(address: String) -> Result<Email, Invalid> {
    if address.is_empty() {
        return Err(Invalid::new(
            "must be an e-mail address; where there is none, send null",
        ));
    }
    Email::new(address)
}

/// The address may be absent, but if present it needs a country (D125).
fn address() -> impl Shape<Value = ShippingAddress> {
    object((
        nullable("line1", words()),
        nullable("line2", words()),
        nullable("postal_code", words()),
        nullable("city", words()),
        required("country", text().length(1..=MAX_TEXT_LENGTH)),
    ))
    .map(|(line1, line2, postal_code, city, country)| ShippingAddress {
        line1,
        line2,
        postal_code,
        city,
        country,
    })
}

fn line() -> impl Shape<Value = Line> {
    object((
        required("seller_id", id()),
        required("offer_id", id()),
        required("quantity", integer(1..=i32::MAX)),
        nullable("unit_price", money()),
        nullable("title", words()),
        nullable("sku", words()),
    ))
    .map(|(seller, offer, quantity, unit_price, title, sku)| Line {
        seller,
        offer,
        quantity,
        unit_price,
        title,
        sku,
    })
}

fn words() -> Text {
    text().length(0..=MAX_TEXT_LENGTH)
}

fn id<T: FromStr<Err = Invalid>>() -> impl Shape<Value = T> {
    text().checked(rule(|id: String| id.parse()))
}

fn placing_problem(refusal: place_order::Refusal) -> Problem {
    match refusal {
        place_order::Refusal::Invalid(broken) => Problem::of(validation::entries(&broken)),
        place_order::Refusal::NumberTaken => Entry::new(Code::Conflict, to_sentence(&refusal))
            .at("order_number")
            .into(),
        place_order::Refusal::InsufficientStock(lines) => {
            Problem::of(lines.into_iter().map(|(place, available)| {
                let message = format!("Only {available} in stock.");
                Entry::new(Code::InsufficientStock, message).at(format!("items[{place}].quantity"))
            }))
        }
    }
}

/// Reads an order with every seller's part.
pub(crate) struct ReadOrder {
    order: OrderRef,
}

impl Operation<BackOffice> for ReadOrder {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/orders/{order}";
    const SCOPE: Access = Access::Read;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.no_query()?;
        let order = incoming.id(0);
        Ok(order.map(|order| Self { order }))
    }
}

impl Read<BackOffice> for ReadOrder {
    async fn execute(self, call: Call<BackOffice>) -> Result<Reply, Error> {
        let parts = call.state.orders.parts(&self.order).await?;
        let order = OrderView::of(&parts).ok_or_else(Problem::not_found)?;
        Reply::ok(&order)
    }
}

/// Applies a transition to every part of an order.
pub(crate) struct TransitionOrder<S> {
    order: OrderRef,
    locks: LockSet,
    step: PhantomData<S>,
}

/// The transition.
pub(crate) trait Step: Send + Sync + 'static {
    const PATH: &'static str;
    const TRANSITION: Transition;
}

pub(crate) struct Payment;

impl Step for Payment {
    const PATH: &'static str = "/orders/{order}/payment";
    const TRANSITION: Transition = Transition::Pay;
}

pub(crate) struct Cancellation;

impl Step for Cancellation {
    const PATH: &'static str = "/orders/{order}/cancellation";
    const TRANSITION: Transition = Transition::Cancel;
}

pub(crate) struct Delivery;

impl Step for Delivery {
    const PATH: &'static str = "/orders/{order}/delivery";
    const TRANSITION: Transition = Transition::Deliver;
}

impl<S: Step> Operation<BackOffice> for TransitionOrder<S> {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = S::PATH;
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        validation::empty(incoming)?;
        let step = PhantomData;
        let order = incoming.id(0);
        let locks = LockSet::default();
        Ok(order.map(|order| Self { order, locks, step }))
    }
}

impl<S: Step> Write<BackOffice> for TransitionOrder<S> {
    async fn prepare(&mut self, call: &mut Call<BackOffice>) -> Result<(), Error> {
        let parts = if S::TRANSITION == Transition::Cancel {
            call.deadline.run(call.state.orders.parts(&self.order)).await??
        } else {
            Vec::new()
        };
        self.locks = transition_order::locks(&self.order, &parts);
        Ok(())
    }

    fn locks(&self, _: &Call<BackOffice>) -> LockSet {
        self.locks.clone()
    }

    async fn apply(&self, _: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let parts = transition_order(tx, tx, &self.order, S::TRANSITION, tx.now())
            .await
            .map_refusal(|refusal| match refusal {
                transition_order::Refusal::NoSuchOrder => Problem::not_found(),
                transition_order::Refusal::Impossible(refused) => transition_problem(refused),
            })?;
        // An order without parts was refused earlier, so the view always exists.
        Reply::ok(&OrderView::without_buyer(&parts))
    }
}

/// Ships for the marketplace: one seller's part, or all parts. An order of several sellers can only be shipped this way.
pub(crate) struct ShipOrder {
    shipment: MarketplaceShipment,
    /// The carrier's answer about the parcel, once it was asked.
    tracking_report: Option<TrackingReport>,
}

impl Operation<BackOffice> for ShipOrder {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/orders/{order}/shipment";
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        let (seller, carrier, tracking_number) = incoming.json_alone(&object(shipment()))?;
        let order = incoming.id(0);
        Ok(order.map(|order| Self {
            shipment: MarketplaceShipment {
                order,
                seller,
                carrier,
                tracking_number,
            },
            tracking_report: None,
        }))
    }
}

impl Write<BackOffice> for ShipOrder {
    async fn prepare(&mut self, call: &mut Call<BackOffice>) -> Result<(), Error> {
        let (shipment, state) = (&self.shipment, &call.state);
        let checking = check_marketplace_shipment(state.orders.as_ref(), shipment);
        let parts = call.deadline.run(checking).await?.map_refusal(shipping_problem)?;
        let is_test = parts.iter().any(|part| part.is_test);
        let (carriers, number) = (state.carriers.as_ref(), &shipment.tracking_number);
        let asking = ask_carrier(carriers, is_test, shipment.carrier, number);
        self.tracking_report = call.deadline.pause(asking).await;
        Ok(())
    }

    fn locks(&self, _: &Call<BackOffice>) -> LockSet {
        LockSet::of_row(Row::Order(self.shipment.order.clone()))
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let parts = record_marketplace_shipment(
            tx,
            call.state.randomness.as_ref(),
            &self.shipment,
            self.tracking_report.as_ref(),
            call.state.tracking,
            tx.now(),
        )
        .await
        .map_refusal(shipping_problem)?;
        Reply::created(&ShippedView::of(&parts))
    }
}

fn shipment() -> impl FieldSet<Values = (Option<SellerId>, Carrier, TrackingNumber)> {
    (
        nullable("seller_id", id()),
        required("carrier", one_of(&Carrier::ALL, Carrier::as_str)),
        required("tracking_number", text().checked(rule(TrackingNumber::new))),
    )
}

fn shipping_problem(refusal: ship_order::Refusal) -> Problem {
    match refusal {
        ship_order::Refusal::NoSuchOrder => Problem::not_found(),
        ship_order::Refusal::Items(broken) => Problem::of(validation::entries(&broken)),
        ship_order::Refusal::Impossible { refused, .. } => transition_problem(refused),
    }
}

/// Erases a buyer's personal data.
pub(crate) struct EraseBuyer {
    order: OrderRef,
}

impl Operation<BackOffice> for EraseBuyer {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/orders/{order}/buyer-erasure";
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        validation::empty(incoming)?;
        let order = incoming.id(0);
        Ok(order.map(|order| Self { order }))
    }
}

impl Write<BackOffice> for EraseBuyer {
    fn locks(&self, _: &Call<BackOffice>) -> LockSet {
        LockSet::of_row(Row::Order(self.order.clone()))
    }

    async fn apply(&self, call: &Call<BackOffice>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let erased = erase_buyer(tx, tx, operator(call)?, &self.order, tx.now()).await;
        let parts = erased.map_refusal(|NoSuchOrder| Problem::not_found())?;
        Reply::ok(&OrderView::of(&parts))
    }
}

/// A transition that the state of a part does not allow, by the contract's code (D103).
fn transition_problem(refused: orders::Refusal) -> Problem {
    let code = match refused.reason {
        Reason::Cancelled => Code::OrderCancelled,
        Reason::Unpaid => Code::OrderUnpaid,
        Reason::AlreadyShipped => Code::AlreadyShipped,
        Reason::SeveralSellers => Code::MultiSellerOrder,
    };
    Problem::new(code, to_sentence(&refused))
}
