//! Connections that were of use once and may be again.

use std::{
    collections::VecDeque,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::time::sleep;
use webhooks::Host;

use crate::{connection::Connection, meters};

/// How often connections that were closed or have grown old are looked for.
const SWEEP: Duration = Duration::from_secs(5);

/// Whom a connection leads to, but for the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer {
    /// True when it is protected by TLS.
    pub secure: bool,
    pub host: Host,
    pub port: u16,
}

/// The connections that are kept. One of them serves again only for the same peer, and only when that peer's name leads to
/// the very address now as well.
pub(crate) struct Kept {
    most: usize,
    longest: Duration,
    unused: Mutex<Unused>,
}

#[derive(Default)]
struct Unused {
    /// In the order in which they were last used.
    connections: VecDeque<Entry>,
    swept: bool,
}

struct Entry {
    peer: Peer,
    address: IpAddr,
    connection: Connection,
}

impl Kept {
    pub(crate) fn new(most: usize, longest: Duration) -> Arc<Self> {
        Arc::new(Self {
            most,
            longest,
            unused: Mutex::default(),
        })
    }

    /// An open connection to the peer at one of the addresses, the last used first.
    pub(crate) fn take(&self, peer: &Peer, addresses: &[IpAddr]) -> Option<(IpAddr, Connection)> {
        let fits = |entry: &Entry| entry.peer == *peer && addresses.contains(&entry.address);
        let mut unused = self.unused();
        let mut found = None;
        while let Some(place) = unused.connections.iter().rposition(fits) {
            let mut entry = unused.connections.remove(place)?;
            if self.serves(&mut entry) {
                found = Some((entry.address, entry.connection));
                break;
            }
        }
        meters::kept(unused.connections.len());
        found
    }

    /// Keeps a connection that is fit for another request.
    pub(crate) fn put(self: &Arc<Self>, peer: Peer, address: IpAddr, connection: Connection) {
        let mut entry = Entry {
            peer,
            address,
            connection,
        };
        if self.most == 0 || !self.serves(&mut entry) {
            return;
        }
        let mut unused = self.unused();
        while unused.connections.len() >= self.most {
            unused.connections.pop_front();
        }
        unused.connections.push_back(entry);
        meters::kept(unused.connections.len());
        if !unused.swept {
            unused.swept = true;
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    fn serves(&self, entry: &mut Entry) -> bool {
        entry.connection.opened().elapsed() < self.longest && entry.connection.is_open()
    }

    /// Drops what is of no more use. False when nothing is left to look after.
    fn sweep(&self) -> bool {
        let mut unused = self.unused();
        unused.connections.retain_mut(|entry| self.serves(entry));
        unused.swept = !unused.connections.is_empty();
        meters::kept(unused.connections.len());
        unused.swept
    }

    /// A panic elsewhere leaves the list whole: each change of it is one step.
    fn unused(&self) -> MutexGuard<'_, Unused> {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.unused().connections.len()
    }
}

/// Receivers close connections at any time, and old ones have to go though no delivery comes along.
async fn sweep(kept: Weak<Kept>) {
    loop {
        sleep(SWEEP).await;
        match kept.upgrade() {
            Some(kept) if kept.sweep() => {}
            _ => return,
        }
    }
}
