//! `InPost` (`ShipX`): `GET /v1/tracking/{number}`, without credentials or with an organisation's token.

use orders::{
    Carrier, TrackingNumber,
    TrackingStatus::{
        Cancelled, Delivered, Exception, InTransit, OutForDelivery, ReadyForPickup, Registered, Returned,
    },
};
use reqwest::{
    Request, StatusCode,
    header::{AUTHORIZATION, HeaderValue},
};
use serde_json::Value;
use url::Url;

use super::{address, below};
use crate::{
    InpostSettings, SetupError,
    api::{Answer, Api, Reading},
    reading::{
        codes::{CodeTable, meaning},
        json, times,
    },
    runtime::{Failure, Token, get, secret_header},
};

/// `claimed` is a complaint; `taken_by_courier` and `collected_from_sender` tell of the way there.
const CODES: CodeTable = &[
    (
        Registered,
        &["created", "offers_prepared", "offer_selected", "confirmed"],
    ),
    (
        InTransit,
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
        OutForDelivery,
        &["out_for_delivery", "out_for_delivery_to_address"],
    ),
    (
        ReadyForPickup,
        &[
            "ready_to_pickup*",
            "pickup_reminder_*",
            "stack_in_*",
            "courier_avizo_in_*",
        ],
    ),
    (Delivered, &["delivered"]),
    (
        Exception,
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
    (Returned, &["returned_to_sender"]),
    (Cancelled, &["canceled"]),
];

pub(crate) struct Inpost {
    base_url: Url,
    authorization: Option<HeaderValue>,
}

impl Inpost {
    pub(crate) fn new(settings: &InpostSettings) -> Result<Self, SetupError> {
        let refused = SetupError::Credentials(Carrier::Inpost);
        let authorization = match &settings.token {
            Some(token) => Some(secret_header("Bearer ", token).ok_or(refused)?),
            None => None,
        };
        Ok(Self {
            base_url: address(Carrier::Inpost, &settings.base_url)?,
            authorization,
        })
    }
}

impl Api for Inpost {
    fn request(&self, number: &TrackingNumber, _: Option<&Token>) -> Request {
        let mut request = get(below(&self.base_url, &["v1", "tracking", number.as_str()]));
        if let Some(header) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, header.clone());
        }
        request
    }

    fn read(&self, _: &TrackingNumber, status: StatusCode, body: &[u8]) -> Result<Answer, Failure> {
        if status == StatusCode::NOT_FOUND {
            let error = json::read(body).ok().and_then(|body| json::text(&body, "/error"));
            return match error.as_deref() {
                Some("resource_not_found") => Ok(Answer::NotFound),
                _ => Err(Failure::Status(404)),
            };
        }
        if status != StatusCode::OK {
            return Err(json::refusal(status, body));
        }
        let body = json::read(body)?;
        let code = json::text(&body, "/status").ok_or(Failure::Unreadable("no status"))?;
        Ok(Answer::Found(reading(&body, code)))
    }
}

/// A complaint after the delivery does not undo it.
fn reading(body: &Value, code: String) -> Reading {
    let details = json::list(body, "/tracking_details");
    let with = |code: &str| {
        details
            .iter()
            .find(|detail| json::text(detail, "/status").as_deref() == Some(code))
    };
    let at = |detail: Option<&Value>| {
        detail
            .and_then(|detail| json::text(detail, "/datetime"))
            .as_deref()
            .and_then(times::instant)
    };

    let status = meaning(CODES, &code);
    match (status, with("delivered")) {
        (Some(Exception), delivered @ Some(_)) => Reading {
            code: "delivered".to_owned(),
            status: Some(Delivered),
            at: at(delivered),
        },
        _ => Reading {
            at: at(with(&code)),
            status,
            code,
        },
    }
}
