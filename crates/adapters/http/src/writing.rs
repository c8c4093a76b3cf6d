//! How a request that writes is carried out, the same for every operation:
//!
//! 1. its idempotency key is claimed, where it has one;
//! 2. the operation prepares, with no transaction open;
//! 3. one transaction applies it and remembers the answer;
//! 4. a failure that changed nothing gives the key back before it is told.
//!
//! All of it runs as a task of its own, so that a client that goes away neither stops nor halves it.

use async_trait::async_trait;
use kernel::Claim;
use usecases::{Remembering, Transaction, Work, transact};
use web::guarded::guarded;
use web::{TraceId, failure};

use crate::deadline::Deadline;
use crate::idempotency;
use crate::in_time::InTime;
use crate::operation::{Context, Reply, Write};
use crate::refusal::Refusal;

/// What the pipeline knows of a request that writes.
pub(crate) struct Terms {
    /// The claim to make on its key, if it has one.
    pub(crate) claim: Option<Claim>,
    /// How long it waits for the store; a COMMIT that is under way is waited for beyond it.
    pub(crate) deadline: Deadline,
    /// The id that failures are logged under.
    pub(crate) trace_id: TraceId,
}

/// Carries it out.
pub(crate) async fn carry_out<W: Write>(
    operation: W,
    context: Context,
    terms: Terms,
) -> Result<Reply, Refusal> {
    let Terms {
        claim,
        deadline,
        trace_id,
    } = terms;
    // Caught here, so that a panic settles the claim like any other failure.
    let run = async {
        let run = run(&operation, &context, claim.as_ref(), deadline);
        guarded(&trace_id, run).await?
    };
    let mut outcome = match &claim {
        None => run.await,
        Some(claim) => idempotency::once(&context.public, claim, deadline, run).await,
    };
    // Logged here, since a client that has gone away leaves nobody behind who would.
    if let Some(cause) = outcome.as_mut().err().and_then(Refusal::take_cause) {
        failure::log(&trace_id, W::TEMPLATE, &cause);
    }
    outcome
}

async fn run<W: Write>(
    operation: &W,
    context: &Context,
    claim: Option<&Claim>,
    mut deadline: Deadline,
) -> Result<Reply, Refusal> {
    let prepared = operation.prepare(context, &mut deadline).await?;
    let applied = Applied {
        operation,
        prepared: &prepared,
        context,
    };
    let remembered = Remembering {
        work: &applied,
        claim,
    };
    let units = InTime {
        inner: context.public.units.as_ref(),
        deadline,
    };
    let work = InTime {
        inner: &remembered,
        deadline,
    };
    transact(&units, &work).await
}

/// An operation as the work of a transaction.
struct Applied<'a, W: Write> {
    operation: &'a W,
    prepared: &'a W::Prepared,
    context: &'a Context,
}

#[async_trait]
impl<W: Write> Work for Applied<'_, W> {
    type Done = Reply;
    type Error = Refusal;

    async fn run(&self, transaction: &dyn Transaction) -> Result<Reply, Refusal> {
        self.operation
            .apply(self.prepared, self.context, transaction)
            .await
    }
}
