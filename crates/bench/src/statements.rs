//! How the server gathers: statements and the questions they carry, from its own metrics (`/metrics` of the back office).

use std::net::SocketAddr;

use anyhow::ensure;

use crate::figures::real;
use crate::http::Connection;

/// The histogram with a value for each grouped statement: how many questions it carried.
const GROUPS: &str = "database_group_size";

/// What has been counted since the server's start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Statements {
    /// Grouped statements.
    pub(crate) count: f64,
    /// Questions that they carried.
    pub(crate) questions: f64,
}

impl Statements {
    /// Asks the server.
    pub(crate) async fn so_far(back_office: SocketAddr) -> anyhow::Result<Self> {
        let mut connection = Connection::open(back_office).await?;
        let request = b"GET /metrics HTTP/1.1\r\nHost: bench\r\nUser-Agent: Bench/1.0\r\n\r\n";
        let response = connection.exchange(request).await?;
        ensure!(
            response.status == 200,
            "/metrics was answered {}",
            response.status
        );
        Ok(Self::parse(&String::from_utf8_lossy(response.body)))
    }

    /// What was counted since `earlier`, for each of so many requests.
    pub(crate) fn each(self, earlier: Self, requests: u64) -> Self {
        Self {
            count: (self.count - earlier.count) / real(requests),
            questions: (self.questions - earlier.questions) / real(requests),
        }
    }

    /// Sums over all statements' names (Prometheus text format: `name_count{labels} value`).
    fn parse(metrics: &str) -> Self {
        let sum = |suffix: &str| -> f64 {
            let values = metrics.lines().filter_map(|line| {
                let rest = line.strip_prefix(GROUPS)?.strip_prefix(suffix)?;
                rest.rsplit(' ').next()?.parse::<f64>().ok()
            });
            values.sum()
        };
        Self {
            count: sum("_count"),
            questions: sum("_sum"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_over_all_statements() {
        let metrics = "# TYPE database_group_size histogram\n\
                       database_group_size_bucket{statement=\"gate\",le=\"1\"} 7\n\
                       database_group_size_sum{statement=\"gate\"} 30\ndatabase_group_size_count{statement=\"gate\"} 4\n\
                       database_group_size_sum{statement=\"offers\"} 20\ndatabase_group_size_count{statement=\"offers\"} 6\n";
        let found = Statements::parse(metrics);
        assert_eq!(
            found,
            Statements {
                count: 10.0,
                questions: 50.0
            }
        );
        let each = found.each(
            Statements {
                count: 0.0,
                questions: 10.0,
            },
            20,
        );
        assert_eq!(
            each,
            Statements {
                count: 0.5,
                questions: 2.0
            }
        );
    }
}
