//! The client's address: that of the peer, or the one that trusted proxies report.

#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};

use actix_web::http::header::{HeaderMap, X_FORWARDED_FOR};
use ipnet::{AddrParseError, IpNet, Ipv4Net};

/// The networks whose hosts are trusted to report their clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

/// The address of a client; IPv4-mapped IPv6 becomes IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    pub address: IpAddr,
    /// An untrusted peer sent `X-Forwarded-For`, which was ignored. That is right if a client forged it and
    /// wrong if a proxy is missing from the configuration, so it is worth a warning.
    pub untrusted_forwarding: bool,
}

impl TrustedProxies {
    /// Trusts the hosts of these networks and no others.
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self(networks.into_iter().map(canonical).collect())
    }

    /// Parses one line of configuration: an address or a CIDR range (D124).
    pub fn parse_range(text: &str) -> Result<IpNet, AddrParseError> {
        text.parse::<IpAddr>().map(IpNet::from).or_else(|_| text.parse())
    }

    /// The client behind `peer`.
    ///
    /// Hops are checked from the nearest one. The first untrusted hop is the client, because its own claims
    /// cannot be trusted. An unreadable hop ends the search at the one before it. `Forwarded` (RFC 7239) is
    /// not read.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> ClientAddress {
        let mut address = peer.to_canonical();
        let untrusted_forwarding = !self.trusts(address) && headers.contains_key(X_FORWARDED_FOR);
        for hop in hops_nearest_first(headers) {
            match hop {
                Some(hop) if self.trusts(address) => address = hop,
                _ => break,
            }
        }
        ClientAddress {
            address,
            untrusted_forwarding,
        }
    }

    /// Whether this host is in a trusted network.
    pub fn trusts(&self, host: IpAddr) -> bool {
        let host = host.to_canonical();
        self.0.iter().any(|network| network.contains(&host))
    }
}

/// A network of IPv4-mapped addresses as its IPv4 network.
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

/// The addresses, nearest hop first; `None` for an entry that is not an address.
fn hops_nearest_first(headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    let lines = headers.get_all(X_FORWARDED_FOR).rev();
    let hops = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
    hops.map(address)
}

/// An address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`,
/// `[2001:db8::1]:80`.
fn address(hop: &[u8]) -> Option<IpAddr> {
    let node = str::from_utf8(hop).ok()?.trim();
    let bare = node
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(node);
    let alone = bare.parse::<IpAddr>().ok();
    let address = alone.or_else(|| node.parse::<SocketAddr>().ok().map(|with_port| with_port.ip()))?;
    Some(address.to_canonical())
}
