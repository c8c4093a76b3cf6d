//! Poczta Polska (USS 2.0): `GET /uss/v2.0/tracking/checkmailex`, with a token from a login.

use chrono::{DateTime, Utc};
use orders::{
    Carrier, TrackingNumber,
    TrackingStatus::{
        Delivered, Exception, InTransit, OutForDelivery, ReadyForPickup, Registered, Returned, Returning,
    },
};
use reqwest::{Request, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;

use super::{address, below};
use crate::{
    PocztaPolskaSettings, SetupError,
    api::{Answer, Api},
    reading::{
        codes::{CodeTable, meaning},
        history::{Event, outcome},
        json, times,
    },
    runtime::{Failure, Token, TokenSource, get, post, secret_header},
};

/// Codes of events, not of their states.
const CODES: CodeTable = &[
    (Registered, &["P_REJ_KN1"]),
    (
        InTransit,
        &[
            "P_NAD", "P_PZL", "P_WZL", "P_WEPL", "P_WEOC", "P_WYPL", "P_WYOC", "P_ZWC",
        ],
    ),
    (OutForDelivery, &["P_WD", "P_WDML"]),
    (ReadyForPickup, &["P_A", "P_PA", "P_KWD"]),
    (Delivered, &["P_D", "P_OWU"]),
    (Exception, &["P_ND", "P_NDPD", "P_NDPJ", "P_NDZAP", "P_R"]),
    (Returning, &["P_NDZ"]),
];

/// The state of an event that belongs to a return.
const RETURN: &str = "ZW";

pub(crate) struct PocztaPolska {
    base_url: Url,
}

impl PocztaPolska {
    pub(crate) fn new(settings: &PocztaPolskaSettings) -> Result<Self, SetupError> {
        Ok(Self {
            base_url: address(Carrier::PocztaPolska, &settings.base_url)?,
        })
    }
}

impl Api for PocztaPolska {
    fn request(&self, number: &TrackingNumber, token: Option<&Token>) -> Request {
        let mut url = below(&self.base_url, &["uss", "v2.0", "tracking", "checkmailex"]);
        url.query_pairs_mut()
            .append_pair("number", number.as_str())
            .append_pair("language", "PL")
            .append_pair("states", "true");
        let mut request = get(url);
        if let Some(token) = token {
            request.headers_mut().insert("api_key", token.header.clone());
        }
        request
    }

    fn read(&self, _: &TrackingNumber, status: StatusCode, body: &[u8]) -> Result<Answer, Failure> {
        if status != StatusCode::OK {
            return Err(json::refusal(status, body));
        }
        let body = json::read(body)?;
        if let Some(mail) = body.get("mailInfo").filter(|mail| mail.is_object()) {
            return Ok(parcel(mail));
        }
        match json::integer(&body, "/mailStatus") {
            Some(-1) => Ok(Answer::NotFound),
            Some(other) => Err(Failure::Refused(format!("mailStatus {other}"))),
            None => Err(Failure::Unreadable("neither mailInfo nor mailStatus")),
        }
    }
}

/// A parcel is told by its events; one whose events are all cancelled is not known yet.
fn parcel(mail: &Value) -> Answer {
    let events = json::list(mail, "/events")
        .iter()
        .filter(|event| !json::flag(event, "/canceled"));
    let Some(mut reading) = outcome(events.filter_map(event).collect()) else {
        return Answer::NotFound;
    };
    // A finished return is over; `finished` alone does not tell a delivery from a return.
    if reading.status == Some(Returning) && json::flag(mail, "/finished") {
        reading.status = Some(Returned);
    }
    Answer::Found(reading)
}

fn event(event: &Value) -> Option<Event> {
    let code = json::text(event, "/code")?;
    let mut status = meaning(CODES, &code);
    if json::text(event, "/state/code").as_deref() == Some(RETURN) {
        let is_over = status == Some(Delivered) || json::flag(event, "/finished");
        status = Some(if is_over { Returned } else { Returning });
    }
    let at = json::text(event, "/time").as_deref().and_then(times::instant);
    Some(Event { code, status, at })
}

/// The login that tokens come from. They tell no end: one works until it is refused.
pub(crate) struct PocztaLogin {
    url: Url,
    body: SecretString,
}

impl PocztaLogin {
    pub(crate) fn new(settings: &PocztaPolskaSettings) -> Result<Self, SetupError> {
        let body = json!({
            "login": settings.login.expose_secret(),
            "password": settings.password.expose_secret(),
            "language": "PL",
        });
        Ok(Self {
            url: address(Carrier::PocztaPolska, &settings.token_url)?,
            body: SecretString::from(body.to_string()),
        })
    }
}

impl TokenSource for PocztaLogin {
    fn request(&self) -> Request {
        post(
            self.url.clone(),
            "application/json",
            self.body.expose_secret().to_owned(),
        )
    }

    /// Forbidden, and 405 for a password that must be changed.
    fn is_refusal(&self, status: StatusCode, _: &[u8]) -> bool {
        matches!(status, StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED)
    }

    /// The token is the body itself, with or without quotes. What has blanks or angle brackets is a page.
    fn read(&self, body: &[u8], _: DateTime<Utc>) -> Option<Token> {
        let text = std::str::from_utf8(body).ok()?.trim().trim_matches('"');
        let is_token = (1..=4096).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'{' | b'"'));
        let header = is_token.then(|| secret_header("", &SecretString::from(text)))??;
        Some(Token { header, life: None })
    }
}
