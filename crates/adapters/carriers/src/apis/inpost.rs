//! `InPost` (`ShipX`): `GET /v1/tracking/{number}`, without credentials or with an organisation's token.

use orders::{TrackingNumber, TrackingStatus as Status};
use reqwest::{Request, StatusCode};
use serde_json::Value;
use url::Url;

use super::{Api, LookupFailure, Reading};
use crate::http::{Response, get, join};
use crate::parse;
use crate::status::{CodeTable, status_of};

/// `claimed` means a complaint. `taken_by_courier` and `collected_from_sender` are on the way to the buyer.
const CODES: CodeTable = &[
    (
        Status::Registered,
        &["created", "offers_prepared", "offer_selected", "confirmed"],
    ),
    (
        Status::InTransit,
        &[
            "dispatched_*",
            "collected_from_sender",
            "taken_by_courier*",
            "adopted_*",
            "sent_from_*",
            "unstack_*",
            "redirect_to_box",
            "readdressed",
        ],
    ),
    (
        Status::OutForDelivery,
        &["out_for_delivery", "out_for_delivery_to_address"],
    ),
    (
        Status::ReadyForPickup,
        &[
            "ready_to_pickup*",
            "pickup_reminder_*",
            "stack_in_*",
            "courier_avizo_in_*",
        ],
    ),
    (Status::Delivered, &["delivered"]),
    (
        Status::Exception,
        &[
            "undelivered*",
            "rejected_by_receiver",
            "*_expired",
            "avizo",
            "delay_in_delivery",
            "missing",
            "oversized",
            "claimed",
        ],
    ),
    (Status::Returned, &["returned_to_sender"]),
    (Status::Cancelled, &["canceled"]),
];

pub(crate) struct Inpost;

impl Api for Inpost {
    fn request(&self, base_url: &Url, number: &TrackingNumber) -> Request {
        get(join(base_url, &["v1", "tracking", number.as_str()]))
    }

    /// A complaint, or an unlisted code, after the delivery does not undo it.
    fn read(&self, _: &TrackingNumber, answer: &Response) -> Result<Reading, LookupFailure> {
        let is_not_found = |body: &Value| {
            answer.status == StatusCode::NOT_FOUND
                && parse::text(body, "/error").as_deref() == Some("resource_not_found")
        };
        let body = parse::answer(answer, is_not_found)?;
        let current = parse::text(&body, "/status").ok_or(LookupFailure::Unreadable("no status"))?;
        let detail = |code: &str| parse::find(&body, "/tracking_details", "/status", code);
        let code = match status_of(CODES, &current) {
            None | Some(Status::Exception) if detail("delivered").is_some() => "delivered".to_owned(),
            _ => current,
        };
        let at = detail(&code).and_then(|detail| parse::time(detail, "/datetime"));
        let status = status_of(CODES, &code);
        Ok(Reading { code, status, at })
    }
}
