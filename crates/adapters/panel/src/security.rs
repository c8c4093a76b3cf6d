//! The headers that tell a browser what a page of the panel may do: nothing but show itself and send its own forms.

use actix_web::HttpResponse;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use url::{Host, Url};
use web::TraceId;
use web::trace_id::X_TRACE_ID;

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Sets what every response has; what a page has set for itself stays.
pub(crate) fn apply(headers: &mut HeaderMap, trace_id: &TraceId, https: bool) {
    headers.insert(X_TRACE_ID, trace_id.to_header_value());
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    let same_origin = HeaderValue::from_static("same-origin");
    headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, same_origin);
    if https {
        headers.insert(STRICT_TRANSPORT_SECURITY, YEAR);
    }
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if !headers.contains_key(CONTENT_SECURITY_POLICY) {
        headers.insert(CONTENT_SECURITY_POLICY, policy(None));
    }
}

/// Lets the forms of a page lead, by the redirect that answers them, to the origin of this address. Browsers hold a form's
/// whole way against `form-action`, not only its first step.
pub(crate) fn let_forms_lead_to(response: &mut HttpResponse, address: &str) {
    response
        .headers_mut()
        .insert(CONTENT_SECURITY_POLICY, policy(origin(address).as_deref()));
}

fn policy(form_target: Option<&str>) -> HeaderValue {
    let target = form_target.map(|origin| format!(" {origin}")).unwrap_or_default();
    let text = format!(
        "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'{target}; \
         frame-ancestors 'none'; base-uri 'none'"
    );
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// The origin as a policy can name it. An IPv6 address cannot stand in one (CSP 3 §2.3.1): for it the scheme has to do.
fn origin(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    match url.host()? {
        Host::Ipv6(_) => Some(format!("{}:", url.scheme())),
        Host::Ipv4(_) | Host::Domain(_) => Some(url.origin().ascii_serialization()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_no_path_and_an_ipv6_address_only_a_scheme() {
        for (address, expected) in [
            ("https://app.example/cb?x=1", "https://app.example"),
            ("https://app.example:8443/cb", "https://app.example:8443"),
            ("https://1.1.1.1/cb", "https://1.1.1.1"),
            ("https://[2606:4700:4700::1111]/cb", "https:"),
        ] {
            assert_eq!(origin(address).as_deref(), Some(expected));
        }
        assert_eq!(origin("nonsense"), None);
    }

    #[test]
    fn a_policy_allows_nothing_inline() {
        let policy = policy(Some("https://app.example"));
        let policy = policy.to_str().unwrap();
        assert!(
            policy.contains("form-action 'self' https://app.example;"),
            "{policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
    }
}
