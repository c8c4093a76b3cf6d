//! `FedEx` (Track): `POST /track/v1/trackingnumbers`, with an OAuth token.

use chrono::{DateTime, Utc};
use orders::{TrackingNumber, TrackingStatus as Status};
use reqwest::Request;
use serde_json::{Value, json};
use url::Url;

use super::{Api, LookupFailure, Reading};
use crate::http::{Response, join, post};
use crate::parse;
use crate::status::{CodeTable, status_of};

const CODES: CodeTable = &[
    (Status::Registered, &["OC", "EP", "OX"]),
    (
        Status::InTransit,
        &["PU", "IT", "IX", "AR", "DP", "AF", "FD", "CC"],
    ),
    (Status::OutForDelivery, &["OD", "ED"]),
    (Status::ReadyForPickup, &["HL", "HP"]),
    (Status::Delivered, &["DL"]),
    (Status::Exception, &["DE", "SE", "DD", "CD"]),
    (Status::Returning, &["RS"]),
    (Status::Cancelled, &["CA"]),
];

/// The error code of an unknown number.
const NOT_FOUND: &str = "TRACKING.TRACKINGNUMBER.NOTFOUND";

pub(crate) struct Fedex;

impl Api for Fedex {
    fn request(&self, base_url: &Url, number: &TrackingNumber) -> Request {
        let url = join(base_url, &["track", "v1", "trackingnumbers"]);
        let body = json!({
            "includeDetailedScans": true,
            "trackingInfo": [{"trackingNumberInfo": {"trackingNumber": number.as_str()}}],
        });
        post(url, "application/json", body.to_string())
    }

    /// An unknown number has status 200, and an error in its only result.
    fn read(&self, _: &TrackingNumber, answer: &Response) -> Result<Reading, LookupFailure> {
        let is_not_found = |body: &Value| parse::find(body, "/errors", "/code", NOT_FOUND).is_some();
        let body = parse::answer(answer, is_not_found)?;
        let complete = parse::list(&body, "/output/completeTrackResults").iter();
        let results = complete.flat_map(|result| parse::list(result, "/trackResults"));
        let (failed, found) = results.partition::<Vec<_>, _>(|result| error(result).is_some());
        match found.into_iter().max_by_key(|result| last_seen(result)) {
            Some(newest) => reading(newest),
            None if failed.is_empty() => Err(LookupFailure::Unreadable("no results")),
            None if failed
                .iter()
                .any(|result| error(result).as_deref() == Some(NOT_FOUND)) =>
            {
                Err(LookupFailure::NotFound)
            }
            None => Err(LookupFailure::Refused("an error code for the parcel".to_owned())),
        }
    }
}

fn error(result: &Value) -> Option<String> {
    parse::text(result, "/error/code")
}

/// When the parcel was last seen. `FedEx` reuses numbers after some years; of several parcels, the one seen
/// last is meant.
fn last_seen(result: &Value) -> Option<DateTime<Utc>> {
    let scans = parse::list(result, "/scanEvents").iter();
    let scans = scans.filter_map(|scan| parse::time(scan, "/date"));
    // Other types are estimates.
    let is_actual =
        |date: &&Value| parse::text(date, "/type").is_some_and(|kind| kind.starts_with("ACTUAL_"));
    let dates = parse::list(result, "/dateAndTimes").iter().filter(is_actual);
    scans
        .chain(dates.filter_map(|date| parse::time(date, "/dateTime")))
        .max()
}

fn reading(result: &Value) -> Result<Reading, LookupFailure> {
    let derived = parse::text(result, "/latestStatusDetail/derivedCode");
    let code = parse::text(result, "/latestStatusDetail/code").or_else(|| derived.clone());
    let code = code.ok_or(LookupFailure::Unreadable("no status code"))?;
    let status = status_of(CODES, &code).or_else(|| status_of(CODES, &derived?));
    let at = if status == Some(Status::Delivered) {
        delivered_at(result)
    } else {
        last_seen(result)
    };
    Ok(Reading { code, status, at })
}

fn delivered_at(result: &Value) -> Option<DateTime<Utc>> {
    let date = parse::find(result, "/dateAndTimes", "/type", "ACTUAL_DELIVERY");
    let scan = || parse::find(result, "/scanEvents", "/eventType", "DL");
    date.and_then(|date| parse::time(date, "/dateTime"))
        .or_else(|| parse::time(scan()?, "/date"))
}
