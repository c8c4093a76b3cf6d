//! The access log: one structured line for each request.

use std::net::IpAddr;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::USER_AGENT;
use kernel::{SellerId, canonical_uuid};
use oauth::{ClientId, FamilyId};
use orders::OrderNumber;
use uuid::Uuid;

use crate::meters::label;
use crate::path::capture;
use crate::trace_id::TraceId;

/// Routes that monitoring polls. Their successful requests are logged at DEBUG.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// How the routes of an order begin. Its number may stand for its id.
const OF_ORDER: [&str; 2] = ["/v1/orders/{", "/orders/{"];

/// Maximum length of a logged `User-Agent`.
const MAX_USER_AGENT: usize = 100;

/// Writes a line at a level, always with the same fields.
macro_rules! write_at {
    ($level:ident, $line:expr) => {
        tracing::$level!(
            target: "access",
            listener = $line.listener,
            trace_id = $line.trace_id.as_str(),
            client_address = %$line.client_address,
            client_id = $line.caller.client_id.map(display),
            seller_id = $line.caller.seller.map(display),
            token_id = $line.caller.token.map(display),
            operator_token = $line.caller.operator_token.map(display),
            user_agent = user_agent($line.request),
            method = label($line.request.method()),
            route = $line.route,
            ids = joined(&$line.ids()),
            status = $line.status.as_u16(),
            error = $line.refusal.map(|refusal| refusal.error),
            reason = $line.refusal.and_then(|refusal| refusal.reason),
            duration_ms = milliseconds($line.duration),
            "request",
        )
    };
}

/// The caller as far as it is known, even if its credentials are rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerIds {
    pub client_id: Option<ClientId>,
    /// The account that the request is for.
    pub seller: Option<SellerId>,
    /// The token's id in the audit log.
    pub token: Option<FamilyId>,
    /// The id of an operator's token.
    pub operator_token: Option<Uuid>,
}

/// Why a request is refused; an extension of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedRefusal {
    /// The first code of the response.
    pub error: &'static str,
    /// The cause, even if the client does not learn it.
    pub reason: Option<&'static str>,
}

/// The contents of a line. Paths, query strings and headers can carry secrets and personal data: only the ids
/// in the path and the `User-Agent` are logged.
#[derive(Clone, Copy, Debug)]
pub struct AccessLine<'a> {
    /// The listener, such as `api` or `backoffice`.
    pub listener: &'static str,
    /// The trace id in the response.
    pub trace_id: &'a TraceId,
    /// The client's address, behind trusted proxies.
    pub client_address: IpAddr,
    pub caller: CallerIds,
    pub request: &'a HttpRequest,
    /// The route's template, such as `/v1/offers/{id}`; `-` if no route matched.
    pub route: &'a str,
    pub status: StatusCode,
    pub refusal: Option<LoggedRefusal>,
    /// From the request's head to the whole response, without the time to send it.
    pub duration: Duration,
}

impl AccessLine<'_> {
    /// Writes the line with target `access` at level INFO; a successful probe at level DEBUG.
    pub fn write(&self) {
        if self.is_probe() && self.status.is_success() {
            write_at!(debug, self);
        } else {
            write_at!(info, self);
        }
    }

    /// The well-formed ids at the variables of the route's template, and an order's number at its own. Other
    /// text may be a secret or forged.
    pub fn ids(&self) -> Vec<&str> {
        let is_id = |part: &str| canonical_uuid(part).is_ok() || part.parse::<ClientId>().is_ok();
        let is_number = |part: &str| OrderNumber::new(part.to_owned()).is_ok();
        let of_order = OF_ORDER.iter().any(|start| self.route.starts_with(start));
        let parts = capture(self.route, self.request.uri().path());
        let parts = parts.into_iter().flatten().zip([of_order, false]);
        let ids = parts.filter(|(part, is_order)| is_id(part) || *is_order && is_number(part));
        ids.map(|(part, _)| part).collect()
    }

    /// Whether monitoring polls the route.
    pub(crate) fn is_probe(&self) -> bool {
        PROBES.contains(&self.route)
    }
}

/// The `User-Agent` up to the first secret. What is not visible ASCII becomes `?`, so that nobody can
/// forge lines.
fn user_agent(request: &HttpRequest) -> Option<String> {
    let sent = request.headers().get(USER_AGENT)?.as_bytes().iter();
    let visible = |byte: &u8| match byte {
        b' '..=b'~' => char::from(*byte),
        _ => '?',
    };
    let mut text: String = sent.take(MAX_USER_AGENT).map(visible).collect();
    text.truncate(start_of_secret(&text).unwrap_or(text.len()));
    Some(text)
}

/// Where the text has a secret's prefix: `pss_`, `whsec_`, or `ps_` with two letters and `_`.
fn start_of_secret(text: &str) -> Option<usize> {
    let prefixed = |at: &usize| text.as_bytes().get(at + 5) == Some(&b'_');
    let kinds = text.match_indices("ps_").map(|(at, _)| at).filter(prefixed);
    let others = ["pss_", "whsec_"]
        .into_iter()
        .filter_map(|prefix| text.find(prefix));
    kinds.chain(others).min()
}

fn joined(ids: &[&str]) -> Option<String> {
    (!ids.is_empty()).then(|| ids.join(" "))
}

/// Milliseconds with three decimals, from whole microseconds, so that no line shows binary rounding errors.
fn milliseconds(duration: Duration) -> f64 {
    let microseconds = (duration.as_secs_f64() * 1_000_000.0).round();
    microseconds / 1_000.0
}
