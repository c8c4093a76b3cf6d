//! The entry point of every request of a listener: assigns trace id, span and client address, routes the
//! request, writes the access log and counts the request.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::HeaderMap;
use actix_web::web::{self, Payload};
use actix_web::{HttpRequest, HttpResponse, Route};
use tokio::time::Instant;
use usecases::own_wait;
use uuid::Uuid;

use crate::access_log::{AccessLine, LoggedRefusal};
use crate::client_ip::{ClientAddress, TrustedProxies};
use crate::listener::ServiceSettings;
use crate::meters::{RequestMeters, count_refusal};
use crate::observer::{Bodies, Observer};
use crate::problem::BUSY_ROW;
use crate::request::{Answer, Request};
use crate::request_span::RequestSpan;
use crate::trace_id::TraceId;

const WARN_INTERVAL: Duration = Duration::from_mins(1);

/// The entry point of one listener in one server thread.
pub struct Front {
    name: &'static str,
    proxies: TrustedProxies,
    /// Only the marketplace reaches the listener, so its callers' traces are continued.
    internal: bool,
    warned: Cell<Option<Instant>>,
    meters: RequestMeters,
    observer: Option<Arc<dyn Observer>>,
}

impl Front {
    /// The front of a listener that is open to anybody; `name` appears in logs and metrics.
    pub fn public(name: &'static str, service: &ServiceSettings) -> Self {
        Self {
            name,
            proxies: service.trusted_proxies.clone(),
            internal: false,
            warned: Cell::new(None),
            meters: RequestMeters::new(name),
            observer: service.observer.clone(),
        }
    }

    /// The front of a listener that only the marketplace reaches.
    pub fn internal(name: &'static str, service: &ServiceSettings) -> Self {
        Self {
            internal: true,
            ..Self::public(name, service)
        }
    }

    /// Routes every request to `answer`.
    pub fn route<A, F>(self, answer: A) -> Route
    where
        A: Fn(Request) -> F + 'static,
        F: Future<Output = Answer> + 'static,
    {
        let service = Rc::new((self, answer));
        web::to(move |http, payload| {
            let service = Rc::clone(&service);
            async move {
                let (front, answer) = service.as_ref();
                front.serve(http, payload, answer).await
            }
        })
    }

    async fn serve<F: Future<Output = Answer>>(
        &self,
        http: HttpRequest,
        payload: Payload,
        answer: impl FnOnce(Request) -> F,
    ) -> HttpResponse {
        let received_at = Instant::now();
        let trace_id = TraceId::of(http.headers(), random_bytes);
        let peer = http.peer_addr();
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
        let span = RequestSpan::begin(self.name, http.headers(), &trace_id, || {
            self.internal || self.proxies.trusts(peer)
        });
        let client = self.client(peer, http.headers(), received_at);
        let request = Request {
            http: http.clone(),
            payload: payload.into_inner(),
            trace_id,
            span: span.clone(),
            client,
            caller: Cell::default(),
            received_at,
            body_took: Duration::ZERO,
            bodies: self.observer.as_ref().map(|_| Bodies::default()),
        };
        let (answer, own_wait) = own_wait::measured(span.instrument(answer(request))).await;
        let Answer {
            response,
            route,
            caller,
            bodies,
        } = answer;
        let (status, duration) = (response.status(), received_at.elapsed());
        let method = http.method();
        let refusal = response.extensions().get::<LoggedRefusal>().copied();
        let is_refused = refusal.is_some_and(|refusal| refusal.reason == Some(BUSY_ROW));
        let took = duration.saturating_sub(own_wait);
        self.meters.count(route, method, status, is_refused, took);
        if let Some(client_id) = caller.client_id {
            count_refusal(client_id, status);
        }
        let line = AccessLine {
            listener: self.name,
            trace_id: &trace_id,
            client_address: client,
            caller,
            request: &http,
            route,
            status,
            refusal,
            duration,
        };
        span.end(method, route, status, || line.write());
        if let (Some(observer), Some(bodies)) = (&self.observer, bodies)
            && !line.is_probe()
        {
            observer.request(&line, &bodies);
        }
        response
    }

    fn client(&self, peer: IpAddr, headers: &HeaderMap, now: Instant) -> IpAddr {
        let ClientAddress {
            address,
            untrusted_forwarding,
        } = self.proxies.client(peer, headers);
        if untrusted_forwarding && !self.internal {
            metrics::counter!("http_untrusted_forwarding_total").increment(1);
            self.warn_of_untrusted(peer, now);
        }
        address
    }

    /// Warns at most once a minute on each server thread: behind a proxy that is missing from the configuration all
    /// clients share one address and its limits.
    fn warn_of_untrusted(&self, peer: IpAddr, now: Instant) {
        let lately = |at: Instant| now.duration_since(at) < WARN_INTERVAL;
        if self.warned.get().is_some_and(lately) {
            return;
        }
        self.warned.set(Some(now));
        tracing::warn!(
            %peer,
            "a peer that is not in server.trusted_proxies sends X-Forwarded-For: it is not believed, and its own \
             address counts"
        );
    }
}

/// The bytes of a trace id: hashes with keys that are random in each `RandomState` (`SipHash`; the operating system
/// provides the first of a thread). Seeing some ids reveals neither other ids nor their number. It asks the system
/// for randomness once in a thread, not at each request.
fn random_bytes() -> [u8; 16] {
    let half = || RandomState::new().hash_one(0_u8);
    Uuid::from_u64_pair(half(), half()).into_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn trace_ids_of_two_threads_do_not_repeat() {
        let ids = || (0..1_000).map(|_| random_bytes()).collect::<Vec<_>>();
        let other = std::thread::spawn(ids).join().unwrap();
        let ids: HashSet<_> = ids().into_iter().chain(other).collect();
        assert_eq!(ids.len(), 2_000);
        let halves: HashSet<_> = ids
            .iter()
            .flat_map(|id| [id[..8].to_vec(), id[8..].to_vec()])
            .collect();
        assert_eq!(halves.len(), 4_000);
    }
}
