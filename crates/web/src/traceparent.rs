//! `traceparent`: the caller's trace context, parsed strictly by W3C Trace Context.

use actix_web::http::header::{HeaderMap, HeaderName};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

use crate::head::only;

/// The header (W3C Trace Context §3.2). `tracestate` is neither read nor forwarded.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// `00-<32 digits>-<16 digits>-<2 digits>`.
const LENGTH: usize = 55;

/// Marks the context of a trace whose caller is not trusted: its ids are continued, but this process decides
/// whether to record it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntrustedParent;

/// The caller's span, from its single `traceparent`. `None` if the header is absent, repeated or invalid: the
/// request then starts a new trace (W3C Trace Context §4.3).
pub fn of(headers: &HeaderMap) -> Option<SpanContext> {
    only(headers, TRACEPARENT).and_then(|sent| parse(sent.as_bytes()))
}

/// Future versions are parsed by the rules of the known one (W3C Trace Context §4.3); version 255 is invalid.
fn parse(text: &[u8]) -> Option<SpanContext> {
    let (known, rest) = text.split_at_checked(LENGTH)?;
    let known = str::from_utf8(known).ok()?;
    let is_well_formed = known.bytes().enumerate().all(|(at, byte)| match at {
        2 | 35 | 52 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    });
    let mut parts = known.split('-');
    let version = parts.next()?;
    let trace_id = TraceId::from_hex(parts.next()?).ok()?;
    let span_id = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    let ends_well = match version {
        "00" => rest.is_empty(),
        "ff" => false,
        _ => rest.is_empty() || rest.starts_with(b"-"),
    };
    let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    let context = SpanContext::new(trace_id, span_id, flags, true, TraceState::NONE);
    (is_well_formed && ends_well && context.is_valid()).then_some(context)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_valid_header_is_continued_with_its_known_flag() {
        for (text, sampled) in [
            (GOOD.to_owned(), true),
            (GOOD.replace("-01", "-00"), false),
            (GOOD.replace("-01", "-ff"), true),
            (GOOD.replace("-01", "-fe"), false),
            (GOOD.replacen("00-", "cc-", 1), true),
            (GOOD.replacen("00-", "cc-", 1) + "-of-a-later-version", true),
        ] {
            let context = parse(text.as_bytes()).unwrap();
            assert_eq!(context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
            assert_eq!(context.span_id().to_string(), "b7ad6b7169203331");
            assert_eq!(context.trace_flags().to_u8(), u8::from(sampled), "{text}");
            assert!(context.is_remote());
        }
    }

    #[test]
    fn an_invalid_header_is_ignored() {
        let bad = [
            String::new(),
            "00".to_owned(),
            GOOD.replacen("00-", "ff-", 1),
            GOOD.replacen("00-", "0-", 1),
            GOOD.replacen("00-", "000-", 1),
            GOOD.to_uppercase(),
            GOOD.replacen("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32), 1),
            GOOD.replacen("b7ad6b7169203331", &"0".repeat(16), 1),
            GOOD.replace("-01", "-1"),
            GOOD.replace("-01", "-0g"),
            GOOD.replace('-', "_"),
            GOOD.replacen("0af", "-af", 1),
            format!("{GOOD}-"),
            format!("{GOOD}-00"),
            format!(" {GOOD}"),
            format!("{GOOD} "),
            GOOD.replacen("1c80319c-b7", "1c80319-cb7", 1),
            GOOD.replacen("00-", "cc-", 1) + ".of-a-later-version",
        ];
        for text in bad {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_repeated_header_is_ignored() {
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert!(of(&headers).is_some());
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert!(of(&headers).is_none());
    }
}
