//! What an operation reads of a request.

use std::str::FromStr;
use std::sync::Arc;

use actix_web::dev::RequestHead;
use bytes::Bytes;
use kernel::{Fingerprint, IdempotencyKey};
use orders::OrderRef;
use usecases::ActingOperator;
use web::decode::{FieldSet, Place, Shape};
use web::json::Json;
use web::media_type::{MediaType, require_json};
use web::query::{self, Query};
use web::{Entry, Problem, TraceId, Violations, both, decode, idempotency_key, percent, sentence, three};

use crate::operation::Context;
use crate::ruled;
use crate::state::BackOffice;

/// The parts of a request.
pub(crate) struct Parts<'a> {
    pub(crate) head: &'a RequestHead,
    /// What stands in the places of the template's names, in their order, as it was sent.
    pub(crate) ids: Vec<&'a str>,
    /// Empty where there was none, or where the operation reads it itself.
    pub(crate) body: Bytes,
    /// Whether an `Idempotency-Key` is looked at.
    pub(crate) keyed: bool,
    /// Who sent it; nobody where the call needs no token.
    pub(crate) by: Option<ActingOperator>,
    /// What the log says of it.
    pub(crate) origin: Origin,
}

/// How the log names a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) trace_id: TraceId,
    /// The template of its route.
    pub(crate) route: &'static str,
}

impl<'a> Parts<'a> {
    /// What the operation works with, no key being claimed yet.
    pub(crate) fn context(&self, office: &Arc<BackOffice>) -> Context {
        Context {
            office: Arc::clone(office),
            by: self.by,
            claim: None,
        }
    }

    /// The id at this place of the path. What cannot be one names nothing: 404 (D124).
    pub(crate) fn id<T: FromStr>(&self, place: usize) -> Result<T, Problem> {
        self.named(place, |given| given.parse().ok())
    }

    /// The order at this place of the path, by its id or its number.
    pub(crate) fn order(&self, place: usize) -> Result<OrderRef, Problem> {
        self.named(place, OrderRef::parse)
    }

    fn named<T>(&self, place: usize, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, Problem> {
        let given = self.ids.get(place).and_then(|raw| percent::decode(raw));
        given
            .and_then(|given| parse(&given))
            .ok_or_else(Problem::not_found)
    }

    /// The idempotency key, where the call takes one and the request has it.
    pub(crate) fn key(&self) -> Result<Option<IdempotencyKey>, Violations> {
        if !self.keyed {
            return Ok(None);
        }
        let check = |bytes: &[u8]| IdempotencyKey::new(bytes).map_err(|reason| sentence::of(&reason));
        idempotency_key::read(&self.head.headers, check)
    }

    /// What makes another request the same as this one: method, path with query, and body, each byte for byte (D47).
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let address = self.head.uri.path_and_query();
        let address = address.map_or("", |address| address.as_str());
        Fingerprint::of(&[
            self.head.method.as_str().as_bytes(),
            address.as_bytes(),
            &self.body,
        ])
    }

    /// A JSON body of this shape, and no query.
    pub(crate) fn json<S: Shape>(&self, shape: &S) -> Result<S::Value, Violations> {
        self.described(require_json(&self.head.headers), |body| decode::body(body, shape))
    }

    /// A JSON body of these fields that keeps the domain's rules, and no query.
    pub(crate) fn ruled<F: FieldSet, T>(
        &self,
        fields: F,
        check: impl FnOnce(F::Values) -> Result<T, kernel::Violations>,
    ) -> Result<T, Violations> {
        self.described(require_json(&self.head.headers), |body| {
            ruled::read(body, fields, check)
        })
    }

    /// No query, and no body but perhaps an empty object.
    pub(crate) fn nothing(&self) -> Result<(), Violations> {
        if self.body.is_empty() {
            return both(self.key(), self.no_query()).map(|_| ());
        }
        self.described(require_json(&self.head.headers), |body| {
            decode::body(body, &Nothing)
        })
    }

    /// No query. A body is of no interest (D9).
    pub(crate) fn no_query(&self) -> Result<(), Violations> {
        self.parameters(&[], |_| ())
    }

    /// These query parameters and no others. A body is of no interest (D9).
    pub(crate) fn parameters<T>(
        &self,
        known: &'a [&'static str],
        values: impl FnOnce(&mut Query<'a>) -> T,
    ) -> Result<T, Violations> {
        query::read(self.head.uri.query().unwrap_or_default(), known, values)
    }

    /// No query, and NDJSON to come.
    pub(crate) fn ndjson(&self) -> Result<(), Violations> {
        let described = match MediaType::of(&self.head.headers) {
            Some(MediaType::NdJson) => Ok(()),
            _ => Err(Entry::validation("Content-Type", "Must be application/x-ndjson, in UTF-8.").into()),
        };
        self.described(described, |_| Ok(()))
    }

    /// What is wrong with headers, query and body, together. A body of another type is not looked into.
    fn described<T>(
        &self,
        headers: Result<(), Violations>,
        read: impl FnOnce(&[u8]) -> Result<T, Violations>,
    ) -> Result<T, Violations> {
        match headers {
            Ok(()) => three(self.key(), self.no_query(), read(&self.body)).map(|(_, (), body)| body),
            Err(wrong) => three(self.key(), Err(wrong), self.no_query()).map(|(_, body, ())| body),
        }
    }
}

/// The object without fields.
struct Nothing;

impl Shape for Nothing {
    type Value = ();

    fn expected(&self) -> String {
        "no body, or an empty object".to_owned()
    }

    fn read(&self, json: Json, place: &mut Place<'_>) -> Option<()> {
        let Json::Object(object) = json else {
            return place.refuse(format!("Must be {}, not {}.", self.expected(), json.kind()));
        };
        for name in object.names() {
            place
                .field(name)
                .refuse::<()>("Unknown field; there are none here.");
        }
        object.is_empty().then_some(())
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::Uri;
    use actix_web::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};

    use super::*;

    const KEY: HeaderName = idempotency_key::IDEMPOTENCY_KEY;

    fn head(content_type: &'static str, address: &'static str, key: Option<&'static str>) -> RequestHead {
        let mut head = RequestHead::default();
        head.uri = Uri::from_static(address);
        head.headers
            .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        if let Some(key) = key {
            head.headers.insert(KEY, HeaderValue::from_static(key));
        }
        head
    }

    fn parts<'a>(head: &'a RequestHead, ids: Vec<&'a str>, body: &'static str) -> Parts<'a> {
        Parts {
            head,
            ids,
            body: Bytes::from_static(body.as_bytes()),
            keyed: true,
            by: None,
            origin: Origin {
                trace_id: TraceId::from_random([0; 16]),
                route: "/x",
            },
        }
    }

    fn paths(head: &RequestHead, body: &'static str) -> Vec<String> {
        let found = parts(head, Vec::new(), body).nothing();
        let entries = found.err().unwrap_or_default().into_entries();
        entries
            .iter()
            .map(|entry| entry.path().unwrap_or("-").to_owned())
            .collect()
    }

    #[test]
    fn headers_query_and_body_are_judged_together() {
        let json = |address| head("application/json", address, None);
        assert_eq!(paths(&head("text/plain", "/x", None), ""), [""; 0]);
        assert_eq!(paths(&json("/x"), "{}"), [""; 0]);
        assert_eq!(paths(&json("/x?q=1"), r#"{"a": 1, "b": 2}"#), ["q", "a", "b"]);
        assert_eq!(paths(&json("/x"), "[]"), ["-"]);
        let untyped = head("text/plain", "/x?q=1", None);
        assert_eq!(paths(&untyped, r#"{"a": 1}"#), ["Content-Type", "q"]);
    }

    #[test]
    fn a_bad_key_comes_before_everything_else() {
        let empty = head("text/plain", "/x?q=1", Some(""));
        assert_eq!(paths(&empty, "{}"), ["Idempotency-Key", "Content-Type", "q"]);
        assert_eq!(paths(&empty, ""), ["Idempotency-Key", "q"]);
        let typed = head("application/json", "/x", Some(""));
        assert_eq!(paths(&typed, r#"{"a": 1}"#), ["Idempotency-Key", "a"]);
        let ignored = Parts {
            keyed: false,
            ..parts(&empty, Vec::new(), "")
        };
        assert_eq!(ignored.key(), Ok(None));
    }

    #[test]
    fn another_path_query_or_body_is_another_request() {
        let address = |address| head("text/plain", address, None);
        let (one, other) = (address("/x?q=1"), address("/x?q=2"));
        let print = |head, body| parts(head, Vec::new(), body).fingerprint();
        assert_eq!(print(&one, "{}"), print(&one, "{}"));
        assert_ne!(print(&one, "{}"), print(&other, "{}"));
        assert_ne!(print(&one, "{}"), print(&one, "{ }"));
    }

    #[test]
    fn what_cannot_be_an_id_names_nothing() {
        let head = RequestHead::default();
        let uuid = "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e";
        let parts = parts(&head, vec!["17", uuid, "SO%2D1", "so-1", "%00"], "");
        for place in [0, 2, 5] {
            let none = parts.id::<kernel::SellerId>(place);
            assert_eq!(none.unwrap_err(), Problem::not_found(), "{place}");
        }
        assert!(parts.id::<kernel::OfferId>(1).is_ok());
        assert!(matches!(parts.order(1), Ok(OrderRef::Id(_))));
        assert!(matches!(parts.order(2), Ok(OrderRef::Number(number)) if number.as_str() == "SO-1"));
        for place in [3, 4] {
            assert_eq!(parts.order(place).unwrap_err(), Problem::not_found(), "{place}");
        }
    }
}
