//! Idempotency keys: the header and its claim (contract: Idempotency).

use actix_web::http::header::{HeaderMap, HeaderName};
use kernel::{Claim, Fingerprint, IdempotencyKey};

use crate::listener::Listener;
use crate::operation::Incoming;
use crate::problem::{Entry, to_sentence};
use crate::violations::Violations;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header's name in an error's `path`.
const PATH: &str = "Idempotency-Key";

/// The claim for a request, if it has a key.
pub(crate) fn claim<L: Listener>(
    listener: &L,
    caller: &L::Caller,
    incoming: &Incoming<'_>,
) -> Result<Option<Claim>, Violations> {
    let key = key(incoming.headers())?;
    Ok(key.map(|key| Claim {
        space: listener.key_space(caller),
        key,
        fingerprint: fingerprint(
            incoming,
            listener.key_binding(caller, incoming.head.uri.path()).as_deref(),
        ),
        fence: listener.ports().randomness.uuid(),
    }))
}

/// The key in the header. A repeated header is refused, whatever its values; a comma is a character of the key (D48, D116).
pub fn key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Violations> {
    let mut given = headers.get_all(IDEMPOTENCY_KEY);
    match (given.next(), given.next()) {
        (None, _) => Ok(None),
        (Some(key), None) => IdempotencyKey::new(key.as_bytes())
            .map(Some)
            .map_err(|invalid| Entry::validation(PATH, to_sentence(&invalid)).into()),
        (Some(_), Some(_)) => Err(Entry::validation(PATH, "Send this header once.").into()),
    }
}

/// Identifies a request: method, target and body, byte for byte (D47).
fn fingerprint(incoming: &Incoming<'_>, binding: Option<&str>) -> Fingerprint {
    let target = incoming.head.uri.path_and_query();
    let target = target.map_or("", |target| target.as_str());
    let mut parts = vec![
        incoming.head.method.as_str().as_bytes(),
        target.as_bytes(),
        incoming.body,
    ];
    parts.extend(binding.map(str::as_bytes));
    Fingerprint::of(&parts)
}

/// Counts the outcome of a claim: `run`, `in_progress`, `reused` or `replayed`; after a failed run also `released`, `recovered`,
/// `unanswered` or `lost`.
pub(crate) fn count(listener: &'static str, outcome: &'static str) {
    metrics::counter!("idempotency_claims_total", "listener" => listener, "outcome" => outcome).increment(1);
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use actix_web::test::TestRequest;
    use bytes::Bytes;

    use super::*;

    #[test]
    fn one_header_is_a_key_commas_and_all() {
        let mut headers = HeaderMap::new();
        assert_eq!(key(&headers).unwrap(), None);
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("a, b"));
        assert_eq!(key(&headers).unwrap().unwrap().as_str(), "a, b");
    }

    #[test]
    fn a_bad_key_and_a_second_header_are_refused_by_name() {
        let mut headers = HeaderMap::new();
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static(""));
        let entries = key(&headers).unwrap_err().into_entries();
        assert_eq!(entries[0].path(), Some("Idempotency-Key"));
        assert!(
            entries[0].message().starts_with("Must be 1 to 128"),
            "{entries:?}"
        );
        headers.append(IDEMPOTENCY_KEY, HeaderValue::from_static("a"));
        let entries = key(&headers).unwrap_err().into_entries();
        assert_eq!(entries[0].message(), "Send this header once.");
    }

    #[test]
    fn method_target_body_and_binding_count_byte_for_byte() {
        let of = |request: TestRequest, body: &'static str, binding| {
            let request = request.to_http_request();
            let incoming = Incoming {
                head: request.head(),
                ids: Default::default(),
                body: &Bytes::from_static(body.as_bytes()),
            };
            fingerprint(&incoming, binding)
        };
        let get = |uri| TestRequest::get().uri(uri);
        let first = of(get("/a?b=1"), "{}", None);
        assert_eq!(first, of(get("/a?b=1"), "{}", None));
        for other in [
            of(TestRequest::post().uri("/a?b=1"), "{}", None),
            of(get("/a?b=2"), "{}", None),
            of(get("/a?b=1"), "{} ", None),
            of(get("/a?b=1"), "{}", Some("psa_1")),
        ] {
            assert_ne!(first, other);
        }
    }
}
