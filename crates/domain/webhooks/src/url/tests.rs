//! Accepted and rejected URLs: every spelling of every special address.

mod spellings;

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use spellings::SPECIAL;

fn public(text: &str) -> Result<WebhookUrl, Invalid> {
    WebhookUrl::parse(text, AddressPolicy::Public)
}

#[test]
fn what_is_taken_is_kept_and_understood() {
    let cases = [
        ("https://example.com", "example.com", 443, "example.com", "/"),
        ("https://example.com/", "example.com", 443, "example.com", "/"),
        (
            "https://example.com?a=b",
            "example.com",
            443,
            "example.com",
            "/?a=b",
        ),
        (
            "HTTPS://Example.COM/Hook?A=%C5%BC&b=a/b?c",
            "example.com",
            443,
            "example.com",
            "/Hook?A=%C5%BC&b=a/b?c",
        ),
        (
            "https://example.com:443/a/../b",
            "example.com",
            443,
            "example.com",
            "/a/../b",
        ),
        (
            "https://example.com:8443/hook",
            "example.com",
            8443,
            "example.com:8443",
            "/hook",
        ),
        (
            "https://example.com:/hook",
            "example.com",
            443,
            "example.com",
            "/hook",
        ),
        (
            "https://example.com./hook",
            "example.com",
            443,
            "example.com",
            "/hook",
        ),
        (
            "https://my_host.example.com/a@b:c",
            "my_host.example.com",
            443,
            "my_host.example.com",
            "/a@b:c",
        ),
        (
            "https://xn--lw-fka7c.example/",
            "xn--lw-fka7c.example",
            443,
            "xn--lw-fka7c.example",
            "/",
        ),
        (
            "https://localhost.example/",
            "localhost.example",
            443,
            "localhost.example",
            "/",
        ),
        ("https://1.1.1.1/", "1.1.1.1", 443, "1.1.1.1", "/"),
        ("https://0x01010101:444/", "1.1.1.1", 444, "1.1.1.1:444", "/"),
        (
            "https://[2606:4700:4700:0::1111]:8443/x",
            "[2606:4700:4700::1111]",
            8443,
            "[2606:4700:4700::1111]:8443",
            "/x",
        ),
    ];
    for (text, host, port, authority, target) in cases {
        let url = public(text).unwrap();
        assert_eq!(url.as_str(), text);
        assert_eq!(
            (url.host().to_string().as_str(), url.port()),
            (host, port),
            "{text}"
        );
        assert_eq!(
            (url.authority().as_str(), url.path_and_query().as_str()),
            (authority, target),
            "{text}"
        );
        assert_eq!(url.scheme(), Scheme::Https);
    }
}

#[test]
fn a_url_is_its_text_and_no_other_spelling_of_it() {
    let one = public("https://example.com/hook").unwrap();
    assert_eq!(one.to_string(), "https://example.com/hook");
    assert_eq!(one, public("https://example.com/hook").unwrap());
    for other in [
        "https://example.com/Hook",
        "https://EXAMPLE.com/hook",
        "https://example.com:443/hook",
    ] {
        assert_ne!(one, public(other).unwrap(), "{other}");
    }
}

#[test]
fn a_scheme_is_written_as_in_a_url() {
    for scheme in [Scheme::Http, Scheme::Https] {
        let text = format!("{}://127.0.0.1", scheme.as_str());
        let url = WebhookUrl::parse(text, AddressPolicy::Any).unwrap();
        assert_eq!((url.scheme(), url.port()), (scheme, scheme.default_port()));
    }
}

#[test]
fn as_long_as_the_contract_says_and_no_longer() {
    let long = format!("https://example.com/{}", "x".repeat(URL_MAX - 20));
    assert_eq!(long.len(), URL_MAX);
    assert!(public(&long).is_ok());
    assert!(public(&(long + "x")).is_err());
    let label = "a".repeat(LABEL_MAX);
    assert!(public(&format!("https://{label}.example/")).is_ok());
    assert!(public(&format!("https://a{label}.example/")).is_err());
    let name = [label.as_str(); 4].join(".");
    assert!(public(&format!("https://{}/", &name[2..])).is_ok());
    assert!(public(&format!("https://{}/", &name[1..])).is_err());
}

#[test]
fn no_spelling_of_a_special_address_is_taken() {
    for host in SPECIAL {
        for text in [format!("https://{host}/hook"), format!("https://{host}:8443")] {
            let refused = public(&text).unwrap_err();
            assert_eq!(refused.to_string(), "must lead to a public address", "{text}");
            let url = WebhookUrl::parse(text, AddressPolicy::Any).unwrap();
            assert!(matches!(url.host(), Host::Address(_)), "{host}");
        }
    }
}

#[test]
fn localhost_is_not_taken_under_any_of_its_names() {
    for host in [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "a.b.LocalHost.",
        "%6cocalhost",
        "loc%61lhost",
    ] {
        assert!(public(&format!("https://{host}/")).is_err(), "{host}");
    }
}

#[test]
fn what_is_no_url_of_the_rfc_or_not_ours_is_not_taken() {
    let refused = [
        "",
        "hook",
        "/hook",
        "//example.com/hook",
        "https:",
        "https:/example.com",
        "https:example.com",
        "https://",
        "https:///hook",
        "https://?a",
        "https://:443/",
        "http://example.com/",
        "HTTP://example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript://example.com/",
        "git+https://example.com/",
        "gopher://127.0.0.1:6379/",
        " https://example.com/",
        "https://example.com/ ",
        "https://exam ple.com/",
        "https://example.com/a b",
        "https://example.com/\n",
        "https://exa\tmple.com/",
        "https://example.com/\0",
        "https://example.com\\@127.0.0.1/",
        "https:\\\\example.com\\",
        "https://example.com/żółw",
        "https://żółw.example/",
        "https://①②⑦.⓪.⓪.①/",
        "https://127。0。0。1/",
        "https://example.com/<a>",
        "https://example.com/\"a\"",
        "https://example.com/{a}",
        "https://example.com/a|b",
        "https://example.com/a^b",
        "https://example.com/`a`",
        "https://example.com/%",
        "https://example.com/%2",
        "https://example.com/%zz",
        "https://example.com/[a]",
        "https://example.com/#",
        "https://example.com/hook#part",
        "https://example.com#@127.0.0.1/",
        "https://user@example.com/",
        "https://user:word@example.com/",
        "https://:@example.com/",
        "https://@example.com/",
        "https://127.0.0.1@example.com/",
        "https://example.com@127.0.0.1/",
        "https://example.com:65536/",
        "https://example.com:-1/",
        "https://example.com:port/",
        "https://example.com:80:80/",
        "https://example..com/",
        "https://.example.com/",
        "https://./",
        "https://../",
        "https://example.com../",
        "https://example.com%2f@127.0.0.1/",
        "https://example.com%00.evil.example/",
        "https://exa$mple.com/",
        "https://*.example.com/",
        "https://a,b/",
        "https://256.256.256.256/",
        "https://1.2.3.4.5/",
        "https://4294967296/",
        "https://0x100000000/",
        "https://127.0.0.09/",
        "https://[::1/",
        "https://::1/",
        "https://[]/",
        "https://[::1]x/",
        "https://[1.2.3.4]/",
        "https://[fe80::1%eth0]/",
        "https://[fe80::1%25eth0]/",
        "https://[2606:4700:4700::1111%251]/",
        "https://[v1.a]/",
        "https://[::ffff:127.0.0.1.]/",
        "https://[1:2:3:4:5:6:7:8:9]/",
    ];
    for text in refused {
        assert!(public(text).is_err(), "{text}");
    }
}

#[test]
fn local_development_may_go_anywhere_and_nowhere_else() {
    for fine in [
        "http://localhost:3000/hook",
        "http://127.0.0.1",
        "https://[::1]:8443/",
        "https://10.0.0.1/",
        "http://example.com/",
    ] {
        assert!(WebhookUrl::parse(fine, AddressPolicy::Any).is_ok(), "{fine}");
    }
    for refused in [
        "ftp://localhost/",
        "http://user@localhost/",
        "http://localhost/#a",
        "http://[fe80::1%25lo]/",
    ] {
        assert!(
            WebhookUrl::parse(refused, AddressPolicy::Any).is_err(),
            "{refused}"
        );
    }
    let url = WebhookUrl::parse("http://localhost:443", AddressPolicy::Any).unwrap();
    assert_eq!(
        (url.authority().as_str(), url.scheme()),
        ("localhost:443", Scheme::Http)
    );
}

/// One of the IPv4 notations that parsers accept (`inet_aton`).
fn spelled(address: Ipv4Addr, notation: u8, zeros: usize) -> String {
    let [a, b, c, d] = address.octets();
    let (whole, low) = (address.to_bits(), address.to_bits() & 0xff_ffff);
    let zeros = "0".repeat(zeros);
    match notation {
        0 => format!("{whole}"),
        1 => format!("0x{zeros}{whole:x}"),
        2 => format!("0{zeros}{whole:o}"),
        3 => format!("{a}.{low}"),
        4 => format!("0x{zeros}{a:X}.{low}"),
        5 => format!("0{zeros}{a:o}.0x{b:x}.{}", low & 0xffff),
        6 => format!("0x{a:x}.0{b:o}.{c}.0{zeros}{d:o}"),
        _ => format!("{address}."),
    }
}

proptest! {
    #[test]
    fn whatever_the_notation_the_address_is_the_one_that_is_judged(bits: u32, notation in 0_u8..8, zeros in 0_usize..4) {
        let address = Ipv4Addr::from_bits(bits);
        let text = format!("https://{}/", spelled(address, notation, zeros));
        let url = WebhookUrl::parse(text.as_str(), AddressPolicy::Any).unwrap();
        prop_assert_eq!(url.host(), &Host::Address(address.into()));
        prop_assert_eq!(public(&text).is_ok(), kernel::is_public(address.into()));
    }

    #[test]
    fn addresses_that_embed_another_are_never_taken(bits: u32) {
        let v4 = Ipv4Addr::from_bits(bits);
        let embedded = [
            u128::from(bits),
            u128::from(bits) | 0xffff_0000_0000,
            u128::from(bits) | (0x0064_ff9b << 96),
            (u128::from(bits) << 80) | (0x2002 << 112),
            u128::from(!bits) | (0x2001 << 112),
        ];
        for address in embedded.map(Ipv6Addr::from_bits) {
            let text = format!("https://[{address}]/");
            prop_assert!(public(&text).is_err(), "{} in {}", v4, text);
        }
    }

    #[test]
    fn nothing_panics_and_what_is_taken_is_https_and_kept(text in "(https?://)?[ -~]{0,40}") {
        if let Ok(url) = public(&text) {
            prop_assert_eq!(url.as_str(), text.as_str());
            prop_assert_eq!(url.scheme(), Scheme::Https);
            prop_assert!(url.path_and_query().starts_with('/'));
            prop_assert!(text.ends_with(url.path_and_query().trim_start_matches('/')));
        }
    }
}
