//! What an application has called in the last day, and how much of its limit is used.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use oauth::{Application, HourlyUsage};

use crate::refusal::Refusal;
use crate::visit::Member;
use crate::when::When;

/// The calls of a day.
pub(super) struct Usage {
    /// Calls a minute.
    pub(super) limit: u32,
    /// Calls in this minute; as many as the limit where there were more.
    pub(super) used: u64,
    pub(super) rows: Vec<Row>,
    pub(super) hours: Vec<Hour>,
}

/// The calls that were answered with one status.
pub(super) struct Row {
    pub(super) status: u16,
    pub(super) meaning: &'static str,
    pub(super) calls: u64,
}

/// The calls of an hour.
pub(super) struct Hour {
    pub(super) hour: When,
    pub(super) fine: u64,
    pub(super) errors: u64,
}

impl Usage {
    pub(super) async fn read(member: &Member, application: &Application) -> Result<Self, Refusal> {
        let panel = &member.visit.panel;
        let since = member.signed_in.now - TimeDelta::days(1);
        let (calls, used) = panel.panel.usage(application.client_id, since).await?;
        let limit = application
            .rate_limit
            .unwrap_or(panel.settings.default_rate_limit)
            .get();
        let meaning = member.visit.language.texts().usage.of_status;
        Ok(Self {
            limit,
            used: used.min(limit.into()),
            rows: by_status(&calls, meaning),
            hours: by_hour(&calls),
        })
    }

    /// From where on the use is high.
    pub(super) const fn high(&self) -> u32 {
        self.limit - self.limit / 5
    }
}

fn by_status(calls: &[HourlyUsage], meaning: fn(u16) -> &'static str) -> Vec<Row> {
    let mut sums = BTreeMap::<u16, u64>::new();
    for usage in calls {
        *sums.entry(usage.status).or_default() += usage.calls;
    }
    let row = |(status, calls)| Row {
        status,
        meaning: meaning(status),
        calls,
    };
    sums.into_iter().map(row).collect()
}

/// Newest first.
fn by_hour(calls: &[HourlyUsage]) -> Vec<Hour> {
    let mut sums = BTreeMap::<DateTime<Utc>, (u64, u64)>::new();
    for usage in calls {
        let (fine, errors) = sums.entry(usage.hour).or_default();
        if (200..400).contains(&usage.status) {
            *fine += usage.calls;
        } else {
            *errors += usage.calls;
        }
    }
    let hour = |(hour, (fine, errors))| Hour {
        hour: When(hour),
        fine,
        errors,
    };
    sums.into_iter().rev().map(hour).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_added_up_by_status_and_by_hour() {
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
        let rows: Vec<_> = by_status(&calls, |_| "")
            .iter()
            .map(|row| (row.status, row.calls))
            .collect();
        assert_eq!(rows, [(200, 12), (204, 1), (429, 2)]);
        let hours: Vec<_> = by_hour(&calls)
            .iter()
            .map(|row| (row.hour.0, row.fine, row.errors))
            .collect();
        assert_eq!(hours, [(hour(2), 8, 2), (hour(1), 5, 0)]);
    }
}
