//! How many attempts go to one host at a time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use webhooks::Host;

type Hosts = HashMap<Host, Weak<Semaphore>>;

/// Keeps crowds away from hosts: each has a number of places, and knows of no other's.
pub(crate) struct Crowd {
    places: usize,
    hosts: Arc<Mutex<Hosts>>,
}

/// A place at a host, or a place in the queue for one.
pub(crate) struct Place {
    host: Host,
    hosts: Arc<Mutex<Hosts>>,
    semaphore: Option<Arc<Semaphore>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Crowd {
    pub(crate) fn new(places: usize) -> Self {
        Self {
            places,
            hosts: Arc::default(),
        }
    }

    /// Waits for a place at the host; first come, first served.
    pub(crate) async fn enter(&self, host: &Host) -> Place {
        let semaphore = self.semaphore(host);
        let mut place = Place {
            host: host.clone(),
            hosts: Arc::clone(&self.hosts),
            semaphore: Some(Arc::clone(&semaphore)),
            permit: None,
        };
        // Never closed, so there always is a permit in the end.
        place.permit = semaphore.acquire_owned().await.ok();
        place
    }

    fn semaphore(&self, host: &Host) -> Arc<Semaphore> {
        let mut hosts = lock(&self.hosts);
        if let Some(semaphore) = hosts.get(host).and_then(Weak::upgrade) {
            return semaphore;
        }
        let semaphore = Arc::new(Semaphore::new(self.places));
        hosts.insert(host.clone(), Arc::downgrade(&semaphore));
        semaphore
    }

    #[cfg(test)]
    fn known(&self) -> usize {
        lock(&self.hosts).len()
    }
}

impl Drop for Place {
    /// The last who leaves a host, or gives up waiting for it, lets it be forgotten.
    fn drop(&mut self) {
        self.permit = None;
        self.semaphore = None;
        let mut hosts = lock(&self.hosts);
        if hosts
            .get(&self.host)
            .is_some_and(|semaphore| semaphore.strong_count() == 0)
        {
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
    use std::{net::Ipv4Addr, pin::pin, time::Duration};

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_full_host_is_waited_for_and_another_is_not() {
        let crowd = Crowd::new(2);
        let [one, other] = [1, 2].map(|end| Host::Address(Ipv4Addr::new(192, 0, 2, end).into()));
        let first = crowd.enter(&one).await;
        let _second = crowd.enter(&one).await;
        let mut third = pin!(crowd.enter(&one));
        assert!(timeout(Duration::from_secs(1), &mut third).await.is_err());
        drop(crowd.enter(&other).await);
        drop(first);
        third.await;
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_are_forgotten_by_those_who_leave_and_those_who_give_up() {
        let crowd = Crowd::new(1);
        let host = Host::Address(Ipv4Addr::LOCALHOST.into());
        let inside = crowd.enter(&host).await;
        {
            let waiting = crowd.enter(&host);
            assert!(timeout(Duration::from_secs(1), waiting).await.is_err());
        }
        assert_eq!(crowd.known(), 1);
        drop(inside);
        assert_eq!(crowd.known(), 0);
    }
}
