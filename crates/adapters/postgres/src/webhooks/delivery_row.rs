//! A delivery as a row of a history.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    Queryable,
    sql_types::{Integer, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid},
};
use kernel::StoreError;
use uuid::Uuid;
use webhooks::{
    Attempted, Delivery, DeliveryId, DeliveryRecord, DeliveryState, Failure, Outcome, WebhookEvent,
};

/// The columns of [`DeliveryRow`], of deliveries named `d` and their subscription `s`. Nothing is due any more for a
/// subscription that has ended, though the row may not say so yet: what is pending for it is stopped bit by bit.
macro_rules! delivery_columns {
    () => {
        "d.id, d.event, d.created_at, d.attempt, \
    case when s.active then d.due_at end, d.delivered_at, d.response_status, d.failure, d.duration_ms"
    };
}
pub(super) use delivery_columns;

/// Their types.
pub(super) type Columns = (
    SqlUuid,
    Text,
    Timestamptz,
    SmallInt,
    Nullable<Timestamptz>,
    Nullable<Timestamptz>,
    Nullable<SmallInt>,
    Nullable<Text>,
    Nullable<Integer>,
);

#[derive(Queryable)]
pub(super) struct DeliveryRow {
    id: Uuid,
    event: String,
    created_at: DateTime<Utc>,
    attempt: i16,
    due_at: Option<DateTime<Utc>>,
    delivered_at: Option<DateTime<Utc>>,
    response_status: Option<i16>,
    failure: Option<String>,
    duration_ms: Option<i32>,
}

impl TryFrom<DeliveryRow> for Delivery {
    type Error = StoreError;

    fn try_from(row: DeliveryRow) -> Result<Self, StoreError> {
        let id = DeliveryId::from(row.id);
        let corrupt = |reason: String| StoreError::corrupt("deliveries", id, reason);
        let record = DeliveryRecord {
            attempt: row.attempt,
            due_at: row.due_at,
            delivered_at: row.delivered_at,
            last: row.last().map_err(corrupt)?,
        };
        Ok(Self {
            id,
            event: event(id, &row.event)?,
            created_at: row.created_at,
            state: DeliveryState::try_from(record).map_err(|invalid| corrupt(invalid.to_string()))?,
        })
    }
}

impl DeliveryRow {
    fn last(&self) -> Result<Option<Attempted>, String> {
        let outcome = match (self.response_status, self.failure.as_deref()) {
            (None, None) => return Ok(None),
            (Some(status), None) => {
                Outcome::Answered(u16::try_from(status).map_err(|_| format!("response_status {status}"))?)
            }
            (None, Some(failure)) => {
                Outcome::Failed(Failure::parse(failure).map_err(|_| format!("failure {failure:?}"))?)
            }
            (Some(_), Some(_)) => return Err("an answer and a failure".to_owned()),
        };
        let milliseconds = u64::try_from(self.duration_ms.unwrap_or_default())
            .map_err(|_| "a duration below 0".to_owned())?;
        Ok(Some(Attempted {
            outcome,
            duration: Duration::from_millis(milliseconds),
        }))
    }
}

pub(super) fn event(id: DeliveryId, name: &str) -> Result<WebhookEvent, StoreError> {
    WebhookEvent::parse(name).ok_or_else(|| StoreError::corrupt("deliveries", id, format!("event {name:?}")))
}
