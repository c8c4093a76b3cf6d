//! Handlers that panic: the request gets an answer all the same.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use thiserror::Error;

use crate::problem::Problem;
use crate::trace_id::TraceId;

/// A handler panicked. It has been logged; what is left is to answer 500 in the listener's own shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the handler panicked")]
pub struct Panicked;

impl From<Panicked> for Problem {
    fn from(_: Panicked) -> Self {
        Self::internal()
    }
}

/// Runs a handler to its end. A panic is logged once, under the trace id, and becomes [`Panicked`].
///
/// What the handler was working on is dropped, not used again, so a panic half-way cannot be seen elsewhere; what it
/// shares with other requests must keep itself whole.
pub async fn guarded<F: Future>(trace_id: &TraceId, handler: F) -> Result<F::Output, Panicked> {
    AssertUnwindSafe(handler).catch_unwind().await.map_err(|panic| {
        let trace_id = trace_id.as_str();
        tracing::error!(trace_id, panic = message(panic.as_ref()), "a handler panicked");
        Panicked
    })
}

/// What a panic said.
pub(crate) fn message(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&'static str>().copied();
    literal
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_a_value() {
        let id = TraceId::from_random([1; 16]);
        assert_eq!(guarded(&id, async { 17 }).await, Ok(17));
        let fails = async {
            tokio::task::yield_now().await;
            panic!("half-way")
        };
        assert_eq!(guarded::<_>(&id, fails).await, Err::<(), _>(Panicked));
    }

    #[test]
    fn both_kinds_of_messages_are_found() {
        assert_eq!(message(&"fixed"), "fixed");
        assert_eq!(message(&String::from("made")), "made");
        assert_eq!(message(&17), "no message");
    }
}
