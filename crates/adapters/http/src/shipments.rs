//! Shipments of an order: report one, correct it, list them.

use std::time::Duration;

use actix_web::http::StatusCode;
use kernel::{OfferId, StoreError};
use oauth::Scope;
use orders::{
    Carrier, Correction, OrderRef, Reason, SellerOrder, Shipment, ShipmentId, ShipmentLocked, TrackingNumber,
    TrackingReport,
};
use usecases::ship_order::{
    CorrectionRefusal, Report, ShippingRefusal, ask_carrier, check_report, correct_shipment, record_report,
};
use usecases::{LockSet, Row, Transaction, Turn};
use web::decode::{Shape, list, object, one_of, text};
use web::openapi::{Docs, JsonBody};
use web::operation::{Call, Incoming, Read, Write};
use web::query::Selection;
use web::reply::Reply;
use web::schema::{Node, array, boolean, date_time, string, uri, uuid};
use web::timestamps::Timestamp;
use web::view::View;
use web::{Code, Entry, Error, MapRefusal, Problem, Violations, to_sentence};

use crate::Public;
use crate::documents::{docs, example, examples};

/// The most items in a request (D40).
const MAX_ITEMS: usize = 1_000;

/// Lists the shipments of the seller's part of an order; at present there is one at most.
pub(crate) struct ListShipments(OrderRef);

impl Read<Public> for ListShipments {
    const SCOPE: &'static [Scope] = &[Scope::ShipmentsRead];
    const FIELDS: &'static [&'static str] = ShipmentView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        response: Some(JsonBody::new(ShipmentList::schema, || {
            Node::of([("items", vec![example!("shipment")()].into())])
        })),
        ..docs!("listShipments", "Shipments")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        Ok(incoming.id(0).map(Self))
    }

    async fn execute(self, call: Call<Public>) -> Result<Reply, Error> {
        let order = call.state.orders.order(call.caller.reader(), &self.0).await?;
        let order = order.ok_or_else(Problem::not_found)?;
        Reply::ok(&ShipmentList::whole((&order, call.fields)))
    }
}

web::view! {
    ShipmentList<'a> of (order, fields): (&'a SellerOrder, Selection), named "ShipmentList" {
        "items": array(ShipmentView::schema())
            => order.shipment().map(|shipment| ShipmentView::new((*order, shipment), *fields)).as_slice(),
    }
}

/// Records the seller's parcel, advances the order, and notifies the buyer.
pub(crate) struct ReportShipment {
    report: Report,
    /// The turn at this order's reports: one asks the carrier at a time, so that reports which will be refused do not use
    /// up the carrier account's daily limit.
    turn: Option<Turn>,
    /// The carrier's answer about the parcel, once it was asked.
    tracking_report: Option<TrackingReport>,
}

impl Write<Public> for ReportShipment {
    const SCOPE: &'static [Scope] = &[Scope::ShipmentsWrite];
    const FIELDS: &'static [&'static str] = ShipmentView::FIELDS;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        body: Some(JsonBody::new(
            || new_shipment().schema(),
            example!("new_shipment"),
        )),
        status: StatusCode::CREATED,
        response: Some(JsonBody::new(ShipmentView::schema, example!("shipment"))),
        refusals: &[
            || refused_transition(Reason::AlreadyShipped, &[]).into(),
            || refused_transition(Reason::Unpaid, &[]).into(),
            || refused_transition(Reason::Cancelled, &[]).into(),
            || refused_transition(Reason::SeveralSellers, &examples::offers()).into(),
        ],
        ..docs!("createShipment", "Shipments")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        let (carrier, tracking_number, item_ids) = incoming.json(&new_shipment())?;
        let order = incoming.id(0);
        Ok(order.map(|order| Self {
            report: Report {
                order,
                carrier,
                tracking_number,
                item_ids,
            },
            turn: None,
            tracking_report: None,
        }))
    }

    async fn prepare(&mut self, call: &mut Call<Public>) -> Result<(), Error> {
        let (report, state) = (&self.report, &call.state);
        if report.carrier == Carrier::Other {
            // No carrier is asked, so the transaction's check is enough.
            return Ok(());
        }
        let one_at_a_time = LockSet::of_row(Row::Report(call.caller.seller, report.order.clone()));
        let turn = state.ports.units.turn(&one_at_a_time, Duration::MAX);
        self.turn = call.deadline.pause(turn).await.ok();
        let checking = check_report(state.orders.as_ref(), call.caller.seller, report);
        let order = call.deadline.run(checking).await?.map_refusal(problem)?;
        if self.turn.is_none() {
            // No turn in time: the carrier is not asked.
            return Ok(());
        }
        let (carriers, number) = (state.carriers.as_ref(), &report.tracking_number);
        let asking = ask_carrier(carriers, order.is_test, report.carrier, number);
        self.tracking_report = call.deadline.pause(asking).await;
        Ok(())
    }

    fn locks(&self, call: &Call<Public>) -> LockSet {
        LockSet::of_row(Row::Part(call.caller.seller, self.report.order.clone()))
    }

    async fn apply(&self, call: &Call<Public>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (seller, randomness) = (call.caller.seller, call.state.ports.randomness.as_ref());
        let (found, tracking) = (self.tracking_report.clone(), call.state.settings.tracking);
        let order = record_report(tx, randomness, seller, &self.report, found, tracking, tx.now()).await;
        Reply::created(&shipment_of(&order.map_refusal(problem)?, call.fields)?)
    }
}

/// The shipment that was just saved.
fn shipment_of(order: &SellerOrder, fields: Selection) -> Result<ShipmentView<'_>, StoreError> {
    let missing = || StoreError::unexpected("a shipment was saved and is not there");
    let shipment = order.shipment().ok_or_else(missing)?;
    Ok(ShipmentView::new((order, shipment), fields))
}

/// Corrects the seller's shipment, and tells the buyer.
pub(crate) struct CorrectShipment {
    order: OrderRef,
    shipment: ShipmentId,
    correction: Correction,
}

impl Write<Public> for CorrectShipment {
    const SCOPE: &'static [Scope] = &[Scope::ShipmentsWrite];
    const FIELDS: &'static [&'static str] = ShipmentView::FIELDS;
    const NEEDS_FINISHED: bool = true;
    const DOCS: Option<&'static Docs> = Some(&Docs {
        body: Some(JsonBody::new(
            || correction().schema(),
            example!("shipment_correction"),
        )),
        response: Some(JsonBody::new(ShipmentView::schema, example!("shipment"))),
        refusals: &[|| correction_problem(ShipmentLocked::NotInTransit.into())],
        ..docs!("correctShipment", "Shipments")
    });

    fn decode(incoming: &Incoming<'_>, _: &Call<Public>) -> Result<Option<Self>, Violations> {
        let correction = incoming.json(&correction())?;
        let ids = incoming.id(0).zip(incoming.id(1));
        Ok(ids.map(|(order, shipment)| Self {
            order,
            shipment,
            correction,
        }))
    }

    fn locks(&self, call: &Call<Public>) -> LockSet {
        LockSet::of_row(Row::Part(call.caller.seller, self.order.clone()))
    }

    async fn apply(&self, call: &Call<Public>, tx: &dyn Transaction) -> Result<Reply, Error> {
        let (seller, randomness) = (call.caller.seller, call.state.ports.randomness.as_ref());
        let (which, new) = ((&self.order, self.shipment), &self.correction);
        let tracking = call.state.settings.tracking;
        let order = correct_shipment(tx, randomness, seller, which, new, tracking, tx.now()).await;
        let order = order.map_refusal(correction_problem)?;
        Reply::ok(&shipment_of(&order, call.fields)?)
    }
}

fn correction() -> impl Shape<Value = Correction> {
    object!(Correction {
        carrier: optional(reported_carrier()),
        tracking_number: optional(tracking_number()),
    })
    .not_empty()
    .named("ShipmentCorrection")
}

fn correction_problem(refusal: CorrectionRefusal) -> Problem {
    match refusal {
        CorrectionRefusal::NoSuchShipment => Problem::not_found(),
        CorrectionRefusal::Locked(reason) => Problem::new(Code::ShipmentLocked, to_sentence(&reason)),
    }
}

fn new_shipment() -> impl Shape<Value = (Carrier, TrackingNumber, Vec<String>)> {
    object!(
        carrier: required(reported_carrier()),
        tracking_number: required(tracking_number()),
        item_ids: optional(item_ids()).unwrap_or_default()
        => (carrier, tracking_number, item_ids)
    )
    .named("NewShipment")
}

fn reported_carrier() -> impl Shape<Value = Carrier> {
    one_of(&Carrier::ALL, Carrier::as_str).map_schema(|_| carrier())
}

fn tracking_number() -> impl Shape<Value = TrackingNumber> {
    text().checked(TrackingNumber::new).map_schema(|schema| {
        schema
            .with("minLength", 4)
            .with("maxLength", 64)
            .with("pattern", "^[A-Za-z0-9-]+$")
    })
}

/// The ids must be distinct. Whether they belong to the seller is checked when the order is read (D113).
fn item_ids() -> impl Shape<Value = Vec<String>> {
    let id = text().distinct("This id is listed twice.");
    list(id, 1..=MAX_ITEMS).map_schema(|schema| {
        let schema = schema.with("uniqueItems", true);
        schema.describe("The seller's own items, each once. They are only checked: a shipment always covers the whole order.")
    })
}

fn problem(refusal: ShippingRefusal) -> Problem {
    match refusal {
        ShippingRefusal::NoSuchOrder => Problem::not_found(),
        ShippingRefusal::Items(broken) => broken.into(),
        ShippingRefusal::Impossible { refused, own_items } => {
            refused_transition(refused.reason, &own_items).into()
        }
    }
}

fn refused_transition(reason: Reason, own_items: &[OfferId]) -> Entry {
    match reason {
        Reason::Cancelled => Entry::new(Code::OrderCancelled, "The order is cancelled."),
        Reason::Unpaid => Entry::new(Code::OrderUnpaid, "The order is not paid yet."),
        Reason::AlreadyShipped => {
            Entry::new(Code::AlreadyShipped, "The order is already shipped or delivered.")
        }
        Reason::SeveralSellers => {
            let ids: Vec<_> = own_items.iter().map(OfferId::to_string).collect();
            let message = "The order also contains other sellers' items: the marketplace ships it.";
            Entry::new(Code::MultiSellerOrder, message).with("item_ids", ids)
        }
    }
}

web::view! {
    /// A shipment with the selected fields. It has all of the seller's items in the order (D40).
    ShipmentView<'a> of (order, shipment): (&'a SellerOrder, &'a Shipment), named "Shipment", "A shipment of the seller." {
        "id": uuid() => shipment.id.uuid(),
        "order_id": uuid() => order.id.uuid(),
        "carrier": carrier() => shipment.carrier.as_str(),
        "carrier_name": string().describe("Brand name.") => shipment.carrier.display_name(),
        "carrier_code": carrier_code() => shipment.carrier.as_str(),
        "tracking_number": string() => shipment.tracking_number.as_str(),
        "tracking_url": uri().or_null().describe("The carrier's page about the parcel; `null` for `other`.")
            => shipment.carrier.tracking_url(&shipment.tracking_number),
        "item_ids": array(uuid()).describe("All of the seller's items: a shipment covers the whole order.")
            => order.items.iter().map(|item| item.offer.uuid()).collect::<Vec<_>>(),
        "delivered_already": boolean().describe("True if the carrier had delivered the parcel before the shipment was reported.")
            => shipment.delivered_already,
        "buyer_notified": boolean().describe("True if a mail to the buyer was queued when the shipment was reported; a correction does not change it.") => shipment.buyer_notified,
        "created_at": date_time() => Timestamp::new(shipment.created_at),
    }
}

/// The carrier as a client reports it.
pub(crate) fn carrier_code() -> Node {
    string()
        .or_null()
        .describe("The `carrier` of the report; `null` where it is unknown.")
        .example(Carrier::Inpost.as_str())
}

fn carrier() -> Node {
    string()
        .one_of(Carrier::ALL.map(Carrier::as_str))
        .named("Carrier")
}
