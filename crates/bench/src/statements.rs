//! How the server gathers: statements and the questions they carry, from its own metrics.

use crate::figures::real;
use crate::metrics::Metrics;

/// What has been counted since the server's start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Statements {
    /// Grouped statements.
    pub(crate) count: f64,
    /// Questions that they carried.
    pub(crate) questions: f64,
}

impl Statements {
    /// Sums over all statements' names, of the histogram with a value for each grouped statement: how many questions it
    /// carried.
    pub(crate) fn so_far(metrics: &Metrics) -> Self {
        Self {
            count: metrics.sum("database_group_size_count"),
            questions: metrics.sum("database_group_size_sum"),
        }
    }

    /// What was counted since `earlier`, for each of so many requests.
    pub(crate) fn each(self, earlier: Self, requests: u64) -> Self {
        Self {
            count: (self.count - earlier.count) / real(requests),
            questions: (self.questions - earlier.questions) / real(requests),
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
        let found = Statements::so_far(&Metrics::told(metrics));
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
