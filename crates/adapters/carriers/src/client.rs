//! A carrier's client behind its limits: the deadline, concurrency, one retry, the circuit breaker.

use std::collections::HashSet;
use std::{sync::Arc, time::Duration};

use kernel::SPANS;
use orders::{Carrier, Lookup, TrackingNumber, TrackingReport, TrackingStatus};
use parking_lot::Mutex;
use reqwest::header::{HeaderName, HeaderValue};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tracing::{Instrument as _, field::Empty};
use url::Url;

use crate::apis::{Api, LookupFailure, Reading};
use crate::breaker::{CallOutcome, CircuitBreaker, Permit};
use crate::http::{Http, Response};
use crate::tokens::TokenCache;

/// Concurrent look-ups with one carrier.
const MAX_IN_FLIGHT: usize = 4;

/// A retry is sent only if this much of the deadline is left.
const RETRY_NEEDS: Duration = Duration::from_secs(1);

/// Longer codes are cut to this number of characters. Carriers' own codes are far shorter.
const MAX_CODE_LENGTH: usize = 64;

/// The number of unlisted codes that are logged, each once: all parcels come up again and again.
const MAX_UNLISTED: usize = 100;

/// How requests authenticate.
pub(crate) enum Auth {
    None,
    /// By credentials in the body of each request.
    InRequest,
    Key(HeaderName, HeaderValue),
    Token(HeaderName, Arc<TokenCache>),
}

pub(crate) struct CarrierClient {
    carrier: Carrier,
    api: Box<dyn Api>,
    base_url: Url,
    auth: Auth,
    breaker: CircuitBreaker,
    in_flight: Semaphore,
    unlisted: Mutex<HashSet<String>>,
    http: Http,
}

impl CarrierClient {
    pub(crate) fn new(carrier: Carrier, api: Box<dyn Api>, base_url: Url, auth: Auth, http: Http) -> Self {
        Self {
            carrier,
            api,
            base_url,
            auth,
            breaker: CircuitBreaker::new(carrier, Arc::clone(&http.clock)),
            in_flight: Semaphore::new(MAX_IN_FLIGHT),
            unlisted: Mutex::default(),
            http,
        }
    }

    /// Queries the carrier, unless the breaker is open or too many look-ups are in flight and it is not patient.
    pub(crate) async fn look_up(&self, number: &TrackingNumber, is_patient: bool) -> Lookup {
        let span = tracing::info_span!(
            target: SPANS,
            "carrier",
            otel.name = format!("carrier {}", self.carrier.as_str()),
            otel.status_code = Empty,
            carrier = self.carrier.as_str(),
            outcome = Empty,
        );
        let lookup = self.limited(number, is_patient).instrument(span.clone()).await;
        let outcome = match &lookup {
            Lookup::Found(_) => "found",
            Lookup::NotFound | Lookup::NotConfigured => "not_found",
            Lookup::Unavailable(_) => {
                span.record("otel.status_code", "ERROR");
                "unavailable"
            }
        };
        span.record("outcome", outcome);
        lookup
    }

    /// Whether the breaker is open.
    pub(crate) fn is_paused(&self) -> bool {
        self.breaker.refusal().is_some()
    }

    async fn limited(&self, number: &TrackingNumber, is_patient: bool) -> Lookup {
        let began = Instant::now();
        if let Some(reason) = self.breaker.refusal() {
            return Lookup::Unavailable(reason.to_owned());
        }
        let (_slot, began) = if is_patient {
            (self.in_flight.acquire().await, Instant::now())
        } else {
            // At most half of the deadline is spent in the queue, so that the carrier has the other half to
            // answer.
            match timeout_at(began + self.http.deadline / 2, self.in_flight.acquire()).await {
                Ok(slot) => (slot, began),
                Err(_) => return Lookup::Unavailable("not asked: too many look-ups in flight".to_owned()),
            }
        };
        let deadline = began + self.http.deadline;
        let permit = match self.breaker.admit() {
            Ok(permit) => permit,
            Err(reason) => return Lookup::Unavailable(reason.to_owned()),
        };
        let answer = timeout_at(deadline, self.query(number, deadline)).await;
        let answer = answer.unwrap_or(Err(LookupFailure::Timeout));
        self.settle(permit, &answer);
        self.lookup(answer)
    }

    /// Parses an answer without sending a request.
    pub(crate) fn parse_answer(&self, number: &TrackingNumber, answer: &Response) -> Lookup {
        self.lookup(self.api.read(number, answer))
    }

    fn lookup(&self, answer: Result<Reading, LookupFailure>) -> Lookup {
        match answer {
            Ok(reading) => Lookup::Found(self.tracking_report(&reading)),
            Err(LookupFailure::NotFound) => Lookup::NotFound,
            Err(failure) => Lookup::Unavailable(failure.to_string()),
        }
    }

    /// Queries the carrier, with at most one token renewal and one retry.
    async fn query(&self, number: &TrackingNumber, deadline: Instant) -> Result<Reading, LookupFailure> {
        let (mut is_renewed, mut is_retried) = (false, false);
        loop {
            match self.attempt(number).await {
                Err(LookupFailure::Unauthorized) if matches!(self.auth, Auth::Token(..)) && !is_renewed => {
                    is_renewed = true;
                }
                // Without credentials, none are wrong.
                Err(LookupFailure::Unauthorized) if matches!(self.auth, Auth::None) => {
                    return Err(LookupFailure::Status(401));
                }
                // The carrier rejected a fresh token too, or the account has no token to renew.
                Err(LookupFailure::Unauthorized) => return Err(LookupFailure::Credentials),
                Err(failure) if failure.is_retryable() && !is_retried => {
                    if deadline.saturating_duration_since(Instant::now()) < RETRY_NEEDS {
                        return Err(failure);
                    }
                    is_retried = true;
                }
                answer => return answer,
            }
        }
    }

    async fn attempt(&self, number: &TrackingNumber) -> Result<Reading, LookupFailure> {
        let mut request = self.api.request(&self.base_url, number);
        let headers = request.headers_mut();
        match &self.auth {
            Auth::None | Auth::InRequest => {}
            Auth::Key(name, key) => {
                headers.insert(name, key.clone());
            }
            Auth::Token(name, tokens) => {
                let token = tokens.get().await?;
                headers.insert(name, token.header.clone());
                let answer = self.http.exchange(request).await;
                if matches!(answer, Err(LookupFailure::Unauthorized)) {
                    tokens.invalidate(&token);
                }
                return self.api.read(number, &answer?);
            }
        }
        let answer = self.http.exchange(request).await?;
        self.api.read(number, &answer)
    }

    fn settle(&self, permit: Permit<'_>, answer: &Result<Reading, LookupFailure>) {
        let outcome = match answer {
            Ok(_) | Err(LookupFailure::NotFound | LookupFailure::Refused(_)) => CallOutcome::Success,
            Err(LookupFailure::Timeout | LookupFailure::ConnectTimeout) => CallOutcome::Timeout,
            Err(LookupFailure::Credentials) => CallOutcome::Rejected,
            Err(LookupFailure::Throttled(pause)) => CallOutcome::Throttled(pause.unwrap_or_else(|| {
                let is_repeated = permit.is_after_throttling();
                self.api.throttle_pause(is_repeated, self.http.clock.now())
            })),
            Err(_) => CallOutcome::Failure,
        };
        permit.settle(outcome, answer.as_ref().err());
    }

    fn tracking_report(&self, reading: &Reading) -> TrackingReport {
        let raw_code: String = reading.code.chars().take(MAX_CODE_LENGTH).collect();
        let status = reading.status.unwrap_or_else(|| {
            let mut unlisted = self.unlisted.lock();
            if unlisted.len() < MAX_UNLISTED && unlisted.insert(raw_code.clone()) {
                tracing::warn!(carrier = self.carrier.as_str(), code = ?raw_code, "the carrier's code is not in its table");
            }
            TrackingStatus::Unknown
        });
        TrackingReport {
            status,
            at: reading.at,
            raw_code,
        }
    }
}
