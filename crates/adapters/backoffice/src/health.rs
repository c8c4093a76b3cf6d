//! Endpoints that monitor a process. They need no token.

use actix_web::http::StatusCode;
use serde_json::json;
use web::operation::{Call, Incoming, Read};
use web::reply::Reply;
use web::{Error, Violations};

use crate::{Access, BackOffice};

kernel::words! {
    /// The endpoints, by path.
    pub(crate) enum Probe {
        /// 200 while the process runs.
        Healthz = "/healthz",
        /// 200 `{status, database}` if the process can do its work, otherwise 503 `{status, reason}`.
        Readyz = "/readyz",
        /// Metrics in the Prometheus text format.
        Metrics = "/metrics",
    }
}

impl Read<BackOffice> for Probe {
    const SCOPE: Access = Access::Open;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        Ok(Self::parse(incoming.head.uri.path()))
    }

    async fn execute(self, call: Call<BackOffice>) -> Result<Reply, Error> {
        match self {
            Self::Healthz => Reply::ok(&json!({ "status": "ok" })),
            Self::Readyz => match (call.state.ready)().await {
                Ok(database) => Reply::ok(&json!({ "status": "ready", "database": database })),
                Err(reason) => {
                    let body = json!({ "status": "not_ready", "reason": reason });
                    Reply::json(StatusCode::SERVICE_UNAVAILABLE, &body)
                }
            },
            Self::Metrics => Ok(Reply::prometheus((call.state.metrics)())),
        }
    }
}
