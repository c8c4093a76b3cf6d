//! UPS (Tracking): `GET /api/track/v1/details/{number}`, with an OAuth token.

use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use orders::{TrackingNumber, TrackingStatus as Status};
use reqwest::{Request, StatusCode, header::HeaderValue};
use serde_json::Value;
use url::Url;

use super::{Api, LookupFailure, Reading};
use crate::http::{Response, get, join};
use crate::parse;
use crate::status::{CodeTable, status_of};

/// Numeric status codes without leading zeros.
const CODES: CodeTable = &[
    (Status::Registered, &["3", "79", "80", "157"]),
    (Status::InTransit, &["5", "10", "25", "38", "39", "160"]),
    (
        Status::OutForDelivery,
        &["6", "21", "37", "72", "89", "91", "146", "162"],
    ),
    (Status::ReadyForPickup, &["17", "40", "144", "161"]),
    (Status::Delivered, &["11", "26"]),
    (
        Status::Exception,
        &[
            "13", "22", "23", "24", "46", "59", "60", "61", "62", "64", "69", "145",
        ],
    ),
    (Status::Returning, &["35", "36"]),
    (Status::Returned, &["34", "67"]),
    (Status::Cancelled, &["7"]),
];

pub(crate) struct Ups {
    next_id: AtomicI64,
}

impl Ups {
    /// Request ids count up from the start time, so they never repeat after a restart.
    pub(crate) fn new(started: DateTime<Utc>) -> Self {
        Self {
            next_id: AtomicI64::new(started.timestamp_micros()),
        }
    }
}

impl Api for Ups {
    fn request(&self, base_url: &Url, number: &TrackingNumber) -> Request {
        let path = ["api", "track", "v1", "details", number.as_str()];
        let mut url = join(base_url, &path);
        url.query_pairs_mut().append_pair("locale", "pl_PL");
        let mut request = get(url);
        let id = HeaderValue::from(self.next_id.fetch_add(1, Ordering::Relaxed));
        request.headers_mut().insert("transid", id);
        let source = HeaderValue::from_static("tracking");
        request.headers_mut().insert("transactionsrc", source);
        request
    }

    /// UPS reports an unknown number in three ways: 404 with errors, 200 with a warning, and 400 with a
    /// separate code for text that cannot be a UPS number.
    fn read(&self, number: &TrackingNumber, answer: &Response) -> Result<Reading, LookupFailure> {
        let is_not_found = |body: &Value| {
            parse::find(body, "/response/errors", "/code", "TV1002").is_some()
                || answer.status == StatusCode::NOT_FOUND && !parse::list(body, "/response/errors").is_empty()
        };
        let body = parse::answer(answer, is_not_found)?;
        let shipment = body.pointer("/trackResponse/shipment/0");
        let shipment = shipment.ok_or(LookupFailure::Unreadable("no shipment"))?;
        let has_warning = |code| parse::find(shipment, "/warnings", "/code", code).is_some();
        if has_warning("TW0001") || has_warning("TV1002") {
            return Err(LookupFailure::NotFound);
        }
        let with_number = parse::find(shipment, "/package", "/trackingNumber", number.as_str());
        let package = with_number.or_else(|| parse::list(shipment, "/package").first());
        reading(package.ok_or(LookupFailure::Unreadable("no package"))?)
    }
}

fn reading(package: &Value) -> Result<Reading, LookupFailure> {
    let pointers = [
        "/currentStatus/statusCode",
        "/currentStatus/code",
        "/activity/0/status/statusCode",
    ];
    let code = pointers.iter().find_map(|pointer| parse::text(package, pointer));
    let code = code.ok_or(LookupFailure::Unreadable("no status code"))?;
    let status = status_of(CODES, without_zeros(&code));
    let at = activity_at(package, &code).or_else(|| match status {
        Some(Status::Delivered) => delivered_at(package),
        _ => None,
    });
    Ok(Reading { code, status, at })
}

fn without_zeros(code: &str) -> &str {
    code.trim_start_matches('0')
}

/// The time of the activity with the current status, in UTC.
fn activity_at(package: &Value, code: &str) -> Option<DateTime<Utc>> {
    let is_current = |activity: &&Value| {
        parse::text(activity, "/status/statusCode")
            .is_some_and(|other| without_zeros(&other) == without_zeros(code))
    };
    let activity = parse::list(package, "/activity").iter().find(is_current)?;
    let date = parse::text(activity, "/gmtDate")?;
    let time = parse::text(activity, "/gmtTime")?;
    Some(date_time(&date, &time)?.and_utc())
}

/// The delivery date and time outside the activities, in local time.
fn delivered_at(package: &Value) -> Option<DateTime<Utc>> {
    let delivery = |pointer| parse::find(package, pointer, "/type", "DEL");
    let date = parse::text(delivery("/deliveryDate")?, "/date")?;
    let time = parse::text(delivery("/deliveryTime")?, "/endTime")?;
    parse::in_poland(date_time(&date, &time)?)
}

/// `20260106` and `120000`, with or without `-` and `:`.
fn date_time(date: &str, time: &str) -> Option<chrono::NaiveDateTime> {
    let date = NaiveDate::parse_from_str(&date.replace('-', ""), "%Y%m%d").ok()?;
    let time = NaiveTime::parse_from_str(&time.replace(':', ""), "%H%M%S").ok()?;
    Some(date.and_time(time))
}
