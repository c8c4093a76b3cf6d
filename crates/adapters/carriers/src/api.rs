//! What one carrier's client is to the machinery around it: a request to make, and an answer to read.

use chrono::{DateTime, TimeDelta, Utc};
use orders::{TrackingNumber, TrackingStatus};
use reqwest::{Request, StatusCode};

use crate::runtime::{Failure, Token};

/// One carrier's tracking service. Pure: it neither sends nor waits.
pub(crate) trait Api: Send + Sync {
    /// The request that asks about a parcel. `token` is there when the carrier was set up with a source of tokens.
    fn request(&self, number: &TrackingNumber, token: Option<&Token>) -> Request;

    /// Reads an answer. Statuses that mean the same everywhere (401, 429, 502 to 504, redirects) never arrive here.
    fn read(&self, number: &TrackingNumber, status: StatusCode, body: &[u8]) -> Result<Answer, Failure>;

    /// How long the carrier is left alone after a 429 without `Retry-After`. `again` is true when the first question after
    /// such a pause was met with 429 once more.
    fn pause(&self, again: bool, now: DateTime<Utc>) -> TimeDelta {
        let _ = (again, now);
        TimeDelta::seconds(60)
    }
}

/// What a carrier said of a parcel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It knows the parcel.
    Found(Reading),
    /// It does not, in its own way of saying so.
    NotFound,
}

/// A parcel's state, in the carrier's word and in ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The carrier's code, as it came.
    pub(crate) code: String,
    /// What the code table makes of it; none for a code that is not in the table.
    pub(crate) status: Option<TrackingStatus>,
    /// Since when.
    pub(crate) at: Option<DateTime<Utc>>,
}
