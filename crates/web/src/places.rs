//! What callers hold at a time, counted by who they are.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

/// The places of one process; clones share them. One pointer for each key; whoever has a place has a clone of it.
#[derive(Clone)]
pub struct Places<K>(Arc<Mutex<HashMap<K, Place>>>);

/// A place; given up when it is dropped.
pub type Place = Arc<()>;

impl<K> Default for Places<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Clone + Eq + Hash> Places<K> {
    /// Takes a place; None if the key has as many as it may. `most` maps the number of places taken to how many one
    /// key may have. Keys without holders go first; few requests hold places at a time, so few keys are there.
    pub fn take(&self, of: K, most: impl FnOnce(usize) -> usize) -> Option<Place> {
        let mut taken = self.0.lock();
        taken.retain(|_, place| Arc::strong_count(place) > 1);
        let most = most(taken.values().map(|place| Arc::strong_count(place) - 1).sum());
        let place = taken.entry(of).or_default();
        (Arc::strong_count(place) <= most).then(|| Arc::clone(place))
    }

    /// The keys that have places.
    pub fn holders(&self) -> Vec<K> {
        let taken = self.0.lock();
        let held = taken.iter().filter(|(_, place)| Arc::strong_count(place) > 1);
        held.map(|(of, _)| of.clone()).collect()
    }
}

/// The /24 of an IPv4 address or the /48 of an IPv6 one: what a client with several addresses usually has.
pub type Network = [u16; 3];

pub fn network(client: IpAddr) -> Network {
    match client.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            [a, b, c].map(u16::from)
        }
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            [a, b, c]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_holders_are_forgotten() {
        let places = Places::default();
        drop(
            (0..100)
                .map(|n| places.take(n, |_| 1).unwrap())
                .collect::<Vec<_>>(),
        );
        let _one = places.take(100, |_| 1);
        assert_eq!(places.0.lock().len(), 1);
    }
}
