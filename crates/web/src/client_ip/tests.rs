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
        ("198.51.100.7", vec![("forwarded", "for=192.0.2.1")], true),
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
        (vec!["192.0.2.1, unknown"], "10.0.0.1"),
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
    assert_eq!(
        behind(&[("forwarded", "for=6.6.6.6"), (XFF, "192.0.2.1")]),
        "192.0.2.1"
    );
}

#[test]
fn forwarded_follows_its_grammar() {
    for (value, expected) in [
        ("for=192.0.2.1", "192.0.2.1"),
        (
            "proto=https;FOR=\"[2001:db8::1]:4711\";by=10.0.0.2",
            "2001:db8::1",
        ),
        (
            "for=6.6.6.6, for=192.0.2.1;host=\"a,for=6.6.6.6;x=\"",
            "192.0.2.1",
        ),
        ("for=192.0.2.1;host=\"a\\\",for=6.6.6.6\"", "192.0.2.1"),
        ("for=192.0.2.1, for=_hidden", "10.0.0.1"),
        ("for=\"", "10.0.0.1"),
        ("for=\"x, for=192.0.2.1;host=\"\\\",for=6.6.6.6\"", "10.0.0.1"),
        ("for=192.0.2.1;for=6.6.6.6", "10.0.0.1"),
        ("proto=https", "10.0.0.1"),
        ("for=\"192.0.2.1:_ANY.port-1\"", "192.0.2.1"),
        ("for=\"[2001:db8::1]:_p\"", "2001:db8::1"),
    ] {
        assert_eq!(behind(&[("forwarded", value)]), expected, "{value}");
    }
    let no_addresses = "192.0.2.1:_|192.0.2.1:_a b|192.0.2.1:|192.0.2.1:65536|_gazonk|_gazonk:4711|_192.0.2.1:_x|unknown|\
        unknown:80|[2001:db8::1|2001:db8::1]:80|[2001:db8::1%eth0]|192.0.2|192.0.2.01|";
    for node in no_addresses.split('|') {
        let value = format!("for=6.6.6.6, for=\"{node}\"");
        assert_eq!(behind(&[("forwarded", &value)]), "10.0.0.1", "{value}");
    }
    let lines = [
        ("forwarded", "for=6.6.6.6, for=\"[2001:db8::9]:80\""),
        ("forwarded", "for=\"[2001:db8::5]\";proto=https"),
        (
            "forwarded",
            "for=10.3.3.3:8080;by=\"[2001:db8::5]\", for=\"10.4.4.4:_edge\"",
        ),
    ];
    assert_eq!(behind(&lines), "2001:db8::9");
    // Every hop is a trusted proxy, so the farthest one counts as the client.
    assert_eq!(behind(&lines[1..]), "2001:db8::5");
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
        // Unbalanced quotes make a line unreadable, so that the proxy itself counts as the client.
        let found = behind(&[("forwarded", &format!("{forged}, for=192.0.2.1"))]);
        prop_assert!(["192.0.2.1", "10.0.0.1"].contains(&found.as_str()), "{}", found);
    }
}
