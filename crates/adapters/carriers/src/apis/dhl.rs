//! DHL (Shipment Tracking – Unified): `GET /track/shipments`, with the application's key.

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use orders::{TrackingNumber, TrackingStatus as Status};
use reqwest::{Request, StatusCode};
use serde_json::Value;
use url::Url;

use super::{Api, LookupFailure, Reading};
use crate::http::{Response, get, join};
use crate::parse;
use crate::status::{CodeTable, status_of};

/// `unknown` is itself a DHL code.
const CODES: CodeTable = &[
    (Status::Registered, &["pre-transit"]),
    (Status::InTransit, &["transit"]),
    (Status::Delivered, &["delivered"]),
    (Status::Exception, &["failure"]),
    (Status::Unknown, &["unknown"]),
];

pub(crate) struct Dhl {
    pub(crate) service: Option<String>,
}

impl Api for Dhl {
    fn request(&self, base_url: &Url, number: &TrackingNumber) -> Request {
        let mut url = join(base_url, &["track", "shipments"]);
        url.query_pairs_mut()
            .append_pair("trackingNumber", number.as_str())
            .append_pair("language", "en");
        if let Some(service) = &self.service {
            url.query_pairs_mut().append_pair("service", service);
        }
        get(url)
    }

    fn read(&self, number: &TrackingNumber, answer: &Response) -> Result<Reading, LookupFailure> {
        let is_not_found = |body: &Value| {
            answer.status == StatusCode::NOT_FOUND
                && parse::text(body, "/title").as_deref() == Some("No result found")
        };
        let body = parse::answer(answer, is_not_found)?;
        if !body.get("shipments").is_some_and(Value::is_array) {
            return Err(LookupFailure::Unreadable("no shipments"));
        }
        let with_number = parse::find(&body, "/shipments", "/id", number.as_str());
        let shipment = with_number.or_else(|| parse::list(&body, "/shipments").first());
        reading(shipment.ok_or(LookupFailure::NotFound)?)
    }

    /// DHL answers 429 to several requests within a second, and once the daily quota is used up, which is
    /// reset at 00:00 GMT. If a pause of a minute did not help, the cause is the quota.
    fn throttle_pause(&self, is_repeated: bool, now: DateTime<Utc>) -> TimeDelta {
        let tomorrow = now.date_naive().checked_add_days(Days::new(1));
        match tomorrow {
            Some(tomorrow) if is_repeated => tomorrow.and_time(NaiveTime::MIN).and_utc() - now,
            _ => TimeDelta::seconds(60),
        }
    }
}

fn reading(shipment: &Value) -> Result<Reading, LookupFailure> {
    let field = |name: &str| {
        parse::text(shipment, &format!("/status/{name}"))
            .or_else(|| parse::text(shipment, &format!("/events/0/{name}")))
    };
    let code = field("statusCode").ok_or(LookupFailure::Unreadable("no status code"))?;
    let is_return = parse::flag(shipment, "/returnFlag") || parse::flag(shipment, "/details/returnFlag");
    let status = status_of(CODES, &code).map(|status| match status {
        Status::Delivered if is_return => Status::Returned,
        _ if is_return => Status::Returning,
        status => status,
    });
    let at = field("timestamp").as_deref().and_then(parse::instant);
    Ok(Reading { code, status, at })
}
