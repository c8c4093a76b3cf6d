//! `traceparent`: the caller's trace context, parsed strictly by W3C Trace Context.

use actix_web::http::header::{HeaderMap, HeaderName};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// The header (W3C Trace Context §3.2). `tracestate` is neither read nor forwarded.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// `00-<32 digits>-<16 digits>-<2 digits>`.
const LENGTH: usize = 55;

/// Marks the context of a trace whose caller is not trusted: its ids are continued, but this process decides whether to record it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntrustedParent;

/// The caller's span, from its single `traceparent`. `None` if the header is absent, repeated or invalid: the request then starts a new
/// trace (W3C Trace Context §4.3).
pub fn of(headers: &HeaderMap) -> Option<SpanContext> {
    let mut given = headers.get_all(TRACEPARENT);
    match (given.next(), given.next()) {
        (Some(only), None) => parse(only.as_bytes()),
        _ => None,
    }
}

/// Future versions are parsed by the rules of the known one (W3C Trace Context §4.3); version 255 is invalid.
fn parse(text: &[u8]) -> Option<SpanContext> {
    let (known, rest) = text.split_at_checked(LENGTH)?;
    let mut parts = known.split(|byte| *byte == b'-');
    let [version] = bytes(parts.next()?)?;
    let trace_id = TraceId::from_bytes(bytes(parts.next()?)?);
    let span_id = SpanId::from_bytes(bytes(parts.next()?)?);
    let [flags] = bytes(parts.next()?)?;
    let ends_well = match version {
        0 => rest.is_empty(),
        0xff => false,
        _ => rest.is_empty() || rest.starts_with(b"-"),
    };
    let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    let context = SpanContext::new(trace_id, span_id, flags, true, TraceState::NONE);
    (ends_well && context.is_valid()).then_some(context)
}

/// Exactly `N` bytes, each as two lower-case hexadecimal digits.
fn bytes<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let (pairs, odd) = digits.as_chunks::<2>();
    if pairs.len() != N || !odd.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = nibble(*high)? << 4 | nibble(*low)?;
    }
    Some(bytes)
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_good_one_is_continued() {
        let context = parse(GOOD.as_bytes()).unwrap();
        assert_eq!(context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(context.span_id().to_string(), "b7ad6b7169203331");
        assert!(context.is_sampled() && context.is_remote());
        let unsampled = GOOD.replace("-01", "-00");
        assert!(!parse(unsampled.as_bytes()).unwrap().is_sampled());
    }

    #[test]
    fn flags_that_nobody_knows_yet_are_left_out() {
        let flags = |text: &str| parse(text.as_bytes()).unwrap().trace_flags().to_u8();
        assert_eq!(flags(&GOOD.replace("-01", "-ff")), 1);
        assert_eq!(flags(&GOOD.replace("-01", "-fe")), 0);
    }

    #[test]
    fn later_versions_are_read_as_far_as_they_are_known() {
        let later = GOOD.replacen("00-", "cc-", 1);
        assert!(parse(later.as_bytes()).is_some());
        assert!(parse(format!("{later}-what-the-future-brings").as_bytes()).is_some());
        assert!(parse(format!("{later}.what").as_bytes()).is_none());
    }

    #[test]
    fn what_breaks_a_rule_is_none() {
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
        ];
        for text in bad {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn two_of_them_are_none() {
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert!(of(&headers).is_some());
        headers.append(TRACEPARENT, HeaderValue::from_static(GOOD));
        assert!(of(&headers).is_none());
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(trace: [u8; 16], span: [u8; 8], sampled: bool) {
            let (trace, span) = (TraceId::from_bytes(trace), SpanId::from_bytes(span));
            let read = parse(format!("00-{trace}-{span}-0{}", u8::from(sampled)).as_bytes());
            let is_one = trace != TraceId::INVALID && span != SpanId::INVALID;
            prop_assert_eq!(read.is_some(), is_one);
            if let Some(read) = read {
                prop_assert_eq!((read.trace_id(), read.span_id(), read.is_sampled()), (trace, span, sampled));
            }
        }

        #[test]
        fn nothing_else_is_read(text in "[0-9a-fA-F-]{50,60}") {
            if let Some(read) = parse(text.as_bytes()) {
                let begins = format!("{}-{}-{}-", &text[..2], read.trace_id(), read.span_id());
                prop_assert!(text.starts_with(&begins));
            }
        }
    }
}
