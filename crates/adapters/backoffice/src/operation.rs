//! What a call of the back office declares about itself, and what it works with.

use std::sync::Arc;

use actix_web::dev::Payload;
use usecases::{Work, transact};

use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::request::Parts;
use crate::state::BackOffice;

/// One call.
pub(crate) trait Operation {
    /// What a request asks for, once it is read.
    type Input;

    /// Reads headers, query and body, then the ids in the path.
    fn decode(parts: &Parts<'_>) -> Result<Self::Input, Refusal>;

    /// Does it.
    async fn execute(input: Self::Input, context: Context<'_>) -> Result<Reply, Refusal>;
}

/// What an operation works with.
pub(crate) struct Context<'a> {
    /// The ports and settings.
    pub(crate) office: &'a BackOffice,
    /// The body, where the route says that the operation reads it itself; else there is nothing left in it.
    pub(crate) payload: &'a mut Payload,
}

impl Context<'_> {
    /// Does work in a transaction of its own, to its end whatever becomes of the client.
    pub(crate) async fn write<W>(&self, work: W) -> Result<W::Done, Refusal>
    where
        W: Work<Done: 'static, Error: 'static> + 'static,
        Refusal: From<W::Error>,
    {
        let units = Arc::clone(&self.office.units);
        let done = self
            .office
            .tasks
            .run(async move { transact(units.as_ref(), &work).await })
            .await?;
        Ok(done?)
    }
}
