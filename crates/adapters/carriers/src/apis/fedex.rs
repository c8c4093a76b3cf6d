//! `FedEx` (Track): `POST /track/v1/trackingnumbers`, with an OAuth token.

use chrono::{DateTime, Utc};
use orders::{
    Carrier, TrackingNumber,
    TrackingStatus::{
        Cancelled, Delivered, Exception, InTransit, OutForDelivery, ReadyForPickup, Registered, Returning,
    },
};
use reqwest::{Request, StatusCode, header::AUTHORIZATION};
use serde_json::{Value, json};
use url::Url;

use super::{address, below};
use crate::{
    OauthSettings, SetupError,
    api::{Answer, Api, Reading},
    reading::{
        codes::{CodeTable, meaning},
        json, times,
    },
    runtime::{Failure, Token, post},
};

const CODES: CodeTable = &[
    (Registered, &["OC", "EP", "OX"]),
    (InTransit, &["PU", "IT", "IX", "AR", "DP", "AF", "FD", "CC"]),
    (OutForDelivery, &["OD", "ED"]),
    (ReadyForPickup, &["HL", "HP"]),
    (Delivered, &["DL"]),
    (Exception, &["DE", "SE", "DD", "CD"]),
    (Returning, &["RS"]),
    (Cancelled, &["CA"]),
];

/// The code of a number that `FedEx` does not know.
const NOT_FOUND: &str = "TRACKING.TRACKINGNUMBER.NOTFOUND";

pub(crate) struct Fedex {
    base_url: Url,
}

impl Fedex {
    pub(crate) fn new(settings: &OauthSettings) -> Result<Self, SetupError> {
        Ok(Self {
            base_url: address(Carrier::Fedex, &settings.base_url)?,
        })
    }
}

impl Api for Fedex {
    fn request(&self, number: &TrackingNumber, token: Option<&Token>) -> Request {
        let url = below(&self.base_url, &["track", "v1", "trackingnumbers"]);
        let question = json!({
            "includeDetailedScans": true,
            "trackingInfo": [{"trackingNumberInfo": {"trackingNumber": number.as_str()}}],
        });
        let mut request = post(url, "application/json", question.to_string());
        if let Some(token) = token {
            request.headers_mut().insert(AUTHORIZATION, token.header.clone());
        }
        request
    }

    /// A number that `FedEx` does not know comes with 200, as an error of the one result.
    fn read(&self, _: &TrackingNumber, status: StatusCode, body: &[u8]) -> Result<Answer, Failure> {
        if status != StatusCode::OK {
            let errors = json::read(body)
                .map(|body| json::list(&body, "/errors").to_vec())
                .unwrap_or_default();
            let is_unknown = errors
                .iter()
                .any(|error| json::text(error, "/code").as_deref() == Some(NOT_FOUND));
            return if is_unknown {
                Ok(Answer::NotFound)
            } else {
                Err(json::refusal(status, body))
            };
        }
        let body = json::read(body)?;
        let complete = json::list(&body, "/output/completeTrackResults");
        let results: Vec<&Value> = complete
            .iter()
            .flat_map(|result| json::list(result, "/trackResults"))
            .collect();
        let error = |result: &&&Value| json::text(result, "/error/code");
        let newest = results
            .iter()
            .filter(|result| error(result).is_none())
            .max_by_key(|result| last_seen(result));
        match newest {
            Some(result) => reading(result).map(Answer::Found),
            None if results.is_empty() => Err(Failure::Unreadable("no results")),
            None if results
                .iter()
                .any(|result| error(&result).as_deref() == Some(NOT_FOUND)) =>
            {
                Ok(Answer::NotFound)
            }
            None => Err(Failure::Refused("an error code for the parcel".to_owned())),
        }
    }
}

/// Numbers are used again after some years, so that several parcels may have one; ours is the one seen last.
fn last_seen(result: &Value) -> Option<DateTime<Utc>> {
    let scans = json::list(result, "/scanEvents")
        .iter()
        .filter_map(|scan| json::text(scan, "/date"));
    let dates = json::list(result, "/dateAndTimes")
        .iter()
        .filter(|date| is_actual(date));
    let dates = dates.filter_map(|date| json::text(date, "/dateTime"));
    scans.chain(dates).filter_map(|text| times::instant(&text)).max()
}

/// Whether a date tells of what was, not of what is expected.
fn is_actual(date: &Value) -> bool {
    json::text(date, "/type").is_some_and(|kind| kind.starts_with("ACTUAL_"))
}

fn reading(result: &Value) -> Result<Reading, Failure> {
    let derived = json::text(result, "/latestStatusDetail/derivedCode");
    let code = json::text(result, "/latestStatusDetail/code").or_else(|| derived.clone());
    let code = code.ok_or(Failure::Unreadable("no status code"))?;
    let status = meaning(CODES, &code).or_else(|| derived.and_then(|derived| meaning(CODES, &derived)));
    let at = if status == Some(Delivered) {
        delivered_at(result)
    } else {
        last_seen(result)
    };
    Ok(Reading { code, status, at })
}

fn delivered_at(result: &Value) -> Option<DateTime<Utc>> {
    let find = |list: &str, key: &str, wanted: &str, time: &str| {
        let entries = json::list(result, list);
        let entry = entries
            .iter()
            .find(|entry| json::text(entry, key).as_deref() == Some(wanted))?;
        times::instant(&json::text(entry, time)?)
    };
    find("/dateAndTimes", "/type", "ACTUAL_DELIVERY", "/dateTime")
        .or_else(|| find("/scanEvents", "/eventType", "DL", "/date"))
}
