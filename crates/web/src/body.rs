//! Reads a request's body within a limit on its size and on the time that it takes.

use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::http::header::{CONTENT_LENGTH, HeaderMap};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use thiserror::Error;

/// Limits on the size of a body and on the time that it takes to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLimits {
    /// In bytes, after transfer decoding.
    pub cap: usize,
    /// From the start of reading to the end of the body, however fast bytes arrive.
    pub within: Duration,
}

/// Why a body cannot be read; the message is for the client (D111). The client may still be sending, so the
/// caller closes the connection with [`crate::response::closing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// Larger than this cap, as announced in `Content-Length` or as sent, or with too long extensions of chunks.
    #[error("The body is too large: at most {0} bytes.")]
    TooLarge(usize),
    #[error("The body did not arrive in time.")]
    TimedOut,
    /// The body ended too early or broke the transfer coding; most likely the client is gone.
    #[error("The body is incomplete.")]
    Broken,
}

/// Reads the body; empty if the request has none. If `Content-Length` is larger than the cap, it is refused
/// before any byte is read.
///
/// The caller keeps the payload, because it needs it to close the connection.
pub(crate) async fn read(
    headers: &HeaderMap,
    payload: &mut Payload,
    limits: BodyLimits,
) -> Result<Bytes, BodyError> {
    if announced(headers).is_some_and(|length| length > limits.cap) {
        return Err(BodyError::TooLarge(limits.cap));
    }
    tokio::time::timeout(limits.within, collect(payload, limits.cap))
        .await
        .unwrap_or(Err(BodyError::TimedOut))
}

/// The length that `Content-Length` announces.
pub fn announced(headers: &HeaderMap) -> Option<usize> {
    let text = headers.get(CONTENT_LENGTH)?.to_str().ok()?;
    // The HTTP library has checked that these are digits. A number that does not fit is larger than any cap.
    Some(text.trim().parse().unwrap_or(usize::MAX))
}

async fn collect(payload: &mut Payload, cap: usize) -> Result<Bytes, BodyError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| match error {
            PayloadError::Overflow => BodyError::TooLarge(cap),
            _ => BodyError::Broken,
        })?;
        if body.len().saturating_add(chunk.len()) > cap {
            return Err(BodyError::TooLarge(cap));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}
