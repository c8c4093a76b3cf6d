//! Which IP addresses belong to the public internet.
//!
//! Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890 and what updates it), RFC 4291, RFC 6052.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 networks that are not globally routable, or that host no public service: first address and prefix length.
const SPECIAL_V4: [(Ipv4Addr, u32); 19] = [
    (Ipv4Addr::UNSPECIFIED, 8),            // "this network", RFC 791
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private use, RFC 1918
    (Ipv4Addr::new(100, 64, 0, 0), 10),    // carrier-grade NAT, RFC 6598
    (Ipv4Addr::new(127, 0, 0, 0), 8),      // loopback, RFC 1122
    (Ipv4Addr::new(168, 63, 129, 16), 32), // the metadata service of a large cloud
    (Ipv4Addr::new(169, 254, 0, 0), 16),   // link-local, RFC 3927
    (Ipv4Addr::new(172, 16, 0, 0), 12),    // private use, RFC 1918
    (Ipv4Addr::new(192, 0, 0, 0), 24),     // protocol assignments, RFC 6890
    (Ipv4Addr::new(192, 0, 2, 0), 24),     // documentation, RFC 5737
    (Ipv4Addr::new(192, 31, 196, 0), 24),  // AS112, RFC 7535
    (Ipv4Addr::new(192, 52, 193, 0), 24),  // AMT, RFC 7450
    (Ipv4Addr::new(192, 88, 99, 0), 24),   // 6to4 relay anycast, RFC 7526
    (Ipv4Addr::new(192, 168, 0, 0), 16),   // private use, RFC 1918
    (Ipv4Addr::new(192, 175, 48, 0), 24),  // AS112, RFC 7534
    (Ipv4Addr::new(198, 18, 0, 0), 15),    // benchmarking, RFC 2544
    (Ipv4Addr::new(198, 51, 100, 0), 24),  // documentation, RFC 5737
    (Ipv4Addr::new(203, 0, 113, 0), 24),   // documentation, RFC 5737
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast, RFC 5771
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved and broadcast, RFC 1112
];

/// The only IPv6 block from which global unicast addresses are allocated.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Networks inside [`GLOBAL_V6`] that are special nevertheless.
const SPECIAL_V6: [(Ipv6Addr, u32); 5] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, Teredo among them, RFC 2928, RFC 4380
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation, RFC 3849
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4, RFC 3056
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48), // AS112, RFC 7534
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation, RFC 9637
];

/// True if the address is globally routable unicast. Addresses that embed another one (IPv4-mapped, NAT64, 6to4,
/// Teredo) are not public, whatever they embed.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !SPECIAL_V4
            .iter()
            .any(|(network, length)| v4_in(v4, *network, *length)),
        IpAddr::V6(v6) => {
            v6_in(v6, GLOBAL_V6.0, GLOBAL_V6.1)
                && !SPECIAL_V6
                    .iter()
                    .any(|(network, length)| v6_in(v6, *network, *length))
        }
    }
}

fn v4_in(address: Ipv4Addr, network: Ipv4Addr, length: u32) -> bool {
    (address.to_bits() ^ network.to_bits()).leading_zeros() >= length
}

fn v6_in(address: Ipv6Addr, network: Ipv6Addr, length: u32) -> bool {
    (address.to_bits() ^ network.to_bits()).leading_zeros() >= length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_every_special_network_are_refused() {
        for (network, length) in SPECIAL_V4 {
            let host_bits = u32::MAX.checked_shr(length).unwrap_or(0);
            let last = Ipv4Addr::from_bits(network.to_bits() | host_bits);
            assert!(!is_public(network.into()) && !is_public(last.into()));
        }
        for (network, length) in SPECIAL_V6 {
            let host_bits = u128::MAX.checked_shr(length).unwrap_or(0);
            let last = Ipv6Addr::from_bits(network.to_bits() | host_bits);
            assert!(!is_public(network.into()) && !is_public(last.into()));
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
