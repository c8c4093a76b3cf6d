//! The bulk import: NDJSON of any size, streamed.

use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Payload;
use futures_util::StreamExt;
use kernel::{SellerId, StoreError};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use web::media_type::MediaType;
use web::operation::{Call, Incoming, Stream};
use web::reply::Reply;
use web::{Error, Violations};

use crate::importer::Importer;
use crate::policy::check_again;
use crate::sellers::existing;
use crate::{Access, BackOffice};

/// The most imports that are read at a time: each may keep some megabytes of rejected lines, for as long as its
/// client sends anything.
const AT_A_TIME: usize = 32;

/// How often the token is checked while a body arrives.
const CHECKED_EVERY: Duration = Duration::from_secs(5);

const LATE: &str = "The next part of the body did not arrive in time. Lines before it may have been applied.";
const INCOMPLETE: &str = "The body is incomplete. Lines before its end may have been applied.";

/// What all imports of a process share.
#[derive(Clone)]
pub struct Imports {
    read: Arc<Semaphore>,
    written: Arc<Semaphore>,
}

impl Imports {
    /// So many chunks are written at a time.
    pub fn new(written: usize) -> Self {
        let [read, written] = [AT_A_TIME, written].map(|places| Arc::new(Semaphore::new(places)));
        Self { read, written }
    }
}

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
        let (ports, imports) = (&call.state.ports, &call.state.imports);
        let piece_timeout = ports.service.body_timeout;
        let busy = |_| StoreError::Unavailable(format!("{AT_A_TIME} imports are being read").into());
        let place = timeout(piece_timeout, imports.read.acquire())
            .await
            .map_err(busy)?;
        let _place = place.map_err(StoreError::unexpected)?;
        let (units, places) = (Arc::clone(&ports.units), Arc::clone(&imports.written));
        let mut importer = Importer::new(units, places, ports.tasks.clone(), self.0);
        let late = |_| Error::closing(LATE);
        let mut checked = Instant::now();
        while let Some(piece) = timeout(piece_timeout, body.next()).await.map_err(late)? {
            let piece = piece.map_err(|_| Error::closing(INCOMPLETE))?;
            if checked.elapsed() > CHECKED_EVERY {
                check_again(&call).await?;
                checked = Instant::now();
            }
            importer.feed(&piece).await?;
        }
        check_again(&call).await?;
        Reply::ok(&importer.finish().await?)
    }
}
