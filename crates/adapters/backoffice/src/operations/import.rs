//! The bulk feed: NDJSON of any size, streamed.

use std::sync::Arc;

use actix_web::dev::Payload;
use futures_util::StreamExt;
use kernel::SellerId;
use tokio::time::timeout;
use web::Entry;

use super::sellers::existing;
use crate::importer::Importer;
use crate::operation::{Context, Streaming};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::request::Parts;

/// `POST /sellers/{seller}/offers:import`
pub(crate) struct ImportOffers;

impl Streaming for ImportOffers {
    type Input = SellerId;

    fn decode(parts: &Parts<'_>) -> Result<SellerId, Refusal> {
        parts.ndjson()?;
        Ok(parts.id(0)?)
    }

    async fn execute(seller: SellerId, context: Context, body: &mut Payload) -> Result<Reply, Refusal> {
        existing(seller, &context).await?;
        let office = context.office;
        let mut importer = Importer::new(Arc::clone(&office.units), office.tasks.clone(), seller);
        let patience = office.settings.body_timeout;
        let late = |_| Refusal::closing(Entry::whole("The next piece of the body did not arrive in time."));
        while let Some(piece) = timeout(patience, body.next()).await.map_err(late)? {
            let broken = |_| Refusal::closing(Entry::whole("The body broke off."));
            importer.feed(&piece.map_err(broken)?).await?;
        }
        Ok(Reply::ok(&importer.finish().await?)?)
    }
}
