//! The successful answer of an operation.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, ETAG, HeaderName, HeaderValue};
use bytes::Bytes;
use kernel::{StoreError, StoredResponse};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib;
use serde::Serialize;
use tokio::task::yield_now;

use crate::error::Error;
use crate::response::{JSON, empty, json};
use crate::trace_id::TraceId;

/// The text format of Prometheus.
const PROMETHEUS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4");

/// `true` on an answer that was given before.
pub const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The length of most bodies, in bytes.
const USUAL_LENGTH: usize = 1024;

/// A body with more unused room than this, in bytes, is copied.
const MOST_UNUSED: usize = 16 * 1024;

/// So many bytes of a page are written at a time.
const LONG: usize = 256 * 1024;

/// The length, in bytes, from which a body is stored compressed: a batch's answer has some 45 kB, and stays for a day.
const COMPRESSED_FROM: usize = 16 * 1024;
/// The first byte of a compressed body, with which no JSON begins (RFC 1950 §2.2).
const COMPRESSED: u8 = b'x';

/// A successful answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    status: StatusCode,
    body: Bytes,
    content_type: HeaderValue,
    /// The entity tag of what was read or changed, with its quotes.
    etag: Option<String>,
    /// Whether it is the stored answer to an earlier request with the same idempotency key.
    replayed: bool,
}

impl Reply {
    /// 200 with a JSON body.
    pub fn ok(body: &impl Serialize) -> Result<Self, Error> {
        Self::json(StatusCode::OK, body)
    }

    /// 201 with a JSON body.
    pub fn created(body: &impl Serialize) -> Result<Self, Error> {
        Self::json(StatusCode::CREATED, body)
    }

    /// 200 with the items of a page, and the cursor of the next one. Other requests of the thread have their turn
    /// while a long page is written.
    pub async fn page<T: Serialize>(items: Vec<T>, next: Option<String>) -> Result<Self, Error> {
        let (mut bytes, mut pause_at, count) = (b"{\"items\":[".to_vec(), LONG, items.len());
        for (place, item) in items.into_iter().enumerate() {
            if place == 1 {
                // The others are about as long as the first one.
                bytes.reserve((bytes.len() * (count - 1)).min(LONG));
            }
            bytes.extend((place > 0).then_some(b','));
            serde_json::to_writer(&mut bytes, &item)?;
            if bytes.len() >= pause_at {
                pause_at = bytes.len() + LONG;
                yield_now().await;
            }
        }
        bytes.extend(b"],\"next\":");
        serde_json::to_writer(&mut bytes, &next)?;
        bytes.push(b'}');
        Ok(Self::of_json(StatusCode::OK, bytes))
    }

    /// 204 without a body.
    pub const fn no_content() -> Self {
        Self::new(StatusCode::NO_CONTENT, Bytes::new())
    }

    /// A JSON body, serialised straight into bytes.
    pub fn json(status: StatusCode, body: &impl Serialize) -> Result<Self, Error> {
        let mut bytes = Vec::with_capacity(USUAL_LENGTH);
        serde_json::to_writer(&mut bytes, body)?;
        Ok(Self::of_json(status, bytes))
    }

    fn of_json(status: StatusCode, bytes: Vec<u8>) -> Self {
        // Unused room would be held until the client has read the answer, and is not counted among the unsent bytes.
        // To shrink it is not enough: the allocator keeps a block of which more than half is used.
        let body = if bytes.capacity() - bytes.len() > MOST_UNUSED {
            Bytes::copy_from_slice(&bytes)
        } else {
            bytes.into()
        };
        Self::new(status, body)
    }

    /// 200 with text in the Prometheus format.
    pub fn prometheus(text: String) -> Self {
        Self {
            content_type: PROMETHEUS,
            ..Self::new(StatusCode::OK, text.into())
        }
    }

    /// Adds the entity tag of what was read or changed.
    #[must_use]
    pub fn tagged(self, etag: impl Into<String>) -> Self {
        let etag = Some(etag.into());
        Self { etag, ..self }
    }

    /// The answer stored in an idempotency row.
    pub(crate) fn from_stored(response: StoredResponse) -> Result<Self, StoreError> {
        let status = StatusCode::from_u16(response.status).map_err(StoreError::unexpected)?;
        let (body, etag) = (response.body, response.etag);
        let body = match body.first() {
            Some(&COMPRESSED) => {
                decompress_to_vec_zlib(&body).map_err(|error| StoreError::unexpected(error.to_string()))?
            }
            _ => body,
        };
        Ok(Self {
            etag,
            ..Self::new(status, body.into())
        })
    }

    pub(crate) fn replayed(self) -> Self {
        Self {
            replayed: true,
            ..self
        }
    }

    /// What is stored under the request's key. A program of the previous release, which may run until the upgrade
    /// `is_finished`, replays a body as it is stored, and leaves the tag where it stores another answer.
    pub fn to_stored_response(&self, is_finished: bool) -> StoredResponse {
        StoredResponse {
            status: self.status.as_u16(),
            body: if is_finished && self.body.len() >= COMPRESSED_FROM {
                compress_to_vec_zlib(&self.body, 1)
            } else {
                self.body.to_vec()
            },
            etag: self.etag.clone().filter(|_| is_finished),
        }
    }

    const fn new(status: StatusCode, body: Bytes) -> Self {
        Self {
            status,
            body,
            content_type: JSON,
            etag: None,
            replayed: false,
        }
    }

    pub(crate) fn into_response(self, trace_id: &TraceId) -> HttpResponse {
        let mut response = match self.status {
            StatusCode::NO_CONTENT => empty(self.status, trace_id),
            status => {
                let mut response = json(status, self.body, trace_id);
                response.headers_mut().insert(CONTENT_TYPE, self.content_type);
                response
            }
        };
        if let Some(etag) = self.etag.and_then(|etag| HeaderValue::try_from(etag).ok()) {
            response.headers_mut().insert(ETAG, etag);
        }
        if self.replayed {
            let replayed = HeaderValue::from_static("true");
            response.headers_mut().insert(IDEMPOTENT_REPLAYED, replayed);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_body_is_stored_compressed() {
        for (length, is_finished, stored) in [(100, true, 102), (60_000, true, 999), (60_000, false, 60_002)]
        {
            let reply = Reply::ok(&"a".repeat(length)).unwrap().tagged("\"b\"");
            let response = reply.to_stored_response(is_finished);
            assert_eq!(response.body.len() < length, is_finished && length > 100);
            assert!(response.body.len() <= stored, "{}", response.body.len());
            let etag = reply.etag.clone().filter(|_| is_finished);
            assert_eq!(Reply::from_stored(response).unwrap(), Reply { etag, ..reply });
        }
        let response = StoredResponse {
            status: 200,
            body: b"xa".to_vec(),
            etag: None,
        };
        assert!(Reply::from_stored(response).is_err());
    }
}
