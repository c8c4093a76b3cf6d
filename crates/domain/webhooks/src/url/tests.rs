//! Accepted and rejected URLs: every spelling of every special address.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

fn public(text: &str) -> Result<WebhookUrl, Invalid> {
    WebhookUrl::parse(text, AddressPolicy::Public)
}

/// URL, host, port, `Host` header and request target.
const ACCEPTED: &str = "
    https://example.com                         example.com          443  example.com          /
    https://example.com/                        example.com          443  example.com          /
    https://example.com?a=b                     example.com          443  example.com          /?a=b
    HTTPS://Example.COM/Hook?A=%C5%BC&b=a/b?c   example.com          443  example.com          /Hook?A=%C5%BC&b=a/b?c
    https://example.com:443/a/../b              example.com          443  example.com          /a/../b
    https://example.com:8443/hook               example.com          8443 example.com:8443     /hook
    https://example.com:/hook                   example.com          443  example.com          /hook
    https://example.com./hook                   example.com          443  example.com          /hook
    https://my_host.example.com/a@b:c           my_host.example.com  443  my_host.example.com  /a@b:c
    https://xn--lw-fka7c.example/               xn--lw-fka7c.example 443  xn--lw-fka7c.example /
    https://localhost.example/                  localhost.example    443  localhost.example    /
    https://1.1.1.1/                            1.1.1.1              443  1.1.1.1              /
    https://0x01010101:444/                     1.1.1.1              444  1.1.1.1:444          /
    https://[2606:4700:4700:0::1111]:8443/x [2606:4700:4700::1111] 8443 [2606:4700:4700::1111]:8443 /x
";

#[test]
fn an_accepted_url_is_parsed_and_stored_as_given() {
    for line in ACCEPTED.trim().lines() {
        let [text, host, port, authority, target] = *line.split_whitespace().collect::<Vec<_>>() else {
            panic!("{line}")
        };
        let url = public(text).unwrap();
        assert_eq!((url.as_str(), url.to_string().as_str()), (text, text));
        assert_eq!(url.host().to_string(), host, "{text}");
        assert_eq!(url.port().to_string(), port, "{text}");
        assert_eq!(url.authority(), authority, "{text}");
        assert_eq!(url.path_and_query(), target, "{text}");
        assert!(url.is_https());
    }
    for (scheme, port) in [("http", 80), ("https", 443)] {
        let url = WebhookUrl::parse(format!("{scheme}://127.0.0.1"), AddressPolicy::Any).unwrap();
        assert_eq!((url.is_https(), url.port()), (scheme == "https", port));
        assert_eq!(url.authority(), "127.0.0.1");
    }
}

#[test]
fn urls_with_different_spellings_are_different() {
    let one = public("https://example.com/hook").unwrap();
    assert_eq!(one, public("https://example.com/hook").unwrap());
    for other in ["example.com/Hook", "EXAMPLE.com/hook", "example.com:443/hook"] {
        assert_ne!(one, public(&format!("https://{other}")).unwrap(), "{other}");
    }
}

#[test]
fn lengths_are_limited() {
    let long = format!("https://example.com/{}", "x".repeat(usize::from(MAX_URL) - 20));
    assert_eq!(long.len(), usize::from(MAX_URL));
    assert!(public(&long).is_ok());
    assert!(public(&(long + "x")).is_err());
    let label = "a".repeat(MAX_LABEL);
    assert!(public(&format!("https://{label}.example/")).is_ok());
    assert!(public(&format!("https://a{label}.example/")).is_err());
    let name = [label.as_str(); 4].join(".");
    assert!(public(&format!("https://{}/", &name[2..])).is_ok());
    assert!(public(&format!("https://{}/", &name[1..])).is_err());
}

/// Hosts outside the public internet, in every notation that a parser accepts: loopback; private use;
/// link-local and the metadata services of clouds; other special IPv4; IPv6 that is unspecified, loopback or
/// embeds IPv4; private, link-local, site-local, multicast, documentation, discard-only and segment routing.
const SPECIAL: &str = "
    127.0.0.1 127.0.0.1. 127.1 127.0.1 127.255.255.254 2130706433 2130706433. 0x7f000001 0X7F000001 0x7f.1
    0x7f.0x0.0x0.0x1 0x7f.0.0.01 017700000001 0177.0.0.1 0177.0.0.01 0177.0x0.0.1 00000177.0.0.1 127.0.0x1
    127.0.0.%31 %31%32%37.0.0.1 127%2e0%2e0%2e1 0x7f%2e1

    10.0.0.1 10.255.255.255 10.1 167772161 0xa.1 012.0.0.1 172.16.0.1 172.31.255.254 0xac100001 192.168.0.1
    192.168.1 192.168.257 3232235777 0300.0250.0.1

    169.254.0.1 169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 168.63.129.16

    0.0.0.0 0 0x0 0.1 100.64.0.1 100.127.255.254 192.0.0.8 192.0.2.1 192.88.99.1 198.18.0.1 198.51.100.7
    203.0.113.7 224.0.0.1 240.0.0.1 255.255.255.255 4294967295

    [::] [::1] [0:0:0:0:0:0:0:1] [0000:0000:0000:0000:0000:0000:0000:0001] [::127.0.0.1] [::ffff:127.0.0.1]
    [::ffff:7f00:1] [0:0:0:0:0:FFFF:8.8.8.8] [64:ff9b::10.0.0.1] [64:ff9b::808:808] [64:ff9b:1::1]
    [2002:7f00:1::] [2002:808:808::1] [2001:0:7f00:1::]

    [fc00::1] [fd12:3456::1] [fe80::1] [fec0::1] [ff02::1] [2001:db8::1] [3fff::1]
";

#[test]
fn special_addresses_are_refused_in_every_spelling() {
    for host in SPECIAL.split_whitespace() {
        for text in [format!("https://{host}/hook"), format!("https://{host}:8443")] {
            let refused = public(&text).unwrap_err();
            assert_eq!(refused.to_string(), "must lead to a public address", "{text}");
            let url = WebhookUrl::parse(text, AddressPolicy::Any).unwrap();
            assert!(matches!(url.host(), Host::Address(_)), "{host}");
        }
    }
    let local = "localhost LOCALHOST localhost. a.localhost a.b.LocalHost. %6cocalhost loc%61lhost";
    for host in local.split_whitespace() {
        assert!(public(&format!("https://{host}/")).is_err(), "{host}");
    }
}

/// No absolute URLs; other schemes; characters outside of RFC 3986; fragments; user information; ports;
/// names; IPv4; IPv6.
const REFUSED: &str = r#"
    hook /hook //example.com/hook https: https:/example.com https:example.com https:// https:///hook https://?a
    https://:443/ http://example.com/ HTTP://example.com/ ftp://example.com/ file:///etc/passwd
    javascript://example.com/ git+https://example.com/ gopher://127.0.0.1:6379/

    https://example.com\@127.0.0.1/ https:\\example.com\ https://example.com/żółw https://żółw.example/
    https://①②⑦.⓪.⓪.①/ https://127。0。0。1/ https://example.com/<a> https://example.com/"a"
    https://example.com/{a} https://example.com/a|b https://example.com/a^b https://example.com/`a`
    https://example.com/% https://example.com/%2 https://example.com/%zz https://example.com/[a]

    https://example.com/# https://example.com/hook#part https://example.com#@127.0.0.1/
    https://user@example.com/ https://user:word@example.com/ https://:@example.com/ https://@example.com/
    https://127.0.0.1@example.com/ https://example.com@127.0.0.1/ https://example.com%2f@127.0.0.1/

    https://example.com:65536/ https://example.com:-1/ https://example.com:port/ https://example.com:80:80/
    https://example.com:0/

    https://example..com/ https://.example.com/ https://./ https://../ https://example.com../
    https://example.com%00.evil.example/ https://exa$mple.com/ https://*.example.com/ https://a,b/

    https://256.256.256.256/ https://1.2.3.4.5/ https://4294967296/ https://0x100000000/ https://127.0.0.09/

    https://[::1/ https://::1/ https://[]/ https://[::1]x/ https://[1.2.3.4]/ https://[fe80::1%eth0]/
    https://[fe80::1%25eth0]/ https://[2606:4700:4700::1111%251]/ https://[v1.a]/ https://[::ffff:127.0.0.1.]/
    https://[1:2:3:4:5:6:7:8:9]/
"#;

#[test]
fn invalid_urls_are_refused() {
    for text in REFUSED.split_whitespace() {
        assert!(public(text).is_err(), "{text}");
    }
    assert!(public("").is_err());
    let url = "https://example.com/";
    for c in [' ', '\n', '\t', '\0'] {
        for at in [0, 3, 11, url.len()] {
            let mut text = url.to_owned();
            text.insert(at, c);
            assert!(public(&text).is_err(), "{text:?}");
        }
    }
}

#[test]
fn local_development_may_go_anywhere() {
    let any = |text: &str| WebhookUrl::parse(text, AddressPolicy::Any);
    let fine = "http://localhost:3000/hook http://127.0.0.1 https://[::1]:8443/ https://10.0.0.1/ http://example.com/";
    for text in fine.split_whitespace() {
        assert!(any(text).is_ok(), "{text}");
    }
    let refused = "ftp://localhost/ http://user@localhost/ http://localhost/#a http://[fe80::1%25lo]/";
    for text in refused.split_whitespace() {
        assert!(any(text).is_err(), "{text}");
    }
    let url = any("http://localhost:443").unwrap();
    assert!(url.authority() == "localhost:443" && !url.is_https());
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
    fn the_address_is_checked_in_any_notation(bits: u32, notation in 0_u8..8, zeros in 0_usize..4) {
        let address = Ipv4Addr::from_bits(bits);
        let text = format!("https://{}/", spelled(address, notation, zeros));
        let url = WebhookUrl::parse(text.as_str(), AddressPolicy::Any).unwrap();
        prop_assert_eq!(url.host(), &Host::Address(address.into()));
        prop_assert_eq!(public(&text).is_ok(), kernel::is_public(address.into()));
    }
}
