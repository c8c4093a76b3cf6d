//! GLS (Group Track & Trace): `GET /track-and-trace-v1/tracking/simple/trackids/{number}`, with an OAuth token.

use orders::{
    Carrier, TrackingNumber,
    TrackingStatus::{
        Cancelled, Delivered, Exception, InTransit, OutForDelivery, ReadyForPickup, Registered,
    },
};
use reqwest::{Request, StatusCode, header::AUTHORIZATION};
use serde_json::Value;
use url::Url;

use super::{address, below};
use crate::{
    OauthSettings, SetupError,
    api::{Answer, Api, Reading},
    reading::{
        codes::{CodeTable, meaning},
        json, times,
    },
    runtime::{Failure, Token, get},
};

/// `DELIVEREDPS` is at a `ParcelShop`, where the buyer still has to collect it.
const CODES: CodeTable = &[
    (Registered, &["PREADVICE", "PLANNEDPICKUP", "INPICKUP"]),
    (InTransit, &["INTRANSIT", "INWAREHOUSE"]),
    (OutForDelivery, &["INDELIVERY"]),
    (ReadyForPickup, &["DELIVEREDPS"]),
    (Delivered, &["DELIVERED"]),
    (Exception, &["NOTDELIVERED", "NOTPICKEDUP"]),
    (Cancelled, &["CANCELED"]),
];

pub(crate) struct Gls {
    base_url: Url,
}

impl Gls {
    pub(crate) fn new(settings: &OauthSettings) -> Result<Self, SetupError> {
        Ok(Self {
            base_url: address(Carrier::Gls, &settings.base_url)?,
        })
    }
}

impl Api for Gls {
    fn request(&self, number: &TrackingNumber, token: Option<&Token>) -> Request {
        let path = [
            "track-and-trace-v1",
            "tracking",
            "simple",
            "trackids",
            number.as_str(),
        ];
        let mut url = below(&self.base_url, &path);
        url.query_pairs_mut().append_pair("showEvents", "true");
        let mut request = get(url);
        if let Some(token) = token {
            request.headers_mut().insert(AUTHORIZATION, token.header.clone());
        }
        request
    }

    /// A number that GLS does not know comes with 200; so may a page about maintenance.
    fn read(&self, number: &TrackingNumber, status: StatusCode, body: &[u8]) -> Result<Answer, Failure> {
        if status != StatusCode::OK {
            return Err(json::refusal(status, body));
        }
        let body = json::read(body)?;
        if !body.get("parcels").is_some_and(Value::is_array) {
            return Err(Failure::Unreadable("no parcels"));
        }
        let parcels = json::list(&body, "/parcels");
        let is_asked = |parcel: &&Value| json::text(parcel, "/requested").as_deref() == Some(number.as_str());
        let Some(parcel) = parcels.iter().find(is_asked).or(parcels.first()) else {
            return Ok(Answer::NotFound);
        };
        match json::text(parcel, "/errorCode").as_deref() {
            Some("E_404_01") => Ok(Answer::NotFound),
            Some(_) => Err(Failure::Refused("an error code for the parcel".to_owned())),
            None => reading(parcel).map(Answer::Found),
        }
    }
}

fn reading(parcel: &Value) -> Result<Reading, Failure> {
    let code = json::text(parcel, "/status").ok_or(Failure::Unreadable("no status"))?;
    let at = json::text(parcel, "/statusDateTime").or_else(|| json::text(parcel, "/events/0/eventDateTime"));
    Ok(Reading {
        status: meaning(CODES, &code),
        code,
        at: at.as_deref().and_then(times::instant),
    })
}
