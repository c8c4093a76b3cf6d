//! Headers that control behaviour: forwarded addresses, client credentials.

use std::net::IpAddr;

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use web::TrustedProxies;
use web::authorization::{ClientCredentials, basic};

use crate::{always, always_text, is_linear};

/// Parses headers line by line, without those that HTTP itself rejects.
fn headers_of(bytes: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let name = HeaderName::from_bytes(line[..colon].trim_ascii());
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

#[test]
fn forwarding_headers_count_only_from_a_trusted_proxy() {
    let samples = [
        "x-forwarded-for: 203.0.113.7, 10.0.0.1",
        "x-forwarded-for: [2001:db8::1]:80, 2001:db8::2\nx-forwarded-for: ::ffff:10.1.1.1, 010.0.0.1",
    ];
    let trusted =
        TrustedProxies::new(["10.0.0.0/8", "2001:db8:1::/48"].map(|network| network.parse().unwrap()));
    let stranger: IpAddr = "203.0.113.9".parse().unwrap();
    let proxy: IpAddr = "::ffff:10.9.9.9".parse().unwrap();
    always(&samples, |bytes| {
        let headers = headers_of(bytes);
        assert_eq!(trusted.client(stranger, &headers).address, stranger);
        assert_eq!(
            TrustedProxies::default().client(stranger, &headers).address,
            stranger
        );
        let client = trusted.client(proxy, &headers);
        assert!(!client.untrusted_forwarding);
        assert_eq!(client.address, client.address.to_canonical());
        if !headers.contains_key("x-forwarded-for") {
            assert_eq!(client.address, proxy.to_canonical());
        }
    });
    let shapes = [
        ["x-forwarded-for: ", "10.0.0.1, ", "x"],
        ["", "x-forwarded-for: 10.0.0.1\n", ""],
    ];
    is_linear(&shapes, |bytes| trusted.client(proxy, &headers_of(bytes)));
}

#[test]
fn basic_credentials_are_decoded_as_form_values() {
    let samples = [
        "Basic QTpC",
        "basic  MDE5N2E1YzQtOGIxZS03YzNhLTlkMmYtNGU1YjZhN2M4ZDllOnBzX3NlX0J3Y0g=",
        "Bearer QTpC==",
        "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e:ps_se_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc",
        "an%3Aid:a+secret%25:with+%C5%BC",
        ":",
    ];
    let header_of = |text: &str| format!("Basic {}", STANDARD.encode(text));
    let holds = |header: &str, found: &ClientCredentials| {
        let (scheme, encoded) = header.split_once(' ').unwrap();
        assert!(scheme.eq_ignore_ascii_case("basic"));
        let sent = String::from_utf8(STANDARD.decode(encoded.trim_start()).unwrap()).unwrap();
        for (part, read) in sent.splitn(2, ':').zip([&found.client_id, &found.secret]) {
            assert!(!read.contains('\0'));
            // As a form value, in which the ampersand is a separator.
            let value = format!("v={}", part.replace('&', "%26"));
            assert_eq!(
                url::form_urlencoded::parse(value.as_bytes()).next().unwrap().1,
                read.as_str()
            );
        }
    };
    always_text(&samples, |text| {
        if let Some(found) = basic(text) {
            holds(text, &found);
        }
        // Mutated base64 is seldom valid, so the decoded content is mutated too.
        let header = header_of(text);
        match basic(&header) {
            Some(found) => holds(&header, &found),
            None => assert!(!text.contains(':') || text.contains(['%', '\0']), "{text:?}"),
        }
    });
}
