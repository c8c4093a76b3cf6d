//! Tests of the client's address.

use actix_web::http::header::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;

fn proxies(ranges: &[&str]) -> TrustedProxies {
    TrustedProxies::new(
        ranges
            .iter()
            .map(|range| TrustedProxies::parse_range(range).unwrap()),
    )
}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        );
    }
    headers
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The client behind 10.0.0.1, with 10.0.0.0/8 and one IPv6 host trusted.
fn behind(lines: &[(&'static str, &str)]) -> IpAddr {
    proxies(&["10.0.0.0/8", "2001:db8::5"])
        .client(ip("10.0.0.1"), &headers(lines))
        .address
}

const XFF: &str = "x-forwarded-for";

#[test]
fn an_untrusted_peer_is_the_client_whatever_it_says() {
    let trusted = proxies(&["10.0.0.0/8"]);
    let peer = ip("198.51.100.7");
    let plain = trusted.client(peer, &headers(&[]));
    assert_eq!(
        plain,
        ClientAddress {
            address: peer,
            untrusted_forwarding: false
        }
    );
    for line in [(XFF, "192.0.2.1"), ("forwarded", "for=192.0.2.1"), (XFF, "")] {
        let forging = trusted.client(peer, &headers(&[line]));
        assert_eq!(
            forging,
            ClientAddress {
                address: peer,
                untrusted_forwarding: true
            }
        );
    }
}

#[test]
fn the_nearest_untrusted_hop_is_the_client() {
    assert_eq!(behind(&[]), ip("10.0.0.1"));
    assert_eq!(behind(&[(XFF, "192.0.2.1")]), ip("192.0.2.1"));
    assert_eq!(
        behind(&[(XFF, "6.6.6.6, 192.0.2.1 , 10.9.9.9,2001:db8::5")]),
        ip("192.0.2.1")
    );
    assert_eq!(
        behind(&[(XFF, "6.6.6.6"), (XFF, "192.0.2.1"), (XFF, "10.9.9.9")]),
        ip("192.0.2.1")
    );
    assert_eq!(behind(&[(XFF, "10.1.1.1, 10.2.2.2")]), ip("10.1.1.1"));
}

#[test]
fn ports_brackets_and_mapped_addresses_are_understood() {
    for (hop, address) in [
        ("192.0.2.1:4711", "192.0.2.1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:80", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
    ] {
        assert_eq!(behind(&[(XFF, hop)]), ip(address), "{hop}");
    }
    let trusted = proxies(&["::ffff:10.0.0.0/104"]);
    let client = trusted.client(ip("::ffff:10.0.0.1"), &headers(&[(XFF, "192.0.2.1")]));
    assert_eq!(client.address, ip("192.0.2.1"));
}

#[test]
fn what_cannot_be_read_ends_the_walk() {
    assert_eq!(behind(&[(XFF, "192.0.2.1, unknown")]), ip("10.0.0.1"));
    assert_eq!(behind(&[(XFF, "192.0.2.1, , 10.3.3.3")]), ip("10.3.3.3"));
    assert_eq!(
        behind(&[("forwarded", "for=192.0.2.1, for=_hidden")]),
        ip("10.0.0.1")
    );
}

#[test]
fn forwarded_is_read_by_its_grammar() {
    for (value, address) in [
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
        ("for=\"", "10.0.0.1"),
        ("for=\"x, for=192.0.2.1;host=\"\\\",for=6.6.6.6\"", "10.0.0.1"),
        ("for=192.0.2.1;for=6.6.6.6", "10.0.0.1"),
        ("proto=https", "10.0.0.1"),
    ] {
        assert_eq!(behind(&[("forwarded", value)]), ip(address), "{value}");
    }
}

#[test]
fn several_proxies_may_speak_in_several_lines() {
    let lines = [
        ("forwarded", "for=6.6.6.6, for=\"[2001:db8::9]:80\""),
        ("forwarded", "for=\"[2001:db8::5]\";proto=https"),
        (
            "forwarded",
            "for=10.3.3.3:8080;by=\"[2001:db8::5]\", for=\"10.4.4.4:_edge\"",
        ),
    ];
    assert_eq!(behind(&lines), ip("2001:db8::9"));
    // Every hop is a trusted proxy, so the farthest one counts as the client.
    assert_eq!(behind(&lines[1..]), ip("2001:db8::5"));
    let ipv6 = proxies(&["2001:db8:ffff::/48"]);
    let given = headers(&[(XFF, "2001:db8:1::7, 2001:db8:ffff::2")]);
    assert_eq!(
        ipv6.client(ip("2001:db8:ffff::1"), &given).address,
        ip("2001:db8:1::7")
    );
    // The same headers from a peer outside the network are ignored.
    let beyond = ipv6.client(ip("2001:db8:fffe::1"), &given);
    assert_eq!(
        (beyond.address, beyond.untrusted_forwarding),
        (ip("2001:db8:fffe::1"), true)
    );
}

#[test]
fn hidden_names_tell_no_address_and_hidden_ports_do_no_harm() {
    for (node, address) in [
        ("192.0.2.1:_ANY.port-1", "192.0.2.1"),
        ("[2001:db8::1]:_p", "2001:db8::1"),
        ("192.0.2.1:_", "10.0.0.1"),
        ("192.0.2.1:_a b", "10.0.0.1"),
        ("192.0.2.1:", "10.0.0.1"),
        ("192.0.2.1:65536", "10.0.0.1"),
        ("_gazonk", "10.0.0.1"),
        ("_gazonk:4711", "10.0.0.1"),
        ("_192.0.2.1:_x", "10.0.0.1"),
        ("unknown", "10.0.0.1"),
        ("unknown:80", "10.0.0.1"),
        ("[2001:db8::1", "10.0.0.1"),
        ("2001:db8::1]:80", "10.0.0.1"),
        ("[2001:db8::1%eth0]", "10.0.0.1"),
        ("192.0.2", "10.0.0.1"),
        ("192.0.2.01", "10.0.0.1"),
        ("", "10.0.0.1"),
    ] {
        let value = format!("for=6.6.6.6, for=\"{node}\"");
        assert_eq!(behind(&[("forwarded", &value)]), ip(address), "{value}");
    }
}

#[test]
fn x_forwarded_for_goes_before_forwarded() {
    let lines = [("forwarded", "for=6.6.6.6"), (XFF, "192.0.2.1")];
    assert_eq!(behind(&lines), ip("192.0.2.1"));
}

#[test]
fn ranges_are_addresses_or_cidr() {
    assert_eq!(
        TrustedProxies::parse_range("10.0.0.1").unwrap().to_string(),
        "10.0.0.1/32"
    );
    assert_eq!(
        TrustedProxies::parse_range("fd00::/8").unwrap().to_string(),
        "fd00::/8"
    );
    assert!(TrustedProxies::parse_range("proxy.example").is_err());
    assert!(TrustedProxies::parse_range("10.0.0.0/33").is_err());
}

proptest! {
    #[test]
    fn what_a_client_writes_before_the_proxys_hop_changes_nothing(forged in "[ -~]{0,40}", client: [u8; 4]) {
        let client = IpAddr::from(client);
        prop_assume!(!matches!(client, IpAddr::V4(v4) if v4.octets().starts_with(&[10])));
        let line = format!("{forged}, {client}");
        prop_assert_eq!(behind(&[(XFF, &line)]), client);
    }

    #[test]
    fn a_forged_forwarded_gives_the_client_or_the_proxy_never_another(forged in "[ -~]{0,40}") {
        let line = format!("{forged}, for=192.0.2.1");
        let found = behind(&[("forwarded", &line)]);
        prop_assert!(found == ip("192.0.2.1") || found == ip("10.0.0.1"), "{}", found);
    }
}
