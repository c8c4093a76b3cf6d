//! Endpoints that monitor a process. They need no token.

use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use serde_json::json;
use tokio::time::timeout;
use web::operation::{Call, Incoming, Operation, Read};
use web::reply::Reply;
use web::{Error, Violations};

use crate::{Access, BackOffice};

/// A probe answers within 2 s, whatever the database does.
const READY_TIMEOUT: Duration = Duration::from_millis(1_200);

/// 200 while the process runs.
pub(crate) struct Healthz;

/// 200 `{status, database}` if the process can do its work, otherwise 503 `{status, reason}`.
pub(crate) struct Readyz;

/// Metrics in the Prometheus text format.
pub(crate) struct Metrics;

impl Operation<BackOffice> for Healthz {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/healthz";
    const SCOPE: Access = Access::Open;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.no_query().map(|()| Some(Self))
    }
}

impl Read<BackOffice> for Healthz {
    async fn execute(self, _: Call<BackOffice>) -> Result<Reply, Error> {
        Reply::ok(&json!({ "status": "ok" }))
    }
}

impl Operation<BackOffice> for Readyz {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/readyz";
    const SCOPE: Access = Access::Open;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.no_query().map(|()| Some(Self))
    }
}

impl Read<BackOffice> for Readyz {
    async fn execute(self, call: Call<BackOffice>) -> Result<Reply, Error> {
        let late = |_| Err("the check did not end in time".to_owned());
        let ready = timeout(READY_TIMEOUT, (call.state.ready)()).await;
        match ready.unwrap_or_else(late) {
            Ok(database) => Reply::ok(&json!({ "status": "ready", "database": database })),
            Err(reason) => {
                let body = json!({ "status": "not_ready", "reason": reason });
                Reply::json(StatusCode::SERVICE_UNAVAILABLE, &body, 128)
            }
        }
    }
}

impl Operation<BackOffice> for Metrics {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/metrics";
    const SCOPE: Access = Access::Open;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.no_query().map(|()| Some(Self))
    }
}

impl Read<BackOffice> for Metrics {
    async fn execute(self, call: Call<BackOffice>) -> Result<Reply, Error> {
        Ok(Reply::prometheus((call.state.metrics)()))
    }
}
