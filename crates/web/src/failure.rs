//! What goes to the log of a failure that a client is told nothing of.

use std::error::Error;
use std::fmt;

use crate::trace_id::TraceId;

/// A failure's cause, as it travels to the edge.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Writes a failure to the log, under the id that the client was given.
pub fn log(trace_id: &TraceId, route: &str, cause: &Cause) {
    let cause = Causes(cause.as_ref());
    tracing::error!(trace_id = trace_id.as_str(), route, %cause, "a request failed");
}

/// An error and everything that caused it, as one line.
#[derive(Debug)]
pub struct Causes<'a>(pub &'a dyn Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the store cannot be reached")]
    struct Away(#[source] Box<dyn Error>);

    #[test]
    fn the_whole_chain_is_written() {
        let error = Away(Box::new(Away("connection refused".into())));
        assert_eq!(
            Causes(&error).to_string(),
            "the store cannot be reached: the store cannot be reached: connection refused"
        );
    }
}
