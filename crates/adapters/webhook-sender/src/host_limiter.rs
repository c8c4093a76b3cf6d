//! Limits the concurrent attempts to one host, and one application's share of them.
//!
//! Applications may share a host: many integrators use the same few providers. One application's slow
//! receiver must not delay another's attempts. So no application gets more than its share, and an application
//! with few attempts is admitted even if the host is at its limit.

use std::{collections::HashMap, num::NonZeroUsize, sync::Arc};

use oauth::ClientId;
use parking_lot::Mutex;
use webhooks::Host;

/// An application gets one eighth of its share even if the host is at its limit.
const GUARANTEED_DIVISOR: usize = 8;

/// Attempts in flight by host and application.
type InFlight = HashMap<Host, HashMap<ClientId, usize>>;

pub(crate) struct HostLimiter {
    limits: Limits,
    in_flight: Arc<Mutex<InFlight>>,
}

/// Limits of concurrent attempts to one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// For all applications together. Guaranteed attempts may raise the total to twice this number.
    pub(crate) per_host: NonZeroUsize,
    pub(crate) per_application: NonZeroUsize,
}

/// Permission for one attempt. Dropping it releases its place.
pub(crate) struct HostPermit {
    host: Host,
    application: ClientId,
    in_flight: Arc<Mutex<InFlight>>,
}

impl Limits {
    /// Whether an application with `own` of the `all` attempts to a host may start another.
    fn admit(self, own: usize, all: usize) -> bool {
        let per_host = self.per_host.get();
        let share = self.per_application.get().min(per_host);
        let is_guaranteed = own < (share / GUARANTEED_DIVISOR).max(1);
        let most = per_host.saturating_mul(if is_guaranteed { 2 } else { 1 });
        own < share && all < most
    }
}

impl HostLimiter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            in_flight: Arc::default(),
        }
    }

    pub(crate) fn try_acquire(&self, host: &Host, application: ClientId) -> Option<HostPermit> {
        let mut in_flight = self.in_flight.lock();
        let at_host = in_flight.entry(host.clone()).or_default();
        let own = at_host.get(&application).copied().unwrap_or_default();
        // A host without attempts always admits one, so a refusal never leaves an empty entry.
        self.limits.admit(own, at_host.values().sum()).then(|| {
            at_host.insert(application, own + 1);
            HostPermit {
                host: host.clone(),
                application,
                in_flight: Arc::clone(&self.in_flight),
            }
        })
    }
}

impl Drop for HostPermit {
    fn drop(&mut self) {
        let mut in_flight = self.in_flight.lock();
        let Some(at_host) = in_flight.get_mut(&self.host) else {
            return;
        };
        if let Some(own) = at_host.get_mut(&self.application) {
            *own -= 1;
        }
        at_host.retain(|_, own| *own > 0);
        if at_host.is_empty() {
            in_flight.remove(&self.host);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use uuid::Uuid;

    use super::*;

    #[test]
    fn an_application_gets_a_share_of_a_host_and_others_a_guaranteed_part_of_theirs() {
        for (per_host, per_application, expected) in [
            (2, 2, vec![2, 1, 1, 0]),
            (64, 32, [vec![32; 2], vec![4; 16], vec![0; 12]].concat()),
        ] {
            let [per_host, per_application] =
                [per_host, per_application].map(|limit| NonZeroUsize::new(limit).unwrap());
            let limits = Limits {
                per_host,
                per_application,
            };
            let limiter = HostLimiter::new(limits);
            let acquire = |host: u8, application: usize| {
                let host = Host::Address(Ipv4Addr::new(192, 0, 2, host).into());
                let application = u128::try_from(application).unwrap();
                limiter.try_acquire(&host, Uuid::from_u128(application).into())
            };
            // Each application in turn acquires all permits that it can get.
            let fill = |application| std::iter::from_fn(|| acquire(1, application)).collect();
            let mut permits: Vec<Vec<HostPermit>> = (0..expected.len()).map(fill).collect();
            let counts: Vec<_> = permits.iter().map(Vec::len).collect();
            assert_eq!(counts, expected, "at most twice the host's limit");
            assert!(acquire(2, 1).is_some(), "another host");
            let last = permits.iter().rposition(|held| !held.is_empty()).unwrap();
            permits[last].pop();
            assert!(acquire(1, last).is_some(), "a released place");
            drop(permits);
            assert!(limiter.in_flight.lock().is_empty());
        }
    }
}
