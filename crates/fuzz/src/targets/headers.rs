//! Headers that decide something: ids of traces, whom proxies speak for, media types, idempotency keys.

use std::net::IpAddr;

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use kernel::IdempotencyKey;
use web::media_type::{MediaType, require_json};
use web::trace_id::X_REQUEST_ID;
use web::{TraceId, TrustedProxies, idempotency_key, traceparent};

use crate::held::are_entries;
use crate::{Target, targets::texts};

pub(crate) const TARGET: Target = Target {
    name: "headers",
    run,
    seeds: || {
        texts(&[
            "x-forwarded-for: 203.0.113.7, 10.0.0.1",
            "x-forwarded-for: [2001:db8::1]:80, 2001:db8::2\nx-forwarded-for: ::ffff:10.1.1.1",
            "forwarded: for=\"[2001:db8::1]:4711\";proto=https;by=203.0.113.43, FOR=10.0.0.2;host=\"a,b\\\"c\"",
            "forwarded: for=_hidden, for=unknown, for=192.0.2.1:_x",
            "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "traceparent: cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff-more",
            "x-request-id: my-request:17_a.b",
            "content-type: Application/JSON ; charset=\"UTF-8\"\ncontent-encoding: identity",
            "content-type: application/x-ndjson",
            "idempotency-key: 5f3c7f0e-6d7f-4f0e-9c55-3f0f5f8d8a11",
            "idempotency-key: a\nidempotency-key: b",
        ])
    },
    words: &[
        "x-forwarded-for: ",
        "forwarded: for=",
        "traceparent: ",
        "x-request-id: ",
        "content-type: ",
        "idempotency-key: ",
        "10.0.0.1",
        "::ffff:10.0.0.1",
        "\";",
        "for=",
        "\n",
        "charset=",
        "0.0.0.0",
        "010.0.0.1",
    ],
    grows: &[
        ("x-forwarded-for: ", "10.0.0.1, ", "x"),
        ("forwarded: ", "for=10.0.0.1;a=\"\\\"\", ", "for=x"),
        ("forwarded: for=\"", "\\\"", ""),
        ("content-type: application/json", ";a=b", ""),
        ("", "x-forwarded-for: 10.0.0.1\n", ""),
    ],
};

/// Headers by lines; what HTTP itself does not let through is left out.
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

fn run(bytes: &[u8]) {
    let headers = headers_of(bytes);
    forwarded(&headers);
    traced(&headers);
    typed(&headers);
    match idempotency_key::read(&headers, IdempotencyKey::new) {
        Ok(None) => assert!(headers.get("idempotency-key").is_none()),
        Ok(Some(key)) => {
            assert_eq!(headers.get_all("idempotency-key").count(), 1);
            assert!(
                (1..=128).contains(&key.as_str().len())
                    && key.as_str().bytes().all(|b| (0x20..=0x7e).contains(&b))
            );
        }
        Err(violations) => are_entries(&violations.into_entries(), bytes.len()),
    }
}

/// Nobody but a trusted proxy is believed, and an address never comes in two guises.
fn forwarded(headers: &HeaderMap) {
    let networks = ["10.0.0.0/8", "2001:db8:1::/48"].map(|network| network.parse().unwrap());
    let trusted = TrustedProxies::new(networks);
    let stranger: IpAddr = "203.0.113.9".parse().unwrap();
    assert_eq!(trusted.client(stranger, headers).address, stranger);
    assert_eq!(
        TrustedProxies::default().client(stranger, headers).address,
        stranger
    );
    let proxy: IpAddr = "::ffff:10.9.9.9".parse().unwrap();
    let client = trusted.client(proxy, headers);
    assert!(!client.untrusted_forwarding);
    assert_eq!(client.address, client.address.to_canonical());
    assert!(client.limited_as().contains(&client.address));
    if headers.get("x-forwarded-for").is_none() && headers.get("forwarded").is_none() {
        assert_eq!(client.address, proxy.to_canonical());
    }
}

/// The ids that are taken over are of their form.
fn traced(headers: &HeaderMap) {
    let id = TraceId::of(headers, || [7; 16]);
    assert_eq!(TraceId::parse(id.as_str().as_bytes()), Some(id));
    assert_eq!(id.to_header_value().as_bytes(), id.as_str().as_bytes());
    let proposed = headers
        .get(X_REQUEST_ID)
        .is_some_and(|given| given.as_bytes() == id.as_str().as_bytes());
    assert!(proposed || id == TraceId::from_random([7; 16]));
    if let Some(context) = traceparent::of(headers) {
        let given = headers.get("traceparent").unwrap().as_bytes();
        let ids = format!("{}-{}", context.trace_id(), context.span_id());
        assert!(context.is_valid() && context.is_remote());
        // What a later version adds behind them is not looked at.
        assert_eq!(given.get(3..52), Some(ids.as_bytes()));
    }
}

fn typed(headers: &HeaderMap) {
    let kind = MediaType::of(headers);
    assert!(kind.is_none() || headers.get_all("content-type").count() == 1);
    match require_json(headers) {
        Ok(()) => assert_eq!(kind, Some(MediaType::Json)),
        Err(violations) => are_entries(&violations.into_entries(), 0),
    }
}
