//! Limits of what one client may do in the panel at a time.

use std::net::IpAddr;

use kernel::SellerId;
pub(crate) use web::places::Place;
use web::places::{self, Network, network};

use crate::page_error::{PageError, PageResult};

/// How many passwords of one network may be compared or hashed, or wait for it, at a time. There are 64 such
/// places, and the addresses of one client must not take them all: once half are taken, a network has one at a time.
const PASSWORDS_OF_ONE: usize = 8;
const HALF_OF_PASSWORDS: usize = 32;
/// Look-ups of links at a time, whoever asks: they share the strangers' connections with sign-ins.
const LINK_LOOKUPS: usize = 64;
/// Forms of more than [`SMALL_FORM`] bytes of one seller that are read at once.
const LARGE_FORMS_OF_ONE: usize = 2;
/// In bytes: every form but the longest of an application is smaller.
pub(crate) const SMALL_FORM: usize = 16 * 1024;

/// The places of one process; shared by its server threads.
#[derive(Clone, Default)]
pub struct Places {
    passwords: places::Places<Network>,
    /// Apart from `passwords`, so that guessed links use up none of their places.
    link_lookups: places::Places<Network>,
    large_forms: places::Places<SellerId>,
    /// By the address that was entered.
    links: places::Places<String>,
}

impl Places {
    /// For a password to be compared or hashed. Refused if the network of this address has taken its places.
    pub(crate) fn password(&self, client: IpAddr) -> PageResult<Place> {
        let place = self.passwords.take(network(client), most_of_one);
        place.ok_or(PageError::Busy)
    }

    /// The same for the look-up of a link, or of the account that one is mailed to; also refused while [`LINK_LOOKUPS`] of all networks are under way.
    pub(crate) fn link_lookup(&self, client: IpAddr) -> PageResult<Place> {
        let most = |taken| most_of_one(taken) * usize::from(taken < LINK_LOOKUPS);
        let place = self.link_lookups.take(network(client), most);
        place.ok_or(PageError::Busy)
    }

    /// None while [`LARGE_FORMS_OF_ONE`] of the seller's large forms are being read.
    pub(crate) fn large_form(&self, seller: SellerId) -> Option<Place> {
        self.large_forms.take(seller, |_| LARGE_FORMS_OF_ONE)
    }

    /// None while another link for this address is made.
    pub(crate) fn link(&self, email: &str) -> Option<Place> {
        self.links.take(email.to_lowercase(), |_| 1)
    }
}

const fn most_of_one(taken: usize) -> usize {
    if taken < HALF_OF_PASSWORDS {
        PASSWORDS_OF_ONE
    } else {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_few_places_for_passwords() {
        let places = Places::default();
        for (network, other) in [("192.0.2.", "192.0.3.1"), ("2001:db8:0:1::", "2001:db8:1::1")] {
            let of = |n: usize| places.password(format!("{network}{n}").parse().unwrap()).ok();
            let mut taken: Vec<_> = (1..=PASSWORDS_OF_ONE).map(|n| of(n).unwrap()).collect();
            assert!(of(100).is_none());
            assert!(places.password(other.parse().unwrap()).is_ok());
            taken.pop();
            taken.push(of(100).unwrap());
        }
        // What some networks have not taken is for others.
        let of = |network: usize| {
            places
                .password(format!("198.51.{network}.1").parse().unwrap())
                .ok()
        };
        let taken: Vec<_> = (0..).map_while(|n| of(n / PASSWORDS_OF_ONE)).collect();
        assert_eq!(taken.len(), HALF_OF_PASSWORDS + 1);
        let _one = of(99).unwrap();
        assert!(of(99).is_none() && of(98).is_some());
        drop(taken);
        assert!(of(99).is_some());
    }

    #[test]
    fn few_links_are_looked_up_at_a_time_from_however_many_networks() {
        let places = Places::default();
        let of = |network: usize| {
            places
                .link_lookup(format!("198.51.{network}.1").parse().unwrap())
                .ok()
        };
        let taken: Vec<_> = (0..100).filter_map(of).collect();
        assert_eq!(taken.len(), LINK_LOOKUPS);
        drop(taken);
        assert!(of(100).is_some());
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
