//! The operations of `/v1`, one file for each.

mod create_webhook;
mod delete_webhook;
mod delivery_view;
mod list_deliveries;
mod list_offers;
mod list_orders;
mod list_view;
mod list_webhooks;
mod me;
mod money_view;
mod offer_view;
mod order_view;
mod page;
mod patch_offer;
mod read_offer;
mod read_order;
mod report_shipment;
mod shipment_view;
mod view;
mod webhook_view;

pub(crate) use create_webhook::CreateWebhook;
pub(crate) use delete_webhook::DeleteWebhook;
pub(crate) use list_deliveries::ListDeliveries;
pub(crate) use list_offers::ListOffers;
pub(crate) use list_orders::ListOrders;
pub(crate) use list_webhooks::ListWebhooks;
pub(crate) use me::{ReadMe, scope};
use money_view::MoneyView;
use offer_view::OfferView;
use order_view::OrderView;
use page::PageView;
pub(crate) use patch_offer::PatchOffer;
pub(crate) use read_offer::ReadOffer;
pub(crate) use read_order::ReadOrder;
pub(crate) use report_shipment::ReportShipment;
use shipment_view::{Recorded, ShipmentView};
