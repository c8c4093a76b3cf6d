//! The headers that tell a browser what a page of the documentation may do: nothing but show itself, with files of its own
//! origin.

use actix_web::http::header::{
    CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use web::TraceId;
use web::trace_id::X_TRACE_ID;

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const CROSS_ORIGIN_OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// What a page may do beyond showing itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Nothing. Scripts cannot even turn text into markup (`require-trusted-types-for`).
    Page,
    /// The explorer calls the API of its own origin, and makes markup of Markdown.
    Explorer,
}

impl Policy {
    fn value(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Page => {
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; form-action 'self'; \
                 frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
            }
            Self::Explorer => {
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                 form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
            }
        })
    }
}

/// Sets what every response has.
pub(crate) fn apply(headers: &mut HeaderMap, trace_id: &TraceId, policy: Policy, https: bool) {
    let same_origin = HeaderValue::from_static("same-origin");
    headers.insert(X_TRACE_ID, trace_id.to_header_value());
    headers.insert(CONTENT_SECURITY_POLICY, policy.value());
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, same_origin.clone());
    headers.insert(CROSS_ORIGIN_OPENER_POLICY, same_origin);
    if https {
        headers.insert(
            STRICT_TRANSPORT_SECURITY,
            HeaderValue::from_static("max-age=31536000"),
        );
    }
}
