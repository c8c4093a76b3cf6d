//! What all clients together may take of the panel at a time, and what one network may take of that.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Sign-ins of one network whose passwords are compared, or wait for that: of 64 places, so that the addresses
/// of one client do not take all.
const SIGN_INS_OF_ONE: usize = 8;
/// Forms of more than [`SMALL_FORM`] bytes that are read at once.
const LARGE_FORMS: usize = 64;
/// In bytes: every form but the longest of an application is smaller.
pub(crate) const SMALL_FORM: usize = 16 * 1024;

/// The places of one process; shared by its server threads.
#[derive(Clone)]
pub struct Places {
    sign_ins: Arc<Mutex<HashMap<Network, usize>>>,
    large_forms: Arc<Semaphore>,
}

/// The first three bytes of an IPv4 address, or groups of an IPv6 address: what a client that has more than one
/// address usually has.
type Network = [u16; 3];

/// The place of a sign-in; given up when it is dropped.
pub(crate) struct SignInPlace {
    sign_ins: Arc<Mutex<HashMap<Network, usize>>>,
    network: Network,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            sign_ins: Arc::default(),
            large_forms: Arc::new(Semaphore::new(LARGE_FORMS)),
        }
    }
}

impl Places {
    /// None if the network of this address has taken its places.
    pub(crate) fn sign_in(&self, client: IpAddr) -> Option<SignInPlace> {
        let network = match client.to_canonical() {
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                [a, b, c].map(u16::from)
            }
            IpAddr::V6(address) => {
                let [a, b, c, ..] = address.segments();
                [a, b, c]
            }
        };
        let mut sign_ins = self.sign_ins.lock();
        let taken = sign_ins.entry(network).or_default();
        if *taken >= SIGN_INS_OF_ONE {
            return None;
        }
        *taken += 1;
        Some(SignInPlace {
            sign_ins: Arc::clone(&self.sign_ins),
            network,
        })
    }

    /// Waits for a place, which ends when it is dropped.
    pub(crate) async fn large_form(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.large_forms).acquire_owned().await.ok()
    }
}

impl Drop for SignInPlace {
    fn drop(&mut self) {
        if let Entry::Occupied(mut taken) = self.sign_ins.lock().entry(self.network) {
            *taken.get_mut() -= 1;
            if *taken.get() == 0 {
                taken.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_few_places_of_sign_ins() {
        let places = Places::default();
        for (network, other) in [("192.0.2.", "192.0.3.1"), ("2001:db8:0:1::", "2001:db8:1::1")] {
            let of = |n: usize| places.sign_in(format!("{network}{n}").parse().unwrap());
            let mut taken: Vec<_> = (1..=SIGN_INS_OF_ONE).map(|n| of(n).unwrap()).collect();
            assert!(of(100).is_none());
            assert!(places.sign_in(other.parse().unwrap()).is_some());
            taken.pop();
            taken.push(of(100).unwrap());
        }
        assert!(places.sign_ins.lock().is_empty());
    }
}
