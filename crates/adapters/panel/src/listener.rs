//! Where every request of the panel comes in: it gets its trace id, goes through the pipeline, and leaves with the headers that
//! every response has, a line in the log and a mark in the meters.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use actix_web::http::{Method, StatusCode};
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use tokio::time::Instant;
use web::access_log::AccessLine;
use web::{TraceId, TrustedProxies};

use crate::{Panel, pipeline, security};

/// What the panel is called in logs and metrics.
const LISTENER: &str = "panel";

/// The panel in one server thread.
pub(crate) struct Listener {
    panel: Arc<Panel>,
    proxies: TrustedProxies,
}

impl Listener {
    pub(crate) fn new(panel: Panel) -> Self {
        Self {
            proxies: TrustedProxies::new(panel.settings.trusted_proxies.iter().copied()),
            panel: Arc::new(panel),
        }
    }

    /// Answers any request.
    pub(crate) async fn serve(&self, request: HttpRequest, payload: Payload) -> HttpResponse {
        let at = Instant::now();
        let trace_id = TraceId::of(request.headers(), || {
            let random = self.panel.randomness.secret();
            random.first_chunk().copied().unwrap_or_default()
        });
        let (client, method) = (self.client(&request), request.method().clone());
        let arrival = pipeline::Arrival {
            request,
            payload: payload.into_inner(),
            trace_id,
            client,
        };
        let (mut response, route) = pipeline::answer(&self.panel, arrival).await;
        security::apply(response.headers_mut(), &trace_id, self.panel.settings.https());
        let (status, duration) = (response.status(), at.elapsed());
        count(route, &method, status, duration.as_secs_f64());
        AccessLine {
            listener: LISTENER,
            trace_id: &trace_id,
            method: &method,
            route,
            status,
            duration,
        }
        .write();
        response
    }

    fn client(&self, request: &HttpRequest) -> IpAddr {
        let peer = request
            .peer_addr()
            .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
        self.proxies.client(peer, request.headers()).address
    }
}

/// Marks a request in the meters that every listener shares. People read pages: looking the meter up each time is cheap enough.
fn count(route: &'static str, method: &Method, status: StatusCode, seconds: f64) {
    let method = match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        _ => "other",
    };
    let labels = [
        ("listener", LISTENER.to_owned()),
        ("route", route.to_owned()),
        ("method", method.to_owned()),
        ("status", status.as_u16().to_string()),
    ];
    metrics::counter!("http_requests_total", &labels).increment(1);
    metrics::histogram!("http_request_duration_seconds", &labels).record(seconds);
}
