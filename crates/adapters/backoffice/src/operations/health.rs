//! What operations need to watch a process. No token.

use std::time::Duration;

use actix_web::http::StatusCode;
use serde_json::json;
use tokio::time::timeout;

use crate::operation::{Context, Operation};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::request::Parts;
use crate::state::NotReady;

/// A little less than the time in which any read is given up.
const READY_WITHIN: Duration = Duration::from_millis(1_200);

/// `GET /healthz`: 200 as long as the process runs.
pub(crate) struct Healthz;

impl Operation for Healthz {
    type Input = ();

    fn decode(parts: &Parts<'_>) -> Result<(), Refusal> {
        Ok(parts.no_query()?)
    }

    async fn execute((): (), _: Context) -> Result<Reply, Refusal> {
        Ok(Reply::ok(&json!({ "status": "ok" }))?)
    }
}

/// `GET /readyz`: 200 `{status}` when the process can do its work, else 503 `{status, reason}`.
pub(crate) struct Readyz;

impl Operation for Readyz {
    type Input = ();

    fn decode(parts: &Parts<'_>) -> Result<(), Refusal> {
        Ok(parts.no_query()?)
    }

    async fn execute((): (), context: Context) -> Result<Reply, Refusal> {
        let late = |_| Err(NotReady("the check did not end in time".to_owned()));
        match timeout(READY_WITHIN, context.office.health.ready())
            .await
            .unwrap_or_else(late)
        {
            Ok(()) => Ok(Reply::ok(&json!({ "status": "ready" }))?),
            Err(NotReady(reason)) => {
                let body = json!({ "status": "not_ready", "reason": reason });
                Ok(Reply::json(StatusCode::SERVICE_UNAVAILABLE, &body)?)
            }
        }
    }
}

/// `GET /metrics`: the text format of Prometheus.
pub(crate) struct Metrics;

impl Operation for Metrics {
    type Input = ();

    fn decode(parts: &Parts<'_>) -> Result<(), Refusal> {
        Ok(parts.no_query()?)
    }

    async fn execute((): (), context: Context) -> Result<Reply, Refusal> {
        Ok(Reply::metrics((context.office.metrics)()))
    }
}
