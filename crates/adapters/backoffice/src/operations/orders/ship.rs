//! The marketplace ships: one seller's part, or all; the only way for an order of several sellers.

use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Randomness, SellerId};
use orders::{Carrier, SellerOrder, Sighting, TrackingNumber};
use serde::Serialize;
use usecases::ship_order::{
    self, MarketplaceShipment, ask_carrier, check_marketplace_shipment, record_marketplace_shipment,
};
use usecases::{Failure, Transaction, Work};
use web::Problem;
use web::decode::{FieldSet, Shape, nullable, object, one_of, required, text};

use super::impossible;
use super::view::ShipmentView;
use crate::operation::{Context, Operation};
use crate::refusal::{Refusal, Refused};
use crate::reply::Reply;
use crate::request::Parts;
use crate::ruled::{self, rule};

/// `POST /orders/{order}/shipment`
pub(crate) struct ShipOrder;

impl Operation for ShipOrder {
    type Input = MarketplaceShipment;

    fn decode(parts: &Parts<'_>) -> Result<MarketplaceShipment, Refusal> {
        let (seller, carrier, tracking_number) = parts.json(&object(fields()))?;
        Ok(MarketplaceShipment {
            order: parts.order(0)?,
            seller,
            carrier,
            tracking_number,
        })
    }

    async fn execute(shipment: MarketplaceShipment, context: Context) -> Result<Reply, Refusal> {
        let office = Arc::clone(&context.office);
        let parts = check_marketplace_shipment(office.orders.as_ref(), &shipment).await?;
        let is_test = parts.iter().any(|part| part.is_test);
        let (carrier, number) = (shipment.carrier, &shipment.tracking_number);
        let sighting = ask_carrier(office.carriers.as_ref(), is_test, carrier, number).await;
        let work = Ship {
            shipment,
            sighting,
            randomness: Arc::clone(&office.randomness),
        };
        context
            .write(work, |parts| Reply::created(&ShippedView::of(&parts)))
            .await
    }
}

fn fields() -> impl FieldSet<Values = (Option<SellerId>, Carrier, TrackingNumber)> {
    (
        nullable("seller_id", text().checked(rule(|id: String| id.parse()))),
        required("carrier", one_of(&Carrier::ALL, Carrier::as_str)),
        required("tracking_number", text().checked(rule(TrackingNumber::new))),
    )
}

/// `{order_id, order_number, shipments}`
#[derive(Serialize)]
struct ShippedView<'a> {
    order_id: String,
    order_number: &'a str,
    shipments: Vec<SellersShipment<'a>>,
}

/// The shipment of one seller's part.
#[derive(Serialize)]
struct SellersShipment<'a> {
    seller_id: String,
    item_ids: Vec<String>,
    #[serde(flatten)]
    shipment: ShipmentView<'a>,
}

impl<'a> ShippedView<'a> {
    /// Of the parts that were shipped, which share their order.
    fn of(parts: &'a [SellerOrder]) -> Option<Self> {
        let order = parts.first()?;
        let shipments = parts.iter().filter_map(|part| {
            Some(SellersShipment {
                seller_id: part.seller.to_string(),
                item_ids: part.items.iter().map(|item| item.offer.to_string()).collect(),
                shipment: part.parcel()?.into(),
            })
        });
        Some(Self {
            order_id: order.id.to_string(),
            order_number: order.number.as_str(),
            shipments: shipments.collect(),
        })
    }
}

struct Ship {
    shipment: MarketplaceShipment,
    sighting: Option<Sighting>,
    randomness: Arc<dyn Randomness>,
}

#[async_trait]
impl Work for Ship {
    type Done = Vec<SellerOrder>;
    type Error = Failure<ship_order::Refusal>;

    async fn run(&self, tx: &dyn Transaction) -> Result<Vec<SellerOrder>, Self::Error> {
        let (randomness, sighting) = (self.randomness.as_ref(), self.sighting.as_ref());
        record_marketplace_shipment(tx, tx, randomness, &self.shipment, sighting, tx.now()).await
    }
}

impl Refused for ship_order::Refusal {
    fn problem(self) -> Problem {
        match self {
            Self::NoSuchOrder => Problem::not_found(),
            Self::Items(broken) => Problem::validation(ruled::entries(&broken)),
            Self::Impossible { refused, .. } => impossible(refused),
        }
    }
}
