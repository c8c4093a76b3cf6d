//! A pool of idle connections for later deliveries.
//!
//! The pool of hyper-util's client does not fit: its key cannot include the checked address, and it limits
//! neither the total number of connections nor their age.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::sleep;

use crate::connection::{Connection, Peer};

/// Interval at which closed and expired connections are dropped.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Reuses a connection only for the same peer, and only if the peer's name still resolves to the connection's
/// address.
pub(crate) struct ConnectionPool {
    max_idle: usize,
    max_age: Duration,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// Least recently used first.
    connections: VecDeque<Connection>,
    is_sweeping: bool,
}

impl ConnectionPool {
    pub(crate) fn new(max_idle: usize, max_age: Duration) -> Arc<Self> {
        Arc::new(Self {
            max_idle,
            max_age,
            idle: Mutex::default(),
        })
    }

    /// Takes an open connection to the peer at one of the addresses; the most recently used if there are
    /// several.
    pub(crate) fn take(&self, peer: &Peer, addresses: &[IpAddr]) -> Option<Connection> {
        let fits = |idle: &Connection| idle.peer == *peer && addresses.contains(&idle.address);
        let mut idle = self.idle.lock();
        let mut taken = None;
        while taken.is_none()
            && let Some(place) = idle.connections.iter().rposition(fits)
        {
            taken = idle.connections.remove(place).filter(|one| self.is_usable(one));
        }
        report(&idle);
        taken
    }

    pub(crate) fn put(self: &Arc<Self>, connection: Connection) {
        if !self.is_usable(&connection) {
            return;
        }
        let mut idle = self.idle.lock();
        idle.connections.push_back(connection);
        if idle.connections.len() > self.max_idle {
            idle.connections.pop_front();
        }
        report(&idle);
        if !idle.is_sweeping {
            idle.is_sweeping = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    /// Whether a connection is open and not too old. Only a sweep checks all of them: that at each delivery
    /// took a third of the program's time.
    fn is_usable(&self, idle: &Connection) -> bool {
        idle.is_ready() && idle.opened_at.elapsed() < self.max_age
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.idle.lock().connections.len()
    }
}

/// Prunes the pool periodically, so also without deliveries, until it is empty.
async fn sweep(pool: Weak<ConnectionPool>) {
    loop {
        sleep(SWEEP_INTERVAL).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.idle.lock();
        idle.connections.retain(|one| pool.is_usable(one));
        report(&idle);
        if idle.connections.is_empty() {
            idle.is_sweeping = false;
            return;
        }
    }
}

fn report(idle: &Idle) {
    let connections = u32::try_from(idle.connections.len()).unwrap_or(u32::MAX);
    metrics::gauge!("webhook_idle_connections").set(f64::from(connections));
}
