//! Endpoints that monitor a process. They need no token.

use actix_web::http::StatusCode;
use serde_json::json;
use web::operation::{Call, Incoming, Operation, Read};
use web::reply::Reply;
use web::{Error, Violations};

use crate::{Access, BackOffice};

/// 200 while the process runs.
pub(crate) struct Healthz;

/// 200 `{status, database}` if the process can do its work, otherwise 503 `{status, reason}`.
pub(crate) struct Readyz;

/// Metrics in the Prometheus text format.
pub(crate) struct Metrics;

impl Operation<BackOffice> for Healthz {
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
    const SCOPE: Access = Access::Open;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.no_query().map(|()| Some(Self))
    }
}

impl Read<BackOffice> for Readyz {
    async fn execute(self, call: Call<BackOffice>) -> Result<Reply, Error> {
        match (call.state.ready)().await {
            Ok(database) => Reply::ok(&json!({ "status": "ready", "database": database })),
            Err(reason) => {
                let body = json!({ "status": "not_ready", "reason": reason });
                Reply::json(StatusCode::SERVICE_UNAVAILABLE, &body, 128)
            }
        }
    }
}

impl Operation<BackOffice> for Metrics {
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
