//! How many attempts go to one host at a time, and how many of them are one application's.
//!
//! Applications may share a host: integrators rent their receivers from the same few providers. However slow the receivers of
//! some are there, another one's attempts find a place: nobody has more than a share, and whoever has little there is let in
//! where all places are taken.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use oauth::ClientId;
use webhooks::Host;

/// The part of its share that an application gets in any case.
const ASSURED: usize = 8;

/// How many attempts are under way to a host, by application.
type AtHost = HashMap<ClientId, usize>;

/// The hosts that attempts are under way to.
type Hosts = HashMap<Host, AtHost>;

/// Keeps crowds away from hosts: each has a number of places, and knows of no other's.
pub(crate) struct Crowd {
    limits: Limits,
    hosts: Arc<Mutex<Hosts>>,
}

/// How many attempts there may be to one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Of all applications; as many again at most through what each is assured of.
    pub(crate) places: NonZeroUsize,
    /// Of one application.
    pub(crate) share: NonZeroUsize,
}

/// A place at a host, free again when it is dropped.
pub(crate) struct Place {
    host: Host,
    application: ClientId,
    hosts: Arc<Mutex<Hosts>>,
}

impl Limits {
    /// Whether an application with so many attempts among all that are under way may begin another.
    fn admit(self, own: usize, all: usize) -> bool {
        let places = self.places.get();
        let share = self.share.get().min(places);
        let assured = (share / ASSURED).max(1);
        let open = if own < assured {
            places.saturating_mul(2)
        } else {
            places
        };
        own < share && all < open
    }
}

impl Crowd {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            hosts: Arc::default(),
        }
    }

    /// Takes a place at the host; none where the application has its share, or all are taken.
    pub(crate) fn enter(&self, host: &Host, application: ClientId) -> Option<Place> {
        let mut hosts = lock(&self.hosts);
        let of_host = hosts.get(host);
        let own = of_host.and_then(|of| of.get(&application)).copied();
        let own = own.unwrap_or_default();
        let all = of_host.map_or(0, |of| of.values().sum());
        self.limits.admit(own, all).then(|| {
            let at_host = hosts.entry(host.clone()).or_default();
            at_host.insert(application, own.saturating_add(1));
            Place {
                host: host.clone(),
                application,
                hosts: Arc::clone(&self.hosts),
            }
        })
    }
}

impl Drop for Place {
    /// The last of an application lets it be forgotten, the last at a host the host.
    fn drop(&mut self) {
        let mut hosts = lock(&self.hosts);
        let Some(at_host) = hosts.get_mut(&self.host) else {
            return;
        };
        if let Some(own) = at_host.get_mut(&self.application) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                at_host.remove(&self.application);
            }
        }
        if at_host.is_empty() {
            hosts.remove(&self.host);
        }
    }
}

/// A panic elsewhere leaves the map whole: each change of it is one step.
fn lock(hosts: &Mutex<Hosts>) -> MutexGuard<'_, Hosts> {
    hosts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use uuid::Uuid;

    use super::*;

    fn crowd(places: usize, share: usize) -> Crowd {
        let [places, share] = [places, share].map(|n| NonZeroUsize::new(n).unwrap());
        Crowd::new(Limits { places, share })
    }

    fn host(end: u8) -> Host {
        Host::Address(Ipv4Addr::new(192, 0, 2, end).into())
    }

    fn application(n: u128) -> ClientId {
        Uuid::from_u128(n).into()
    }

    /// As many places as the application gets.
    fn fill(crowd: &Crowd, n: u128) -> Vec<Place> {
        std::iter::from_fn(|| crowd.enter(&host(1), application(n))).collect()
    }

    #[test]
    fn a_full_host_lets_nobody_in_and_another_does() {
        let crowd = crowd(2, 2);
        let first = crowd.enter(&host(1), application(1));
        let second = crowd.enter(&host(1), application(1));
        assert!(first.is_some() && second.is_some());
        assert!(crowd.enter(&host(1), application(1)).is_none());
        assert!(crowd.enter(&host(2), application(1)).is_some());
        drop(first);
        assert!(crowd.enter(&host(1), application(1)).is_some());
    }

    #[test]
    fn an_application_has_a_share_and_others_what_it_leaves() {
        let crowd = crowd(64, 32);
        let slow: Vec<_> = [1, 2].into_iter().map(|n| fill(&crowd, n)).collect();
        assert_eq!(slow.iter().map(Vec::len).collect::<Vec<_>>(), [32, 32]);
        let assured: Vec<_> = (3..=30).map(|n| fill(&crowd, n)).collect();
        let assured: Vec<_> = assured.iter().map(Vec::len).collect();
        assert!(assured[..16].iter().all(|got| *got == 4), "{assured:?}");
        assert_eq!(
            assured.iter().sum::<usize>(),
            64,
            "as many again as there are places"
        );
    }

    #[test]
    fn nothing_is_remembered_of_those_who_left() {
        let crowd = crowd(2, 2);
        let known = || lock(&crowd.hosts).values().map(HashMap::len).collect::<Vec<_>>();
        let enter = |n| crowd.enter(&host(1), application(n));
        let (first, second, other) = (enter(1), enter(1), enter(2));
        assert_eq!(known(), [2]);
        drop(first);
        assert_eq!(known(), [2]);
        drop(second);
        assert_eq!(known(), [1]);
        drop(other);
        assert!(known().is_empty());
    }
}
