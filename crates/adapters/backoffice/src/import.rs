//! The bulk import: NDJSON of any size, streamed.

use std::sync::Arc;

use actix_web::dev::Payload;
use futures_util::StreamExt;
use kernel::SellerId;
use tokio::time::timeout;
use web::media_type::MediaType;
use web::operation::{Call, Incoming, Stream};
use web::reply::Reply;
use web::{Error, Violations};

use crate::importer::Importer;
use crate::sellers::existing;
use crate::{Access, BackOffice};

const LATE: &str = "The next part of the body did not arrive in time. Lines before it may have been applied.";
const INCOMPLETE: &str = "The body is incomplete. Lines before its end may have been applied.";

/// Applies lines as they arrive.
pub(crate) struct ImportOffers(SellerId);

impl Stream<BackOffice> for ImportOffers {
    const SCOPE: Access = Access::Write;

    fn decode(incoming: &Incoming<'_>, _: &Call<BackOffice>) -> Result<Option<Self>, Violations> {
        incoming.body_as(MediaType::NdJson, |_| Ok(()))?;
        Ok(incoming.id(0).map(Self))
    }

    async fn execute(self, call: Call<BackOffice>, body: &mut Payload) -> Result<Reply, Error> {
        call.deadline.run(existing(self.0, &call)).await??;
        let ports = &call.state.ports;
        let (units, places) = (Arc::clone(&ports.units), Arc::clone(&call.state.imports));
        let mut importer = Importer::new(units, places, ports.tasks.clone(), self.0);
        let piece_timeout = ports.service.body_timeout;
        let late = |_| Error::closing(LATE);
        while let Some(piece) = timeout(piece_timeout, body.next()).await.map_err(late)? {
            let piece = piece.map_err(|_| Error::closing(INCOMPLETE))?;
            importer.feed(&piece).await?;
        }
        Reply::ok(&importer.finish().await?)
    }
}
