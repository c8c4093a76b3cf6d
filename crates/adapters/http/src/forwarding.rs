//! Whose address a request comes from, and the warning about a proxy that nobody trusts.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use actix_web::HttpRequest;
use ipnet::IpNet;
use tokio::time::Instant;
use web::{ClientAddress, TrustedProxies};

const UNTRUSTED: &str = "http_untrusted_forwarding_total";

const WARN_EVERY: Duration = Duration::from_mins(1);

/// Finds the client behind the proxies, for one server thread.
pub(crate) struct Forwarding {
    proxies: TrustedProxies,
    warned: Cell<Option<Instant>>,
}

impl Forwarding {
    pub(crate) fn new(trusted: &[IpNet]) -> Self {
        Self {
            proxies: TrustedProxies::new(trusted.iter().copied()),
            warned: Cell::new(None),
        }
    }

    /// The client's address. Where a peer that is not trusted speaks for somebody else, that is counted, and warned of at
    /// most once a minute: behind a proxy left out of the configuration all clients share one address and its limits.
    pub(crate) fn client(&self, request: &HttpRequest, now: Instant) -> IpAddr {
        let peer = request
            .peer_addr()
            .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
        let ClientAddress {
            address,
            untrusted_forwarding,
        } = self.proxies.client(peer, request.headers());
        if untrusted_forwarding {
            metrics::counter!(UNTRUSTED).increment(1);
            self.warn(peer, now);
        }
        address
    }

    /// Whether the peer's word counts.
    pub(crate) fn trusts(&self, request: &HttpRequest) -> bool {
        request
            .peer_addr()
            .is_some_and(|peer| self.proxies.trusts(peer.ip()))
    }

    fn warn(&self, peer: IpAddr, now: Instant) {
        let lately = |at: Instant| now.duration_since(at) < WARN_EVERY;
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

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use tracing::Level;

    use super::*;
    use crate::tests::logs::Logs;

    #[test]
    fn the_warning_comes_once_a_minute() {
        let (logs, _listening) = Logs::listen();
        let forwarding = Forwarding::new(&[]);
        let request = || TestRequest::get().insert_header(("x-forwarded-for", "198.51.100.7"));
        let began = Instant::now();
        for (seconds, warnings) in [(0, 1), (1, 1), (59, 1), (60, 2), (100, 2), (120, 3)] {
            forwarding.client(&request().to_http_request(), began + Duration::from_secs(seconds));
            assert_eq!(logs.at(Level::WARN).len(), warnings, "{seconds}");
        }
        forwarding.client(
            &TestRequest::get().to_http_request(),
            began + Duration::from_secs(999),
        );
        assert_eq!(logs.at(Level::WARN).len(), 3);
    }
}
