//! Which IP addresses belong to the public internet.
//!
//! Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890 and what updates it), RFC
//! 4291, RFC 6052.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// The only IPv6 block from which global unicast addresses are allocated.
const GLOBAL_V6: IpNet = v6([0x2000, 0, 0], 3);

/// Networks that are not globally routable, or that host no public service: of IPv4, and of IPv6 inside
/// [`GLOBAL_V6`].
const SPECIAL: [IpNet; 24] = [
    v4([0, 0, 0, 0], 8),            // "this network", RFC 791
    v4([10, 0, 0, 0], 8),           // private use, RFC 1918
    v4([100, 64, 0, 0], 10),        // carrier-grade NAT, RFC 6598
    v4([127, 0, 0, 0], 8),          // loopback, RFC 1122
    v4([168, 63, 129, 16], 32),     // the metadata service of a large cloud
    v4([169, 254, 0, 0], 16),       // link-local, RFC 3927
    v4([172, 16, 0, 0], 12),        // private use, RFC 1918
    v4([192, 0, 0, 0], 24),         // protocol assignments, RFC 6890
    v4([192, 0, 2, 0], 24),         // documentation, RFC 5737
    v4([192, 31, 196, 0], 24),      // AS112, RFC 7535
    v4([192, 52, 193, 0], 24),      // AMT, RFC 7450
    v4([192, 88, 99, 0], 24),       // 6to4 relay anycast, RFC 7526
    v4([192, 168, 0, 0], 16),       // private use, RFC 1918
    v4([192, 175, 48, 0], 24),      // AS112, RFC 7534
    v4([198, 18, 0, 0], 15),        // benchmarking, RFC 2544
    v4([198, 51, 100, 0], 24),      // documentation, RFC 5737
    v4([203, 0, 113, 0], 24),       // documentation, RFC 5737
    v4([224, 0, 0, 0], 4),          // multicast, RFC 5771
    v4([240, 0, 0, 0], 4),          // reserved and broadcast, RFC 1112
    v6([0x2001, 0, 0], 23),         // protocol assignments, Teredo among them, RFC 2928, RFC 4380
    v6([0x2001, 0xdb8, 0], 32),     // documentation, RFC 3849
    v6([0x2002, 0, 0], 16),         // 6to4, RFC 3056
    v6([0x2620, 0x4f, 0x8000], 48), // AS112, RFC 7534
    v6([0x3fff, 0, 0], 20),         // documentation, RFC 9637
];

const fn v4([a, b, c, d]: [u8; 4], length: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), length)
}

/// The other groups are zero.
const fn v6([a, b, c]: [u16; 3], length: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), length)
}

/// True if the address is globally routable unicast. Addresses that embed another one (IPv4-mapped, NAT64,
/// 6to4, Teredo) are not public, whatever they embed.
pub fn is_public(address: IpAddr) -> bool {
    (address.is_ipv4() || GLOBAL_V6.contains(&address))
        && !SPECIAL.iter().any(|network| network.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_every_special_network_are_refused() {
        for network in SPECIAL {
            assert!(!is_public(network.network()) && !is_public(network.broadcast()));
        }
    }

    #[test]
    fn known_addresses() {
        let public =
            "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 172.32.0.0 198.20.0.0 223.255.255.255
            2606:4700:4700::1111 2a00:1450:4001::200e 2001:4860:4860::8888";
        for public in public.split_whitespace() {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        let special = "0.0.0.0 127.0.0.1 255.255.255.255 169.254.169.254 :: ::1 ::ffff:1.1.1.1 ::1.1.1.1
            64:ff9b::1.1.1.1 64:ff9b:1::1 100::1 fc00::1 fe80::1 fec0::1 ff02::1 2002:101:101::1 2001::1 5f00::1 4000::1";
        for special in special.split_whitespace() {
            assert!(!is_public(special.parse().unwrap()), "{special}");
        }
    }
}
