//! The access log: one structured line for each request.

use std::net::IpAddr;
use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use oauth::ClientId;
use uuid::Uuid;

use crate::trace_id::TraceId;

/// Routes that monitoring polls, on the listeners that have them; not worth a line while they succeed.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Writes a line at a level, always with the same fields.
macro_rules! write_at {
    ($level:ident, $line:expr) => {
        tracing::$level!(
            target: "access",
            listener = $line.listener,
            trace_id = $line.trace_id.as_str(),
            client_address = %$line.client_address,
            client_id = $line.caller.and_then(CallerId::application).map(tracing::field::display),
            operator_token = $line.caller.and_then(CallerId::operator_token).map(tracing::field::display),
            method = $line.method.as_str(),
            route = $line.route,
            status = $line.status.as_u16(),
            duration_ms = milliseconds($line.duration),
            "request",
        )
    };
}

/// The authenticated caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerId {
    /// An application.
    Application(ClientId),
    /// An operator, by the id of its token.
    Operator(Uuid),
}

impl CallerId {
    fn application(self) -> Option<ClientId> {
        match self {
            Self::Application(client_id) => Some(client_id),
            Self::Operator(_) => None,
        }
    }

    fn operator_token(self) -> Option<Uuid> {
        match self {
            Self::Application(_) => None,
            Self::Operator(token) => Some(token),
        }
    }
}

/// The contents of a line. It has no field for a path, a query string or a header: those can carry ids, tokens and personal data, while the
/// route's template cannot.
#[derive(Clone, Copy, Debug)]
pub struct AccessLine<'a> {
    /// The listener, such as `api` or `backoffice`.
    pub listener: &'static str,
    /// The trace id in the response.
    pub trace_id: &'a TraceId,
    /// The client's address, behind trusted proxies.
    pub client_address: IpAddr,
    /// None without valid credentials.
    pub caller: Option<CallerId>,
    pub method: &'a Method,
    /// The route's template, such as `/v1/offers/{id}`; `-` if no route matched.
    pub route: &'a str,
    pub status: StatusCode,
    /// From the request's head to the whole response, without the time to send it.
    pub duration: Duration,
}

impl AccessLine<'_> {
    /// Writes the line with target `access` at level INFO; a successful probe at level DEBUG.
    pub fn write(&self) {
        if self.is_successful_probe() {
            write_at!(debug, self);
        } else {
            write_at!(info, self);
        }
    }

    fn is_successful_probe(&self) -> bool {
        PROBES.contains(&self.route) && self.status.is_success()
    }
}

/// Milliseconds with three decimals, from whole microseconds, so that no line shows binary rounding errors.
fn milliseconds(duration: Duration) -> f64 {
    let microseconds = (duration.as_secs_f64() * 1_000_000.0).round();
    microseconds / 1_000.0
}
