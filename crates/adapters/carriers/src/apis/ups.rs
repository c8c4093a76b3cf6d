//! UPS (Tracking): `GET /api/track/v1/details/{number}`, with an OAuth token.

use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use orders::{
    Carrier, TrackingNumber,
    TrackingStatus::{
        Cancelled, Delivered, Exception, InTransit, OutForDelivery, ReadyForPickup, Registered, Returned,
        Returning,
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
    OauthSettings, SetupError,
    api::{Answer, Api, Reading},
    reading::{
        codes::{CodeTable, meaning},
        json, times,
    },
    runtime::{Failure, Token, get},
};

/// Numeric status codes without their leading zeros.
const CODES: CodeTable = &[
    (Registered, &["3", "79", "80", "157"]),
    (InTransit, &["5", "10", "25", "38", "39", "160"]),
    (OutForDelivery, &["6", "21", "37", "72", "89", "91", "146", "162"]),
    (ReadyForPickup, &["17", "40", "144", "161"]),
    (Delivered, &["11", "26"]),
    (
        Exception,
        &[
            "13", "22", "23", "24", "46", "59", "60", "61", "62", "64", "69", "145",
        ],
    ),
    (Returning, &["35", "36"]),
    (Returned, &["34", "67"]),
    (Cancelled, &["7"]),
];

pub(crate) struct Ups {
    base_url: Url,
    /// Together they make each request's id another one, also after a restart.
    started: DateTime<Utc>,
    asked: AtomicU64,
}

impl Ups {
    pub(crate) fn new(settings: &OauthSettings, started: DateTime<Utc>) -> Result<Self, SetupError> {
        Ok(Self {
            base_url: address(Carrier::Ups, &settings.base_url)?,
            started,
            asked: AtomicU64::new(1),
        })
    }
}

impl Api for Ups {
    fn request(&self, number: &TrackingNumber, token: Option<&Token>) -> Request {
        let mut url = below(
            &self.base_url,
            &["api", "track", "v1", "details", number.as_str()],
        );
        url.query_pairs_mut().append_pair("locale", "pl_PL");
        let mut request = get(url);
        let headers = request.headers_mut();
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if let Ok(id) = HeaderValue::from_str(&format!("{:x}-{asked}", self.started.timestamp_micros())) {
            headers.insert("transid", id);
        }
        headers.insert("transactionsrc", HeaderValue::from_static("tracking"));
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, token.header.clone());
        }
        request
    }

    /// A number that UPS does not know comes in three forms: 404 with errors, 200 with a warning, and, where it cannot be
    /// one of UPS at all, 400 with a code of its own.
    fn read(&self, number: &TrackingNumber, status: StatusCode, body: &[u8]) -> Result<Answer, Failure> {
        if status != StatusCode::OK {
            let errors = json::read(body).map(|body| json::list(&body, "/response/errors").to_vec());
            let errors = errors.unwrap_or_default();
            let is_malformed = errors
                .iter()
                .any(|error| json::text(error, "/code").as_deref() == Some("TV1002"));
            let is_unknown = is_malformed || status == StatusCode::NOT_FOUND && !errors.is_empty();
            return if is_unknown {
                Ok(Answer::NotFound)
            } else {
                Err(json::refusal(status, body))
            };
        }
        let body = json::read(body)?;
        let shipment = body
            .pointer("/trackResponse/shipment/0")
            .ok_or(Failure::Unreadable("no shipment"))?;
        let mut warnings = json::list(shipment, "/warnings")
            .iter()
            .map(|warning| json::text(warning, "/code"));
        if warnings.any(|code| matches!(code.as_deref(), Some("TW0001" | "TV1002"))) {
            return Ok(Answer::NotFound);
        }
        let packages = json::list(shipment, "/package");
        let is_asked =
            |package: &&Value| json::text(package, "/trackingNumber").as_deref() == Some(number.as_str());
        let package = packages.iter().find(is_asked).or(packages.first());
        reading(package.ok_or(Failure::Unreadable("no package"))?).map(Answer::Found)
    }
}

fn reading(package: &Value) -> Result<Reading, Failure> {
    let told = [
        "/currentStatus/statusCode",
        "/currentStatus/code",
        "/activity/0/status/statusCode",
    ];
    let code = told.iter().find_map(|pointer| json::text(package, pointer));
    let code = code.ok_or(Failure::Unreadable("no status code"))?;
    let status = meaning(CODES, without_zeros(&code));
    let at = since(package, &code).or_else(|| {
        if status == Some(Delivered) {
            delivered_at(package)
        } else {
            None
        }
    });
    Ok(Reading { code, status, at })
}

fn without_zeros(code: &str) -> &str {
    code.trim_start_matches('0')
}

/// When the activity of the current status took place, which UPS tells in UTC.
fn since(package: &Value, code: &str) -> Option<DateTime<Utc>> {
    let is_current = |activity: &&Value| {
        json::text(activity, "/status/statusCode")
            .is_some_and(|other| without_zeros(&other) == without_zeros(code))
    };
    let activity = json::list(package, "/activity").iter().find(is_current)?;
    let wall = wall(
        &json::text(activity, "/gmtDate")?,
        &json::text(activity, "/gmtTime")?,
    )?;
    Some(wall.and_utc())
}

/// The delivery as UPS tells it beside the activities: the local time of the place.
fn delivered_at(package: &Value) -> Option<DateTime<Utc>> {
    let of_delivery = |pointer: &str| {
        let entries = json::list(package, pointer);
        entries
            .iter()
            .find(|entry| json::text(entry, "/type").as_deref() == Some("DEL"))
    };
    let date = json::text(of_delivery("/deliveryDate")?, "/date")?;
    let time = json::text(of_delivery("/deliveryTime")?, "/endTime")?;
    times::in_poland(wall(&date, &time)?)
}

/// `20260106` and `120000`, or with `-` and `:` between.
fn wall(date: &str, time: &str) -> Option<chrono::NaiveDateTime> {
    let date = NaiveDate::parse_from_str(&date.replace('-', ""), "%Y%m%d").ok()?;
    let time = NaiveTime::parse_from_str(&time.replace(':', ""), "%H%M%S").ok()?;
    Some(date.and_time(time))
}
