//! All operations of `/v1`, one line for each.

use actix_web::http::Method;
use web::route::Route;

use crate::Public;
use crate::deliveries::{ListDeliveries, ReadDelivery, Redeliver, TestWebhook};
use crate::events::{self, ListEvents};
use crate::me::ReadMe;
use crate::offers::{ListOffers, PatchOffer, PatchOffers, ReadOffer};
use crate::orders::{ListOrders, ReadOrder};
use crate::shipments::{CorrectShipment, ListShipments, ReportShipment};
use crate::webhooks::{ChangeWebhook, CreateWebhook, DeleteWebhook, ListWebhooks, ReadWebhook, RotateSecret};

/// Every operation of `/v1`, in the contract's order.
pub static TABLE: &[Route<Public>] = &[
    Route::read::<ReadMe>("/v1/me"),
    Route::read::<ListOffers>("/v1/offers"),
    Route::read::<ReadOffer>("/v1/offers/{id}"),
    Route::write::<PatchOffer>(Method::PATCH, "/v1/offers/{id}"),
    Route::write::<PatchOffers>(Method::POST, "/v1/offers/batch"),
    Route::read::<ListOrders>("/v1/orders"),
    Route::read::<ReadOrder>("/v1/orders/{id}"),
    Route::read::<ListShipments>("/v1/orders/{id}/shipments"),
    Route::write::<ReportShipment>(Method::POST, "/v1/orders/{id}/shipments"),
    Route::write::<CorrectShipment>(Method::PATCH, "/v1/orders/{id}/shipments/{shipment_id}"),
    Route::read::<ListEvents>(events::PATH),
    Route::read::<ListWebhooks>("/v1/webhooks"),
    Route::write::<CreateWebhook>(Method::POST, "/v1/webhooks"),
    Route::read::<ReadWebhook>("/v1/webhooks/{id}"),
    Route::write::<ChangeWebhook>(Method::PATCH, "/v1/webhooks/{id}"),
    Route::write::<DeleteWebhook>(Method::DELETE, "/v1/webhooks/{id}"),
    Route::write::<RotateSecret>(Method::POST, "/v1/webhooks/{id}/secret-rotation"),
    Route::write::<TestWebhook>(Method::POST, "/v1/webhooks/{id}/test"),
    Route::read::<ListDeliveries>("/v1/webhooks/{id}/deliveries"),
    Route::read::<ReadDelivery>("/v1/webhooks/{id}/deliveries/{delivery_id}"),
    Route::write::<Redeliver>(
        Method::POST,
        "/v1/webhooks/{id}/deliveries/{delivery_id}/redelivery",
    ),
];
