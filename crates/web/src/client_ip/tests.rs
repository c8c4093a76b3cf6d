//! Tests of the client's address.

use actix_web::http::header::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;

const XFF: &str = "x-forwarded-for";

fn proxies(ranges: &[&str]) -> TrustedProxies {
    let ranges = ranges
        .iter()
        .map(|range| TrustedProxies::parse_range(range).unwrap());
    TrustedProxies::new(ranges)
}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let value = HeaderValue::from_str(value).unwrap();
        headers.append(HeaderName::from_static(name), value);
    }
    headers
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The client behind 10.0.0.1, with 10.0.0.0/8 and one IPv6 host trusted.
fn behind(lines: &[(&'static str, &str)]) -> String {
    let client = proxies(&["10.0.0.0/8", "2001:db8::5"]).client(ip("10.0.0.1"), &headers(lines));
    client.address.to_string()
}

#[test]
fn an_untrusted_peer_is_the_client() {
    let trusted = proxies(&["10.0.0.0/8", "2001:db8:ffff::/48"]);
    for (peer, lines, untrusted_forwarding) in [
        ("198.51.100.7", vec![], false),
        ("198.51.100.7", vec![(XFF, "192.0.2.1")], true),
        ("198.51.100.7", vec![(XFF, "")], true),
        ("2001:db8:fffe::1", vec![(XFF, "192.0.2.1")], true),
    ] {
        let expected = ClientAddress {
            address: ip(peer),
            untrusted_forwarding,
        };
        assert_eq!(trusted.client(ip(peer), &headers(&lines)), expected, "{lines:?}");
    }
}

#[test]
fn the_nearest_untrusted_hop_is_the_client() {
    for (lines, expected) in [
        (vec![], "10.0.0.1"),
        (vec!["192.0.2.1"], "192.0.2.1"),
        (vec!["6.6.6.6, 192.0.2.1 , 10.9.9.9,2001:db8::5"], "192.0.2.1"),
        (vec!["6.6.6.6", "192.0.2.1", "10.9.9.9"], "192.0.2.1"),
        (vec!["10.1.1.1, 10.2.2.2"], "10.1.1.1"),
        (vec!["192.0.2.1:4711"], "192.0.2.1"),
        (vec!["[2001:db8::1]"], "2001:db8::1"),
        (vec!["[2001:db8::1]:80"], "2001:db8::1"),
        (vec!["2001:db8::1"], "2001:db8::1"),
        (vec!["::ffff:192.0.2.1"], "192.0.2.1"),
        // An unreadable hop ends the search.
        (vec!["192.0.2.1, , 10.3.3.3"], "10.3.3.3"),
    ] {
        let lines: Vec<_> = lines.into_iter().map(|line| (XFF, line)).collect();
        assert_eq!(behind(&lines), expected, "{lines:?}");
    }
    let trusted = proxies(&["::ffff:10.0.0.0/104", "2001:db8:ffff::/48"]);
    for (peer, hops, expected) in [
        ("::ffff:10.0.0.1", "192.0.2.1", "192.0.2.1"),
        (
            "2001:db8:ffff::1",
            "2001:db8:1::7, 2001:db8:ffff::2",
            "2001:db8:1::7",
        ),
    ] {
        let client = trusted.client(ip(peer), &headers(&[(XFF, hops)]));
        assert_eq!(client.address, ip(expected));
    }
    let unreadable = "unknown|192.0.2|192.0.2.01|192.0.2.1:|192.0.2.1:65536|[2001:db8::1|[2001:db8::1%eth0]|";
    for hop in unreadable.split('|') {
        assert_eq!(behind(&[(XFF, &format!("6.6.6.6, {hop}"))]), "10.0.0.1", "{hop}");
    }
}

#[test]
fn ranges_are_addresses_or_cidr() {
    let parsed = |text| {
        TrustedProxies::parse_range(text)
            .map(|range| range.to_string())
            .ok()
    };
    assert_eq!(parsed("10.0.0.1").as_deref(), Some("10.0.0.1/32"));
    assert_eq!(parsed("fd00::/8").as_deref(), Some("fd00::/8"));
    assert_eq!((parsed("proxy.example"), parsed("10.0.0.0/33")), (None, None));
}

proptest! {
    #[test]
    fn a_client_cannot_forge_its_address(forged in "[ -~]{0,40}", client: [u8; 4]) {
        let client = IpAddr::from(client);
        prop_assume!(!matches!(client, IpAddr::V4(v4) if v4.octets().starts_with(&[10])));
        let line = format!("{forged}, {client}");
        prop_assert_eq!(behind(&[(XFF, &line)]), client.to_string());
    }
}
