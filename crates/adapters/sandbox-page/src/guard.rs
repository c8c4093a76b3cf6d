//! Who may use the page: a browser or program on this machine, on a page that came from here.

use std::net::SocketAddr;

use actix_web::HttpResponse;
use actix_web::http::header::{
    CROSS_ORIGIN_OPENER_POLICY, HOST, HeaderMap, HeaderValue, ORIGIN, REFERRER_POLICY,
};
use url::{Host, Url};
use web::TraceId;
use web::response::{SAME_ORIGIN, set_page_headers};

/// Scripts and styles of this origin only; nothing evaluates text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Headers that only proxies send, beside `x-forwarded-…`.
const FORWARDED: [&str; 4] = ["cf-connecting-ip", "forwarded", "via", "x-real-ip"];

pub(crate) const NOT_FROM_HERE: &str =
    "The sandbox's page is for this machine only: open it at http://127.0.0.1 and the sandbox's port.\n";
pub(crate) const FOREIGN_FORM: &str =
    "This form is not of a page of this sandbox: reload the page, and send the form from there.";

/// Whether a request comes from this machine, to a name of this machine.
pub(crate) fn is_here(peer: Option<SocketAddr>, headers: &HeaderMap) -> bool {
    // Behind a proxy or a tunnel on this machine, the client is elsewhere.
    let is_of_proxy = |name: &str| name.starts_with("x-forwarded-") || FORWARDED.contains(&name);
    let is_forwarded = headers.keys().any(|name| is_of_proxy(name.as_str()));
    // Another site's name may resolve to this machine (DNS rebinding).
    let origin = own_origin(headers);
    let is_own_name = match origin.as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    is_own_name && !is_forwarded && peer.is_some_and(|peer| peer.ip().to_canonical().is_loopback())
}

/// Whether a form comes from a page of this sandbox: its `Origin`, and the token that only such pages have.
pub(crate) fn is_own_form(headers: &HeaderMap, sent: Option<&str>, token: &str) -> bool {
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let origin = origin.and_then(|origin| Url::parse(origin).ok());
    origin.is_some() && origin == own_origin(headers) && sent == Some(token)
}

fn own_origin(headers: &HeaderMap) -> Option<Url> {
    let host = headers.get(HOST)?.to_str().ok()?;
    Url::parse(&format!("http://{host}")).ok()
}

/// Sets the common headers of a response. The page is served over http only.
pub(crate) fn secure(response: &mut HttpResponse, trace_id: &TraceId) {
    let headers = response.headers_mut();
    // With `no-referrer`, a form's `Origin` would be `null`, which `is_own_form` refuses.
    headers.insert(REFERRER_POLICY, SAME_ORIGIN);
    headers.insert(CROSS_ORIGIN_OPENER_POLICY, SAME_ORIGIN);
    set_page_headers(headers, trace_id, HeaderValue::from_static(POLICY), false);
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderName};

    use super::*;

    fn headers(host: &str, origin: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        headers
    }

    #[test]
    fn only_this_machine_is_here() {
        let headers = headers("127.0.0.1:8080", None);
        for (peer, expected) in [
            ("127.0.0.1:50000", true),
            ("[::1]:50000", true),
            ("[::ffff:127.0.0.1]:50000", true),
            ("192.168.0.2:50000", false),
            ("[::ffff:192.168.0.2]:50000", false),
            ("[fe80::1]:50000", false),
        ] {
            assert_eq!(is_here(peer.parse().ok(), &headers), expected, "{peer}");
        }
        assert!(!is_here(None, &headers));
        let prefixed = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];
        for name in FORWARDED.into_iter().chain(prefixed) {
            let mut forwarded = headers.clone();
            forwarded.insert(HeaderName::from_static(name), HeaderValue::from_static("x"));
            assert!(!is_here("127.0.0.1:50000".parse().ok(), &forwarded), "{name}");
        }
    }

    #[test]
    fn an_answer_runs_nothing_but_the_scripts_of_the_page() {
        let mut answer = HttpResponse::Ok().finish();
        secure(&mut answer, &TraceId::from_random([1; 16]));
        let policy = answer.headers().get(CONTENT_SECURITY_POLICY).unwrap();
        let policy: Vec<_> = policy.to_str().unwrap().split("; ").collect();
        for expected in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(&expected), "{policy:?}");
        }
        assert!(!policy.concat().contains("unsafe"), "{policy:?}");
    }

    #[test]
    fn a_form_needs_the_origin_of_its_host_and_the_token() {
        let here = "127.0.0.1:8080";
        for (origin, token, expected) in [
            (Some("http://127.0.0.1:8080"), Some("t"), true),
            (Some("http://127.0.0.1:8080"), Some("u"), false),
            (Some("http://127.0.0.1:8080"), None, false),
            (Some("http://127.0.0.1:8081"), Some("t"), false),
            (Some("https://127.0.0.1:8080"), Some("t"), false),
            (Some("http://localhost:8080"), Some("t"), false),
            (Some("null"), Some("t"), false),
            (None, Some("t"), false),
        ] {
            let is_own = is_own_form(&headers(here, origin), token, "t");
            assert_eq!(is_own, expected, "{origin:?} {token:?}");
        }
    }
}
