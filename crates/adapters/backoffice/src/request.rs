//! What an operation reads of a request.

use std::str::FromStr;

use actix_web::http::header::HeaderMap;
use bytes::Bytes;
use web::decode::{FieldSet, Place, Shape};
use web::json::Json;
use web::media_type::{MediaType, require_json};
use web::query::{self, Query};
use web::{Entry, Problem, Violations, both, decode};

use crate::ruled;

/// The parts of a request.
pub(crate) struct Parts<'a> {
    pub(crate) headers: &'a HeaderMap,
    /// As it was sent, without its `?`.
    pub(crate) query: &'a str,
    /// What stands in the places of the template's names, in their order, as it was sent.
    pub(crate) ids: Vec<&'a str>,
    /// Empty where there was none, or where the operation reads it itself.
    pub(crate) body: Bytes,
}

impl<'a> Parts<'a> {
    /// The id at this place of the path. What cannot be one names nothing: 404 (D124).
    pub(crate) fn id<T: FromStr>(&self, place: usize) -> Result<T, Problem> {
        let given = self.ids.get(place).copied().unwrap_or_default();
        given.parse().map_err(|_| Problem::not_found())
    }

    /// A JSON body of this shape, and no query.
    pub(crate) fn json<S: Shape>(&self, shape: &S) -> Result<S::Value, Violations> {
        self.described(require_json(self.headers), |body| decode::body(body, shape))
    }

    /// A JSON body of these fields that keeps the domain's rules, and no query.
    pub(crate) fn ruled<F: FieldSet, T>(
        &self,
        fields: F,
        check: impl FnOnce(F::Values) -> Result<T, kernel::Violations>,
    ) -> Result<T, Violations> {
        self.described(require_json(self.headers), |body| {
            ruled::read(body, fields, check)
        })
    }

    /// No query, and no body but perhaps an empty object.
    pub(crate) fn nothing(&self) -> Result<(), Violations> {
        if self.body.is_empty() {
            return self.no_query();
        }
        self.described(require_json(self.headers), |body| decode::body(body, &Nothing))
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
        query::read(self.query, known, values)
    }

    /// No query, and NDJSON to come.
    pub(crate) fn ndjson(&self) -> Result<(), Violations> {
        let described = match MediaType::of(self.headers) {
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
            Ok(()) => both(self.no_query(), read(&self.body)).map(|((), body)| body),
            Err(wrong) => both(Err(wrong), self.no_query()).map(|(body, ())| body),
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
    use actix_web::http::header::{CONTENT_TYPE, HeaderValue};

    use super::*;

    fn paths(content_type: &'static str, query: &str, body: &'static str) -> Vec<String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        let parts = Parts {
            headers: &headers,
            query,
            ids: Vec::new(),
            body: Bytes::from_static(body.as_bytes()),
        };
        let entries = parts.nothing().err().unwrap_or_default().into_entries();
        entries
            .iter()
            .map(|entry| entry.path().unwrap_or("-").to_owned())
            .collect()
    }

    #[test]
    fn headers_query_and_body_are_judged_together() {
        assert_eq!(paths("text/plain", "", ""), [""; 0]);
        assert_eq!(paths("application/json", "", "{}"), [""; 0]);
        assert_eq!(
            paths("application/json", "q=1", r#"{"a": 1, "b": 2}"#),
            ["q", "a", "b"]
        );
        assert_eq!(paths("text/plain", "q=1", r#"{"a": 1}"#), ["Content-Type", "q"]);
        assert_eq!(paths("application/json", "", "[]"), ["-"]);
    }

    #[test]
    fn what_cannot_be_an_id_names_nothing() {
        let headers = HeaderMap::new();
        let parts = Parts {
            headers: &headers,
            query: "",
            ids: vec!["17", "0197a5c4-8b1e-7c3a-9d2f-4e5b6a7c8d9e"],
            body: Bytes::new(),
        };
        assert_eq!(parts.id::<kernel::SellerId>(0).unwrap_err(), Problem::not_found());
        assert!(parts.id::<kernel::OfferId>(1).is_ok());
    }
}
