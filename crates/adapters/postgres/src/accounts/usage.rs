//! Counts of API calls by application.

use accounts::{HourlyUsage, UsageCount, UsageLog};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use diesel::sql_types::{Array, BigInt, Nullable, SmallInt, Timestamptz, Uuid as SqlUuid};
use kernel::StoreError;
use oauth::{ClientId, Limiter, Subject};

use crate::connection::pool::Autocommit;
use crate::sql::column;
use crate::statement::statements;

statements! {
    "usage.sql";
    ADD_USAGE: (Array<SqlUuid>, Array<SqlUuid>, Array<SmallInt>, Array<BigInt>);
    USAGE: (SqlUuid, Timestamptz, SmallInt, SqlUuid) -> UsageRow;
}

/// Stores the counts of a process. Each call is one autocommitted statement.
#[async_trait]
impl UsageLog for Autocommit {
    /// Counts by application, and records the last use by seller.
    async fn add_usage(&self, counts: Vec<UsageCount>) -> Result<(), StoreError> {
        if counts.is_empty() {
            return Ok(());
        }
        let statuses = counts.iter().map(|count| i16::try_from(count.key.status));
        let statuses = statuses
            .collect::<Result<Vec<_>, _>>()
            .map_err(StoreError::unexpected)?;
        let sellers = column(&counts, |count| count.key.seller.uuid());
        let clients = column(&counts, |count| count.key.client_id.uuid());
        let calls = column(&counts, |count| i64::from(count.calls));
        let add = ADD_USAGE.bind((sellers, clients, statuses, calls));
        self.execute(add).await.map(drop)
    }
}

#[derive(diesel::QueryableByName)]
struct UsageRow {
    #[diesel(sql_type = Nullable<Timestamptz>)]
    hour: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<SmallInt>)]
    status: Option<i16>,
    #[diesel(sql_type = BigInt)]
    calls: i64,
}

/// An application's hours, in order, and the count of the current minute.
pub(super) async fn read(
    statements: &Autocommit,
    client_id: ClientId,
    since: DateTime<Utc>,
) -> Result<(Vec<HourlyUsage>, u64), StoreError> {
    let (kind, subject) = (Limiter::Api.code(), Subject::client(client_id).uuid());
    let usage = USAGE.bind((client_id.uuid(), since, kind, subject));
    let (mut hours, mut used) = (Vec::new(), 0);
    for row in statements.rows(usage).await? {
        let impossible = |reason: String| StoreError::corrupt("application_usage", client_id, reason);
        let calls = u64::try_from(row.calls).map_err(|_| impossible(format!("calls {}", row.calls)))?;
        match (row.hour, row.status) {
            (Some(hour), Some(status)) => hours.push(HourlyUsage {
                hour,
                status: u16::try_from(status).map_err(|_| impossible(format!("status {status}")))?,
                calls,
            }),
            _ => used = calls,
        }
    }
    Ok((hours, used))
}
