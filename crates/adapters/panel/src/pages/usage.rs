//! The calls of an application in the last day, and the used share of its limit.

use std::collections::BTreeMap;

use accounts::HourlyUsage;
use chrono::{DateTime, TimeDelta, Utc};
use oauth::Application;

use crate::page_error::PageResult;
use crate::page_request::SignedInRequest;

/// The calls of a day.
pub(super) struct Usage {
    /// Calls per minute.
    pub(super) limit: u32,
    /// Calls in this minute, at most the limit.
    pub(super) used: u64,
    /// Calls by response status.
    pub(super) by_status: BTreeMap<u16, u64>,
    /// Successful and other calls of each hour.
    pub(super) by_hour: BTreeMap<DateTime<Utc>, (u64, u64)>,
}

impl Usage {
    pub(super) async fn read(request: &SignedInRequest, application: &Application) -> PageResult<Self> {
        let panel = &request.panel;
        let since = request.signed_in.now - TimeDelta::days(1);
        let seller = request.signed_in.seller.id;
        let (calls, used) = panel.accounts.usage(seller, application.client_id, since).await?;
        let limit = application.rate_limit;
        let limit = limit.unwrap_or(panel.ports.service.default_rate_limit);
        Ok(Self::new(limit.get(), used, &calls))
    }

    fn new(limit: u32, used: u64, calls: &[HourlyUsage]) -> Self {
        let mut by_status = BTreeMap::<u16, u64>::new();
        let mut by_hour = BTreeMap::<DateTime<Utc>, (u64, u64)>::new();
        for usage in calls {
            *by_status.entry(usage.status).or_default() += usage.calls;
            let (fine, errors) = by_hour.entry(usage.hour).or_default();
            let is_fine = (200..400).contains(&usage.status);
            let sum = if is_fine { fine } else { errors };
            *sum += usage.calls;
        }
        Self {
            limit,
            used: used.min(limit.into()),
            by_status,
            by_hour,
        }
    }

    /// The number of calls from which usage counts as high.
    pub(super) const fn high(&self) -> u32 {
        self.limit - self.limit / 5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_summed_by_status_and_by_hour() {
        let hour = |n: i64| DateTime::from_timestamp(n * 3600, 0).unwrap();
        let usage = |n, status, calls| HourlyUsage {
            hour: hour(n),
            status,
            calls,
        };
        let calls = [
            usage(1, 200, 5),
            usage(2, 200, 7),
            usage(2, 429, 2),
            usage(2, 204, 1),
        ];
        let usage = Usage::new(10, 12, &calls);
        assert_eq!((usage.used, usage.high()), (10, 8));
        assert_eq!(usage.by_status, [(200, 12), (204, 1), (429, 2)].into());
        assert_eq!(usage.by_hour, [(hour(1), (5, 0)), (hour(2), (8, 2))].into());
    }
}
