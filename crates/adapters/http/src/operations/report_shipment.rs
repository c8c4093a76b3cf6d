//! `POST /v1/orders/{id}/shipments`

use std::cell::RefCell;
use std::collections::HashSet;

use actix_web::http::{Method, StatusCode};
use kernel::{OfferId, StoreError};
use oauth::Scope;
use orders::{Carrier, OrderRef, Reason, SellerOrder, Sighting, TrackingNumber};
use usecases::Transaction;
use usecases::ship_order::{self, Report, ask_carrier, check_report, record_report};
use web::decode::{Described, Shape, list, object, one_of, optional, required, text};
use web::query::{self, Selection};
use web::schema::Node;
use web::{Code, Entry, Problem, Violations, sentence};

use super::{Recorded, ShipmentView};
use crate::deadline::Deadline;
use crate::declared::{Body, Declared, Parameter, Resource, Success, Tag};
use crate::document::examples;
use crate::operation::{Context, Incoming, Operation, Reply, Write};
use crate::refusal::{Refusal, Refused};

/// The most items that can be named (D40).
const MOST_ITEMS: usize = 1_000;

/// Records that the seller has handed a parcel over, which moves the order on and tells the buyer.
pub(crate) struct ReportShipment {
    /// Nothing where no order can be named so.
    order: Option<OrderRef>,
    parcel: Parcel,
    fields: Selection,
}

/// The body.
struct Parcel {
    carrier: Carrier,
    tracking_number: TrackingNumber,
    item_ids: Vec<String>,
}

/// What is known before the shipment is recorded.
pub(crate) struct Asked {
    report: Report,
    sighting: Option<Sighting>,
}

impl Operation for ReportShipment {
    const METHOD: Method = Method::POST;
    const TEMPLATE: &'static str = "/v1/orders/{id}/shipments";
    const SCOPE: Option<Scope> = Some(Scope::ShipmentsWrite);
    const PARAMETERS: &'static [&'static str] = &["fields"];
    const FIELDS: &'static [&'static str] = ShipmentView::FIELDS;
    const DECLARED: &'static Declared = &Declared {
        id: "createShipment",
        tag: Tag::Shipments,
        summary: "Report a shipment",
        description: "Stores carrier and number and moves the order to `shipped`; it cannot be undone. The carrier is asked first: if it has delivered the parcel already, the order moves to `delivered` and the buyer gets no mail that it is on its way. A shipment covers the whole order. Send an `Idempotency-Key`: a repeat after a lost answer then gets that answer instead of `already_shipped`.",
        resource: Some(Resource::ORDER),
        parameters: &[Parameter::FIELDS],
        body: Some(Body {
            schema: || body().schema(),
            example: || {
                Node::parse(r#"{"carrier": "inpost", "tracking_number": "620000000000000000000001"}"#)
            },
        }),
        success: Success::Json {
            status: StatusCode::CREATED,
            description: "The shipment.",
            schema: ShipmentView::schema,
            example,
        },
        deprecated: None,
        refusals: &[
            || impossible(Reason::AlreadyShipped, &[]).into(),
            || impossible(Reason::Unpaid, &[]).into(),
            || impossible(Reason::Cancelled, &[]).into(),
            || impossible(Reason::SeveralSellers, &[OfferId::from(examples::OFFER)]).into(),
        ],
    };

    fn decode(incoming: &Incoming<'_>, _: &Context) -> Result<Self, Violations> {
        let fields = query::read(incoming.query, Self::PARAMETERS, |query| {
            query.fields(Self::FIELDS)
        });
        let (fields, parcel) = incoming.with_json(fields, &body())?;
        Ok(Self {
            order: incoming.named(OrderRef::parse),
            parcel,
            fields,
        })
    }
}

impl Write for ReportShipment {
    type Prepared = Asked;

    async fn prepare(&self, context: &Context, deadline: &mut Deadline) -> Result<Asked, Refusal> {
        let Parcel {
            carrier,
            tracking_number,
            item_ids,
        } = &self.parcel;
        let report = Report {
            order: self.order.clone().ok_or_else(Problem::not_found)?,
            carrier: *carrier,
            tracking_number: tracking_number.clone(),
            item_ids: item_ids.clone(),
        };
        let (public, seller) = (&context.public, context.principal.seller);
        let order = deadline
            .hold(check_report(public.orders.as_ref(), seller, &report))
            .await??;
        let asking = ask_carrier(public.carriers.as_ref(), order.is_test, *carrier, tracking_number);
        let sighting = deadline.pause(asking).await;
        Ok(Asked { report, sighting })
    }

    async fn apply(
        &self,
        asked: &Asked,
        context: &Context,
        transaction: &dyn Transaction,
    ) -> Result<Reply, Refusal> {
        let Asked { report, sighting } = asked;
        let randomness = context.public.randomness.as_ref();
        let order = record_report(
            transaction,
            transaction,
            randomness,
            context.principal.seller,
            report,
            sighting.clone(),
            transaction.now(),
        )
        .await?;
        let recorded = recorded(order)?;
        Reply::created(
            &ShipmentView::new(&recorded, self.fields),
            ShipmentView::USUAL_LENGTH,
        )
    }
}

fn recorded(order: SellerOrder) -> Result<Recorded, StoreError> {
    match order.parcel().cloned() {
        Some(parcel) => Ok(Recorded { order, parcel }),
        None => Err(StoreError::unexpected("a shipment was recorded and is not there")),
    }
}

fn body() -> impl Described<Value = Parcel> {
    let number = text()
        .checked(|number| TrackingNumber::new(number).map_err(|invalid| sentence::of(&invalid)))
        .saying(|schema| {
            schema
                .with("minLength", 4)
                .with("maxLength", 64)
                .with("pattern", "^[A-Za-z0-9-]+$")
        });
    object((
        required(
            "carrier",
            one_of(&Carrier::ALL, Carrier::as_str).saying(|schema| schema.named("Carrier")),
        ),
        required("tracking_number", number),
        optional("item_ids", item_ids()),
    ))
    .map(|(carrier, tracking_number, item_ids)| Parcel {
        carrier,
        tracking_number,
        item_ids: item_ids.unwrap_or_default(),
    })
    .saying(|schema| schema.named("NewShipment"))
}

/// Each id once. Whether they are the seller's own is seen when the order is found (D113).
fn item_ids() -> impl Described<Value = Vec<String>> {
    let seen = RefCell::new(HashSet::new());
    let id = text().refined(move |id, place| {
        if seen.borrow_mut().insert(id.clone()) {
            Some(id)
        } else {
            place.refuse("This id is there twice.")
        }
    });
    list(id).at_least(1).at_most(MOST_ITEMS).saying(|schema| {
        let schema = schema.with("uniqueItems", true);
        schema.said("The seller's own items, each once. They are checked and choose nothing: a shipment covers the whole order.")
    })
}

impl Refused for ship_order::Refusal {
    fn problem(self) -> Problem {
        match self {
            Self::NoSuchOrder => Problem::not_found(),
            Self::Items(violations) => {
                let entry =
                    |(path, reason): (&str, &_)| Entry::validation(path.to_owned(), sentence::of(reason));
                Problem::validation(violations.iter().map(entry))
            }
            Self::Impossible { refused, own_items } => impossible(refused.reason, &own_items).into(),
        }
    }
}

fn impossible(reason: Reason, own_items: &[OfferId]) -> Entry {
    match reason {
        Reason::Cancelled => Entry::new(Code::OrderCancelled, "The order is cancelled."),
        Reason::Unpaid => Entry::new(Code::OrderUnpaid, "The order is not paid yet."),
        Reason::AlreadyShipped => Entry::new(Code::AlreadyShipped, "The order has a shipment already."),
        Reason::SeveralSellers => {
            let ids: Vec<_> = own_items.iter().map(OfferId::to_string).collect();
            let message = "The order has other sellers' items too. The marketplace ships it.";
            Entry::new(Code::MultiSellerOrder, message).with("item_ids", ids)
        }
    }
}

fn example() -> Node {
    Node::parse(
        r#"{
            "id": "01936c4f-0b1a-7d2c-9e3f-4a5b6c7d8e9f", "order_id": "01936c01-52b7-7f0e-8d6e-6b1a9e24c7d3",
            "carrier": "inpost", "carrier_name": "InPost", "tracking_number": "620000000000000000000001",
            "tracking_url": "https://inpost.pl/sledzenie-przesylek?number=620000000000000000000001",
            "item_ids": ["01936b2e-8f6a-7c31-9a54-3f2d8c1b7e90"], "delivered_already": false, "buyer_notified": true,
            "created_at": "2026-11-19T10:15:30.000000Z"
        }"#,
    )
}
