//! All operations of `/v1`, one line for each.

use web::route::Route;

use crate::Public;
use crate::deliveries::{ListDeliveries, ReadDelivery, Redeliver, TestWebhook};
use crate::events::ListEvents;
use crate::me::ReadMe;
use crate::offers::{ListOffers, PatchOffer, PatchOffers, ReadOffer};
use crate::orders::{ListOrders, ReadOrder};
use crate::shipments::{CorrectShipment, ListShipments, ReportShipment};
use crate::webhooks::{ChangeWebhook, CreateWebhook, DeleteWebhook, ListWebhooks, ReadWebhook, RotateSecret};

/// Every operation of `/v1`, in the contract's order.
pub static TABLE: &[Route<Public>] = &[
    Route::read::<ReadMe>(),
    Route::read::<ListOffers>(),
    Route::read::<ReadOffer>(),
    Route::write::<PatchOffer>(),
    Route::write::<PatchOffers>(),
    Route::read::<ListOrders>(),
    Route::read::<ReadOrder>(),
    Route::read::<ListShipments>(),
    Route::write::<ReportShipment>(),
    Route::write::<CorrectShipment>(),
    Route::read::<ListEvents>(),
    Route::read::<ListWebhooks>(),
    Route::write::<CreateWebhook>(),
    Route::read::<ReadWebhook>(),
    Route::write::<ChangeWebhook>(),
    Route::write::<DeleteWebhook>(),
    Route::write::<RotateSecret>(),
    Route::write::<TestWebhook>(),
    Route::read::<ListDeliveries>(),
    Route::read::<ReadDelivery>(),
    Route::write::<Redeliver>(),
];
