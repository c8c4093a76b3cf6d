//! GLS (Group Track & Trace): `GET /track-and-trace-v1/tracking/simple/trackids/{number}`, with an OAuth
//! token.

use orders::{TrackingNumber, TrackingStatus as Status};
use reqwest::Request;
use serde_json::Value;
use url::Url;

use super::{Api, LookupFailure, Reading};
use crate::http::{Response, get, join};
use crate::parse;
use crate::status::{CodeTable, status_of};

/// `DELIVEREDPS` means delivered to a `ParcelShop`, where the buyer still has to collect the parcel.
const CODES: CodeTable = &[
    (Status::Registered, &["PREADVICE", "PLANNEDPICKUP", "INPICKUP"]),
    (Status::InTransit, &["INTRANSIT", "INWAREHOUSE"]),
    (Status::OutForDelivery, &["INDELIVERY"]),
    (Status::ReadyForPickup, &["DELIVEREDPS"]),
    (Status::Delivered, &["DELIVERED"]),
    (Status::Exception, &["NOTDELIVERED", "NOTPICKEDUP"]),
    (Status::Cancelled, &["CANCELED"]),
];

pub(crate) struct Gls;

impl Api for Gls {
    fn request(&self, base_url: &Url, number: &TrackingNumber) -> Request {
        let path = ["track-and-trace-v1", "tracking", "simple", "trackids"];
        let mut url = join(&join(base_url, &path), &[number.as_str()]);
        url.query_pairs_mut().append_pair("showEvents", "true");
        get(url)
    }

    /// An unknown number has status 200; a maintenance page may have it too.
    fn read(&self, number: &TrackingNumber, answer: &Response) -> Result<Reading, LookupFailure> {
        let body = parse::answer(answer, |_| false)?;
        if !body.get("parcels").is_some_and(Value::is_array) {
            return Err(LookupFailure::Unreadable("no parcels"));
        }
        let with_number = parse::find(&body, "/parcels", "/requested", number.as_str());
        let parcel = with_number.or_else(|| parse::list(&body, "/parcels").first());
        let parcel = parcel.ok_or(LookupFailure::NotFound)?;
        match parse::text(parcel, "/errorCode").as_deref() {
            Some("E_404_01") => return Err(LookupFailure::NotFound),
            Some(_) => return Err(LookupFailure::Refused("an error code for the parcel".to_owned())),
            None => {}
        }
        let code = parse::text(parcel, "/status").ok_or(LookupFailure::Unreadable("no status"))?;
        let at = match parse::text(parcel, "/statusDateTime") {
            Some(at) => parse::instant(&at),
            None => parse::time(parcel, "/events/0/eventDateTime"),
        };
        let status = status_of(CODES, &code);
        Ok(Reading { code, status, at })
    }
}
