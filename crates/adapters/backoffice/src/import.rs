//! The bulk import: NDJSON of any size, streamed.

use std::sync::Arc;

use actix_web::dev::Payload;
use futures_util::StreamExt;
use kernel::SellerId;
use tokio::time::timeout;
use web::media_type::MediaType;
use web::operation::{Call, Incoming, Operation, Stream};
use web::reply::Reply;
use web::{Error, Violations};

use crate::importer::{ImportError, Importer};
use crate::sellers::existing;
use crate::{Access, BackOffice};

/// Applies lines as they arrive.
pub(crate) struct ImportOffers {
    seller: SellerId,
}

impl Operation<BackOffice> for ImportOffers {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.body_as(MediaType::NdJson, |_| Ok(()))?;
        Ok(incoming.id(0).map(|seller| Self { seller }))
    }
}

impl Stream<BackOffice> for ImportOffers {
    async fn execute(self, call: Call<BackOffice>, body: &mut Payload) -> Result<Reply, Error> {
        call.deadline.run(existing(self.seller, &call)).await??;
        let ports = &call.state.ports;
        let mut importer = Importer::new(Arc::clone(&ports.units), ports.tasks.clone(), self.seller);
        let piece_timeout = ports.service.body_timeout;
        let late = |_| {
            Error::closing(
                "The next part of the body did not arrive in time. Lines before it may have been applied.",
            )
        };
        while let Some(piece) = timeout(piece_timeout, body.next()).await.map_err(late)? {
            let piece = piece.map_err(|_| {
                Error::closing("The body is incomplete. Lines before its end may have been applied.")
            })?;
            importer.feed(&piece).await?;
        }
        Reply::ok(&importer.finish().await?)
    }
}

impl From<ImportError> for Error {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Store(error) => error.into(),
            ImportError::Panicked(panicked) => panicked.into(),
        }
    }
}
