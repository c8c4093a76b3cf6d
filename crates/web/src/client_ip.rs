//! Whose request it is, by address: the peer's, or what trusted proxies say about whom they speak for.

mod hops;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use actix_web::http::header::HeaderMap;
use ipnet::{AddrParseError, IpNet, Ipv4Net};

/// The networks whose hosts are believed in what they say about their clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

/// The address of a client, IPv4 never in the guise of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    /// The address itself.
    pub address: IpAddr,
    /// A peer that is not trusted sent `X-Forwarded-For` or `Forwarded`. It was not believed, which is right for a
    /// client's forgery and wrong for a proxy that was left out of the configuration: worth a warning.
    pub untrusted_forwarding: bool,
}

impl TrustedProxies {
    /// Trusts the hosts of these networks and no others.
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self(networks.into_iter().map(canonical).collect())
    }

    /// Reads one line of configuration: an address or a CIDR range (D124).
    pub fn parse_range(text: &str) -> Result<IpNet, AddrParseError> {
        text.parse::<IpAddr>().map(IpNet::from).or_else(|_| text.parse())
    }

    /// The client behind `peer`.
    ///
    /// The hops are walked from the nearest on, as long as they are trusted: the first that is not is the client,
    /// since whatever it says of others is hearsay. A hop that cannot be read ends the walk at the one before it.
    /// `Forwarded` (RFC 7239) counts only without an `X-Forwarded-For`: a proxy that knows only the latter would
    /// pass on whatever a client wrote into the former.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> ClientAddress {
        let peer = peer.to_canonical();
        if !self.trusts(peer) {
            return ClientAddress {
                address: peer,
                untrusted_forwarding: hops::are_named(headers),
            };
        }
        let mut address = peer;
        for hop in hops::nearest_first(headers) {
            let Some(hop) = hop else {
                break;
            };
            address = hop;
            if !self.trusts(hop) {
                break;
            }
        }
        ClientAddress {
            address,
            untrusted_forwarding: false,
        }
    }

    /// Whether this host is one of them.
    pub fn trusts(&self, host: IpAddr) -> bool {
        let host = host.to_canonical();
        self.0.iter().any(|network| network.contains(&host))
    }
}

impl ClientAddress {
    /// What limits per address count by: an IPv4 address, or the /64 of an IPv6 one, of which a single customer
    /// commonly holds all (D67).
    pub fn limited_as(&self) -> IpNet {
        let length = if self.address.is_ipv6() { 64 } else { 32 };
        IpNet::new(self.address, length).map_or_else(|_| self.address.into(), |network| network.trunc())
    }
}

/// A network of IPv4-mapped addresses as the IPv4 network it stands for.
fn canonical(network: IpNet) -> IpNet {
    let IpNet::V6(mapped) = network else {
        return network;
    };
    let address = mapped.addr().to_ipv4_mapped();
    let length = mapped.prefix_len().checked_sub(96);
    match address
        .zip(length)
        .and_then(|(address, length)| Ipv4Net::new(address, length).ok())
    {
        Some(plain) => plain.into(),
        None => network,
    }
}
