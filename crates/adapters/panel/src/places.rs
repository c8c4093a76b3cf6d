//! What one client may take of the panel at a time.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use kernel::SellerId;
use parking_lot::Mutex;

/// How many passwords of one network may be compared or hashed, or wait for it, at a time. There are 64 such
/// places, and the addresses of one client must not take them all: once half are taken, a network has one at a time.
const PASSWORDS_OF_ONE: usize = 8;
const HALF_OF_PASSWORDS: usize = 32;
/// Forms of more than [`SMALL_FORM`] bytes of one seller that are read at once.
const LARGE_FORMS_OF_ONE: usize = 2;
/// In bytes: every form but the longest of an application is smaller.
pub(crate) const SMALL_FORM: usize = 16 * 1024;

/// The places of one process; shared by its server threads.
#[derive(Clone, Default)]
pub struct Places {
    passwords: Taken<Network>,
    large_forms: Taken<SellerId>,
    /// By the address that was entered.
    links: Taken<String>,
}

/// One pointer for each key; whoever has a place has a clone of it.
type Taken<K> = Arc<Mutex<HashMap<K, Place>>>;

/// A place; given up when it is dropped.
pub(crate) type Place = Arc<()>;

/// The first three bytes of an IPv4 address, or groups of an IPv6 address: what a client that has more than one
/// address usually has.
type Network = [u16; 3];

impl Places {
    /// None if the network of this address has taken its places.
    pub(crate) fn password(&self, client: IpAddr) -> Option<Place> {
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
        take(&self.passwords, network, |taken| {
            if taken < HALF_OF_PASSWORDS {
                PASSWORDS_OF_ONE
            } else {
                1
            }
        })
    }

    /// None if the seller has as many.
    pub(crate) fn large_form(&self, seller: SellerId) -> Option<Place> {
        take(&self.large_forms, seller, |_| LARGE_FORMS_OF_ONE)
    }

    /// None while another link for this address is made.
    pub(crate) fn link(&self, email: &str) -> Option<Place> {
        take(&self.links, email.to_lowercase(), |_| 1)
    }
}

/// Takes a place. `most` maps the number of places taken to how many one key may have. Keys without holders go first; few
/// requests hold places at a time, so few keys are there.
fn take<K: Eq + Hash>(
    taken: &Mutex<HashMap<K, Place>>,
    of: K,
    most: impl FnOnce(usize) -> usize,
) -> Option<Place> {
    let mut taken = taken.lock();
    taken.retain(|_, place| Arc::strong_count(place) > 1);
    let most = most(taken.values().map(|place| Arc::strong_count(place) - 1).sum());
    let place = taken.entry(of).or_default();
    (Arc::strong_count(place) <= most).then(|| Arc::clone(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_few_places_for_passwords() {
        let places = Places::default();
        for (network, other) in [("192.0.2.", "192.0.3.1"), ("2001:db8:0:1::", "2001:db8:1::1")] {
            let of = |n: usize| places.password(format!("{network}{n}").parse().unwrap());
            let mut taken: Vec<_> = (1..=PASSWORDS_OF_ONE).map(|n| of(n).unwrap()).collect();
            assert!(of(100).is_none());
            assert!(places.password(other.parse().unwrap()).is_some());
            taken.pop();
            taken.push(of(100).unwrap());
        }
        // What some networks have not taken is for others.
        let of = |network: usize| places.password(format!("198.51.{network}.1").parse().unwrap());
        let taken: Vec<_> = (0..).map_while(|n| of(n / PASSWORDS_OF_ONE)).collect();
        assert_eq!(taken.len(), HALF_OF_PASSWORDS + 1);
        let _one = of(99).unwrap();
        assert!(of(99).is_none() && of(98).is_some());
        drop(taken);
        assert!(of(99).is_some());
        assert_eq!(places.passwords.lock().len(), 1);
    }

    #[test]
    fn one_link_is_made_for_an_address_at_a_time() {
        let places = Places::default();
        let place = places.link("Shop@example.com").unwrap();
        assert!(places.link("shop@EXAMPLE.com").is_none() && places.link("other@example.com").is_some());
        drop(place);
        assert!(places.link("shop@example.com").is_some());
    }
}
