//! What a call of the back office declares about itself, and what it works with.

use std::sync::Arc;

use actix_web::dev::Payload;
use async_trait::async_trait;
use kernel::Claim;
use usecases::{ActingOperator, Remembering, Transaction, Work, transact};
use web::Problem;

use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::request::Parts;
use crate::state::BackOffice;

/// One call.
pub(crate) trait Operation {
    /// What a request asks for, once it is read.
    type Input: Send + 'static;

    /// Reads headers, query and body, then the ids in the path.
    fn decode(parts: &Parts<'_>) -> Result<Self::Input, Refusal>;

    /// Does it.
    fn execute(
        input: Self::Input,
        context: Context,
    ) -> impl Future<Output = Result<Reply, Refusal>> + Send + 'static;
}

/// One call that reads its body itself, piece by piece.
pub(crate) trait Streaming {
    /// What a request asks for beside the body.
    type Input;

    /// Reads headers and query, then the ids in the path.
    fn decode(parts: &Parts<'_>) -> Result<Self::Input, Refusal>;

    /// Reads the body and does what it says.
    async fn execute(input: Self::Input, context: Context, body: &mut Payload) -> Result<Reply, Refusal>;
}

/// What an operation works with.
pub(crate) struct Context {
    /// The ports and settings.
    pub(crate) office: Arc<BackOffice>,
    /// Who asks for it; nobody where a call needs no token.
    pub(crate) by: Option<ActingOperator>,
    /// The claim on the request's idempotency key, where it has one.
    pub(crate) claim: Option<Arc<Claim>>,
}

impl Context {
    /// Who asks for it, for the note of what is done.
    pub(crate) fn operator(&self) -> Result<ActingOperator, Refusal> {
        let nobody = || Problem::unauthorized(&self.office.settings.realm);
        Ok(self.by.ok_or_else(nobody)?)
    }

    /// Does work in a transaction of its own. Its answer is made there too, so that it can be remembered with the effect.
    ///
    /// An operation writes once, as its last step: what comes after it could be lost.
    pub(crate) async fn write<W, A>(self, work: W, answer: A) -> Result<Reply, Refusal>
    where
        W: Work,
        Refusal: From<W::Error>,
        A: Fn(W::Done) -> Result<Reply, serde_json::Error> + Send + Sync,
    {
        let work = Answering { work, answer };
        let work = Remembering {
            work: &work,
            claim: self.claim.as_deref(),
        };
        transact(self.office.units.as_ref(), &work).await
    }
}

/// Work with its answer.
struct Answering<W, A> {
    work: W,
    answer: A,
}

#[async_trait]
impl<W, A> Work for Answering<W, A>
where
    W: Work,
    Refusal: From<W::Error>,
    A: Fn(W::Done) -> Result<Reply, serde_json::Error> + Send + Sync,
{
    type Done = Reply;
    type Error = Refusal;

    async fn run(&self, transaction: &dyn Transaction) -> Result<Reply, Refusal> {
        let done = self.work.run(transaction).await?;
        Ok((self.answer)(done)?)
    }
}
