//! A decoded request of any operation, as a value that only waits to be carried out.

use futures_util::future::BoxFuture;
use web::Violations;

use crate::operation::{Context, Incoming, Read, Reply, Write};
use crate::refusal::Refusal;
use crate::writing::{self, Terms};

/// Carries out a request that writes, on the terms of the pipeline.
pub(crate) type Writing = Box<dyn FnOnce(Terms) -> BoxFuture<'static, Result<Reply, Refusal>> + Send>;

/// A decoded request.
pub(crate) enum Call {
    /// It only reads.
    Read(BoxFuture<'static, Result<Reply, Refusal>>),
    /// It changes something.
    Write(Writing),
}

/// Decodes a request that reads.
pub(crate) fn reading<R: Read>(incoming: &Incoming<'_>, context: Context) -> Result<Call, Violations> {
    let operation = R::decode(incoming, &context)?;
    Ok(Call::Read(Box::pin(operation.execute(context))))
}

/// Decodes a request that writes.
pub(crate) fn writing<W: Write>(incoming: &Incoming<'_>, context: Context) -> Result<Call, Violations> {
    let operation = W::decode(incoming, &context)?;
    Ok(Call::Write(Box::new(|terms| {
        Box::pin(writing::carry_out(operation, context, terms))
    })))
}
