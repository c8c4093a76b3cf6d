//! Poczta Polska (USS 2.0): `GET /uss/v2.0/tracking/checkmailex`, with a token from a login.

use chrono::{DateTime, Utc};
use orders::{TrackingNumber, TrackingStatus as Status};
use reqwest::Request;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use url::Url;

use super::{Api, LookupFailure, Reading};
use crate::http::{Response, get, join, post, sensitive};
use crate::status::{CodeTable, of_history, status_of};
use crate::tokens::Token;
use crate::{Account, parse};

/// Codes of events, not of event states.
const CODES: CodeTable = &[
    (Status::Registered, &["P_REJ_KN1"]),
    (
        Status::InTransit,
        &[
            "P_NAD", "P_PZL", "P_WZL", "P_WEPL", "P_WEOC", "P_WYPL", "P_WYOC", "P_ZWC",
        ],
    ),
    (Status::OutForDelivery, &["P_WD", "P_WDML"]),
    (Status::ReadyForPickup, &["P_A", "P_PA", "P_KWD"]),
    (Status::Delivered, &["P_D", "P_OWU"]),
    (Status::Exception, &["P_ND", "P_NDPD", "P_NDPJ", "P_NDZAP", "P_R"]),
    (Status::Returning, &["P_NDZ"]),
];

/// The event state of a return.
const RETURN: &str = "ZW";

pub(crate) struct PocztaPolska;

impl Api for PocztaPolska {
    fn request(&self, base_url: &Url, number: &TrackingNumber) -> Request {
        let mut url = join(base_url, &["uss", "v2.0", "tracking", "checkmailex"]);
        url.query_pairs_mut()
            .append_pair("number", number.as_str())
            .append_pair("language", "PL")
            .append_pair("states", "true");
        get(url)
    }

    fn read(&self, _: &TrackingNumber, answer: &Response) -> Result<Reading, LookupFailure> {
        let body = parse::answer(answer, |_| false)?;
        if let Some(mail) = body.get("mailInfo").filter(|mail| mail.is_object()) {
            return parcel(mail).ok_or(LookupFailure::NotFound);
        }
        match parse::integer(&body, "/mailStatus") {
            Some(-1) => Err(LookupFailure::NotFound),
            Some(other) => Err(LookupFailure::Refused(format!("mailStatus {other}"))),
            None => Err(LookupFailure::Unreadable("neither mailInfo nor mailStatus")),
        }
    }
}

/// `None` if all events are cancelled: the parcel is not known yet.
fn parcel(mail: &Value) -> Option<Reading> {
    let events = parse::list(mail, "/events").iter();
    let events = events.filter(|event| !parse::flag(event, "/canceled"));
    let mut reading = of_history(events.filter_map(event).collect())?;
    // `finished` alone does not distinguish a delivery from a return.
    if reading.status == Some(Status::Returning) && parse::flag(mail, "/finished") {
        reading.status = Some(Status::Returned);
    }
    Some(reading)
}

fn event(event: &Value) -> Option<Reading> {
    let code = parse::text(event, "/code")?;
    let mut status = status_of(CODES, &code);
    if parse::text(event, "/state/code").as_deref() == Some(RETURN) {
        let is_over = status == Some(Status::Delivered) || parse::flag(event, "/finished");
        status = Some(if is_over {
            Status::Returned
        } else {
            Status::Returning
        });
    }
    let at = parse::time(event, "/time");
    Some(Reading { code, status, at })
}

/// The request for a token.
pub(crate) fn login(account: &Account) -> Request {
    let body = json!({
        "login": account.login.expose_secret(),
        "password": account.secret.expose_secret(),
        "language": "PL",
    });
    post(account.token_url.clone(), "application/json", body.to_string())
}

/// The body is the token, with or without quotes, unless it looks like a page or JSON. It states no expiry: the token is
/// used until it is rejected. Credentials are rejected by 403, and by 405 for a password that must be changed.
pub(crate) fn token(answer: &Response, _: DateTime<Utc>) -> Result<Option<Token>, LookupFailure> {
    if matches!(answer.status.as_u16(), 403 | 405) {
        return Err(LookupFailure::Credentials);
    }
    let text = std::str::from_utf8(&answer.body).unwrap_or_default();
    let text = text.trim().trim_matches('"');
    let is_token_byte = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'{' | b'"');
    let is_token = (1..=4096).contains(&text.len()) && text.bytes().all(is_token_byte);
    let header = is_token.then(|| sensitive(text)).flatten();
    let expiry = None;
    Ok(header.map(|header| Token { header, expiry }))
}
