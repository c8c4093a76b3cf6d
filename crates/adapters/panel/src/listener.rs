//! Where every request of the panel comes in: it gets its trace id, goes through the pipeline, and leaves with the headers that
//! every response has, a line in the log and a mark in the meters.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};
use tokio::time::Instant;
use web::access_log::AccessLine;
use web::meters::RequestMeters;
use web::{RequestSpan, TraceId, TrustedProxies};

use crate::{Panel, pipeline, security};

/// What the panel is called in logs and metrics.
const LISTENER: &str = "panel";

/// The panel in one server thread.
pub(crate) struct Listener {
    panel: Arc<Panel>,
    proxies: TrustedProxies,
    meters: RequestMeters,
}

impl Listener {
    pub(crate) fn new(panel: Panel) -> Self {
        Self {
            proxies: TrustedProxies::new(panel.settings.trusted_proxies.iter().copied()),
            meters: RequestMeters::new(LISTENER),
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
        let span = RequestSpan::begin(LISTENER, request.headers(), &trace_id, || {
            request
                .peer_addr()
                .is_some_and(|peer| self.proxies.trusts(peer.ip()))
        });
        let (client, method) = (self.client(&request), request.method().clone());
        let arrival = pipeline::Arrival {
            request,
            payload: payload.into_inner(),
            trace_id,
            client,
        };
        let (mut response, route) = span.around(pipeline::answer(&self.panel, arrival)).await;
        security::apply(response.headers_mut(), &trace_id, self.panel.settings.https());
        let (status, duration) = (response.status(), at.elapsed());
        self.meters.count(route, &method, status, duration);
        let line = AccessLine {
            listener: LISTENER,
            trace_id: &trace_id,
            method: &method,
            route,
            status,
            duration,
        };
        span.end(&method, route, status, || line.write());
        response
    }

    fn client(&self, request: &HttpRequest) -> IpAddr {
        let peer = request
            .peer_addr()
            .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
        self.proxies.client(peer, request.headers()).address
    }
}
