//! DHL (Shipment Tracking – Unified): `GET /track/shipments`, with the application's key.

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use orders::{
    Carrier, TrackingNumber,
    TrackingStatus::{self, Delivered, Exception, InTransit, Registered, Returned, Returning, Unknown},
};
use reqwest::{Request, StatusCode, header::HeaderValue};
use serde_json::Value;
use url::Url;

use super::{address, below};
use crate::{
    DhlSettings, SetupError,
    api::{Answer, Api, Reading},
    reading::{
        codes::{CodeTable, meaning},
        json, times,
    },
    runtime::{Failure, Token, get, secret_header},
};

/// DHL's five words; that it knows nothing is its own word too.
const CODES: CodeTable = &[
    (Registered, &["pre-transit"]),
    (InTransit, &["transit"]),
    (Delivered, &["delivered"]),
    (Exception, &["failure"]),
    (Unknown, &["unknown"]),
];

pub(crate) struct Dhl {
    base_url: Url,
    api_key: HeaderValue,
    service: Option<String>,
}

impl Dhl {
    pub(crate) fn new(settings: &DhlSettings) -> Result<Self, SetupError> {
        let refused = SetupError::Credentials(Carrier::Dhl);
        Ok(Self {
            base_url: address(Carrier::Dhl, &settings.base_url)?,
            api_key: secret_header("", &settings.api_key).ok_or(refused)?,
            service: settings.service.clone(),
        })
    }
}

impl Api for Dhl {
    fn request(&self, number: &TrackingNumber, _: Option<&Token>) -> Request {
        let mut url = below(&self.base_url, &["track", "shipments"]);
        url.query_pairs_mut()
            .append_pair("trackingNumber", number.as_str())
            .append_pair("language", "en");
        if let Some(service) = &self.service {
            url.query_pairs_mut().append_pair("service", service);
        }
        let mut request = get(url);
        request.headers_mut().insert("dhl-api-key", self.api_key.clone());
        request
    }

    fn read(&self, number: &TrackingNumber, status: StatusCode, body: &[u8]) -> Result<Answer, Failure> {
        if status == StatusCode::NOT_FOUND {
            let title = json::read(body).ok().and_then(|body| json::text(&body, "/title"));
            return match title.as_deref() {
                Some("No result found") => Ok(Answer::NotFound),
                _ => Err(Failure::Status(404)),
            };
        }
        if status != StatusCode::OK {
            return Err(json::refusal(status, body));
        }
        let body = json::read(body)?;
        if !body.get("shipments").is_some_and(Value::is_array) {
            return Err(Failure::Unreadable("no shipments"));
        }
        let shipments = json::list(&body, "/shipments");
        let same = shipments
            .iter()
            .find(|shipment| json::text(shipment, "/id").as_deref() == Some(number.as_str()));
        match same.or(shipments.first()) {
            Some(shipment) => reading(shipment).map(Answer::Found),
            None => Ok(Answer::NotFound),
        }
    }

    /// DHL answers 429 to several questions in one second and to those beyond the day's quota, which begins anew at 00:00
    /// GMT. What a minute did not cure is the quota.
    fn pause(&self, again: bool, now: DateTime<Utc>) -> TimeDelta {
        let midnight = now
            .date_naive()
            .checked_add_days(Days::new(1))
            .map(|day| day.and_time(NaiveTime::MIN).and_utc());
        match midnight {
            Some(midnight) if again => midnight - now,
            _ => TimeDelta::seconds(60),
        }
    }
}

fn reading(shipment: &Value) -> Result<Reading, Failure> {
    let code =
        json::text(shipment, "/status/statusCode").or_else(|| json::text(shipment, "/events/0/statusCode"));
    let code = code.ok_or(Failure::Unreadable("no status code"))?;
    let at =
        json::text(shipment, "/status/timestamp").or_else(|| json::text(shipment, "/events/0/timestamp"));
    let goes_back = json::flag(shipment, "/returnFlag") || json::flag(shipment, "/details/returnFlag");
    let status = meaning(CODES, &code).map(|status| if goes_back { back(status) } else { status });
    Ok(Reading {
        code,
        status,
        at: at.as_deref().and_then(times::instant),
    })
}

fn back(status: TrackingStatus) -> TrackingStatus {
    if status == Delivered { Returned } else { Returning }
}
