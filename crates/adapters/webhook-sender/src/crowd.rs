//! How many attempts go to one host at a time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use webhooks::Host;

/// The hosts that attempts are under way to, each with their number.
type Hosts = HashMap<Host, usize>;

/// Keeps crowds away from hosts: each has a number of places, and knows of no other's.
pub(crate) struct Crowd {
    places: usize,
    hosts: Arc<Mutex<Hosts>>,
}

/// A place at a host, free again when it is dropped.
pub(crate) struct Place {
    host: Host,
    hosts: Arc<Mutex<Hosts>>,
}

impl Crowd {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            places,
            hosts: Arc::default(),
        }
    }

    /// Takes a place at the host; none where all are taken.
    pub(crate) fn enter(&self, host: &Host) -> Option<Place> {
        let mut hosts = lock(&self.hosts);
        let taken = hosts.get(host).copied().unwrap_or_default();
        (taken < self.places).then(|| {
            hosts.insert(host.clone(), taken.saturating_add(1));
            Place {
                host: host.clone(),
                hosts: Arc::clone(&self.hosts),
            }
        })
    }
}

impl Drop for Place {
    /// The last who leaves a host lets it be forgotten.
    fn drop(&mut self) {
        let mut hosts = lock(&self.hosts);
        if let Some(taken) = hosts.get_mut(&self.host) {
            *taken = taken.saturating_sub(1);
            if *taken == 0 {
                hosts.remove(&self.host);
            }
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

    use super::*;

    #[test]
    fn a_full_host_lets_nobody_in_and_another_does() {
        let crowd = Crowd::new(2);
        let [one, other] = [1, 2].map(|end| Host::Address(Ipv4Addr::new(192, 0, 2, end).into()));
        let first = crowd.enter(&one);
        let second = crowd.enter(&one);
        assert!(first.is_some() && second.is_some());
        assert!(crowd.enter(&one).is_none());
        assert!(crowd.enter(&other).is_some());
        drop(first);
        assert!(crowd.enter(&one).is_some());
    }

    #[test]
    fn hosts_are_forgotten_by_the_last_who_leaves() {
        let crowd = Crowd::new(2);
        let host = Host::Address(Ipv4Addr::LOCALHOST.into());
        let known = || lock(&crowd.hosts).len();
        let (first, second) = (crowd.enter(&host), crowd.enter(&host));
        drop(crowd.enter(&host));
        drop(first);
        assert_eq!(known(), 1);
        drop(second);
        assert_eq!(known(), 0);
    }
}
