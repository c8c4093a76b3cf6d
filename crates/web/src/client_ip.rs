//! The client's address: that of the peer, or the one that trusted proxies report.

#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};

use actix_web::http::header::{FORWARDED, HeaderMap, HeaderValue, X_FORWARDED_FOR};
use ipnet::{AddrParseError, IpNet, Ipv4Net};

/// The networks whose hosts are trusted to report their clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

/// The address of a client; IPv4-mapped IPv6 becomes IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    pub address: IpAddr,
    /// An untrusted peer sent `X-Forwarded-For` or `Forwarded`, which was ignored. That is right if a client
    /// forged it and wrong if a proxy is missing from the configuration, so it is worth a warning.
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
    /// cannot be trusted. An unreadable hop ends the search at the one before it. `Forwarded` (RFC 7239)
    /// counts only without `X-Forwarded-For`: a proxy that knows only the latter would pass on whatever a
    /// client wrote into the former.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> ClientAddress {
        let peer = peer.to_canonical();
        if !self.trusts(peer) {
            return ClientAddress {
                address: peer,
                untrusted_forwarding: names_hops(headers),
            };
        }
        let mut address = peer;
        for hop in hops_nearest_first(headers) {
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

fn names_hops(headers: &HeaderMap) -> bool {
    headers.contains_key(X_FORWARDED_FOR) || headers.contains_key(FORWARDED)
}

/// The addresses, nearest hop first; `None` for an entry that is not an address.
fn hops_nearest_first(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let plain = headers.contains_key(X_FORWARDED_FOR);
    let values = headers.get_all(if plain { X_FORWARDED_FOR } else { FORWARDED });
    let read = if plain { x_forwarded_for } else { forwarded };
    let mut hops: Vec<_> = values
        .flat_map(|value| text(value).map_or_else(|| vec![None], read))
        .collect();
    hops.reverse();
    hops
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()
}

fn x_forwarded_for(value: &str) -> Vec<Option<IpAddr>> {
    value.split(',').map(|hop| address(hop.trim())).collect()
}

/// RFC 7239 §4. A value with unbalanced quotes, or with an escape outside quotes, is unreadable as a whole:
/// guessing where its elements end would let a client insert one.
fn forwarded(value: &str) -> Vec<Option<IpAddr>> {
    let Some(elements) = split(value, ',') else {
        return vec![None];
    };
    elements.into_iter().map(forwarded_for).collect()
}

fn forwarded_for(element: &str) -> Option<IpAddr> {
    let pairs = split(element, ';')?;
    let mut named = pairs.into_iter().filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        name.eq_ignore_ascii_case("for").then_some(value)
    });
    let (Some(node), None) = (named.next(), named.next()) else {
        return None;
    };
    let quoted = node.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    address(without_hidden_port(quoted.unwrap_or(node)))
}

/// A node without its port, if that is an obfuscated port of the proxy (RFC 7239 §6.3).
fn without_hidden_port(node: &str) -> &str {
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let hidden = |port: &str| port.len() > 1 && port.starts_with('_') && port.bytes().all(in_name);
    match node.rsplit_once(':') {
        Some((name, port)) if hidden(port) => name,
        _ => node,
    }
}

/// Splits outside quoted strings; `None` if the quoting is broken.
fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut quoted, mut escaped, mut broken) = (false, false, false);
    let parts = text
        .split(|c: char| {
            let after_escape = std::mem::take(&mut escaped);
            match c {
                _ if after_escape => {}
                '\\' if quoted => escaped = true,
                '\\' => broken = true,
                '"' => quoted = !quoted,
                _ => return c == separator && !quoted,
            }
            false
        })
        .collect();
    (!broken && !quoted).then_some(parts)
}

/// An address with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`,
/// `[2001:db8::1]:80`.
fn address(node: &str) -> Option<IpAddr> {
    let bare = node
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(node);
    let alone = bare.parse::<IpAddr>().ok();
    let address = alone.or_else(|| node.parse::<SocketAddr>().ok().map(|with_port| with_port.ip()))?;
    Some(address.to_canonical())
}
