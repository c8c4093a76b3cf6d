//! How often applications have called the API, and with what success: a day's counters for the panel.

use chrono::{DateTime, Utc};
use kernel::SellerId;

use crate::ClientId;

/// Calls of one application for one seller with one status, since the last time they were noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UsageKey {
    /// For whom.
    pub seller: SellerId,
    /// By whom.
    pub client_id: ClientId,
    /// The HTTP status of the answers.
    pub status: u16,
}

/// How often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageCount {
    /// Who and with what success.
    pub key: UsageKey,
    /// How many.
    pub calls: u32,
}

/// An hour's calls of one application with one status, over all sellers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HourlyUsage {
    /// When the hour began.
    pub hour: DateTime<Utc>,
    /// The HTTP status.
    pub status: u16,
    /// How many.
    pub calls: u64,
}
