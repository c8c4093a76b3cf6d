//! The trait of a carrier's client, and its seven implementations, one file each: the request, the parser of
//! the answer, and the code table as data.

pub(crate) mod dhl;
pub(crate) mod dpd;
pub(crate) mod fedex;
pub(crate) mod gls;
pub(crate) mod inpost;
pub(crate) mod poczta_polska;
pub(crate) mod ups;

use chrono::{DateTime, TimeDelta, Utc};
use orders::{TrackingNumber, TrackingStatus};
use reqwest::Request;
use url::Url;

use crate::http::Response;

/// One carrier's tracking service. Pure: it neither sends nor waits.
pub(crate) trait Api: Send + Sync {
    /// The request for a parcel's state, without the authentication header.
    fn request(&self, base_url: &Url, number: &TrackingNumber) -> Request;

    /// Parses an answer. Statuses with the same meaning everywhere (401, 429, 502 to 504, redirects) never
    /// arrive here.
    fn read(&self, number: &TrackingNumber, answer: &Response) -> Result<Reading, LookupFailure>;

    /// The pause after a 429 without `Retry-After`. `is_repeated`: the probe after such a pause got a 429
    /// again.
    fn throttle_pause(&self, is_repeated: bool, now: DateTime<Utc>) -> TimeDelta {
        let _ = (is_repeated, now);
        TimeDelta::seconds(60)
    }
}

/// A parcel's state as the carrier reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The carrier's code, unchanged.
    pub(crate) code: String,
    /// None for a code that the table does not list.
    pub(crate) status: Option<TrackingStatus>,
    pub(crate) at: Option<DateTime<Utc>>,
}

/// Why a look-up has no reading. The text is logged, so it contains no credentials and no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LookupFailure {
    /// The carrier does not know the parcel.
    #[error("not found")]
    NotFound,
    #[error("no answer in time")]
    Timeout,
    #[error("no connection in time")]
    ConnectTimeout,
    #[error("no connection: {0}")]
    Connect(String),
    #[error("connection broken: {0}")]
    Broken(String),
    /// A status without a usable answer.
    #[error("HTTP status {0}")]
    Status(u16),
    /// With the pause that the carrier requests.
    #[error("HTTP status 429")]
    Throttled(Option<TimeDelta>),
    /// The token was rejected.
    #[error("HTTP status 401")]
    Unauthorized,
    #[error("the carrier rejects the credentials")]
    Credentials,
    #[error("the answer is too large")]
    TooLarge,
    #[error("unreadable answer: {0}")]
    Unreadable(&'static str),
    /// The carrier is healthy but rejects this request.
    #[error("the carrier rejects the request: {0}")]
    Refused(String),
}

impl LookupFailure {
    /// Whether an immediate retry may succeed.
    pub(crate) fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Connect(_) | Self::ConnectTimeout | Self::Status(502..=504)
        )
    }
}
