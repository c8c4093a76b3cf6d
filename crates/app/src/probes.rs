//! The listener of a process that only works: whether it lives, whether it can work, and its metrics. Answers are those of
//! the back office's calls of the same names. No token.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use actix_web::{
    HttpRequest, HttpResponse,
    body::BoxBody,
    http::{
        ConnectionType, Method, StatusCode,
        header::{CONTENT_TYPE, HeaderValue},
    },
    web::{ServiceConfig, to},
};
use adapter_backoffice::{Health, NotReady};
use kernel::Randomness;
use serde_json::{Value, json};
use tokio::time::timeout;
use web::{Entry, Problem, TraceId, access_log::AccessLine, head, response};

/// How long readiness is waited for.
const READY_WITHIN: Duration = Duration::from_millis(1_200);
/// The text format of Prometheus.
const PROMETHEUS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4");

/// What is told about the process.
#[derive(Clone)]
pub(crate) struct Probes {
    pub(crate) health: Arc<dyn Health>,
    /// Renders all metrics.
    pub(crate) metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub(crate) randomness: Arc<dyn Randomness>,
}

/// Serves the whole listener; call it once for each server thread.
pub(crate) fn configure(probes: Probes) -> impl FnOnce(&mut ServiceConfig) {
    move |config| {
        config.default_service(to(move |request: HttpRequest| {
            let probes = probes.clone();
            async move { probes.serve(&request).await }
        }));
    }
}

impl Probes {
    async fn serve(&self, request: &HttpRequest) -> HttpResponse {
        let began = Instant::now();
        let trace_id = TraceId::of(request.headers(), || self.randomness.uuid().into_bytes());
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let refused = head::check(request.head()).err().map(|refused| {
            let mut response = Problem::from(Entry::whole(refused.to_string())).into_response(&trace_id);
            response.head_mut().set_connection_type(ConnectionType::Close);
            ("-", response)
        });
        let (route, response) = match (refused, request.path()) {
            (Some(refused), _) => refused,
            (None, "/healthz") if reads => (
                "/healthz",
                told(StatusCode::OK, &json!({ "status": "ok" }), &trace_id),
            ),
            (None, "/readyz") if reads => ("/readyz", self.readiness(&trace_id).await),
            (None, "/metrics") if reads => ("/metrics", self.measured(&trace_id)),
            _ => ("-", Problem::not_found().into_response(&trace_id)),
        };
        AccessLine {
            listener: "probes",
            trace_id: &trace_id,
            method: request.method(),
            route,
            status: response.status(),
            duration: began.elapsed(),
        }
        .write();
        response
    }

    async fn readiness(&self, trace_id: &TraceId) -> HttpResponse {
        let late = |_| Err(NotReady("the check did not end in time".to_owned()));
        match timeout(READY_WITHIN, self.health.ready())
            .await
            .unwrap_or_else(late)
        {
            Ok(()) => told(StatusCode::OK, &json!({ "status": "ready" }), trace_id),
            Err(NotReady(reason)) => {
                let body = json!({ "status": "not_ready", "reason": reason });
                told(StatusCode::SERVICE_UNAVAILABLE, &body, trace_id)
            }
        }
    }

    fn measured(&self, trace_id: &TraceId) -> HttpResponse {
        let mut response = HttpResponse::with_body(StatusCode::OK, BoxBody::new((self.metrics)()));
        response.headers_mut().insert(CONTENT_TYPE, PROMETHEUS);
        response::stamp(response.headers_mut(), trace_id);
        response
    }
}

fn told(status: StatusCode, body: &Value, trace_id: &TraceId) -> HttpResponse {
    response::json(status, body.to_string(), trace_id)
}

#[cfg(test)]
mod tests {
    use actix_web::{App, body::to_bytes, test};
    use adapter_sealing::SystemRandomness;
    use async_trait::async_trait;

    use super::*;

    struct Fixed(Result<(), NotReady>);

    #[async_trait]
    impl Health for Fixed {
        async fn ready(&self) -> Result<(), NotReady> {
            self.0.clone()
        }
    }

    async fn ask(ready: Result<(), NotReady>, method: Method, path: &str) -> (u16, String) {
        let probes = Probes {
            health: Arc::new(Fixed(ready)),
            metrics: Arc::new(|| "up 1\n".to_owned()),
            randomness: Arc::new(SystemRandomness::new()),
        };
        let app = test::init_service(App::new().configure(configure(probes))).await;
        let request = test::TestRequest::with_uri(path).method(method).to_request();
        let response = test::call_service(&app, request).await;
        assert!(response.headers().contains_key("x-trace-id"), "{path}");
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body()).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[actix_web::test]
    async fn the_three_probes_answer_and_nothing_else_is_there() {
        let away = || Err(NotReady("away".to_owned()));
        assert_eq!(
            ask(away(), Method::GET, "/healthz").await,
            (200, r#"{"status":"ok"}"#.to_owned())
        );
        assert_eq!(
            ask(Ok(()), Method::GET, "/readyz").await,
            (200, r#"{"status":"ready"}"#.to_owned())
        );
        let (status, body) = ask(away(), Method::GET, "/readyz").await;
        assert!(
            status == 503 && body.contains(r#""reason":"away""#),
            "{status} {body}"
        );
        assert_eq!(
            ask(Ok(()), Method::GET, "/metrics").await,
            (200, "up 1\n".to_owned())
        );
        assert_eq!(ask(Ok(()), Method::POST, "/healthz").await.0, 404);
        assert_eq!(ask(Ok(()), Method::GET, "/sellers").await.0, 404);
    }
}
